//! Tests that need no hostile tree; those are in `tests/hostile.rs`. Here the supervisor is a copy
//! of the test binary that runs one test function, which is also how other crates can do it.

use super::*;
use crate::output::{OutputLine, OutputSource};

/// The body of the copy, which is not a test: run by the suite it finds no control socket and
/// returns.
#[test]
fn supervisor_entry() {
    main(&[]);
}

pub(crate) fn supervisor() -> Supervisor {
    Supervisor {
        program: "/proc/self/exe".into(),
        args: ["exec::tests::supervisor_entry", "--exact", "--nocapture"].map(Into::into).to_vec(),
    }
}

fn shell(script: &str) -> Launch {
    let mut launch = Launch::new("sh", "/");
    launch.args = vec!["-c".into(), script.into()];
    launch.env.insert("PATH".into(), std::env::var_os("PATH").unwrap());
    launch.supervisor = supervisor();
    launch
}

#[tokio::test]
async fn p01_code_output_and_tail_are_told() {
    let (_, mut child) = spawn(shell("echo out; echo err >&2; exit 3")).await.unwrap();
    let mut lines = Vec::new();
    let exit = loop {
        match child.next().await {
            ChildWord::Line(line) => lines.push((line.source, line.text)),
            ChildWord::Stopped { .. } => panic!("nobody stopped it"),
            ChildWord::Ended(exit) => break exit,
        }
    };
    lines.sort_by_key(|(source, _)| *source == OutputSource::Stderr);
    assert_eq!(lines, [(OutputSource::Stdout, "out".into()), (OutputSource::Stderr, "err".into())]);
    assert_eq!((exit.code, exit.signal, exit.leaked, exit.survivors), (Some(3), None, 0, 0));
    assert!(!exit.is_zero() && !exit.supervisor_lost);
    assert_eq!(exit.output.stdout.tail(5, 100), "out");
}

#[tokio::test]
async fn p02_a_signal_is_never_a_success() {
    for (name, number) in [("KILL", 9), ("SEGV", 11), ("RTMIN", 34)] {
        let (_, child) = spawn(shell(&format!("kill -{name} $$"))).await.unwrap();
        let exit = child.wait().await;
        assert_eq!((exit.code, exit.signal), (None, Some(number)), "{name}");
        assert!(!exit.is_zero());
    }
}

#[tokio::test]
async fn p11_what_cannot_be_started_is_named() {
    let mut launch = shell("");
    launch.program = "/no/such/agent".into();
    let error = spawn(launch).await.err().unwrap();
    assert!(
        matches!(&error, SpawnError::Start { failure, .. } if failure.stage == LaunchStage::Program)
    );
    assert!(error.to_string().contains("/no/such/agent"), "{error}");
    let mut launch = shell("");
    launch.cwd = "/no/such/dir".into();
    let error = spawn(launch).await.err().unwrap();
    assert!(
        matches!(&error, SpawnError::Start { failure, .. } if failure.stage == LaunchStage::Directory)
    );
    assert!(error.to_string().contains("/no/such/dir"), "{error}");
    let mut launch = shell("");
    launch.program = "/etc/passwd".into();
    assert!(matches!(
        spawn(launch).await.err().unwrap(),
        SpawnError::Start { failure, .. } if failure.errno == Some(libc::EACCES)
    ));
}

#[tokio::test]
async fn p12_stdin_is_closed_after_the_bytes() {
    let (_, child) = spawn(shell("cat; echo end")).await.unwrap();
    assert_eq!(child.wait().await.output.stdout.text, "end\n");
    let mut launch = shell("wc -c");
    launch.stdin = ProcessStdin::Bytes(vec![b'x'; 1_000_000]);
    let (_, child) = spawn(launch).await.unwrap();
    assert_eq!(child.wait().await.output.stdout.text.trim(), "1000000");
    let mut launch = shell("exit 0");
    launch.stdin = ProcessStdin::Bytes(vec![b'x'; 1_000_000]);
    let (_, child) = spawn(launch).await.unwrap();
    assert!(child.wait().await.is_zero());
}

#[tokio::test]
async fn an_open_stdin_carries_a_conversation() {
    use tokio::io::AsyncWriteExt;
    let mut launch = shell("while read line; do echo \"got $line\"; done; echo closed");
    launch.stdin = ProcessStdin::Open;
    let (_, mut child) = spawn(launch).await.unwrap();
    let mut input = child.take_input().unwrap();
    let said = |text: &str| {
        ChildWord::Line(OutputLine { source: OutputSource::Stdout, text: text.into(), cut: false })
    };
    for word in ["one", "two"] {
        input.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(child.next().await, said(&format!("got {word}")));
    }
    drop(input);
    assert_eq!(child.next().await, said("closed"));
    assert!(child.wait().await.is_zero());
}

