//! Many controllers at once on one repository: one works, the others say who it is.

use crate::stage::Flow;
use crate::trial::{Trial, reference};
use std::process::{Output, Stdio};
use std::sync::Barrier;

const ROUNDS: usize = 5;
const AT_ONCE: usize = 8;

/// Each round on a repository nobody has worked in: even the state directory is made in the race.
#[test]
fn two_controllers_race() {
    reference(Flow::Task);
    for round in 0..ROUNDS {
        let trial = Trial::new(Flow::Task);
        let barrier = Barrier::new(AT_ONCE);
        let ended: Vec<(u32, Output)> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    scope.spawn(|| {
                        let mut command = trial.stage.binary(Flow::Task.args());
                        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
                        barrier.wait();
                        let child = command.spawn().unwrap();
                        (child.id(), child.wait_with_output().unwrap())
                    })
                })
                .collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let winners: Vec<u32> = ended
            .iter()
            .filter(|(_, out)| out.status.code() == Some(0))
            .map(|(pid, _)| *pid)
            .collect();
        assert_eq!(winners.len(), 1, "round {round}: {ended:?}");
        for (_, out) in ended.iter().filter(|(pid, _)| !winners.contains(pid)) {
            assert_eq!(out.status.code(), Some(10), "{out:?}");
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(said.contains(&format!("process {} ", winners[0])), "{said}");
        }
        trial.judge();
    }
}
