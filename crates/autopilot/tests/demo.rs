//! `autopilot demo` as a new user sees it: a plan, parallel workers, a `kill -9`, and a merged branch.

use std::process::Command;

#[test]
fn the_demo_shows_a_plan_a_crash_a_conflict_and_a_pair_broken_together() {
    let out = Command::new(env!("CARGO_BIN_EXE_autopilot"))
        .args(["demo", "--no-ui"])
        .env_remove("AUTOPILOT_STATE_DIR")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let told = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.success(), "{said}\n{told}");
    for text in [
        "processes of the run that are left: 0",
        "conflicts with",
        "fails together",
        "DONE: A shop that can count",
    ] {
        assert!(said.contains(text), "nothing says `{text}`:\n{said}\n{told}");
    }
    for task in ["tax", "discount", "rename-price", "total", "list", "version", "readme"] {
        let merges = said.matches(&format!("Merge task {task}\n")).count();
        assert_eq!(merges, 1, "{task} is merged {merges} times:\n{said}");
    }
}
