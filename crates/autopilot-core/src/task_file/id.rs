//! Task ids: short names that are safe in branch names, file names and environment variables.

use std::collections::BTreeSet;

use camino::Utf8Path;

/// The longest id of a task.
pub const ID_CHARS_MAX: usize = 63;

/// The id of a file's task: `tasks/2026-01-31_Fix login!.md` becomes `fix-login`.
pub fn task_id(path: &Utf8Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    slug(without_date(stem))
}

/// Makes an id of a text: in lower case, with one `-` for anything but letters and digits; never
/// empty.
pub fn slug(text: &str) -> String {
    let mut id = String::new();
    for c in text.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            id.push(c);
        } else if !id.is_empty() && !id.ends_with('-') {
            id.push('-');
        }
    }
    id.truncate(ID_CHARS_MAX);
    let id = id.trim_end_matches('-');
    if id.is_empty() { "task".to_owned() } else { id.to_owned() }
}

fn without_date(stem: &str) -> &str {
    let Some((date, rest)) = stem.split_once('_') else { return stem };
    let is_date = date.len() == 10
        && date.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_date { rest } else { stem }
}

/// Makes ids unique, in their order: the second of two equal ids gets `-2`, the third `-3`.
pub fn unique_ids(ids: impl IntoIterator<Item = String>) -> Vec<String> {
    let ids: Vec<String> = ids.into_iter().collect();
    let wished: BTreeSet<&String> = ids.iter().collect();
    let mut taken = BTreeSet::new();
    let mut unique = Vec::with_capacity(ids.len());
    for id in &ids {
        let mut candidate = id.clone();
        let mut number = 2_usize;
        // A numbered id must not take the id that a later file has by its own name.
        while taken.contains(&candidate) || (candidate != *id && wished.contains(&candidate)) {
            let suffix = format!("-{number}");
            let room = ID_CHARS_MAX.saturating_sub(suffix.len());
            let head: String = id.chars().take(room).collect();
            candidate = format!("{}{suffix}", head.trim_end_matches('-'));
            number += 1;
        }
        taken.insert(candidate.clone());
        unique.push(candidate);
    }
    unique
}

/// Whether an id given by a person or a planner can be used as it is.
pub(crate) fn is_safe(id: &str) -> bool {
    let starts = id.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let lock = id.to_ascii_lowercase().ends_with(".lock");
    starts
        && id.len() <= ID_CHARS_MAX
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !id.contains("..")
        && !id.ends_with('.')
        && !lock
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_come_from_file_names() {
        for (path, id) in [
            ("tasks/2026-01-31_fix-login.md", "fix-login"),
            ("tasks/2026-01-31_Fix  Login!.md", "fix-login"),
            ("2026-01-31.md", "2026-01-31"),
            ("2026-1-31_x.md", "2026-1-31-x"),
            ("---.md", "task"),
            ("Ünïcödé.md", "n-c-d"),
            ("-rf.md", "rf"),
            ("a.b.md", "a-b"),
            ("..", "task"),
        ] {
            assert_eq!(task_id(Utf8Path::new(path)), id, "{path}");
        }
        assert_eq!(task_id(Utf8Path::new(&"x".repeat(300))).len(), ID_CHARS_MAX);
    }

    #[test]
    fn equal_ids_are_numbered_without_taking_the_name_of_another() {
        let ids = |ids: &[&str]| unique_ids(ids.iter().map(|id| (*id).to_owned()));
        assert_eq!(ids(&["a", "a", "b", "a"]), ["a", "a-2", "b", "a-3"]);
        assert_eq!(ids(&["a", "a", "a-2"]), ["a", "a-3", "a-2"]);
        let long = "x".repeat(ID_CHARS_MAX);
        assert!(ids(&[&long, &long]).iter().all(|id| id.len() <= ID_CHARS_MAX));
    }

    proptest! {
        #[test]
        fn every_name_gives_a_safe_id(name in "\\PC*") {
            prop_assert!(is_safe(&task_id(Utf8Path::new(&name))));
        }

        #[test]
        fn ids_of_a_queue_differ(ids in proptest::collection::vec("[ab](-[23])?", 0..20)) {
            let unique = unique_ids(ids.clone());
            prop_assert_eq!(unique.iter().collect::<BTreeSet<_>>().len(), ids.len());
        }
    }
}
