//! `autopilot resume <session> --prompt "…"` for the session of a workflow step: the step continues
//! inside its run, and nothing else of the run does.

use super::super::work::{self, WorkedRun, adopt};
use super::session::{cost, known_cost};
use crate::cli::Global;
use crate::exit::{CommandFailure, ExitKind};
use crate::terminal;
use autopilot_core::decide::{Hindrance, Refusal, rehearse};
use autopilot_core::event::{Bill, HaltWhy, Outcome, SessionPrompt, TaskEnd};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::id::TaskId;
use autopilot_core::input::{Ask, Input};
use autopilot_core::state::{Shown, State, Status, Task};
use autopilot_core::step::Step;
use autopilot_core::workflow::PastStep;
use autopilot_engine::clock;
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::query::{KnownRun, RunArchive};
use autopilot_engine::run_process::Intent;
use autopilot_engine::{store, workspace};
use autopilot_host::escape::one_line;
use autopilot_view as view;
use autopilot_view::sessions::Session;
use serde_json::{Value, json};
use std::process::ExitCode;

/// The most reopened steps that a message names.
const NAMED_MAX: usize = 20;

/// A prompt for a session of a run.
pub struct ContinueRequest<'a> {
    pub told: KnownRun,
    pub session: Session,
    pub prompt: &'a str,
    pub limits: LimitChange,
    pub is_rehearsal: bool,
}

/// Whether the session belongs to a workflow step; any other continues beside its run.
pub fn is_of_a_step(told: &KnownRun, session: &Session) -> bool {
    told.state.task(session.task).pipeline.continues_at().is_some()
}

/// Continues the step, or says what would happen.
pub fn go_on(global: &Global, past: RunArchive, wish: ContinueRequest<'_>) -> super::super::Done {
    let ContinueRequest { told, session, prompt, limits, is_rehearsal } = wish;
    let prompt = past.redactor(&told.state).redact(prompt).into_owned();
    let id = session.task;
    let now = taken_up(&told.state, &limits)?;
    let words = SessionPrompt {
        prompt: sha256_hex(prompt.as_bytes()),
        session: session.id.clone(),
        is_its_own: session.is_its_own,
        attempt: session.attempt,
        lane: session.lane,
    };
    let task = told.state.task(id).name().to_owned();
    let ask = Ask::Continue { task, words: Box::new(words) };
    let asked = [Input::Asked(ask.clone())];
    let after = rehearse(&now, asked, clock::now()).map_err(refused)?;
    if is_rehearsal {
        tell_rehearsal(global, &told, &session, (&now, &after));
        return super::super::done();
    }
    let config = past.kept(&told.state.run.config)?;
    let repo = workspace::examine(&global.repo, &config)?;
    let opened = adopt(repo, config)?;
    drop(past);
    let run = told.run.id.clone();
    let intent = Intent::Only { run, ask, limits, texts: vec![prompt] };
    // The person wants to see what the agent does, unless --quiet says otherwise.
    let seen = Global { verbose: !global.quiet, ..global.clone() };
    let worked = work::until_rest(&seen, opened, intent, false)?;
    super::super::report::at_end(&worked.place, &worked.state);
    account(global, &worked, id, &session, &told.state)
}

/// The state of the run after a process has resumed it.
fn taken_up(state: &State, limits: &LimitChange) -> Result<State, CommandFailure> {
    let rests = Input::Asked(Ask::Halt { why: HaltWhy::Stop, now: false });
    let change = limits.ask(&state.run.limits).map(Input::Asked);
    let inputs = [rests, Input::Boot].into_iter().chain(change);
    Ok(rehearse(state, inputs, clock::now())?)
}

/// The failure for a refusal. A spent limit pauses the run and is no failure of the step.
fn refused(refusal: Refusal) -> CommandFailure {
    let is_money = matches!(refusal.why, Hindrance::Money(_));
    let mut failure = CommandFailure::from(refusal);
    if is_money {
        failure.kind = ExitKind::Paused;
    }
    failure
}

