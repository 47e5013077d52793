//! Text on the page. Text of agents and people gets there only as a [`ReportLine`] or a [`Body`],
//! which are made only here: secrets hidden, control characters made visible, and cut to size.

use autopilot_core::state::Task;
use maud::{Markup, PreEscaped, Render, html};
use std::cell::Cell;

/// The most characters of a line.
pub const LINE_CHARS_MAX: usize = 600;
/// The bytes shown of the beginning of a longer text.
pub const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The bytes shown of the end of a longer text.
pub const TAIL_BYTES_MAX: usize = 16 * 1024;
/// The bytes of all longer texts on a page together.
pub const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A function that hides secrets and makes control characters visible.
pub type Clean<'a> = &'a dyn Fn(&str) -> String;

/// The beginning and the end of a longer text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Excerpt {
    pub head: String,
    /// Empty if the head is the whole text.
    pub tail: String,
    /// The size of the whole text.
    pub bytes: u64,
    /// The file of the whole text, relative to the checkout.
    pub path: Option<String>,
}

impl Excerpt {
    /// An excerpt that is the whole text.
    pub fn whole(text: String, path: Option<String>) -> Excerpt {
        let bytes = text.len() as u64;
        Excerpt { head: text, tail: String::new(), bytes, path }
    }
}

/// One safe line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportLine(String);

impl ReportLine {
    /// A line of the program itself, which needs no cleaning.
    pub fn own(text: &'static str) -> ReportLine {
        ReportLine(text.to_owned())
    }

    /// The text of the line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Facts with their names, one below the other.
pub type FactRows = Vec<(&'static str, ReportLine)>;

impl Render for ReportLine {
    fn render_to(&self, buffer: &mut String) {
        self.0.render_to(buffer);
    }
}

/// A safe longer text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    head: String,
    /// The number of bytes between head and tail that are not shown.
    left_out: u64,
    tail: String,
    path: Option<ReportLine>,
}

impl Body {
    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.head.trim().is_empty() && self.tail.trim().is_empty() && self.left_out == 0
    }
}

impl Render for Body {
    fn render(&self) -> Markup {
        html! {
            @if self.is_empty() {
                p.none { "(nothing)" }
            }
            @if !self.head.is_empty() {
                pre tabindex="0" { (PreEscaped("\n")) (self.head) }
            }
            @if self.left_out > 0 {
                p.cut {
                    "About " (size(self.left_out)) " left out. "
                    @if let Some(path) = &self.path { "The whole is in " code { (path) } "." }
                    @else { "The whole is in the journal." }
                }
            }
            @if !self.tail.is_empty() {
                pre tabindex="0" { (PreEscaped("\n")) (self.tail) }
            }
        }
    }
}

/// Makes all text of the page that comes from agents, people and files.
pub struct PageWords<'a> {
    clean: Clean<'a>,
    /// The bytes of longer texts for which there is still room.
    room: Cell<usize>,
}

