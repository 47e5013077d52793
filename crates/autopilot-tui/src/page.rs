//! A long text that fills the screen and can be scrolled: a log that may still grow, or a diff.

use crate::key::MoveBy;
use autopilot_host::escape::plain;

/// Lines kept of a text. Of a longer text the last ones are kept, and the first line says so.
pub const PAGE_LINES_MAX: usize = 20_000;

/// A text, and the part of it that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPage {
    pub title: String,
    pub kind: PageKind,
    pub lines: Vec<String>,
    /// The first line shown.
    pub top: usize,
    /// Whether the page stays at the end while the text grows.
    pub follows: bool,
}

/// What a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    Log,
    Diff,
}

impl TextPage {
    /// A log, shown from its end.
    pub fn log(title: String, text: &str) -> TextPage {
        let lines = lines(text);
        TextPage { title, kind: PageKind::Log, top: lines.len(), lines, follows: true }
    }

    /// A diff, shown from its beginning.
    pub fn diff(title: String, text: &str) -> TextPage {
        TextPage { title, kind: PageKind::Diff, lines: lines(text), top: 0, follows: false }
    }

    /// Replaces the text of a log that was read again.
    pub fn grow(&mut self, text: &str) {
        self.lines = lines(text);
    }

    /// Scrolls a page that shows `rows` lines at a time.
    pub fn scroll(&mut self, by: MoveBy, rows: usize) {
        let last = self.lines.len().saturating_sub(rows);
        self.top = by.from(self.first_shown(rows), last, rows);
        self.follows = self.kind == PageKind::Log && self.top == last;
    }

    /// The index of the first line that is shown.
    pub fn first_shown(&self, rows: usize) -> usize {
        let last = self.lines.len().saturating_sub(rows);
        if self.follows { last } else { self.top.min(last) }
    }

    /// The lines that are shown.
    pub fn shown(&self, rows: usize) -> &[String] {
        let from = self.first_shown(rows);
        let to = (from + rows).min(self.lines.len());
        self.lines.get(from..to).unwrap_or_default()
    }
}

fn lines(text: &str) -> Vec<String> {
    let text = plain(text);
    let all: Vec<&str> = text.lines().collect();
    let from = all.len().saturating_sub(PAGE_LINES_MAX);
    let mut lines = Vec::with_capacity(all.len() - from + 1);
    if from > 0 {
        lines.push(format!("… {from} earlier lines are not shown"));
    }
    lines.extend(all.iter().skip(from).map(|line| line.replace('\t', "    ")));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(count: usize) -> String {
        (0..count).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn a_log_stays_at_its_end_until_somebody_scrolls() {
        let mut page = TextPage::log("l".into(), &numbered(100));
        assert_eq!(page.shown(10).first().map(String::as_str), Some("90"));
        page.grow(&numbered(120));
        assert_eq!(page.shown(10).last().map(String::as_str), Some("119"));
        page.scroll(MoveBy::Page(-1), 10);
        assert_eq!(page.shown(10).first().map(String::as_str), Some("100"));
        page.grow(&numbered(200));
        assert_eq!(page.shown(10).first().map(String::as_str), Some("100"));
        page.scroll(MoveBy::Last, 10);
        page.grow(&numbered(300));
        assert_eq!(page.shown(10).last().map(String::as_str), Some("299"));
    }

    #[test]
    fn a_huge_text_keeps_its_end_and_says_so() {
        let page = TextPage::log("l".into(), &numbered(PAGE_LINES_MAX + 7));
        assert_eq!(page.lines.len(), PAGE_LINES_MAX + 1);
        assert_eq!(page.lines[0], "… 7 earlier lines are not shown");
    }

    #[test]
    fn nothing_in_a_text_acts_on_the_terminal() {
        let page = TextPage::diff("d".into(), "a\u{1b}[31mred\u{7}\n\tb");
        assert_eq!(page.lines, ["ared\\x07", "    b"]);
    }

    #[test]
    fn a_page_without_rows_or_lines_shows_nothing() {
        assert!(TextPage::log("l".into(), "").shown(5).is_empty());
        assert!(TextPage::diff("d".into(), "a\nb").shown(0).is_empty());
    }
}
