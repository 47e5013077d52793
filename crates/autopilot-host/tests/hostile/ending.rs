//! Every way an agent's tree can end.

use std::time::{Duration, Instant};

use autopilot_host::exec::{self, ChildWord};
use autopilot_host::proc::{self, Process};
use nix::sys::signal::Signal;

use crate::world::*;

const SECOND: Duration = Duration::from_secs(1);

pub fn ignores_term() {
    let mark = mark();
    let script = format!("trap '' TERM; sleep {mark} & echo ready; while :; do sleep {mark}; done");
    block_on(async {
        let grace = Duration::from_millis(300);
        let (control, child) = ready(shell(&script)).await;
        let asked = Instant::now();
        control.terminate(grace);
        let exit = end(child).await;
        let took = asked.elapsed();
        assert!(took >= grace && took <= grace + Duration::from_millis(250), "{took:?}");
        assert_eq!((exit.code, exit.signal, exit.leaked), (None, Some(9), 0));
    });
    assert_nobody(&mark);
}

pub fn uses_grace() {
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    block_on(async {
        let (control, child) = ready(shell(script)).await;
        control.terminate(10 * SECOND);
        let asked = Instant::now();
        let exit = end(child).await;
        assert_eq!((exit.code, exit.output.stdout.text.as_str()), (Some(7), "ready\nbye\n"));
        assert!(asked.elapsed() < SECOND);
    });
}

pub fn daemons_killed() {
    let mark = mark();
    let script =
        format!("{}; echo ready; sleep {mark}", daemon(&mark).repeat(5).replace(")(", "); ("));
    block_on(async {
        let (control, child) = ready(shell(&script)).await;
        until("all daemons", 5 * SECOND, || marked(&mark).len() >= 15);
        let asked = Instant::now();
        control.kill();
        let exit = end(child).await;
        assert!(asked.elapsed() < SECOND, "{:?}", asked.elapsed());
        assert_eq!((exit.signal, exit.survivors), (Some(9), 0));
        assert_nobody(&mark);
    });
}

pub fn daemons_leaked() {
    let mark = mark();
    let wait = format!("until [ $(pgrep -cf 'sleep {mark}') -ge 2 ]; do sleep 0.01; done");
    let script = format!("{}; {wait}; exit 0", daemon(&mark));
    block_on(async {
        let (_, child) = exec::spawn(shell(&script)).await.unwrap();
        let exit = end(child).await;
        assert_eq!((exit.code, exit.survivors), (Some(0), 0));
        assert!(exit.leaked >= 3, "{}", exit.leaked);
        assert_nobody(&mark);
    });
}

pub fn fork_bomb() {
    let mark = mark();
    block_on(async {
        let (control, child) = ready(launch("/proc/self/exe", &["__bomb", &mark])).await;
        assert!(marked(&mark).len() >= BOMB_PROCESSES, "{}", marked(&mark).len());
        let asked = Instant::now();
        control.terminate(Duration::from_millis(100));
        let exit = end(child).await;
        assert!(asked.elapsed() < 5 * SECOND, "{:?}", asked.elapsed());
        assert_eq!(exit.survivors, 0);
        assert_nobody(&mark);
    });
}

pub fn comets() {
    let mark = mark();
    block_on(async {
        let (control, child) = ready(launch("/proc/self/exe", &["__comets", &mark])).await;
        let asked = Instant::now();
        control.kill();
        let exit = end(child).await;
        assert!(asked.elapsed() < 5 * SECOND, "{:?}", asked.elapsed());
        assert_eq!(exit.survivors, 0);
        assert_nobody(&mark);
    });
}

pub fn holds_stdout() {
    let mark = mark();
    let mut launch = shell(&format!("echo done; sleep {mark} & exit 0"));
    launch.drain = Duration::from_millis(200);
    block_on(async {
        let started = Instant::now();
        let (_, child) = exec::spawn(launch).await.unwrap();
        let exit = end(child).await;
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(200) && took < SECOND, "{took:?}");
        assert_eq!((exit.code, exit.leaked), (Some(0), 1));
        assert_eq!(exit.output.stdout.text, "done\n");
        assert_nobody(&mark);
    });
}

pub fn stops_itself() {
    block_on(async {
        let script = "kill -STOP $$; echo again; kill -STOP $$; echo never";
        let (control, mut child) = exec::spawn(shell(script)).await.unwrap();
        let mut heard = Vec::new();
        loop {
            match child.next().await {
                ChildWord::Line(line) => heard.push(line.text),
                ChildWord::Stopped { resumed } => {
                    heard.push(format!("stopped, resumed: {resumed}"))
                }
                ChildWord::Ended(_) => panic!("it ended by itself"),
            }
            if heard.len() == 3 {
                break;
            }
        }
        heard.sort();
        assert_eq!(heard, ["again", "stopped, resumed: false", "stopped, resumed: true"]);
        control.terminate(5 * SECOND);
        let asked = Instant::now();
        assert_eq!(end(child).await.signal, Some(15));
        assert!(asked.elapsed() < SECOND);
    });
}