impl<'a> PageWords<'a> {
    /// A maker with an empty page.
    pub fn new(clean: Clean<'a>) -> PageWords<'a> {
        PageWords { clean, room: Cell::new(PAGE_BYTES_MAX) }
    }

    /// A line of at most [`LINE_CHARS_MAX`] characters.
    pub fn line(&self, text: &str) -> ReportLine {
        self.cut_line(text, LINE_CHARS_MAX)
    }

    /// A line of at most `chars_max` characters.
    pub fn cut_line(&self, text: &str, chars_max: usize) -> ReportLine {
        let clean = (self.clean)(text);
        let mut chars = clean.trim().chars();
        let kept = chars.by_ref().take(chars_max);
        let mut line: String =
            kept.map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
        if chars.next().is_some() {
            line.push('…');
        }
        ReportLine(line)
    }

    /// The name of a task; the run itself has none and gets `run`.
    pub fn task_name(&self, task: &Task, run: &'static str) -> ReportLine {
        if task.parent.is_some() { self.line(task.name()) } else { ReportLine::own(run) }
    }

    /// One line for each text.
    pub fn lines<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Vec<ReportLine> {
        texts.into_iter().map(|text| self.line(text.as_ref())).collect()
    }

    /// The rows that have a value.
    pub fn rows(&self, rows: impl IntoIterator<Item = (&'static str, Option<String>)>) -> FactRows {
        let row = |(name, value): (_, Option<String>)| Some((name, self.line(&value?)));
        rows.into_iter().filter_map(row).collect()
    }

    /// A longer text, as far as there is room on the page.
    pub fn body(&self, excerpt: &Excerpt) -> Body {
        let (head, tail) = self.shown(excerpt);
        let used = head.len() + tail.len();
        let path = excerpt.path.as_deref().map(|path| self.line(path));
        let Some(room) = self.room.get().checked_sub(used) else {
            return Body { left_out: excerpt.bytes.max(1), path, ..Body::default() };
        };
        self.room.set(room);
        let is_whole = excerpt.tail.is_empty() && tail.is_empty();
        let left_out = if is_whole { 0 } else { excerpt.bytes.saturating_sub(used as u64).max(1) };
        Body { head, left_out, tail, path }
    }

    /// A longer text without a file.
    pub fn text(&self, text: &str) -> Body {
        self.body(&Excerpt::whole(text.to_owned(), None))
    }

    /// The head and tail to show. They are cleaned before the cut, because half a secret is not found.
    fn shown(&self, excerpt: &Excerpt) -> (String, String) {
        let head = (self.clean)(&excerpt.head);
        if excerpt.tail.is_empty() && head.len() <= HEAD_BYTES_MAX + TAIL_BYTES_MAX {
            return (head, String::new());
        }
        let tail = if excerpt.tail.is_empty() { head.clone() } else { (self.clean)(&excerpt.tail) };
        let end = head.floor_char_boundary(HEAD_BYTES_MAX);
        let begin = tail.ceil_char_boundary(tail.len().saturating_sub(TAIL_BYTES_MAX));
        (head[..end].to_owned(), tail[begin..].to_owned())
    }
}

/// A size for people: `3 bytes`, `12 KB`, `9.5 MB`.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} KB", bytes / 1_000),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn a_line_is_one_line_and_bounded() {
        let words = PageWords::new(&same);
        assert_eq!(words.line("a\nb\tc").as_str(), "a b c");
        let long = words.line(&"ä".repeat(LINE_CHARS_MAX + 1));
        assert_eq!(long.as_str().chars().count(), LINE_CHARS_MAX + 1);
        assert!(long.as_str().ends_with('…'));
    }

    #[test]
    fn markup_in_texts_is_text() {
        let words = PageWords::new(&same);
        let hostile = "</pre><script>x</script>&\"";
        let safe = "&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt;&amp;&quot;";
        assert_eq!(html! { (words.line(hostile)) }.into_string(), safe);
        assert!(words.text(hostile).render().into_string().contains(safe));
    }

    #[test]
    fn a_long_text_keeps_both_ends_and_says_where_the_whole_is() {
        let words = PageWords::new(&same);
        let text = format!("begin{}end", "ü".repeat(HEAD_BYTES_MAX));
        let bytes = text.len() as u64;
        let body = words.body(&Excerpt {
            head: text,
            tail: String::new(),
            bytes,
            path: Some("a/b".into()),
        });
        assert!(body.head.starts_with("begin") && body.head.len() <= HEAD_BYTES_MAX);
        assert!(body.tail.ends_with("end") && body.tail.len() <= TAIL_BYTES_MAX);
        assert_eq!(body.left_out, bytes - (body.head.len() + body.tail.len()) as u64);
        assert!(body.render().into_string().contains("The whole is in <code>a/b</code>"));
    }

    #[test]
    fn a_secret_at_the_cut_is_hidden_as_a_whole() {
        let hide = |text: &str| text.replace("secret", "******");
        let words = PageWords::new(&hide);
        let text =
            format!("{}secret{}", "x".repeat(HEAD_BYTES_MAX - 3), "y".repeat(TAIL_BYTES_MAX * 2));
        let body = words.body(&Excerpt::whole(text, None));
        assert!(body.left_out > 0);
        assert!(body.head.ends_with("x***"), "{}", &body.head[body.head.len() - 9..]);
    }

    #[test]
    fn a_page_holds_so_much_and_then_only_says_where_to_look() {
        let words = PageWords::new(&same);
        let text = "x".repeat(HEAD_BYTES_MAX);
        let shown = (0..PAGE_BYTES_MAX / HEAD_BYTES_MAX + 3)
            .map(|_| words.body(&Excerpt::whole(text.clone(), Some("p".into()))))
            .filter(|body| !body.head.is_empty())
            .count();
        assert_eq!(shown, PAGE_BYTES_MAX / HEAD_BYTES_MAX);
        let more = words.body(&Excerpt::whole(text, Some("p".into())));
        assert!(more.render().into_string().contains("The whole is in"), "{more:?}");
    }
}
