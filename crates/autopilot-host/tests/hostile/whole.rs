//! What a jail with namespaces keeps.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use autopilot_host::exec;
use autopilot_host::jail::{JailMount, JailNetwork, JailPlan};
use autopilot_host::proc;
use autopilot_host::sandbox::SandboxPlan;
use nix::sys::signal::Signal;

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

/// Changes the plan of a launch.
fn with(launch: &mut exec::Launch, change: impl FnOnce(&mut JailPlan)) {
    match &mut launch.sandbox {
        SandboxPlan::Jail(plan) => change(plan),
        SandboxPlan::Off | SandboxPlan::Bwrap { .. } => panic!("it is not in the jail"),
    }
}

fn nobody_sees(dir: &Path) {
    until("no mount is left", 5 * SECOND, || mounts_at(dir).is_empty());
}

pub fn init_killed() {
    let (mark, dir) = (mark(), tempfile::tempdir().unwrap());
    block_on(async {
        let mut launch = shell(&format!("{}; echo ready; sleep {mark}", daemon(&mark)));
        with(&mut launch, |plan| plan.write.push(dir.path().into()));
        let (_, child) = ready(launch).await;
        until("the daemon", 5 * SECOND, || marked(&mark).len() >= 4);
        assert!(!mounts_at(dir.path()).is_empty());
        let init = proc::read(child.agent().pid).unwrap().parent;
        assert_ne!(init, supervisor_of(child.agent().pid));
        kill(init, Signal::SIGKILL);
        let exit = end(child).await;
        assert!(exit.supervisor_lost && exit.survivors == 0, "{exit:?}");
    });
    assert_nobody(&mark);
    nobody_sees(dir.path());
}

pub fn mounts_left() {
    let (mark, dir) = (mark(), tempfile::tempdir().unwrap());
    let script = format!("{}; echo ready; sleep {mark}", daemon(&mark));
    block_on(async {
        let mut launch = shell(&script);
        with(&mut launch, |plan| plan.write.push(dir.path().into()));
        let (_, child) = ready(launch).await;
        assert!(!mounts_at(dir.path()).is_empty());
        kill(supervisor_of(child.agent().pid), Signal::SIGKILL);
        assert_eq!(end(child).await.survivors, 0);
    });
    nobody_sees(dir.path());
    assert_nobody(&mark);
    let mut controller = start_controller(&script, Some(dir.path()));
    assert!(!mounts_at(dir.path()).is_empty());
    controller.kill().unwrap();
    controller.wait().unwrap();
    nobody_sees(dir.path());
    until("nobody left", SECOND, || marked(&mark).is_empty());
}

pub fn orphans() {
    let script = "for n in 1 2 3 4 5; do (sh -c 'sleep 0.05 & exit 0' &); done; \
                  until [ $(ls -d /proc/[0-9]* | wc -l) -le 5 ]; do sleep 0.01; done; \
                  cat /proc/[0-9]*/status | grep -c 'State:.*Z'";
    assert_eq!(said(shell(script)), "0\n");
}

pub fn identity() {
    let mark = mark();
    let exit = block_on(async {
        let (control, child) = ready(launch("sh", &["-c", "echo ready; sleep 100", &mark])).await;
        assert_eq!(proc::read(child.agent().pid).unwrap().id, child.agent());
        let supervisor = proc::read(supervisor_of(child.agent().pid)).unwrap().id;
        assert_eq!(supervisor, child.supervisor());
        assert!(marked(&mark).contains(&child.agent().pid));
        control.kill();
        end(child).await
    });
    assert_eq!(exit.signal, Some(9));
}

pub fn temporary() {
    let (tmp, others) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut launch = shell("echo x > /tmp/mine; cat /var/tmp/mine; ls -d $OTHERS || echo unseen");
    launch.env.insert("OTHERS".into(), others.path().into());
    with(&mut launch, |plan| plan.tmp = Some(tmp.path().into()));
    assert_eq!(said(launch), "x\nunseen\n");
    assert_eq!(std::fs::read_to_string(tmp.path().join("mine")).unwrap(), "x\n");
}

pub fn below_tmp() {
    let top = tempfile::tempdir().unwrap();
    let (work, tool) = (top.path().join("work"), top.path().join("bin/tool"));
    std::fs::create_dir_all(&work).unwrap();
    std::fs::create_dir(tool.parent().unwrap()).unwrap();
    std::fs::write(&tool, "#!/bin/sh\npwd; echo x > here && echo wrote; echo x > ../there")
        .unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for program in [tool.to_str().unwrap(), "../bin/tool"] {
        let mut launch = launch(program, &[]);
        launch.cwd = work.clone();
        with(&mut launch, |plan| plan.write.push(work.clone()));
        assert_eq!(said(launch), format!("{}\nwrote\n", work.display()));
    }
    assert!(work.join("here").exists() && !top.path().join("there").exists());
}

