//! Text made to fit: cut to a number of cells, padded to a column.

use super::FAINT;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text cut to at most `width` cells, with `…` where it was cut.
pub fn fit(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for character in text.chars() {
        let cells = character.width().unwrap_or(0);
        if used + cells + 1 > width {
            break;
        }
        used += cells;
        kept.push(character);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// A text padded on its right to exactly `width` cells, or cut to them.
pub fn column(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let missing = width.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// A text padded on its left to exactly `width` cells, or cut to them.
pub fn right(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let missing = width.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(missing))
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
    fn text_is_cut_by_cells_and_marked() {
        assert_eq!(fit("short", 9), "short");
        assert_eq!(fit("too long", 4), "too…");
        assert_eq!(fit("漢字漢字", 5), "漢字…");
        assert_eq!(fit("漢字", 3), "漢…");
        assert_eq!((fit("x y", 1), fit("xy", 0)), ("…".to_owned(), String::new()));
    }

    #[test]
    fn columns_have_exactly_their_width() {
        assert_eq!(column("漢", 4), "漢  ");
        assert_eq!(right("1s", 4), "  1s");
        assert_eq!(column("abcdef", 4), "abc…");
    }
}
