//! `.autopilot/STATUS.md`: the state of the run for a person who looks in the morning.

use super::money;
use super::trouble::trouble;
use super::{
    LOOK, LastProof, activity, awaited, current, doubts, duration, failure, headline, holds,
    leaves, one_line, result, says_how_to_continue, shown_word, waits,
};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use std::fmt::Write;

/// The text of `STATUS.md`.
pub fn status_md(state: &State) -> String {
    let mut text = String::new();
    let run = &state.run;
    let _ = writeln!(text, "# {}: {}\n", headline(state), one_line(&run.title));
    let _ = writeln!(text, "| | |\n|---|---|");
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "| {name} | {} |", cell(&value));
    };
    row("run", format!("`{}` ({})", run.id, run.flow.word()));
    if let Some((iteration, most)) = super::iteration(state) {
        row("iteration", format!("{iteration} of {most}"));
    }
    row("branch", format!("`{}` from `{}`", run.branch, run.base_branch));
    if let Some(url) = super::state_json::pull_request(state) {
        row("pull request", url.to_owned());
    }
    row("started", run.started_at.rfc3339());
    row("last change", run.moved_at.rfc3339());
    row("cost", money::cost_of_run(state));
    if let Some(used) = super::used(state).line() {
        row("used", used);
    }
    if let Some(task) = current(state).filter(|_| run.halt.is_none()) {
        row("now", format!("{}: {} (iteration {})", task.name(), activity(task), task.round));
    }
    if let Some(halt) = &run.halt {
        row("stopped because", halt.why.to_string());
        if !says_how_to_continue(halt) {
            row("continue with", money::continue_command(state));
        }
    }
    for held in holds(state) {
        row("held", held);
    }
    if let Some(what) = awaited(state) {
        row("waiting for", format!("a person to approve {what}"));
        row("answer with", "`autopilot approve` or `autopilot reject \"why\"`".to_owned());
    }
    if let Some(why) = state.root().and_then(failure) {
        row("why", why.to_string());
    }
    if let Some(why) = super::nothing_built(state) {
        row("proof", format!("none; {why}"));
    } else if let Some(proof) = LastProof::of(state) {
        row("proof", proof.sentence().to_owned());
    }
    tasks(&mut text, state);
    look_first(&mut text, state);
    attention(&mut text, state);
    last_failure(&mut text, state);
    text
}

fn tasks(text: &mut String, state: &State) {
    let _ = writeln!(text, "\n## Tasks\n");
    let _ = writeln!(text, "| task | status | iteration | time | cost | result |");
    let _ = writeln!(text, "|---|---|---|---|---|---|");
    for task in leaves(state) {
        let result = match result(state, task) {
            commit if task.is_closed() && task.commit.is_some() => format!("`{commit}`"),
            other => waits(state, task).unwrap_or(other),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            cell(task.name()),
            shown_word(state, task),
            task.round,
            duration(task.spent.work_ms),
            money::cost_of_task(state, task),
            cell(&result),
        );
    }
}

/// Lists what a person should look at before merging, the worst first.
fn look_first(text: &mut String, state: &State) {
    let doubts = doubts(state);
    if doubts.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## {LOOK}\n");
    for (place, standing) in doubts.iter().enumerate() {
        let _ = writeln!(text, "{}. {}", place + 1, one_line(&standing.sentence()));
    }
}

/// Lists what was not proven, and the notes on all tasks.
fn attention(text: &mut String, state: &State) {
    let mut lines = Vec::new();
    for by in super::waivers(state) {
        lines.push(format!("REVIEW WAS SKIPPED for this run ({by}). Tests were still required."));
    }
    for task in state.tasks.iter() {
        let name = task.label();
        for (step, why) in &task.skipped {
            if *step != Step::Push && *step != Step::Preflight {
                lines.push(format!("{name}: {} skipped: {why}", step.word().to_uppercase()));
            }
        }
    }
    lines.extend(super::notes_of_all(state));
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## Worth knowing\n");
    for line in lines {
        let _ = writeln!(text, "- {}", one_line(&line));
    }
}

fn last_failure(text: &mut String, state: &State) {
    let Some(trouble) = trouble(state) else { return };
    let step = trouble.step.map_or("an attempt", Step::word);
    let whose = match trouble.task.parent {
        Some(_) => format!(" of {} (iteration {})", trouble.task.name(), trouble.shown.round),
        None => String::new(),
    };
    let _ = writeln!(text, "\n## Last failure\n\n{step}{whose}: {}", one_line(trouble.why()));
    if let Some(log) = &trouble.shown.facts.log {
        let _ = writeln!(text, "\nLog: `.autopilot/{log}`");
    }
}

fn cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}
