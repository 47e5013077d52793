//! `autopilot approve` and `reject`: a person's decision at the gate where a run waits.

use super::ask;
use super::work::{self, WorkedRun};
use crate::cli::{Approve, Global, Reject};
use crate::exit::{CommandFailure, ExitKind, OrFailed};
use crate::terminal;
use autopilot_core::decide::{Deed, Hindrance, Refusal};
use autopilot_core::fingerprint::sha256_hex;
use autopilot_core::input::Ask;
use autopilot_core::plan::{self, PlanRules};
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_engine::ask::{self as engine, AskReply};
use autopilot_engine::begin::parse_plan;
use autopilot_engine::inbox::LimitChange;
use autopilot_engine::place::StatePaths;
use autopilot_engine::run_process::{Intent, OpenedRepository};
use autopilot_engine::{store, workspace};
use camino::Utf8PathBuf;
use std::collections::BTreeMap;
use std::io::IsTerminal;

/// How often the editor is opened again for a plan that breaks a rule.
const EDITS_MAX: u32 = 20;

/// Approves what the run waits for, after editing the plan with `--edit`.
pub fn approve(global: &Global, args: &Approve) -> super::Done {
    let place = place(global, Deed::Approve)?;
    let asked = Ask::Approve { by: by(), answer: None };
    if !args.edit {
        return ask::say(global, &place, LimitChange::default(), asked, args.wait);
    }
    if let Some(holder) = workspace::holder(&place) {
        return Err(CommandFailure::failed(format!(
            "process {} is waiting at the gate, so the plan can't be edited beside it",
            holder.process.pid
        ))
        .hint("end it with Ctrl-C or `autopilot stop`, or approve without --edit"));
    }
    let edited = match engine::ask(&place, &LimitChange::default(), &[asked])? {
        AskReply::Unattended(state) => edit(&place, &state)?,
        AskReply::Answered(answer) => return Err(CommandFailure::failed(answer.text)),
    };
    let opened = work::reopen(global, &place, false)?;
    work::work(global, opened, approving(edited), args.wait)
}

/// Rejects what the run waits for, with a reason.
pub fn reject(global: &Global, args: &Reject) -> super::Done {
    let place = place(global, Deed::Reject)?;
    let asked = Ask::Reject { by: by(), why: args.why.trim().to_owned() };
    ask::say(global, &place, LimitChange::default(), asked, args.wait)
}

/// Works until the plan is made, opens it in an editor, and continues with the edited plan.
pub fn edit_then_work(
    global: &Global,
    opened: OpenedRepository,
    intent: Intent,
    wait: bool,
) -> super::Done {
    let worked: WorkedRun<'_> = work::until_rest(global, opened, intent, wait)?;
    if !worked.waits_at(Step::ApprovePlan) {
        return worked.tell();
    }
    let edited = edit(&worked.place, &worked.state)?;
    let opened = work::reopen(global, &worked.place, false)?;
    work::work(global, opened, approving(edited), wait)
}

fn approving(edited: Option<String>) -> Intent {
    let answer = edited.as_ref().map(|text| sha256_hex(text.as_bytes()));
    Intent::Resume {
        asks: vec![Ask::Approve { by: by(), answer }],
        limits: Default::default(),
        model: None,
        texts: edited.into_iter().collect(),
    }
}

/// The state paths of a repository that has had a run; otherwise nothing can wait at a gate.
fn place(global: &Global, deed: Deed) -> Result<StatePaths, CommandFailure> {
    let (place, known) = super::place_of_runs(global)?;
    let nothing = || Refusal { task: None, deed, why: Hindrance::NoGate };
    known.then_some(place).ok_or_else(|| nothing().into())
}

fn by() -> String {
    work::user().unwrap_or_else(|| "a person".to_owned())
}

/// The edited plan, or `None` if the person changed nothing.
fn edit(place: &StatePaths, state: &State) -> Result<Option<String>, CommandFailure> {
    let gone =
        |what: &str| CommandFailure::failed(format!("the {what} of run {} is gone", state.run.id));
    let reader = workspace::reader(place)?;
    let read = |hash: &str| store::text(&reader, hash).map_err(CommandFailure::failed);
    let root = state.root().ok_or_else(|| gone("root"))?;
    let made = root.last(Step::Plan).and_then(|shown| shown.facts.answer.clone());
    let made = made.ok_or_else(|| gone("plan"))?;
    let text = read(&made)?;
    let whole: TaskSpec =
        serde_json::from_str(&read(&root.spec.body)?).or_failed("the plan can't be read")?;
    let (config, _) = autopilot_engine::run_process::pinned_config(place, false)?;
    let rules = PlanRules::of(&config, &whole, BTreeMap::new());
    let before = parse_plan(&text, &rules).map_err(|_| gone("plan"))?;
    let mark: String = made.chars().take(8).collect();
    let file = place.state.join("edit").join(format!("{}-{mark}-plan.json", state.run.id));
    // A faulty plan from an earlier edit is opened again, so that the person can correct it.
    if !file.exists() {
        write(&file, &text)?;
    }
    for _ in 0..EDITS_MAX {
        open(&file)?;
        let edited = std::fs::read_to_string(&file).or_failed(format!("cannot read `{file}`"))?;
        let faults = match parse_plan(&edited, &rules) {
            Ok(after) => {
                for line in plan::difference(&before.0, &after.0) {
                    terminal::note(&line);
                }
                return Ok((after.0 != before.0).then_some(edited));
            }
            Err(faults) => faults,
        };
        let message = format!("the plan can't be worked on:\n{}", faults.join("\n"));
        if !std::io::stdin().is_terminal() || !terminal::confirm(&format!("{message}\nedit again?"))
        {
            return Err(CommandFailure::failed(message).hint(format!(
                "what you wrote is in {file}; the run still waits: autopilot approve --edit"
            )));
        }
    }
    Err(CommandFailure::failed(format!("the plan in `{file}` is still not right")))
}

fn write(file: &Utf8PathBuf, text: &str) -> Result<(), CommandFailure> {
    let failed = || format!("cannot write `{file}`");
    if let Some(dir) = file.parent() {
        autopilot_host::dir::create(dir.as_std_path()).or_failed(failed())?;
    }
    autopilot_host::file::write_atomic(file.as_std_path(), text.as_bytes()).or_failed(failed())
}

/// Opens the person's own editor in their terminal.
fn open(file: &Utf8PathBuf) -> Result<(), CommandFailure> {
    let editor = work::editor().unwrap_or_else(|| "vi".to_owned());
    let status = autopilot_host::editor::open(&editor, file.as_std_path())
        .or_failed(format!("cannot start the editor `{editor}`"))?;
    if status.success() {
        return Ok(());
    }
    let message = format!("the editor `{editor}` ended with {status}");
    Err(CommandFailure::new(ExitKind::Paused, message)
        .hint("nothing was approved; the run still waits: autopilot approve --edit"))
}
