//! The sandboxes, with real agents in them. They need a kernel with Landlock, and bubblewrap.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use autopilot_host::exec::{self, Launch, LaunchStage, SpawnError};
use autopilot_host::jail::JailPlan;
use autopilot_host::sandbox::{self, HostSandboxMode, SandboxPlan};

use crate::world::*;

fn plan(mode: HostSandboxMode, write: &Path) -> SandboxPlan {
    let probe = sandbox::probe(&std::env::var_os("PATH").unwrap());
    println!("  {}", probe.sentence());
    let jail = JailPlan { write: vec![PathBuf::from(write)], ..JailPlan::default() };
    probe.choose(mode, jail).unwrap().plan
}

const WRITES: &str = "
    echo in > $INSIDE/file && mkdir $INSIDE/dir && mv $INSIDE/file $INSIDE/dir/ && echo 'inside ok'
    echo out > $OUTSIDE/file || echo 'outside refused'
    rm $OUTSIDE/precious || echo 'removal refused'
    cat $OUTSIDE/precious
    echo x > /dev/null && echo 'null ok'
    sh -c 'echo out > $OUTSIDE/file' || echo 'child refused'
";

/// A launch that may write `$INSIDE` and not `$OUTSIDE`.
fn jailed(script: &str, mode: HostSandboxMode, inside: &Path, outside: &Path) -> Launch {
    let mut launch = shell(script);
    launch.cwd = inside.into();
    launch.env.insert("INSIDE".into(), inside.into());
    launch.env.insert("OUTSIDE".into(), outside.into());
    launch.sandbox = plan(mode, inside);
    launch
}

fn writes(mode: HostSandboxMode) {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("precious"), "readable\n").unwrap();
    let launch = jailed(WRITES, mode, inside.path(), outside.path());
    block_on(async {
        let (_, child) = exec::spawn(launch).await.unwrap();
        let exit = end(child).await;
        assert_eq!(
            exit.output.stdout.text,
            "inside ok\noutside refused\nremoval refused\nreadable\nnull ok\nchild refused\n",
            "{}",
            exit.output.stderr.text
        );
    });
    assert!(inside.path().join("dir/file").exists() && !outside.path().join("file").exists());
}

pub fn landlock_writes() {
    writes(HostSandboxMode::Landlock);
}

pub fn bwrap_writes() {
    writes(HostSandboxMode::Bwrap);
}

const METADATA: &str = "
    chmod 600 $INSIDE/file && touch -d @1 $INSIDE/file && echo 'inside ok'
    chmod 644 $OUTSIDE/precious && echo 'mode changed'
    touch -d @1 $OUTSIDE/precious && echo 'time changed'
    chown $(id -u) $OUTSIDE/precious && echo 'owner set'
    true
";

/// The difference between the two sandboxes, as `doctor` and the documentation describe it.
pub fn metadata() {
    for (mode, outside_changed) in [
        (HostSandboxMode::Landlock, "mode changed\ntime changed\nowner set\n"),
        (HostSandboxMode::Bwrap, ""),
    ] {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(inside.path().join("file"), "").unwrap();
        std::fs::write(outside.path().join("precious"), "").unwrap();
        let launch = jailed(METADATA, mode, inside.path(), outside.path());
        block_on(async {
            let (_, child) = exec::spawn(launch).await.unwrap();
            let exit = end(child).await;
            let (said, errors) = (&exit.output.stdout.text, &exit.output.stderr.text);
            assert_eq!(*said, format!("inside ok\n{outside_changed}"), "{mode:?}: {errors}");
        });
    }
}

pub fn landlock_signals() {
    let mark = mark();
    let dir = tempfile::tempdir().unwrap();
    let script = "kill -9 $PPID || echo refused; sleep 1000 & kill $! && wait $!; echo own $?";
    let mut launch = launch("sh", &["-c", script, &mark]);
    launch.sandbox = plan(HostSandboxMode::Landlock, dir.path());
    block_on(async {
        let (_, child) = exec::spawn(launch).await.unwrap();
        let exit = end(child).await;
        assert!(!exit.supervisor_lost);
        assert_eq!(exit.output.stdout.text, "refused\nown 143\n");
    });
}

pub fn unprepared() {
    let mut landlock = shell("echo never");
    landlock.sandbox =
        SandboxPlan::Jail(JailPlan { write: vec!["/no/such/place".into()], ..JailPlan::default() });
    let mut bwrap = shell("echo never");
    bwrap.sandbox = SandboxPlan::Bwrap { program: "/no/such/bwrap".into(), write: vec![] };
    block_on(async {
        let error = exec::spawn(landlock).await.err().unwrap();
        assert!(
            matches!(&error, SpawnError::Start { failure, .. } if failure.stage == LaunchStage::Sandbox),
            "{error}"
        );
        assert!(error.to_string().contains("/no/such/place"), "{error}");
        assert!(exec::spawn(bwrap).await.is_err());
    });
}

pub fn bwrap_grace() {
    let dir = tempfile::tempdir().unwrap();
    let mark = mark();
    let script = format!(
        "trap 'echo bye; exit 7' TERM; {}; echo ready; while :; do sleep 0.01; done",
        daemon(&mark)
    );
    let mut launch = shell(&script);
    launch.cwd = dir.path().into();
    launch.sandbox = plan(HostSandboxMode::Bwrap, dir.path());
    block_on(async {
        let (control, child) = ready(launch).await;
        let asked = Instant::now();
        control.terminate(Duration::from_secs(10));
        let exit = end(child).await;
        assert_eq!((exit.code, exit.output.stdout.text.as_str()), (Some(7), "ready\nbye\n"));
        assert!(asked.elapsed() < Duration::from_secs(2));
    });
    assert_nobody(&mark);
}
