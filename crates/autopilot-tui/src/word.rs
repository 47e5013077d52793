//! Lists and numbers as a person would write them.

/// The first of some names, and how many more there are: `a, b, c and 4 more`.
pub fn some<T: AsRef<str>>(names: &[T], names_max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(names_max).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(names_max) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `1 task`, `2 tasks`.
pub fn tasks(count: usize) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_of_names_are_cut_and_counted() {
        assert_eq!(some(&["a", "b"], 3), "a, b");
        assert_eq!(some(&["a", "b", "c", "d"], 3), "a, b, c and 1 more");
        assert_eq!(some::<&str>(&[], 3), "");
    }
}
