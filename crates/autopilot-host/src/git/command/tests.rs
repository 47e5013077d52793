//! Tests of git command lines.

use super::*;

#[test]
fn a_failure_names_the_operation_and_the_words_of_git() {
    let dir = tempfile::tempdir().unwrap();
    let error = GitCommand::isolated("read the base branch", dir.path())
        .args(["rev-parse", "HEAD"])
        .ok()
        .unwrap_err()
        .to_string();
    assert!(error.contains("read the base branch"), "{error}");
    assert!(error.contains("not a git repository"), "{error}");
}

#[test]
fn a_failure_of_another_program_names_that_program() {
    let shell = find_program("sh").unwrap();
    let error = GitCommand::program_as_user("ask the shell", &shell, Path::new("/"))
        .args(["-c", "echo no >&2; exit 3"])
        .ok()
        .unwrap_err()
        .to_string();
    assert_eq!(error, "cannot ask the shell: `sh -c` failed with exit code 3: no");
}

#[test]
fn the_deadline_ends_a_git_that_hangs() {
    let started = Instant::now();
    let error = GitCommand::bare_minimum("wait")
        .config("alias.hang", "!sleep 30")
        .arg("hang")
        .timeout(Duration::from_millis(200))
        .run()
        .unwrap_err();
    assert!(matches!(error, CommandError::TimedOut { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_git_nobody_wants_any_more_is_ended_with_its_children() {
    let started = Instant::now();
    let error = GitCommand::bare_minimum("wait")
        .config("alias.hang", "!sleep 30")
        .arg("hang")
        .run_unless(&|| started.elapsed() > Duration::from_millis(200))
        .unwrap_err();
    assert!(matches!(error, CommandError::Unwanted { .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_git_is_ended_when_the_patience_of_its_caller_ends() {
    use crate::patience::{self, CutShort};
    for reason in [CutShort::Unwanted, CutShort::OutOfTime] {
        let started = Instant::now();
        let is_over = move || (started.elapsed() > Duration::from_millis(200)).then_some(reason);
        let hang = || {
            let git = GitCommand::bare_minimum("wait").config("alias.hang", "!sleep 30");
            git.arg("hang").run().unwrap_err()
        };
        let first = patience::during(std::sync::Arc::new(is_over), hang);
        assert!(started.elapsed() < Duration::from_secs(5));
        let again = patience::during(std::sync::Arc::new(move || Some(reason)), hang);
        for error in [first, again] {
            match reason {
                CutShort::Unwanted => {
                    assert!(matches!(error, CommandError::Unwanted { .. }), "{error}");
                }
                CutShort::OutOfTime => {
                    assert!(matches!(error, CommandError::TimedOut { .. }), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_child_that_keeps_the_pipe_open_does_not_hold_us() {
    let started = Instant::now();
    let out = GitCommand::bare_minimum("leak")
        .config("alias.leak", "!sleep 4 & echo done")
        .arg("leak")
        .run()
        .unwrap();
    assert_eq!(out.stdout, b"done\n");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_stream_can_be_cut() {
    let mut seen = 0;
    GitCommand::bare_minimum("stream")
        .config("alias.long", "!yes")
        .arg("long")
        .stream(&mut |bytes| {
            seen += bytes.len();
            if seen > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert!(seen < 10_000_000);
}

#[test]
fn a_path_with_a_colon_stays_one_entry() {
    assert_eq!(quoted_for_list(Path::new("/a:b")), OsString::from("\"/a:b\""));
    assert_eq!(quoted_for_list(Path::new("/a b")), OsString::from("/a b"));
}