#[tokio::test]
async fn p18_the_environment_is_exactly_what_was_given_and_a_huge_one_is_an_error() {
    let mut launch = Launch::new("/usr/bin/env", "/");
    launch.supervisor = supervisor();
    launch.env.insert("ONLY".into(), "this".into());
    let (_, child) = spawn(launch.clone()).await.unwrap();
    assert_eq!(child.wait().await.output.stdout.text, "ONLY=this\n");
    launch.env.insert("HUGE".into(), "x".repeat(10_000_000).into());
    let error = spawn(launch).await.err().unwrap();
    assert!(
        matches!(error, SpawnError::Start { ref failure, .. } if failure.errno == Some(libc::E2BIG)),
        "{error}"
    );
}

#[tokio::test]
async fn limits_apply_to_the_agent() {
    let mut launch = shell("ulimit -n; ulimit -c; cat /proc/self/oom_score_adj");
    launch.limits.open_files_max = Some(77);
    let (_, child) = spawn(launch).await.unwrap();
    assert_eq!(child.wait().await.output.stdout.text, "77\n0\n500\n");
}

#[tokio::test]
async fn the_agent_inherits_no_descriptor_and_no_signal_setting() {
    let (_, child) = spawn(shell("exec ls /proc/self/fd")).await.unwrap();
    // The fourth is the directory that `ls` itself reads.
    assert_eq!(child.wait().await.output.stdout.text, "0\n1\n2\n3\n");
    let (_, child) = spawn(shell("exec grep -E 'Sig(Blk|Ign)' /proc/self/status")).await.unwrap();
    for line in child.wait().await.output.stdout.text.lines() {
        let bits = line.split_ascii_whitespace().nth(1).unwrap();
        // Above 31 are signals that the C library keeps to itself.
        assert_eq!(u64::from_str_radix(bits, 16).unwrap() & 0x7fff_ffff, 0, "{line}");
    }
}

#[test]
fn programs_are_found_as_the_agent_would() {
    let dir = tempfile::tempdir().unwrap();
    let tool = dir.path().join("tool");
    std::fs::write(&tool, "#!/bin/sh\n").unwrap();
    let path = dir.path().as_os_str();
    assert_eq!(find(OsStr::new("tool"), path, Path::new("/")), None);
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(find(OsStr::new("tool"), path, Path::new("/")), Some(tool.clone()));
    assert_eq!(
        find(OsStr::new("./tool"), OsStr::new(""), dir.path()),
        Some(dir.path().join("./tool"))
    );
    assert_eq!(find(OsStr::new("tool"), OsStr::new("/nowhere"), dir.path()), None);
}

/// A supervisor of which no other test has a copy.
fn own_supervisor() -> Supervisor {
    let mut own = supervisor();
    own.args.push("--test-threads=1".into());
    own
}

#[tokio::test]
async fn supervisors_are_copies_of_one_process_and_children_of_this_one() {
    let own = own_supervisor();
    let launch = || Launch { supervisor: own.clone(), ..shell("read line; exit 4") };
    let mut seen = std::collections::BTreeSet::new();
    let mut children = Vec::new();
    for _ in 0..3 {
        let launch = Launch { stdin: ProcessStdin::Open, ..launch() };
        let (_, child) = spawn(launch).await.unwrap();
        let found = crate::proc::read(child.supervisor().pid).unwrap();
        assert_eq!(found.parent, nix::unistd::getpid().as_raw());
        // The terminal's interrupt is for the controller.
        let group = nix::unistd::getpgid(Some(nix::unistd::Pid::from_raw(found.id.pid))).unwrap();
        assert_eq!(group.as_raw(), found.id.pid);
        seen.insert(found.id);
        children.push(child);
    }
    let copied = process::copied_process(&own).unwrap();
    assert!(seen.len() == 3 && seen.iter().all(|supervisor| supervisor.pid != copied));
    for mut child in children {
        drop(child.take_input());
        assert_eq!(child.wait().await.code, Some(4));
    }
    assert!(seen.iter().all(|supervisor| crate::proc::read(supervisor.pid).is_none()));
}

#[tokio::test]
async fn the_process_that_is_copied_may_be_stopped_or_killed_by_anybody() {
    use nix::sys::signal::{Signal, kill};
    let own = own_supervisor();
    let run = || async {
        let launch = Launch { supervisor: own.clone(), ..shell("exit 5") };
        spawn(launch).await.unwrap().1.wait().await.code
    };
    assert_eq!(run().await, Some(5));
    let first = process::copied_process(&own).unwrap();
    kill(nix::unistd::Pid::from_raw(first), Signal::SIGSTOP).unwrap();
    assert_eq!(run().await, Some(5));
    assert_eq!(process::copied_process(&own), Some(first), "it was continued");
    for _ in 0..5 {
        if let Some(copied) = process::copied_process(&own) {
            kill(nix::unistd::Pid::from_raw(copied), Signal::SIGKILL).unwrap();
        }
        assert_eq!(run().await, Some(5));
    }
}

#[tokio::test]
async fn an_executable_that_does_not_copy_itself_is_started_each_time() {
    let own = Supervisor { program: "/bin/true".into(), args: Vec::new() };
    for _ in 0..2 {
        let launch = Launch { supervisor: own.clone(), ..shell("") };
        let error = spawn(launch).await.err().unwrap();
        assert!(matches!(error, SpawnError::Died { .. } | SpawnError::Prepare { .. }), "{error}");
        assert_eq!(process::copied_process(&own), None);
    }
}
