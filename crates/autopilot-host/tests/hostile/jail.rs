//! The sandboxes, with real agents in them. They need a kernel with Landlock, and bubblewrap.

use std::path::Path;
use std::time::{Duration, Instant};

use autopilot_host::exec::{self, Launch, LaunchStage, SpawnError};
use autopilot_host::jail::JailPlan;
use autopilot_host::sandbox::{self, HostSandboxMode, SandboxPlan};

use crate::world::*;

const WRITES: &str = "
    echo in > $INSIDE/file && mkdir $INSIDE/dir && mv $INSIDE/file $INSIDE/dir/ && echo 'inside ok'
    echo out > $OUTSIDE/file || echo 'outside refused'
    rm $OUTSIDE/precious || echo 'removal refused'
    cat $OUTSIDE/precious
    echo x > /dev/null && echo 'null ok'
    sh -c 'echo out > $OUTSIDE/file' || echo 'child refused'
";

/// A launch that may write `$INSIDE` and see `$OUTSIDE`.
fn jailed(script: &str, inside: &Path, outside: &Path) -> Launch {
    let mut launch = shell(script);
    launch.cwd = inside.into();
    launch.env.insert("INSIDE".into(), inside.into());
    launch.env.insert("OUTSIDE".into(), outside.into());
    launch.sandbox = sandbox_plan(&[inside]);
    show(&mut launch, outside);
    launch
}

fn bwrap(write: &Path) -> SandboxPlan {
    let probe = sandbox::probe(&std::env::var_os("PATH").unwrap(), &exec::Supervisor::default());
    println!("  {}", probe.sentence());
    let jail = JailPlan { write: vec![write.into()], ..JailPlan::default() };
    probe.choose(HostSandboxMode::Bwrap, jail).unwrap().plan
}

fn writes_with(change: impl Fn(&mut Launch, &Path)) {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("precious"), "readable\n").unwrap();
    let mut launch = jailed(WRITES, inside.path(), outside.path());
    change(&mut launch, inside.path());
    assert_eq!(
        said(launch),
        "inside ok\noutside refused\nremoval refused\nreadable\nnull ok\nchild refused\n"
    );
    assert!(inside.path().join("dir/file").exists() && !outside.path().join("file").exists());
}

pub fn writes() {
    writes_with(|_, _| {});
}

pub fn bwrap_writes() {
    writes_with(|launch, inside| launch.sandbox = bwrap(inside));
}

const METADATA: &str = "
    chmod 600 $INSIDE/file && touch -d @1 $INSIDE/file && echo 'inside ok'
    chmod 644 $OUTSIDE/precious && echo 'mode changed'
    touch -d @1 $OUTSIDE/precious && echo 'time changed'
    chown $(id -u) $OUTSIDE/precious && echo 'owner set'
    true
";

fn metadata_with(change: impl Fn(&mut Launch, &Path)) -> String {
    let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(inside.path().join("file"), "").unwrap();
    std::fs::write(outside.path().join("precious"), "").unwrap();
    let mut launch = jailed(METADATA, inside.path(), outside.path());
    change(&mut launch, inside.path());
    said(launch)
}

/// The difference that namespaces make, as `doctor` and the documentation describe it.
pub fn metadata() {
    let outside_changed = match fence() {
        Fence::NoNamespaces => "mode changed\ntime changed\nowner set\n",
        Fence::Jail | Fence::Off => "",
    };
    assert_eq!(metadata_with(|_, _| {}), format!("inside ok\n{outside_changed}"));
}

pub fn bwrap_metadata() {
    let said = metadata_with(|launch, inside| launch.sandbox = bwrap(inside));
    assert_eq!(said, "inside ok\n");
}

pub fn signals() {
    let mark = mark();
    let script = "kill -9 $PPID || echo refused; kill -9 $OUTSIDE || echo out of reach; \
                  sleep 1000 & kill $! && wait $!; echo own $?";
    let mut launch = launch("sh", &["-c", script, &mark]);
    launch.env.insert("OUTSIDE".into(), std::process::id().to_string().into());
    assert_eq!(said(launch), "refused\nout of reach\nown 143\n");
}

/// A user namespace may forbid others below it, as some distributions do for everybody.
pub fn refused() {
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec $TESTS __exec --probe";
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .env("TESTS", std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("refused") && told.contains("namespaces"), "{told} {:?}", output.stderr);
}

pub fn unprepared() {
    let in_jail = |namespaces| {
        let mut launch = shell("echo never");
        let write = vec!["/no/such/place".into()];
        launch.sandbox = SandboxPlan::Jail(JailPlan { write, namespaces, ..JailPlan::default() });
        launch
    };
    let mut bwrap = shell("echo never");
    bwrap.sandbox = SandboxPlan::Bwrap { program: "/no/such/bwrap".into(), write: vec![] };
    block_on(async {
        for namespaces in [true, false] {
            let error = exec::spawn(in_jail(namespaces)).await.err().unwrap();
            assert!(
                matches!(&error, SpawnError::Start { failure, .. } if failure.stage == LaunchStage::Sandbox),
                "{error}"
            );
            assert!(error.to_string().contains("/no/such/place"), "{error}");
        }
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
    launch.sandbox = bwrap(dir.path());
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
