//! Splits a section into bullets and paragraphs.

/// A bullet or a paragraph; its further lines follow after line breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextItem {
    pub(super) line: usize,
    pub(super) text: String,
    pub(super) bullet: bool,
}

pub(super) fn items(lines: &[(usize, &str)]) -> Vec<TextItem> {
    let mut items: Vec<TextItem> = Vec::new();
    let mut open = false;
    let mut fence = Fence::default();
    for (number, line) in lines {
        let trimmed = line.trim();
        let code = fence.open.is_some();
        fence.step(line);
        if let Some(text) = bullet(line).filter(|_| !code) {
            items.push(TextItem { line: *number, text: text.to_owned(), bullet: true });
            open = true;
        } else if code || fence.open.is_some() {
            add(&mut items, *number, line.strip_prefix("  ").unwrap_or(line), open);
            open = true;
        } else if trimmed.is_empty() {
            open = false;
        } else if open && line.starts_with("  ") {
            add(&mut items, *number, line.strip_prefix("  ").unwrap_or(line).trim_end(), true);
        } else if let Some(last) = items.last_mut().filter(|_| open) {
            last.text.push(' ');
            last.text.push_str(trimmed);
        } else {
            items.push(TextItem { line: *number, text: trimmed.to_owned(), bullet: false });
            open = true;
        }
    }
    items.retain(|item| !item.text.trim().is_empty());
    items
}

fn add(items: &mut Vec<TextItem>, line: usize, text: &str, to_last: bool) {
    match items.last_mut().filter(|_| to_last) {
        Some(last) => {
            last.text.push('\n');
            last.text.push_str(text);
        }
        None => items.push(TextItem { line, text: text.to_owned(), bullet: false }),
    }
}

/// Tracks whether a block of code is open; nothing in it is a bullet, a heading or a label.
#[derive(Default)]
pub(crate) struct Fence<'a> {
    pub(crate) open: Option<&'a str>,
}

impl<'a> Fence<'a> {
    pub(crate) fn step(&mut self, line: &'a str) {
        match self.open {
            None => self.open = marks(bullet(line).unwrap_or(line.trim())),
            Some(open) => {
                let trimmed = line.trim();
                if marks(trimmed).is_some_and(|end| end == trimmed && end.starts_with(open)) {
                    self.open = None;
                }
            }
        }
    }
}

/// The run of marks that opens or closes a block of code.
fn marks(text: &str) -> Option<&str> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = text.chars().take_while(|c| *c == mark).count();
    let inline = mark == '`' && text[length..].contains('`');
    (length >= 3 && !inline).then(|| &text[..length])
}

/// The text of `- x`, `* x`, `+ x`, `1. x`, `1) x`, without a task box.
fn bullet(line: &str) -> Option<&str> {
    let line = line.strip_prefix(' ').unwrap_or(line);
    let rest = match line.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let numbered = (1..=9).contains(&digits);
            line[digits..].strip_prefix(['.', ')']).filter(|_| numbered)?
        }
    };
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim();
    let boxed = ["[ ]", "[x]", "[X]"].iter().find_map(|mark| rest.strip_prefix(mark));
    Some(boxed.map_or(rest, str::trim))
}
