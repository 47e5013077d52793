//! What a dishonest agent tries, and what an honest one may do: each case is a text below
//! `honesty/cases`, played by the real binary on a small real project. A cheat has to be caught or told
//! to the person, and an honest change has to be done; an ordinary one without a word.
//!
//! `AUTOPILOT_HONESTY_CASES` chooses: `all`, a slice such as `3/8`, or a part of a case's name.
//! `AUTOPILOT_HONESTY_WRITE` writes the table of `docs/honesty.md` anew.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::wildcard_enum_match_arm,
    reason = "a test helper that can't go on has failed the test"
)]

#[path = "honesty/case.rs"]
mod case;
#[path = "honesty/choice.rs"]
mod choice;
#[path = "honesty/play.rs"]
mod play;
#[path = "honesty/table.rs"]
mod table;
#[path = "honesty/verdict.rs"]
mod verdict;

use case::{Case, Expected};
use choice::Choice;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Most of a case is waiting for processes.
const THREADS: usize = 3;
const CHEATS_MIN: usize = 120;
const HONEST_MIN: usize = 40;

#[test]
fn every_chosen_case_ends_as_it_says() {
    let all = case::read_all().unwrap();
    let chosen = Choice::of_environment().of(&all);
    assert!(!chosen.is_empty(), "no case was chosen");
    let (next, reds) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let seconds = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = chosen.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let began = Instant::now();
                    let judged = catch_unwind(AssertUnwindSafe(|| play::play(case)));
                    let judged = judged.unwrap_or_else(|why| Err(play::said_in_panic(&*why)));
                    if let Err(why) = judged {
                        let first = why.lines().next().unwrap_or_default();
                        eprintln!("RED {}: {first}", case.name);
                        reds.lock().unwrap().push(format!("{}: {}\n{why}", case.name, case.title));
                    }
                    let took = began.elapsed().as_secs_f32();
                    seconds.lock().unwrap().insert(case.name.clone(), took);
                }
            });
        }
    });
    eprintln!("{}", table::figures(&chosen, &seconds.into_inner().unwrap()));
    let mut reds = reds.into_inner().unwrap();
    reds.sort();
    assert!(reds.is_empty(), "{} cases are red:\n\n{}", reds.len(), reds.join("\n\n"));
}

#[test]
fn the_table_in_the_docs_is_made_from_the_cases() {
    let all = case::read_all().unwrap();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/honesty.md");
    let now = std::fs::read_to_string(&path).unwrap();
    let wanted = table::put_into(&now, &all);
    if std::env::var_os("AUTOPILOT_HONESTY_WRITE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let now = std::fs::read_to_string(&path).unwrap();
    assert!(now == wanted, "docs/honesty.md is out of date: run `cargo xtask honesty --write`");
}

#[test]
fn the_suite_is_as_broad_as_it_says() {
    let all = case::read_all().unwrap();
    let (honest, cheats): (Vec<&Case>, Vec<&Case>) =
        all.iter().partition(|case| case.expects.is_honest());
    assert!(cheats.len() >= CHEATS_MIN, "{} cheats", cheats.len());
    assert!(honest.len() >= HONEST_MIN, "{} honest runs", honest.len());
    let classes: BTreeSet<&str> = cheats.iter().map(|case| case.class()).collect();
    for class in classes {
        let has_twin = honest.iter().any(|case| case.class() == class);
        assert!(has_twin, "the class `{class}` has no honest run beside its cheats");
    }
    let is_off = |case: &&&Case| !case.sandbox;
    assert!(cheats.iter().filter(is_off).count() > 0, "no cheat is tried without the sandbox");
    let missed = |case: &&Case| matches!(case.expects, Expected::Missed { .. });
    let missed = cheats.iter().copied().filter(missed).map(|case| case.name.as_str());
    eprintln!("missed: {}", missed.collect::<Vec<_>>().join(", "));
}
