//! The number of git processes that a task costs. Each takes milliseconds, so that they are most of
//! what the loop itself costs; the number may only shrink.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::faulty_git::FaultyGit;
use autopilot_testkit::plan::{TESTS, configure, plan, stage, task};
use autopilot_testkit::stage::APPROVES;
use std::collections::BTreeMap;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
/// Tasks in the smaller plan and in the larger.
const SIZES: (usize, usize) = (2, 10);
/// The most git processes that one more task of a plan may cost. Four of them publish its evidence, and
/// a fifth looks for secrets in it. It is 24, sometimes half a process more.
const PER_TASK_MAX: f64 = 25.0;

/// How often each git command ran while a plan of so many tasks was worked off.
fn counted(tasks: usize) -> BTreeMap<String, usize> {
    let names: Vec<String> = (0..tasks).map(|n| format!("task-{n:02}")).collect();
    let planned = plan(&names.iter().map(|name| task(name, &[])).collect::<Vec<_>>());
    let mut stage = stage(BINARY, &planned);
    let builds = "
- step: build
  do:
    - run: \"echo made > $AUTOPILOT_TASK_ID.txt\"
    - answer: { changed_files: [], notes: x }
";
    stage.agents(&[builds, APPROVES]);
    // One after the other, so that the number does not depend on who is faster.
    configure(&stage, &format!("{TESTS}orchestrator: {{ max_workers: 1 }}\n"));
    stage.write("given.json", &planned.to_string());
    let git = FaultyGit::on(&mut stage);
    stage.run(&["run", "--from", "given.json"]).expect(0);
    let mut verbs = BTreeMap::new();
    for verb in git.lines("verbs") {
        *verbs.entry(verb).or_default() += 1;
    }
    verbs
}

#[test]
fn one_more_task_costs_no_more_git_processes_than_it_did() {
    let (few, many) = (counted(SIZES.0), counted(SIZES.1));
    let more = (SIZES.1 - SIZES.0) as f64;
    let per_task = |verb: &str| {
        let count = |verbs: &BTreeMap<String, usize>| verbs.get(verb).copied().unwrap_or(0) as f64;
        (count(&many) - count(&few)) / more
    };
    let costs: Vec<(&str, f64)> = many.keys().map(|verb| (verb.as_str(), per_task(verb))).collect();
    let sum: f64 = costs.iter().map(|(_, cost)| cost).sum();
    assert!(sum > 0.0, "git was not counted: {many:?}");
    assert!(sum <= PER_TASK_MAX, "{sum} git processes for one more task: {costs:?}");
    println!("{sum} git processes for one more task: {costs:?}");
}