pub fn ends_at_once() {
    block_on(async {
        let one = async || {
            let (_, child) = exec::spawn(shell("exit 4")).await.unwrap();
            end(child).await.code
        };
        for _ in 0..10 {
            let codes = tokio::join!(one(), one(), one(), one());
            assert_eq!(codes, (Some(4), Some(4), Some(4), Some(4)));
        }
    });
    let us = i32::try_from(std::process::id()).unwrap();
    // The process that supervisors are copied from stays.
    until("no supervisor is left", SECOND, || proc::descendants(us).len() == 1);
}

pub fn controller_killed() {
    for _ in 0..3 {
        let mark = mark();
        let script = format!("{}; echo ready; sleep {mark}", daemon(&mark));
        let mut controller = start_controller(&script, None);
        until("the daemon", 5 * SECOND, || marked(&mark).len() >= 4);
        let pid = i32::try_from(controller.id()).unwrap();
        let below = proc::descendants(pid);
        let own = below.iter().filter(|process| process.parent == pid).count();
        assert_eq!(own, 2, "the supervisor, and the process that it is a copy of");
        controller.kill().unwrap();
        controller.wait().unwrap();
        let is_left = |process: &Process| {
            proc::read(process.id.pid)
                .is_some_and(|left| left.id == process.id && !left.is_zombie())
        };
        let took = until("nobody left", SECOND, || !below.iter().any(is_left));
        assert_nobody(&mark);
        println!("  gone {} ms after the controller", took.as_millis());
    }
}

pub fn supervisor_killed() {
    for _ in 0..3 {
        let mark = mark();
        let sibling_mark = crate::world::mark();
        let script = format!("{}; echo ready; sleep {mark}", daemon(&mark));
        block_on(async {
            let (sibling_control, sibling) =
                ready(shell(&format!("echo ready; sleep {sibling_mark}"))).await;
            let (_, child) = ready(shell(&script)).await;
            until("the daemon", 5 * SECOND, || marked(&mark).len() >= 4);
            kill(supervisor_of(child.agent().pid), Signal::SIGKILL);
            let exit = end(child).await;
            assert!(exit.supervisor_lost && !exit.is_zero());
            assert_eq!((exit.code, exit.survivors), (None, 0));
            assert_nobody(&mark);
            assert_eq!(marked(&sibling_mark).len(), 2);
            sibling_control.kill();
            end(sibling).await;
        });
        assert_nobody(&sibling_mark);
    }
}

pub fn supervisor_stopped() {
    let mark = mark();
    let script = format!("echo ready; sleep {mark}");
    block_on(async {
        let (control, child) = ready(shell(&script)).await;
        let supervisor = supervisor_of(child.agent().pid);
        kill(supervisor, Signal::SIGSTOP);
        until("a stopped supervisor", SECOND, || proc::read(supervisor).unwrap().state == b'T');
        let asked = Instant::now();
        control.kill();
        assert_eq!(end(child).await.signal, Some(9));
        assert!(asked.elapsed() < SECOND);
    });
    assert_nobody(&mark);
}

pub fn codes_and_signals() {
    for code in [0, 3, 255] {
        let exit = block_on(async {
            let (_, child) = exec::spawn(shell(&format!("exit {code}"))).await.unwrap();
            end(child).await
        });
        assert_eq!((exit.code, exit.signal, exit.supervisor_lost), (Some(code), None, false));
    }
    for (name, number) in [("KILL", 9), ("SEGV", 11), ("RTMIN", 34)] {
        let exit = block_on(async {
            let (_, child) = exec::spawn(shell(&format!("kill -{name} $$"))).await.unwrap();
            end(child).await
        });
        assert_eq!((exit.code, exit.signal, exit.supervisor_lost), (None, Some(number), false));
    }
}

pub fn owner_dropped() {
    let mark = mark();
    let script = format!("{}; echo ready; sleep {mark}", daemon(&mark));
    block_on(async {
        let (control, child) = ready(shell(&script)).await;
        until("the daemon", 5 * SECOND, || marked(&mark).len() >= 4);
        drop(child);
        until("nobody left", 2 * SECOND, || marked(&mark).is_empty());
        drop(control);
    });
}

pub fn rounds() {
    const ROUNDS: usize = 12;
    for round in 0..ROUNDS {
        let mark = mark();
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        // A supervisor that is killed while it starts is a failed start, which is not tested here.
        let told = format!("until [ -e {} ]; do sleep 0.01; done", gate.display());
        let script = match round % 3 {
            0 => format!("{}; echo ready; exit 0", daemon(&mark)),
            1 => format!("{}; echo ready; sleep {mark}", daemon(&mark)),
            _ => format!("{}; echo ready; {told}; kill -9 $PPID; sleep {mark}", daemon(&mark)),
        };
        block_on(async {
            let mut launch = shell(&script);
            show(&mut launch, folder.path());
            launch.drain = Duration::from_millis(20);
            let (control, child) = ready(launch).await;
            std::fs::write(&gate, "").unwrap();
            match round % 4 {
                0 => control.kill(),
                1 => control.terminate(Duration::from_millis(20)),
                _ => {
                    let control = control.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        control.kill();
                    });
                }
            }
            assert_eq!(end(child).await.survivors, 0, "round {round}");
        });
        assert_nobody(&mark);
    }
}
