//! Text in columns, and the headings of sections.

use super::FAINT;
use autopilot_view::width::fit;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

/// A text padded on its left to exactly `width` cells, or cut to them.
pub fn right(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let missing = width.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(missing))
}

/// A line cut to the width of the screen.
pub fn line(text: &str, width: usize, style: Style) -> Line<'static> {
    Line::styled(fit(text, width), style)
}

/// The heading of a section: `── Log ──────────`.
pub fn heading(text: &str, width: usize) -> Line<'static> {
    let text = fit(text, width.saturating_sub(4));
    let used = text.width() + 4;
    Line::from(vec![
        Span::styled("── ", FAINT),
        Span::styled(text, FAINT.remove_modifier(Modifier::DIM).add_modifier(Modifier::BOLD)),
        Span::styled(format!(" {}", "─".repeat(width.saturating_sub(used))), FAINT),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_at_the_right_of_their_column() {
        assert_eq!(right("1s", 4), "  1s");
        assert_eq!(right("abcdef", 4), "abc…");
    }
}
