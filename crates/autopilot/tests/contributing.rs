//! The worked examples of CONTRIBUTING.md hold: each touches as few files as a stage or a flow may,
//! they apply to the sources as these are now, and what comes of them compiles.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const STAGE_FILES_MAX: usize = 4;
const FLOW_FILES_MAX: usize = 6;

#[test]
fn the_examples_apply_to_the_sources_and_compile() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let copy = copy_of_the_sources();
    for (title, files_max) in
        [("## Add a stage\n", STAGE_FILES_MAX), ("## Add a flow\n", FLOW_FILES_MAX)]
    {
        let diff = example(&text, title);
        let files = files_of(diff);
        assert!((1..=files_max).contains(&files.len()), "{title} touches {files:?}");
        apply(&copy, diff);
        for file in files {
            let before = fs::read(root().join(file)).unwrap_or_default();
            assert_ne!(fs::read(copy.join(file)).unwrap(), before, "{file} is as it was");
        }
    }
    // The same units as in the lints, so that dependencies are checked once for both.
    cargo(&copy, &["check", "--workspace", "--all-targets"]);
    // Every table is sound, and every step of a task has its word.
    cargo(&copy, &["test", "--package", "autopilot-core", "--lib", "flow::"]);
}

#[test]
fn the_files_of_a_diff_are_those_that_it_leaves_behind() {
    let text = "## A\n```diff\n--- a/one\n+++ b/one\n@@ -2 +2 @@\n-x\n+++y\n\
                --- /dev/null\n+++ b/two\n```\n## B\n```diff\n+++ b/three\n```\n";
    assert_eq!(files_of(example(text, "## A\n")), ["one", "two"]);
}

/// The diff in the section with this title.
fn example<'a>(text: &'a str, title: &str) -> &'a str {
    let (_, section) = text.split_once(title).unwrap();
    let section = section.find("\n## ").map_or(section, |end| &section[..=end]);
    let (_, diff) = section.split_once("```diff\n").unwrap();
    let (diff, rest) = diff.split_once("```\n").unwrap();
    assert!(!rest.contains("```diff"), "{title} has a second diff, which nothing checks");
    diff
}

fn files_of(diff: &str) -> Vec<&str> {
    diff.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect()
}

/// Always in the same place, so that what cargo keeps for it does not pile up.
fn copy_of_the_sources() -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contributing");
    let _absent = fs::remove_dir_all(&copy);
    let mut listing = Command::new("git");
    listing.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let listed = succeed(listing.current_dir(root()));
    for path in String::from_utf8(listed.stdout).unwrap().split_terminator('\0') {
        let (from, to) = (root().join(path), copy.join(path));
        // A file that was deleted and is not committed yet is still listed.
        if from.is_file() {
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
    }
    copy
}

fn apply(copy: &Path, diff: &str) {
    let mut git = Command::new("git");
    git.args(["apply", "-"]).current_dir(copy).stdin(Stdio::piped()).stderr(Stdio::piped());
    // Inside of a repository, git leaves out what lies outside of the current directory.
    git.env("GIT_CEILING_DIRECTORIES", copy.parent().unwrap());
    let mut child = git.spawn().unwrap();
    child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "an example of CONTRIBUTING.md no longer applies:\n{told}");
}

fn cargo(copy: &Path, arguments: &[&str]) {
    // The directory in which the workspace itself is built: dependencies are shared.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).args(["--quiet", "--offline", "--locked"]).current_dir(copy);
    cargo.env("CARGO_TARGET_DIR", target).env("CARGO_INCREMENTAL", "0");
    let output = succeed(&mut cargo);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("warning:"), "the examples of CONTRIBUTING.md:\n{told}");
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}\n{told}\n{said}");
    output
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
