//! Text made to fit the columns of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text cut to at most `columns_max` columns, with `…` where it was cut.
pub fn fit(text: &str, columns_max: usize) -> String {
    if text.width() <= columns_max {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut width = 0;
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width + 1 > columns_max {
            break;
        }
        kept.push(c);
    }
    if columns_max > 0 {
        kept.push('…');
    }
    kept
}

/// A text padded on its right to exactly this number of columns, or cut to them.
pub fn column(text: &str, columns: usize) -> String {
    let text = fit(text, columns);
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
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
        assert_eq!(column("abcdef", 4), "abc…");
    }
}
