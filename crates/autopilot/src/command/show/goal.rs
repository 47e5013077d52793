//! A run towards a goal on one screen: its iterations with their steps, what the reviewer said, where
//! the files are and what to do next.

use super::super::past::{Past, Standing, Told};
use super::super::work::{diffstat, next_commands};
use autopilot_core::event::{Outcome, Record};
use autopilot_core::id::TaskId;
use autopilot_core::step::Step;
use autopilot_core::workflow::{Completion, Past as Result};
use autopilot_engine::{report, store, views};
use autopilot_host::checkout;
use autopilot_host::escape::one_line;
use autopilot_view::history::RunHistory;
use autopilot_view::manifest::{self, History, Placed};
use autopilot_view::sessions::{last_of, sessions};
use autopilot_view::{self as view, sessions::Session};
use serde_json::{Value, json};
use std::fmt::Write;

/// Iterations on the screen; the last ones.
const ITERATIONS_MAX: usize = 12;
/// Letters of what somebody said; the files have all of it.
const SAID_CHARS_MAX: usize = 400;

/// One that was proposed and never begun is of no iteration.
fn is_of(step: &Placed<'_>, iteration: u32) -> bool {
    step.body.iteration == iteration && !step.task.is_dropped()
}

pub struct Goal<'a> {
    past: &'a Past,
    told: &'a Told,
    tried: &'a RunHistory,
    history: History,
    sessions: Vec<Session>,
}

