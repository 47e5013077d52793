//! `autopilot show`: prints a run or a task in full, with the evidence from the journal.

mod goal;

use super::{Done, done, past};
use crate::cli::Global;
use crate::terminal;
use autopilot_core::event::Outcome;
use autopilot_core::state::{State, Task};
use autopilot_engine::query::KnownRun;
use autopilot_engine::query::show::{self as query, ShownRun, outcome_word};
use autopilot_host::escape::one_line;
use autopilot_view::history::{PastAttempt, RunHistory};
use autopilot_view::{self as view, state_json};
use std::fmt::Write;

/// Prints the run or the task.
pub fn show(global: &Global, id: Option<&str>) -> Done {
    let shown = query::show(&past::must(global)?, id)?;
    if global.json {
        terminal::json(&shown.to_json());
    } else {
        terminal::say(&shown.redactor.redact(text(&shown).trim_end()));
    }
    done()
}

fn text(shown: &ShownRun) -> String {
    let (known, history, only) = (&shown.known, &shown.history, shown.only());
    if let Some(goal) = &shown.goal {
        return format!("{}{}", of_run(known, history), goal::text(goal, &known.run.id));
    }
    let mut text = match only {
        Some(_) => String::new(),
        None => of_run(known, history),
    };
    for task in known.state.tasks.iter().filter(|task| is_shown(task, only, history)) {
        text.push_str(&of_task(&known.state, task, history));
        for session in shown.current.iter().filter(|session| session.task == task.id) {
            let of = (session.step.word(), one_line(&session.id));
            let _ = writeln!(text, "  current session of {}: {}", of.0, of.1);
        }
    }
    text
}

/// Whether a task is shown: the root only if it did work of its own.
fn is_shown(task: &Task, only: Option<&Task>, history: &RunHistory) -> bool {
    match only {
        Some(only) => only.id == task.id,
        None => task.parent.is_some() || history.of_task(task.id).next().is_some(),
    }
}

fn of_run(known: &KnownRun, history: &RunHistory) -> String {
    let run = &known.state.run;
    let mut text =
        format!("run {}  {}  {}\n", known.run.id, known.headline(), one_line(&known.run.title));
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "  {name:<12}{}", one_line(value));
    };
    row("flow", run.flow.word());
    row("source", &run.source);
    row("started by", &run.started_by);
    row("started", &run.started_at.rfc3339());
    row("branch", &format!("{} from {} at {}", run.branch, run.base_branch, short(&run.base)));
    row("worked", &view::duration(run.active_ms));
    let spent = run.spent;
    row(
        "cost",
        &format!(
            "{} ({} tokens in, {} out)",
            view::money::cost_of_run(&known.state),
            spent.tokens_in,
            spent.tokens_out
        ),
    );
    if let Some(why) = known.state.root().and_then(view::failure) {
        row("failed", &why.to_string());
    }
    for line in view::doubt_lines(&known.state) {
        let _ = writeln!(text, "  {}", one_line(&line));
    }
    for remark in history.remarks.iter().filter(|remark| remark.task.is_none()) {
        let _ = writeln!(text, "  {}  {}", remark.at.rfc3339(), one_line(&remark.text));
    }
    text
}

fn of_task(state: &State, task: &Task, history: &RunHistory) -> String {
    let (word, title) = (view::task_word(task), one_line(&task.spec.title));
    let name = match task.parent {
        Some(_) => format!("task {}", task.name()),
        None => "the run itself".to_owned(),
    };
    let mut text = format!("\n{name}  {word}  {title}\n");
    if let Some(why) = view::failure(task) {
        let _ = writeln!(text, "  failed: {}", one_line(&why.to_string()));
    }
    let bill = task.spent.bill;
    let _ = writeln!(
        text,
        "  {}, {}, {}, {} ({} tokens in, {} out)",
        view::count(task.round as usize, "iteration"),
        view::count(task.spent.attempts as usize, "attempt"),
        view::duration(task.spent.work_ms),
        view::money::cost_of_task(state, task),
        bill.tokens_in,
        bill.tokens_out,
    );
    for (what, commit) in [("base", &task.base), ("tree", &task.tree), ("commit", &task.commit)] {
        if let Some(commit) = commit {
            let _ = writeln!(text, "  {what} {commit}");
        }
    }
    let mut round = 0;
    for tried in history.of_task(task.id) {
        if tried.round != round {
            round = tried.round;
            let _ = writeln!(text, "  iteration {round}");
        }
        text.push_str(&of_attempt(tried));
    }
    for remark in history.remarks_on(task.id) {
        let _ = writeln!(text, "  {}  {}", remark.at.rfc3339(), one_line(&remark.text));
    }
    text
}

fn of_attempt(tried: &PastAttempt) -> String {
    let (facts, id) = (&tried.facts, tried.id.to_string());
    let mut parts = vec![outcome(tried)];
    parts.extend(facts.exit.map(|code| format!("exit {code}")));
    parts.extend(facts.signal.map(|signal| format!("signal {signal}")));
    if tried.ended.is_some() {
        parts.push(view::duration(facts.ms));
    }
    if tried.bill.counted().0 > 0 || tried.reserved.0 > 0 {
        parts.push(view::money::cost_and_reserved(tried.bill, tried.reserved));
    }
    parts.extend(facts.verdict().map(|verdict| {
        format!("{}, {}", verdict.word(), view::count(facts.issues() as usize, "issue"))
    }));
    parts.extend(facts.tree.as_deref().map(|tree| format!("tree {}", short(tree))));
    parts.extend(facts.commit.as_deref().map(|commit| format!("commit {}", short(commit))));
    let mut text = format!("    {id:<8} {:<12} {}\n", tried.step.word(), parts.join(", "));
    let files = [("log", &facts.log), ("artifact", &facts.artifact)];
    for (what, path) in files.into_iter().filter_map(|(what, path)| Some((what, path.as_ref()?))) {
        let _ = writeln!(text, "      {what}: {}", one_line(&state_json::in_root(path)));
    }
    if let Some(used) = facts.used.as_ref().and_then(|used| used.line()) {
        let _ = writeln!(text, "      used: {}", one_line(&used));
    }
    for doubt in &facts.doubts {
        let _ = writeln!(text, "      look: {}", one_line(&doubt.text));
    }
    for note in &facts.notes {
        let _ = writeln!(text, "      note: {}", one_line(note));
    }
    text
}

fn outcome(tried: &PastAttempt) -> String {
    let Some((_, outcome)) = &tried.ended else { return "running".to_owned() };
    match outcome {
        Outcome::Failed { why } => {
            format!("{}: {}", view::failed_word(&tried.facts), one_line(why))
        }
        Outcome::Misconfigured { why } | Outcome::Broke { why } | Outcome::Skipped { why } => {
            format!("{}: {}", outcome_word(outcome), one_line(why))
        }
        Outcome::Quota { until } => format!("no quota until {}", until.rfc3339()),
        Outcome::Away { why, text, .. } => format!("{}: {text}", why.word()),
        Outcome::Passed => view::passed_word(tried.step, &tried.facts).to_owned(),
        Outcome::Lost | Outcome::Revoked => outcome_word(outcome).to_owned(),
    }
}

fn short(name: &str) -> &str {
    name.get(..12).unwrap_or(name)
}