fn tell_rehearsal(
    global: &Global,
    told: &KnownRun,
    session: &Session,
    (before, state): (&State, &State),
) {
    let is_opened = |task: &&Task| {
        let was_settled = before.task(task.id).is_settled();
        was_settled && !task.is_settled() && task.parent.is_some() && task.id != session.task
    };
    let opened: Vec<&str> = state.tasks.iter().filter(is_opened).map(Task::name).collect();
    let name = state.task(session.task).name();
    if global.json {
        return terminal::json(&json!({
            "dry_run": true,
            "run_id": told.run.id,
            "task": name,
            "session": session.id,
            "opens_run": told.state.end().is_some(),
            "opens": opened,
        }));
    }
    let of = (&told.run.id, one_line(&session.id));
    terminal::say(&format!("would continue step `{name}` of run {} in session {}", of.0, of.1));
    if told.state.end().is_some() {
        terminal::say("  the run, which had ended, would be open again");
    }
    if !opened.is_empty() {
        let more = if opened.len() > NAMED_MAX { ", …" } else { "" };
        let named = opened[..opened.len().min(NAMED_MAX)].join(", ");
        terminal::say(&format!("  `autopilot resume` would then begin {named}{more}"));
    }
}

fn result(task: &Task) -> Option<&Shown> {
    task.last(task.pipeline.continues_at()?)
}

/// Why an earlier result still holds: the turn failed.
fn why_it_stands(shown: &Shown) -> Option<&str> {
    match &shown.outcome {
        Outcome::Skipped { why } => Some(why),
        Outcome::Passed
        | Outcome::Failed { .. }
        | Outcome::Misconfigured { .. }
        | Outcome::Broke { .. }
        | Outcome::Lost
        | Outcome::Quota { .. }
        | Outcome::Away { .. }
        | Outcome::Revoked => None,
    }
}

fn status(state: &State, task: &Task) -> &'static str {
    PastStep::of(state, task).map_or("unfinished", |past| past.status.word())
}

/// How a turn ended.
enum TurnEnd<'a> {
    Well,
    Failed(String),
    /// The turn failed, and the step keeps its earlier result.
    Stands(String),
    /// The turn is not over.
    Rests(&'a str),
    /// A person skipped the step during the turn.
    Skipped,
}

fn account(
    global: &Global,
    worked: &WorkedRun<'_>,
    id: TaskId,
    session: &Session,
    before: &State,
) -> super::super::Done {
    let state = &worked.state;
    let task = state.task(id);
    let is_new = result(task).map(|shown| shown.id) != result(before.task(id)).map(|old| old.id);
    let why = state.run.halt.as_ref().map(|halt| halt.why.to_string()).unwrap_or_default();
    let ended = match &task.status {
        Status::Settled(TaskEnd::Closed) if is_new => match result(task).and_then(why_it_stands) {
            Some(why) => TurnEnd::Stands(why.to_owned()),
            None => TurnEnd::Well,
        },
        Status::Settled(TaskEnd::Closed) if let Some(why) = &task.talk.failed_turn => {
            TurnEnd::Stands(why.clone())
        }
        Status::Settled(TaskEnd::Failed { why }) => TurnEnd::Failed(why.to_string()),
        Status::Settled(TaskEnd::Skipped { .. }) => TurnEnd::Skipped,
        Status::Settled(TaskEnd::Closed)
        | Status::Open
        | Status::At { .. }
        | Status::Running { .. }
        | Status::Waiting { .. } => TurnEnd::Rests(&why),
    };
    let told = ContinuedTurn::of(worked, task, session, before, is_new);
    if global.json {
        terminal::json(&told.object(&ended));
    } else {
        terminal::say(told.text().trim_end());
    }
    let name = task.name();
    let otherwise = format!(
        "try another prompt with `autopilot resume {} --prompt …`, or continue the run without \
         it: `autopilot resume`",
        told.session
    );
    match ended {
        TurnEnd::Well => Ok(ExitCode::SUCCESS),
        TurnEnd::Failed(why) => {
            Err(CommandFailure::failed(format!("step `{name}` failed: {why}")).hint(otherwise))
        }
        TurnEnd::Stands(why) => {
            let halt = state.run.halt.as_ref().map(|halt| &halt.why);
            let message = format!("step `{name}`: {why}");
            match halt {
                Some(HaltWhy::Continued) | None => {
                    Err(CommandFailure::failed(message).hint(otherwise))
                }
                // The run itself can't go on before something is done about it.
                Some(_) => {
                    let hint =
                        format!("continue the run with {}", view::money::continue_command(state));
                    Err(CommandFailure::new(ExitKind::Paused, message).hint(hint))
                }
            }
        }
        TurnEnd::Rests(why) => {
            let message = format!("step `{name}` is not over: {why}");
            Err(CommandFailure::new(ExitKind::Paused, message).hint(format!(
                "continue it and the run with {}",
                view::money::continue_command(state)
            )))
        }
        TurnEnd::Skipped => {
            let stays = match task.commit {
                Some(_) => "; what it had merged before stays merged",
                None => "",
            };
            let message = format!("step `{name}` was skipped before the turn ended{stays}");
            Err(CommandFailure::new(ExitKind::Paused, message)
                .hint("continue the run with `autopilot resume`"))
        }
    }
}

