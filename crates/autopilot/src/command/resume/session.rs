//! `autopilot resume <session> --prompt "…"`: one more turn of an agent's session. A session of a
//! workflow step continues inside its run, any other beside it.

use super::super::past;
use super::super::work::{self, adopt, machine};
use super::step::{self, ContinueRequest};
use crate::cli::{Global, Resume};
use crate::exit::{CommandFailure, ExitKind};
use crate::terminal;
use autopilot_agents::{Access, AgentOutcome, telling};
use autopilot_core::config::{Config, Role};
use autopilot_core::decide::SessionHindrance;
use autopilot_core::event::Bill;
use autopilot_core::id::Micros;
use autopilot_core::wanted::Want;
use autopilot_engine::cause::chain;
use autopilot_engine::feed::Sight;
use autopilot_engine::further::{self, Stopped, TurnEnded};
use autopilot_engine::job::execs_of;
use autopilot_engine::job::further::{ContinuedBranch, Further, Furthered};
use autopilot_engine::query::sessions::hindrance;
use autopilot_engine::query::{KnownRun, RunArchive, Standing};
use autopilot_engine::{kept, workspace};
use autopilot_view::sessions::{Session, sessions};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The most runs and records that are searched.
const RUNS_SEARCHED_MAX: usize = 10_000;
const RECORDS_MAX: u64 = 500_000;
/// The shortest prefix of an id that is accepted; a shorter one is more likely a mistake.
const PREFIX_CHARS_MIN: usize = 4;
/// The most sessions that a message names.
const NAMED_MAX: usize = 10;
const PROMPT_BYTES_MAX: usize = 1 << 20;

/// Continues a session with a prompt.
pub fn go_on(global: &Global, args: &Resume, id: &str, prompt: &str) -> super::super::Done {
    let limits = work::limits(&args.limits)?;
    let of_runs = [
        ("--max-iterations", limits.max_iterations.is_some()),
        ("--max-wall", limits.max_wall_ms.is_some()),
        ("--max-workers", limits.max_workers.is_some()),
    ];
    if let Some((flag, _)) = of_runs.iter().find(|(_, given)| *given) {
        return Err(CommandFailure::usage(format!("{flag} is for runs; a session has one turn")));
    }
    if prompt.trim().is_empty() {
        return Err(CommandFailure::usage("the prompt is empty")
            .hint(format!("as in `autopilot resume {id} --prompt \"why so?\"`")));
    }
    if prompt.len() > PROMPT_BYTES_MAX {
        let bytes = prompt.len();
        return Err(CommandFailure::usage(format!(
            "the prompt has {bytes} bytes, more than 1 MiB"
        )));
    }
    let past = past::must(global)?;
    let (told, session) = find(&past, id)?;
    let is_given_up = told.standing() == Standing::Abandoned;
    let is_in_run = step::is_of_a_step(&told, &session) && !args.read_only && !is_given_up;
    if let Some(why) = hindrance(&past, &told, &session, is_in_run)? {
        return Err(refused(why, &told, &session));
    }
    if is_in_run {
        let is_rehearsal = args.dry_run;
        return step::go_on(
            global,
            past,
            ContinueRequest { told, session, prompt, limits, is_rehearsal },
        );
    }
    if args.dry_run {
        let of = (&told.run.id, &session.id);
        let text = format!("would ask session {} of run {}, outside of the run", of.1, of.0);
        terminal::say(&text);
        return super::super::done();
    }
    let config: Config = past.kept(&told.state.run.config)?;
    let repo = workspace::examine(&global.repo, &config)?;
    let opened = adopt(repo, config)?;
    let edits = session.step.role() == Some(Role::Builder) && !args.read_only;
    let wish = further::SessionRequest {
        run: told.run.id.clone(),
        want: Want {
            id: session.attempt,
            task: session.task,
            step: session.step,
            lane: session.lane,
        },
        ask: Further {
            session: session.id.clone(),
            is_its_own: session.is_its_own,
            prompt: prompt.to_owned(),
            access: if edits { Access::Edit } else { Access::Read },
        },
        limits,
    };
    drop(past);
    let name = name(&told, &session);
    let see = |sight: &Sight| show(global, &name, sight);
    let ended = further::go_on(opened, wish, machine()?, see)?;
    account(global, &session, ended)
}

