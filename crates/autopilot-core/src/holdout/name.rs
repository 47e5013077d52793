//! The names of held-out tests, taken from the held-out files alone, and their digest.

use crate::fingerprint::sha256_hex;
use crate::yardstick::test_bodies;
use serde::{Deserialize, Serialize};

/// The characters of a name that are told.
const NAME_CHARS_MAX: usize = 120;

/// The held-out tests of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldOutTests {
    /// A digest of the paths, the modes and the contents of all files.
    pub digest: String,
    names: Vec<HeldOutName>,
}

/// A name that a held-out file gives: its own, or that of a test in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeldOutName {
    file: String,
    test: Option<String>,
}

impl HeldOutTests {
    /// The tests of these files: path, whether it is a program, content. They are in the order of
    /// their paths.
    pub fn of<'a>(files: impl Iterator<Item = (&'a str, bool, &'a [u8])>) -> HeldOutTests {
        let (mut marks, mut names) = (String::new(), Vec::new());
        for (path, is_program, content) in files {
            let mode = if is_program { 'x' } else { '-' };
            marks.push_str(&format!("{path}\0{mode}{}\n", sha256_hex(content)));
            let file = path.to_owned();
            let tests = test_bodies(path, &String::from_utf8_lossy(content)).into_keys();
            let tests = tests.map(|test| HeldOutName { file: file.clone(), test: Some(test) });
            names.extend(tests);
            names.push(HeldOutName { file, test: None });
        }
        HeldOutTests { digest: sha256_hex(marks.as_bytes()), names }
    }

    /// The held-out name that a runner's name for a test has in it: the longest, and of tests with one
    /// name that whose file it has too.
    pub fn named(&self, id: &str) -> Option<&HeldOutName> {
        let found = self.names.iter().filter(|name| name.is_in(id));
        found.max_by_key(|name| {
            let (file, test) = (&name.file, name.test.as_deref());
            (test.map_or(0, str::len), has(id, file), file.len())
        })
    }
}

impl HeldOutName {
    fn is_in(&self, id: &str) -> bool {
        let Some(test) = &self.test else { return has(id, &self.file) };
        let last = test.rsplit("::").next().unwrap_or(test);
        has(id, test) || has(id, last)
    }

    /// The name on one line of bounded length.
    pub fn told(&self) -> String {
        let name = self.test.as_ref().unwrap_or(&self.file);
        let plain = |c: char| if c.is_control() || c == '`' { ' ' } else { c };
        let line: String = name.chars().map(plain).collect();
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.char_indices().nth(NAME_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// Whether a text has a name in it that is not a part of a longer one.
fn has(text: &str, name: &str) -> bool {
    let is_before = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-'));
    // A name may be followed by the parameters of the test, which are no part of it.
    let is_after = |rest: &str| {
        let mut rest = rest.chars();
        match (rest.next(), rest.next()) {
            (None, _) => true,
            (Some(' '), next) => next.is_none_or(|next| "([<>{#".contains(next)),
            (Some(c), _) => !(c.is_alphanumeric() || matches!(c, '_' | '-')),
        }
    };
    !name.is_empty()
        && text.match_indices(name).any(|(at, _)| {
            text[..at].chars().next_back().is_none_or(is_before)
                && is_after(&text[at + name.len()..])
        })
}
