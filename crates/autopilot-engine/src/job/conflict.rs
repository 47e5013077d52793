//! Describes a merge conflict so that a builder can resolve it.

use autopilot_host::git::{Conflict, ConflictSide, Conflicts};

/// Conflicted files that are named in a sentence.
const NAMED_MAX: usize = 20;
/// Bytes of all sides together; further files are only listed.
const SIDES_BYTES_MAX: usize = 96 * 1024;

/// One sentence about the conflicts, for the record.
pub fn sentence(conflicts: &Conflicts) -> String {
    let names: Vec<String> = conflicts.paths.iter().map(path).collect();
    let named = named(&names, conflicts.paths.len() + conflicts.more);
    format!("the change conflicts with the run's branch in {named}")
}

/// The first of these names, and the number of all the others.
fn named(names: &[String], count: usize) -> String {
    let shown = &names[..names.len().min(NAMED_MAX)];
    match count.saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Tells an agent that its earlier work is not in the directory, as its session may remember that
/// work. `paths` are all files it had changed.
pub fn left_behind(conflicts: &Conflicts, paths: &[String]) -> String {
    let of = match paths {
        [] => String::new(),
        _ => format!(" to {}", named(paths, paths.len())),
    };
    format!(
        "Your earlier changes{of} are not in your working directory: others have since changed the \
         same places, so you begin with the branch as it is now. They are kept as commit {}; \
         make again what is still needed of them.",
        conflicts.theirs.short()
    )
}

/// The failed command, the output of `git status`, and the sides of each file.
pub fn report(conflicts: &Conflicts, branch: &str, work: &str) -> String {
    let mut text = format!("$ git switch {branch} && git merge {work}   (exit code 1)\n");
    for message in &conflicts.messages {
        text.push_str(&format!("{message}\n"));
    }
    text.push_str("Automatic merge failed; fix conflicts and then commit the result.\n");
    text.push_str(&format!("\n$ git status\n{}", conflicts.status()));
    text.push_str(&format!(
        "\nIn conflict markers `<<<<<<< {}` is the run's branch (ours) and `>>>>>>> {}` is this \
         task's work (theirs).\n",
        conflicts.ours.short(),
        conflicts.theirs.short()
    ));
    let mut room = SIDES_BYTES_MAX;
    for conflict in &conflicts.paths {
        let sides = sides(conflict);
        let Some(left) = room.checked_sub(sides.len()) else {
            text.push_str(&format!("\n{}: its sides are too long to show here\n", path(conflict)));
            continue;
        };
        room = left;
        text.push_str(&sides);
    }
    text
}

fn sides(conflict: &Conflict) -> String {
    let mut text = String::new();
    for (name, side) in [
        ("base, before both", &conflict.base),
        ("ours, the run's branch", &conflict.ours),
        ("theirs, this task", &conflict.theirs),
    ] {
        text.push_str(&format!(
            "\n=== {} ({name}) ===\n{}",
            path(conflict),
            content(side.as_ref())
        ));
    }
    text
}

fn content(side: Option<&ConflictSide>) -> String {
    let Some(side) = side else { return "(no such file)\n".to_owned() };
    let end = if side.text.ends_with('\n') || side.text.is_empty() { "" } else { "\n" };
    let cut = if side.cut { "(… the rest is left out)\n" } else { "" };
    format!("{}{end}{cut}", side.text)
}

fn path(conflict: &Conflict) -> String {
    String::from_utf8_lossy(&conflict.path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_host::git::Oid;

    fn oid(digit: char) -> Oid {
        Oid::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn side(text: &str) -> Option<ConflictSide> {
        Some(ConflictSide { mode: "100644".into(), oid: oid('a'), text: text.into(), cut: false })
    }

    fn conflicts(paths: Vec<Conflict>, more: usize) -> Conflicts {
        let messages = vec!["CONFLICT (content): Merge conflict in a.txt".to_owned()];
        Conflicts { ours: oid('b'), theirs: oid('c'), tree: oid('d'), paths, more, messages }
    }

    fn conflict(name: &str, ours: Option<ConflictSide>) -> Conflict {
        let path = name.as_bytes().to_vec();
        Conflict { path, base: side("old"), ours, theirs: side("mine\n") }
    }

    #[test]
    fn the_report_has_the_command_the_status_and_every_side() {
        let found = conflicts(vec![conflict("a.txt", side("yours\n")), conflict("b", None)], 0);
        let text = report(&found, "autopilot/run-1", "autopilot/t");
        assert_eq!(
            text,
            "$ git switch autopilot/run-1 && git merge autopilot/t   (exit code 1)\n\
             CONFLICT (content): Merge conflict in a.txt\n\
             Automatic merge failed; fix conflicts and then commit the result.\n\
             \n$ git status\nUnmerged paths:\n\tboth modified:   a.txt\n\tdeleted by us:   b\n\
             \nIn conflict markers `<<<<<<< bbbbbbbbbbbb` is the run's branch (ours) and \
             `>>>>>>> cccccccccccc` is this task's work (theirs).\n\
             \n=== a.txt (base, before both) ===\nold\n\
             \n=== a.txt (ours, the run's branch) ===\nyours\n\
             \n=== a.txt (theirs, this task) ===\nmine\n\
             \n=== b (base, before both) ===\nold\n\
             \n=== b (ours, the run's branch) ===\n(no such file)\n\
             \n=== b (theirs, this task) ===\nmine\n"
        );
    }

    #[test]
    fn what_was_left_behind_is_named_within_a_limit() {
        let found = conflicts(Vec::new(), 0);
        let paths: Vec<String> = (0..60).map(|n| format!("f{n}")).collect();
        let text = left_behind(&found, &paths);
        assert!(text.contains("changes to f0, f1") && text.contains("f19 and 40 more are not in"));
        assert!(left_behind(&found, &[]).starts_with("Your earlier changes are not in your"));
    }

    #[test]
    fn a_report_and_a_sentence_have_a_limit() {
        let long = "x".repeat(16 * 1024);
        let many: Vec<Conflict> =
            (0..60).map(|n| conflict(&format!("f{n}"), side(&long))).collect();
        let found = conflicts(many, 3);
        let text = report(&found, "r", "t");
        assert!(text.len() < SIDES_BYTES_MAX + 16 * 1024, "{}", text.len());
        assert!(text.contains("f59: its sides are too long"));
        let said = sentence(&found);
        assert!(said.ends_with("f18, f19 and 43 more"), "{said}");
    }
}