fn find(past: &RunArchive, id: &str) -> Result<(KnownRun, Session), CommandFailure> {
    let mut alike: Vec<(KnownRun, Session)> = Vec::new();
    let mut records = 0;
    for run in past.runs(RUNS_SEARCHED_MAX)? {
        records += run.last_seq;
        if records > RECORDS_MAX && records > run.last_seq {
            break;
        }
        let known = sessions(&run.id, &past.records(&run.id)?);
        for session in known {
            if session.id == id {
                return Ok((past.tell(run)?, session));
            }
            let begins = id.chars().count() >= PREFIX_CHARS_MIN && session.id.starts_with(id);
            if begins && !alike.iter().any(|(_, other)| other.id == session.id) {
                alike.push((past.tell(run.clone())?, session));
            }
        }
    }
    match alike.len() {
        0 => {
            let known = known_of_newest(past)?;
            let known = if known.is_empty() { String::new() } else { format!(": {known}") };
            Err(CommandFailure::usage(format!("there is no session `{id}` in this repository"))
                .hint(format!("`autopilot sessions` lists those of the newest run{known}")))
        }
        1 => alike.pop().ok_or_else(|| CommandFailure::usage("there is no such session")),
        count => Err(CommandFailure::usage(format!("{count} sessions begin with `{id}`"))
            .hint(format!("say which: {}", named(alike.iter().map(|(_, session)| session))))),
    }
}

/// The ids of the first sessions.
fn named<'a>(sessions: impl ExactSizeIterator<Item = &'a Session>) -> String {
    let more = if sessions.len() > NAMED_MAX { ", …" } else { "" };
    let names: Vec<&str> = sessions.take(NAMED_MAX).map(|session| session.id.as_str()).collect();
    format!("{}{more}", names.join(", "))
}

fn known_of_newest(past: &RunArchive) -> Result<String, CommandFailure> {
    let Some(newest) = past.runs(1)?.into_iter().next() else { return Ok(String::new()) };
    Ok(named(sessions(&newest.id, &past.records(&newest.id)?).iter().rev()))
}

/// The failure for a session that can't be continued.
fn refused(why: SessionHindrance, told: &KnownRun, session: &Session) -> CommandFailure {
    let (run, id) = (&told.run.id, &session.id);
    let pid = told.holder.as_ref().map_or(0, |holder| holder.process.pid);
    match why {
        SessionHindrance::AtWork => CommandFailure::failed(format!(
            "session `{id}` is in use right now, by process {pid} in run {run}"
        ))
        .hint("wait for it, or `autopilot stop` the run first"),
        SessionHindrance::RunAtWork => CommandFailure::failed(format!(
            "process {pid} is working on run {run} in this repository"
        ))
        .hint("wait for it, or `autopilot stop` it first and `autopilot resume` it after"),
        SessionHindrance::Removed => {
            let (days, many) = (kept::SESSION_DAYS_MAX, kept::SESSIONS_MAX);
            CommandFailure::failed(format!(
                "session `{id}` can't be continued: `autopilot gc` has removed its files \
                 (unused for {days} days, or not among the newest {many})"
            ))
            .hint(format!(
                "what was asked and answered is in `.autopilot/{}`; ask anew with `autopilot goal \
                 \"…\"`",
                execs_of(run)
            ))
        }
        SessionHindrance::Gone | SessionHindrance::UnknownAgent | SessionHindrance::NotKept => {
            CommandFailure::failed(format!("session `{id}` can't be continued: {why}"))
                .hint("`autopilot sessions` lists the sessions that can be continued")
        }
    }
}

fn name(told: &KnownRun, session: &Session) -> String {
    let task = told.state.task(session.task);
    let name = task.label();
    format!("{name} {}", session.step)
}

fn show(global: &Global, name: &str, sight: &Sight) {
    match sight {
        Sight::Agent(event) if global.json => {
            if let Ok(line) = serde_json::to_string(event) {
                terminal::put(&format!("{line}\n"));
            }
        }
        Sight::Agent(event) if !global.quiet => {
            if let Some(text) = telling::told(event) {
                terminal::note(&format!("{name} | {text}"));
            }
        }
        Sight::Output { text } if global.verbose => terminal::note(&format!("{name} | {text}")),
        Sight::Suspect { silent } => terminal::note(&format!(
            "{name} has been silent for {} s; it will be ended if it stays so",
            silent.as_secs()
        )),
        Sight::Agent(_) | Sight::Output { .. } => {}
    }
}

