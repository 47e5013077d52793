//! `autopilot sessions`: lists the agents' sessions of a run and whether each can be continued.

use super::cost::sum;
use super::{Done, answer, past};
use crate::cli::Global;
use crate::terminal;
use autopilot_engine::query::sessions::{self as query, RunSessions, SessionRow};
use autopilot_host::escape::one_line;

/// Prints the sessions.
pub fn sessions(global: &Global, run: Option<&str>) -> Done {
    let archive = past::must(global)?;
    answer(global, query::sessions(&archive, &archive.run(run)?)?, text)
}

fn text(listed: &RunSessions) -> String {
    if listed.sessions.is_empty() {
        return format!("no agent was asked anything in run {} yet", listed.run_id);
    }
    let heading = [
        "session",
        "agent",
        "task",
        "step",
        "iteration",
        "attempt",
        "began",
        "cost",
        "state",
        "current",
        "resumable",
    ];
    let row = |row: &SessionRow| {
        let [cost, ..] = sum::cells(&row.cost);
        vec![
            one_line(&row.session).into_owned(),
            row.agent.to_owned(),
            one_line(&row.task).into_owned(),
            row.step.to_owned(),
            row.iteration.to_string(),
            row.attempt.clone(),
            row.began_at.clone(),
            cost,
            row.state.to_owned(),
            if row.is_current { "yes" } else { "no" }.to_owned(),
            row.not_resumable_because.map_or("yes".to_owned(), |why| format!("no: {why}")),
        ]
    };
    let rows = listed.sessions.iter().map(row);
    let mut text = format!("run {}\n{}", listed.run_id, terminal::table(&heading, rows));
    if let Some(command) = listed.sessions.iter().rev().find_map(|row| row.resume.as_ref()) {
        text.push_str(&format!("\ncontinue one: {command}\n"));
    }
    text
}
