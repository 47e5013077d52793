//! Words of strangers as Markdown that shows them and does nothing else.

/// Stands after what would call somebody or something: seen by no reader, and enough that no forge
/// takes `@name` for a person or `#7` for an issue.
const APART: char = '\u{200b}';

/// In running text.
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
            // What makes a list, a heading, a rule or an order where a text begins.
            '-' | '+' | '=' | '/' if at == 0 => safe.extend(['\\', c]),
            // A link shows where it leads, but is not followed by a slip.
            ':' if rest.starts_with("//") => safe.push_str("\\:"),
            other => safe.push(other),
        }
    }
    safe
}

/// As code, also in a table, where a bar must be escaped even there.
pub(super) fn code(text: &str) -> String {
    let text = one_line(text).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let gap = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// Neither an end of a line nor anything that changes the direction or hides a letter.
pub(super) fn one_line(text: &str) -> String {
    let unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    };
    text.chars().map(|c| if unseen(c) { ' ' } else { c }).collect()
}