fn account(global: &Global, session: &Session, ended: TurnEnded) -> super::super::Done {
    let (bill, stopped) = (ended.bill, ended.stopped);
    let done = match (ended.done, stopped) {
        (Ok(done), _) => done,
        (Err(error), Some(stopped)) => {
            return Err(failure(stopped).hint(format!(
                "{}; it cost {}",
                chain(&error),
                cost(bill)
            )));
        }
        (Err(error), None) => return Err(CommandFailure::failed(error)),
    };
    if global.json {
        terminal::put(&format!("{}\n", object(session, &done, bill, stopped)));
    } else {
        terminal::say(text(&done, bill).trim_end());
    }
    if done.is_vanished {
        let id = &session.id;
        return Err(CommandFailure::failed(format!(
            "the agent does not know session `{id}` any more"
        ))
        .hint("nothing was answered; `autopilot sessions` lists the others"));
    }
    if let Some(stopped) = stopped {
        return Err(failure(stopped));
    }
    if done.ending == AgentOutcome::Success {
        return Ok(ExitCode::SUCCESS);
    }
    Err(CommandFailure::failed(why(&done.ending)).hint(format!("its log: .autopilot/{}", done.log)))
}

fn failure(stopped: Stopped) -> CommandFailure {
    let message = match stopped {
        Stopped::ByPerson => "stopped".to_owned(),
        Stopped::ByMoney(gone) => {
            let (whose, option) = match gone.is_of_task {
                true => ("the task", "--max-usd-per-task"),
                false => ("the run", "--max-usd"),
            };
            format!("{whose} has spent {gone}; `{option}` raises it for this turn")
        }
    };
    CommandFailure::new(ExitKind::Paused, message)
}

fn why(ending: &AgentOutcome) -> String {
    match ending {
        AgentOutcome::Success => String::new(),
        AgentOutcome::Broke { why, .. } => why.clone(),
        AgentOutcome::Quota { why, .. } => format!("the quota of the account is used up: {why}"),
        AgentOutcome::Auth { why } => format!("the agent is not logged in: {why}"),
        AgentOutcome::Outage { why } => format!("the agent's service can't be reached: {why}"),
        AgentOutcome::Interrupted => "it was ended by a signal".to_owned(),
    }
}

fn text(done: &Furthered, bill: Bill) -> String {
    let mut text = String::new();
    let is_answer = !done.is_vanished && done.ending == AgentOutcome::Success;
    if is_answer && !done.answer.trim().is_empty() {
        text.push_str(&format!("{}\n\n", done.answer.trim_end()));
    }
    text.push_str(&format!("cost:   {}\n", cost(bill)));
    for note in &done.notes {
        text.push_str(&format!("note:   {note}\n"));
    }
    if let Some(ContinuedBranch { name, base, instead, .. }) = &done.branch {
        if let Some(instead) = instead {
            text.push_str(&format!("note:   {instead}\n"));
        }
        let base = base.get(..12).unwrap_or(base);
        text.push_str(&format!(
            "branch: {name}\nlook:   git diff {base}..{name}\nmerge:  git merge {name}\n"
        ));
    }
    text
}

fn object(session: &Session, done: &Furthered, bill: Bill, stopped: Option<Stopped>) -> Value {
    let outcome = match (&done.ending, stopped) {
        _ if done.is_vanished => "vanished",
        (_, Some(_)) => "stopped",
        (AgentOutcome::Success, None) => "success",
        (
            AgentOutcome::Broke { .. }
            | AgentOutcome::Quota { .. }
            | AgentOutcome::Auth { .. }
            | AgentOutcome::Outage { .. }
            | AgentOutcome::Interrupted,
            None,
        ) => "failed",
    };
    let branch = done.branch.as_ref();
    json!({
        "event": "ended",
        "session": session.id,
        "outcome": outcome,
        "why": (done.ending != AgentOutcome::Success).then(|| why(&done.ending)),
        "answer": done.answer,
        "cost_usd": known_cost(bill),
        "tokens_in": (bill.tokens_in > 0).then_some(bill.tokens_in),
        "tokens_out": (bill.tokens_out > 0).then_some(bill.tokens_out),
        "branch_name": branch.map(|branch| &branch.name),
        "base": branch.map(|branch| &branch.base),
        "commit": branch.map(|branch| &branch.commit),
        "log_path": format!(".autopilot/{}", done.log),
        "notes": done.notes,
    })
}

/// The dollars of a bill, if they are known.
pub fn known_cost(bill: Bill) -> Option<f64> {
    (bill != Bill::default() && bill.is_complete()).then(|| bill.usd.usd())
}

/// The dollars of a bill as text.
pub fn cost(bill: Bill) -> String {
    match (known_cost(bill), bill.estimated) {
        (Some(usd), _) => format!("${usd:.4}"),
        (None, Micros(0)) => "unknown".to_owned(),
        (None, _) => autopilot_view::money::cost(bill),
    }
}
