//! Steps and lists as a person would write them.

use autopilot_core::step::Step;

/// What a step does, and which agent does it: `builder: building`.
pub fn doing(step: Step) -> String {
    let row = step.row();
    match row.role {
        Some(role) => format!("{}: {}", role.word(), row.doing),
        None => row.doing.to_owned(),
    }
}

/// The first names of a list and the number of the others: `a, b, c and 4 more`.
pub fn some<T: AsRef<str>>(names: &[T], names_max: usize) -> String {
    let shown: Vec<&str> = names.iter().take(names_max).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(names_max) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
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
