//! Joins an error and its causes into one line.

/// Returns an error with its causes in one line; a cause that the text already contains is left out.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let more = source.to_string();
        if more.starts_with(&text) {
            text = more;
        } else if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = source.source();
    }
    text
}
