//! The test binaries of the workspace and the tests each lists. A binary that lists none was meant
//! to prove something, and proves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::step::{self, Failure};
use crate::workspace::cargo;

/// Test binary, as `package/target` → the names of its tests.
pub struct Listing(BTreeMap<String, Vec<String>>);

impl Listing {
    /// Builds the test binaries, and the product's binary, which tests start by its path; then asks
    /// each for its tests.
    pub fn build() -> Result<Self, Failure> {
        let mut command = cargo(["test", "--workspace", "--no-run"]);
        command.args(["--message-format", "json-render-diagnostics"]);
        let messages = step::run_for_output("build", &mut command)?;
        let mut listing = BTreeMap::new();
        for (name, program) in test_binaries(&messages)? {
            let listed =
                step::output_of(Command::new(&program).args(["--list", "--format", "terse"]))?;
            listing.insert(name, tests_in(&listed));
        }
        Self(listing).checked()
    }

    fn checked(self) -> Result<Self, Failure> {
        let empty = self.0.iter().filter(|(_, tests)| tests.is_empty());
        let empty: Vec<&str> = empty.map(|(name, _)| name.as_str()).collect();
        match empty.as_slice() {
            [] if self.0.is_empty() => {
                Err(Failure::Task("cargo built no test binary at all".to_owned()))
            }
            [] => Ok(self),
            empty => Err(Failure::Task(format!(
                "test binaries that list no tests: {}\n  \
                 a target without tests says `test = false` in its Cargo.toml",
                empty.join(", ")
            ))),
        }
    }

    /// How many tests are in integration tests of these names, or have `word` in their own.
    pub fn count(&self, targets: &[&str], word: &str) -> usize {
        let is_named =
            |binary: &str| targets.iter().any(|name| binary.ends_with(&format!("/{name}")));
        let counts = self.0.iter().map(|(binary, tests)| {
            tests.iter().filter(|test| is_named(binary) || test.contains(word)).count()
        });
        counts.sum()
    }
}

/// The executables that cargo built with a test harness, by name.
fn test_binaries(messages: &str) -> Result<Vec<(String, PathBuf)>, Failure> {
    let mut binaries = Vec::new();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(program) = message["executable"].as_str() else { continue };
        if message["profile"]["test"] != true {
            continue;
        }
        let package = message["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
        let package = package.and_then(Path::file_name).map(|name| name.to_string_lossy());
        let target = message["target"]["name"].as_str();
        let (Some(package), Some(target)) = (package, target) else {
            return Err(Failure::Task(format!("cargo did not say what `{program}` is made of")));
        };
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let name = if kind == "test" {
            format!("{package}/{target}")
        } else {
            format!("{package}/{target} ({kind})")
        };
        binaries.push((name, program.into()));
    }
    Ok(binaries)
}

/// The tests in what a harness prints for `--list --format terse`.
fn tests_in(listed: &str) -> Vec<String> {
    listed.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(rows: &[(&str, &str)]) -> Listing {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        Listing(rows.iter().map(|(name, tests)| ((*name).to_owned(), words(tests))).collect())
    }

    #[test]
    fn a_binary_that_lists_no_tests_is_named() {
        assert!(listing(&[("a/one", "x y z"), ("a/a (lib)", "x")]).checked().is_ok());
        let rows = [("a/one", "x y z"), ("a/two", ""), ("b/b (lib)", "")];
        let text = listing(&rows).checked().err().unwrap().to_string();
        assert!(text.contains("no tests: a/two, b/b (lib)\n"), "{text}");
    }

    #[test]
    fn no_binary_at_all_is_an_error_too() {
        assert!(listing(&[]).checked().is_err());
    }

    #[test]
    fn tests_are_counted_by_their_binary_or_their_name() {
        let rows = [("a/one", "x y real_z"), ("a/one (lib)", "x"), ("b/two", "x y real_z")];
        assert_eq!(listing(&rows).count(&["one"], "real_"), 4);
        assert_eq!(listing(&rows).count(&[], "real_"), 2);
    }

    #[test]
    fn test_binaries_are_taken_from_the_messages_of_cargo() {
        let messages = r#"
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["lib"],"name":"a"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["bin"],"name":"a"},"profile":{"test":false},"executable":"/t/a"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["bin"],"name":"a"},"profile":{"test":true},"executable":"/t/a-1"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"kind":["test"],"name":"one"},"profile":{"test":true},"executable":"/t/one-1"}
{"reason":"build-finished","success":true}
"#;
        let found = test_binaries(messages).unwrap();
        let expected = [("a/a (bin)", "/t/a-1"), ("a/one", "/t/one-1")];
        assert_eq!(found, expected.map(|(name, program)| (name.to_owned(), program.into())));
    }

    #[test]
    fn only_tests_are_taken_from_what_a_harness_lists() {
        assert_eq!(
            tests_in("one: test\ntwo::three: test\nfour: benchmark\n"),
            ["one", "two::three"]
        );
        assert!(tests_in("").is_empty());
    }
}