struct ContinuedTurn<'a> {
    state: &'a State,
    task: &'a Task,
    /// The session that the step has now.
    session: String,
    status_before: &'static str,
    answer: String,
    bill: Bill,
    merged: Option<String>,
    notes: Vec<String>,
    log: Option<String>,
}

impl<'a> ContinuedTurn<'a> {
    fn of(
        worked: &'a WorkedRun<'_>,
        task: &'a Task,
        session: &Session,
        before: &State,
        is_new: bool,
    ) -> ContinuedTurn<'a> {
        let earlier = before.task(task.id);
        let shown = result(task).filter(|_| is_new);
        // The answer of an earlier result was not given in this turn.
        let said = shown.filter(|shown| why_it_stands(shown).is_none());
        let answer = said.and_then(|shown| shown.facts.answer.as_deref()).and_then(|hash| {
            let reader = workspace::reader(&worked.place).ok()?;
            store::text(&reader, hash).ok()
        });
        let is_merged = task.last(Step::Merge).is_some_and(|merge| {
            merge.outcome == Outcome::Passed && shown.is_some_and(|shown| merge.id > shown.id)
        });
        let last = task.pipeline.continues_at().and_then(|step| task.sessions.get(&step));
        ContinuedTurn {
            state: &worked.state,
            task,
            session: last.cloned().unwrap_or_else(|| session.id.clone()),
            status_before: status(before, earlier),
            answer: answer.unwrap_or_default(),
            bill: task.spent.bill.since(earlier.spent.bill),
            merged: task.commit.clone().filter(|_| is_merged && task.commit != earlier.commit),
            notes: shown.map(|shown| shown.facts.notes.clone()).unwrap_or_default(),
            log: shown.and_then(|shown| shown.facts.log.clone()),
        }
    }

    fn status(&self) -> &'static str {
        status(self.state, self.task)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.answer.trim().is_empty() {
            text.push_str(&format!("{}\n\n", self.answer.trim_end()));
        }
        let (name, was, is) = (self.task.name(), self.status_before, self.status());
        text.push_str(&format!("step:   {name}: {is} (was {was}), session {}\n", self.session));
        text.push_str(&format!("cost:   {}\n", cost(self.bill)));
        for note in &self.notes {
            text.push_str(&format!("note:   {}\n", one_line(note)));
        }
        match &self.merged {
            Some(commit) => {
                let branch = &self.state.run.branch;
                let commit = commit.get(..12).unwrap_or(commit);
                text.push_str(&format!("merged: {commit} into {branch}\n"));
                text.push_str(&format!("look:   git show {commit}\n"));
            }
            None => text.push_str("merged: nothing\n"),
        }
        if self.task.is_settled() {
            text.push_str(&format!("then:   `autopilot resume` continues: {}\n", self.next()));
        }
        text
    }

    /// What the run does next when it is resumed.
    fn next(&self) -> String {
        let Some(root) = self.state.root() else { return String::new() };
        match (root.step(), root.unsettled) {
            (Some(Step::Tasks), 1) => "1 step is to be done".to_owned(),
            (Some(Step::Tasks), more) => format!("{more} steps are to be done"),
            (Some(step), _) => format!("{step} comes next"),
            (None, _) => "the run is over".to_owned(),
        }
    }

    fn object(&self, ended: &TurnEnd<'_>) -> Value {
        let (outcome, why) = match ended {
            TurnEnd::Well => ("success", None),
            TurnEnd::Failed(why) | TurnEnd::Stands(why) => ("failed", Some(why.as_str())),
            TurnEnd::Rests(why) => ("stopped", Some(*why)),
            TurnEnd::Skipped => ("stopped", Some("the step was skipped")),
        };
        json!({
            "event": "ended",
            "run_id": self.state.run.id,
            "task": self.task.name(),
            "session": self.session,
            "outcome": outcome,
            "why": why,
            "answer": self.answer,
            "status": self.status(),
            "status_before": self.status_before,
            "cost_usd": known_cost(self.bill),
            "tokens_in": (self.bill.tokens_in > 0).then_some(self.bill.tokens_in),
            "tokens_out": (self.bill.tokens_out > 0).then_some(self.bill.tokens_out),
            "branch_name": self.state.run.branch,
            "commit": self.merged,
            "log_path": self.log.as_deref().map(view::state_json::in_root),
            "notes": self.notes,
            "next": self.task.is_settled().then(|| self.next()),
        })
    }
}
