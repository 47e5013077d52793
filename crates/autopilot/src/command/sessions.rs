//! `autopilot sessions`: lists the agents' sessions of a run and whether each can be continued.

use super::cost::sum;
use super::{Done, done, past};
use crate::cli::{Global, Sessions};
use crate::terminal;
use autopilot_engine::query::sessions::RunSessions;
use autopilot_host::escape::one_line;
use autopilot_view::sessions::Session;

/// Prints the sessions.
pub fn sessions(global: &Global, args: &Sessions) -> Done {
    let archive = past::must(global)?;
    let known = archive.run(args.run.as_deref())?;
    let listed = RunSessions::of(&archive, &known)?;
    if global.json {
        terminal::json(&listed.to_json());
    } else {
        terminal::say(text(&listed).trim_end());
    }
    done()
}

fn text(listed: &RunSessions<'_>) -> String {
    if listed.sessions.is_empty() {
        return format!("no agent was asked anything in run {} yet", listed.known.run.id);
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
    let row = |session: &Session| {
        let [cost, ..] = sum::cells(&session.cost);
        vec![
            one_line(&listed.id(session)).into_owned(),
            listed.agent(session).to_owned(),
            one_line(&listed.task(session)).into_owned(),
            session.step.word().to_owned(),
            session.round.to_string(),
            session.attempt.to_string(),
            session.began.rfc3339(),
            cost,
            listed.state(session).to_owned(),
            if listed.is_current(session) { "yes" } else { "no" }.to_owned(),
            listed.hindrance(session).map_or("yes".to_owned(), |why| format!("no: {why}")),
        ]
    };
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(listed.sessions.iter().map(row));
    let mut text = format!("run {}\n{}", listed.known.run.id, terminal::table(&rows));
    let resumable = |session: &&Session| listed.hindrance(session).is_none();
    if let Some(last) = listed.sessions.iter().rfind(resumable) {
        text.push_str(&format!("\ngo on with one: {}\n", listed.command(last)));
    }
    text
}
