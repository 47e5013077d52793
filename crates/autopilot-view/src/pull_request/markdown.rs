//! Escaping of foreign text, so that Markdown shows it and does nothing else.

/// An invisible character that keeps a forge from reading `@name` as a person or `#7` as an issue.
const APART: char = '\u{200b}';

/// Escapes text for a paragraph or a table cell.
pub(super) fn escaped(text: &str) -> String {
    let text = one_line(text);
    let text = text.trim();
    let mut safe = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '@' | '#' => safe.extend(['\\', c, APART]),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => safe.extend(['\\', c]),
            // These make a list, a heading, a rule or a command at the start of a text.
            '-' | '+' | '=' | '/' if at == 0 => safe.extend(['\\', c]),
            // A link is shown, but can't be clicked by accident.
            ':' if rest.starts_with("//") => safe.push_str("\\:"),
            other => safe.push(other),
        }
    }
    safe
}

/// Formats text as code, also in a table, where a bar must be escaped even in code.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let gap = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// The text without line ends, changes of direction and invisible characters.
pub(super) fn one_line(text: &str) -> String {
    let unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().map(|c| if unseen(c) { ' ' } else { c }).collect()
}