impl<'a> Goal<'a> {
    pub fn of(
        past: &'a Past,
        told: &'a Told,
        tried: &'a RunHistory,
        records: &[Record],
    ) -> Goal<'a> {
        let mut history = History::default();
        records.iter().for_each(|record| history.record(record));
        let sessions = sessions(&told.run.id, records);
        Goal { past, told, tried, history, sessions }
    }

    pub fn text(&self) -> String {
        let read = |hash: &str| store::text(&self.past.history, hash).ok();
        let steps = manifest::steps(&self.told.state, &read);
        let last = self.told.state.root().map_or(0, |root| root.round);
        let first = last.saturating_sub(ITERATIONS_MAX as u32 - 1).max(1);
        let mut text = String::new();
        if first > 1 {
            let _ = writeln!(text, "\n{} earlier iterations: see the report", first - 1);
        }
        for index in first..=last {
            let own: Vec<&Placed<'_>> = steps.iter().filter(|step| is_of(step, index)).collect();
            let workflow = own.first().map_or("no workflow yet", |step| &step.body.workflow);
            let _ = writeln!(text, "\niteration {index}  {}", one_line(workflow));
            let rows: Vec<Vec<String>> = own.iter().map(|step| self.row(step)).collect();
            for line in crate::terminal::table(&rows).lines() {
                let _ = writeln!(text, "  {line}");
            }
            if let Some(word) = self.validation(index) {
                let _ = writeln!(text, "  validation: {}", short(&word));
            }
            if let Some(said) = self.history.completion(index, &read) {
                let _ = writeln!(text, "  reviewer: {}", self.reviewer(index, &said));
            }
        }
        let _ = writeln!(text, "\nfiles   {}", self.dir());
        let report = self.report();
        let report = report.unwrap_or_else(|| format!("autopilot report {}", self.told.run.id));
        let _ = writeln!(text, "report  {report}");
        let next = self.next();
        if next.is_empty() {
            text.push_str("next    nothing: no file was changed\n");
        }
        for (place, command) in next.iter().enumerate() {
            let _ = writeln!(text, "{}  {command}", if place == 0 { "next  " } else { "      " });
        }
        text
    }

    pub fn object(&self) -> Value {
        let read = |hash: &str| store::text(&self.past.history, hash).ok();
        let steps = manifest::steps(&self.told.state, &read);
        let last = self.told.state.root().map_or(0, |root| root.round);
        let iteration = |index: u32| {
            let own: Vec<&Placed<'_>> = steps.iter().filter(|step| is_of(step, index)).collect();
            json!({
                "index": index,
                "workflow": own.first().map(|step| &step.body.workflow),
                "steps": own.iter().map(|step| self.step(step)).collect::<Vec<_>>(),
                "validation": self.validation(index),
                "completion": self.history.completion(index, &read),
                "overruled": self.history.is_overruled(index),
            })
        };
        json!({
            "iterations": (1..=last).map(iteration).collect::<Vec<_>>(),
            "warnings": self.history.warnings(),
            "artifacts": self.dir(),
            "report_path": self.report(),
            "next": self.next(),
        })
    }

    fn row(&self, step: &Placed<'_>) -> Vec<String> {
        let (state, task) = (&self.told.state, step.task);
        let why = view::failure(task).map(|why| short(&why.to_string())).unwrap_or_default();
        let session = self.session(task.id).map(|id| format!("session {id}")).unwrap_or_default();
        vec![
            one_line(task.name()).into_owned(),
            manifest::status_word(state, task).to_owned(),
            view::duration(task.spent.work_ms),
            view::money::cost(task.spent.bill),
            one_line(&session).into_owned(),
            why,
        ]
    }

    fn step(&self, step: &Placed<'_>) -> Value {
        let (state, task) = (&self.told.state, step.task);
        json!({
            "id": step.body.step.id,
            "task": task.name(),
            "goal": step.body.step.goal,
            "depends_on": step.body.step.depends_on,
            "status": manifest::status_word(state, task),
            "session": self.session(task.id),
            "duration": task.spent.work_ms as f64 / 1000.0,
            "cost_usd": task.spent.bill.usd.usd(),
            "tokens_in": task.spent.bill.tokens_in,
            "tokens_out": task.spent.bill.tokens_out,
            "why": Result::of(state, task).and_then(|past| past.why),
        })
    }

    fn session(&self, task: TaskId) -> Option<&str> {
        last_of(&self.sessions, task)
    }

    /// What the controller saw when it validated the result of an iteration.
    fn validation(&self, index: u32) -> Option<String> {
        let is_it = |tried: &&autopilot_view::history::Tried| {
            tried.step == Step::Validate && tried.round == index
        };
        let last = self.tried.of_task(TaskId::ROOT).filter(is_it).last()?;
        let word = match &last.ended {
            Some((_, Outcome::Failed { why } | Outcome::Broke { why })) => {
                return Some(format!("failed: {why}"));
            }
            Some((_, Outcome::Passed)) => view::passed_word(last.step, &last.facts),
            Some((_, outcome)) => super::word(outcome),
            None => return Some("running".to_owned()),
        };
        Some(match self.is_old(index) {
            true => format!("{word}, before the result changed"),
            false => word.to_owned(),
        })
    }

    /// A person has gone on with a step since.
    fn is_old(&self, index: u32) -> bool {
        let state = &self.told.state;
        let is_last = state.root().is_some_and(|root| root.round == index);
        is_last && view::still_shown(state, Step::Validate).is_none()
    }

    fn reviewer(&self, index: u32, said: &Completion) -> String {
        let word = match (said.done, self.history.is_overruled(index)) {
            (true, _) => "done",
            (false, true) => "said done and was overruled",
            (false, false) => "not done",
        };
        let text = said.reason.as_deref().filter(|_| !said.done).or(said.summary.as_deref());
        match text {
            Some(text) => format!("{word}: {}", short(text)),
            None => word.to_owned(),
        }
    }

    fn dir(&self) -> String {
        views::goal_dir(&self.past.place, &self.told.state.run).into_string()
    }

    /// If it is there.
    fn report(&self) -> Option<String> {
        let dir = views::goal_dir(&self.past.place, &self.told.state.run);
        let path = dir.join(report::FILE);
        path.is_file().then(|| path.into_string())
    }

    /// If it is in the repository.
    fn branch(&self) -> Option<&str> {
        let run = &self.told.state.run;
        let found = checkout::find(self.past.place.root.as_std_path())?;
        diffstat(&found.common_dir, &run.base, &run.branch).map(|_| run.branch.as_str())
    }

    fn next(&self) -> Vec<String> {
        match self.told.standing() {
            Standing::Live { .. } => {
                vec!["autopilot status --watch".to_owned(), "autopilot stop".to_owned()]
            }
            Standing::Abandoned => vec!["autopilot recover".to_owned()],
            Standing::Rests | Standing::Interrupted | Standing::Over => {
                next_commands(&self.told.state, self.branch())
            }
        }
    }
}

fn short(text: &str) -> String {
    let line = one_line(text.trim());
    let mut kept: String = line.chars().take(SAID_CHARS_MAX).collect();
    if line.chars().count() > SAID_CHARS_MAX {
        kept.push('…');
    }
    kept
}
