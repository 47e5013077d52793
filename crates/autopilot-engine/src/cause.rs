//! What an error and its causes say together.

/// An error with its causes, in one line, without what the line says already.
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