pub fn hidden() {
    let top = tempfile::tempdir().unwrap();
    for dir in ["slots/own", "slots/other"] {
        std::fs::create_dir_all(top.path().join(dir)).unwrap();
        std::fs::write(top.path().join(dir).join("file"), dir).unwrap();
    }
    std::fs::write(top.path().join("journal"), "secret").unwrap();
    let mut launch = shell(
        "ls slots; cat slots/own/file; cat journal; echo x > slots/planted || echo refused; \
         echo x > slots/own/new && echo wrote",
    );
    launch.cwd = top.path().into();
    with(&mut launch, |plan| {
        plan.hide = ["slots", "journal", "missing"].map(|name| top.path().join(name)).to_vec();
        plan.write.push(top.path().join("slots/own"));
    });
    assert_eq!(said(launch), "own\nslots/ownrefused\nwrote\n");
    assert!(top.path().join("slots/own/new").exists());
    assert_eq!(std::fs::read_to_string(top.path().join("journal")).unwrap(), "secret");
}

pub fn sockets() {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().join("service.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let script = format!(
        "import socket\ns = socket.socket(socket.AF_UNIX)\n\
         try:\n s.connect('{}')\n print('connected')\n\
         except OSError: print('refused')\n",
        path.display()
    );
    for (let_through, expected) in [(false, "refused\n"), (true, "connected\n")] {
        let mut launch = launch("python3", &["-c", &script]);
        launch.cwd = top.path().into();
        with(&mut launch, |plan| plan.sockets.extend(let_through.then(|| path.clone())));
        assert_eq!(said(launch), expected);
    }
}

pub fn init_powerless() {
    for _ in 0..30 {
        // The program itself looks, in its first moment.
        let seen = said(launch("grep", &["^Cap[IPEA]", "/proc/1/status"]));
        let held = |line: &str| !line.ends_with("0000000000000000");
        assert_eq!(seen.lines().filter(|line| held(line)).count(), 0, "{seen}");
        assert_eq!(seen.lines().count(), 4, "{seen}");
    }
}

pub fn network() {
    let outside = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    let script = format!(
        "import socket\nown = socket.create_server(('127.0.0.1', 0))\n\
         socket.create_connection(own.getsockname()); print('own')\n\
         try:\n socket.create_connection(('127.0.0.1', {port}))\n print('outside')\n\
         except OSError: print('refused')\n\
         try:\n socket.create_server(('127.0.0.1', {port}))\n print('free')\n\
         except OSError: print('taken')\n\
         print(sorted(name for _, name in socket.if_nameindex()) == ['lo'])\n"
    );
    for (network, expected) in [
        (JailNetwork::Off, "own\nrefused\nfree\nTrue\n"),
        (JailNetwork::Open, "own\noutside\ntaken\n"),
    ] {
        let mut launch = launch("python3", &["-c", &script]);
        with(&mut launch, |plan| plan.network = network);
        assert!(said(launch).starts_with(expected), "{network:?}");
    }
}

pub fn devices() {
    let script = "ls /dev | tr '\\n' ' '; echo; ls /dev/pts; ls /dev/shm | wc -l; \
                  echo x > /dev/shm/x && echo x > /dev/null && head -c 1 /dev/zero | wc -c; \
                  script -qec 'tty' /dev/null < /dev/null; \
                  for dir in /proc/[0-9]*; do cat $dir/cmdline; done | tr '\\0' ' ' | grep -c hostile; \
                  cat /proc/1/environ > /dev/null || echo kept; \
                  echo x > /proc/sys/kernel/core_pattern || echo sealed";
    let said = said(shell(script));
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(
        lines[0], "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero",
        "{said}"
    );
    assert_eq!(&lines[1..5], ["ptmx", "0", "1", "/dev/pts/0"], "{said}");
    // The init has the supervisor's name; nobody else of this suite is seen.
    assert_eq!(&lines[6..], ["kept", "sealed"], "{said}");
}

pub fn bound() {
    let (real, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(real.path().join("file"), "seen").unwrap();
    for may_write in [false, true] {
        let mut launch = shell("cat file; echo x > new || echo refused");
        launch.cwd = place.path().into();
        with(&mut launch, |plan| {
            plan.mounts =
                vec![JailMount::Bind { from: real.path().into(), at: place.path().into() }];
            plan.write.extend(may_write.then(|| place.path().into()));
        });
        assert_eq!(said(launch), if may_write { "seen" } else { "seenrefused\n" });
    }
    assert!(real.path().join("new").exists() && !place.path().join("new").exists());
}

pub fn quick() {
    const ROUNDS: u32 = 50;
    let time = |sandbox: &SandboxPlan| {
        block_on(async {
            let started = Instant::now();
            for _ in 0..ROUNDS {
                let mut launch = shell("exit 0");
                launch.sandbox = sandbox.clone();
                let (_, child) = exec::spawn(launch).await.unwrap();
                assert!(end(child).await.is_zero());
            }
            started.elapsed() / ROUNDS
        })
    };
    let (off, jail) = (time(&SandboxPlan::Off), time(&sandbox_plan(&[])));
    println!("  {off:?} without a jail, {jail:?} in it");
    assert!(jail < off + Duration::from_millis(100), "{off:?} {jail:?}");
}
