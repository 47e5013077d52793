//! `autopilot replay`: repeats a run offline with the recorded answers of its agents, and shows
//! where the controller now decides differently.

use super::ground;
use super::past;
use super::work;
use crate::cli::{Global, Replay};
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal::{self, lines};
use autopilot_core::event::HaltWhy;
use autopilot_core::input::Ask;
use autopilot_core::state::State;
use autopilot_engine::host::EngineHost;
use autopilot_engine::query::RunArchive;
use autopilot_engine::replay::{
    Difference, Recording, RecordingError, compare, compare_ends, decisions,
};
use autopilot_engine::run_process::{self, Intent, OpenedRepository};
use autopilot_engine::shell::WaitPolicy;
use autopilot_engine::{store, workspace};
use autopilot_host::git::{Hub, Oid, StateEnv, UserRepo, make_rehearsal};
use autopilot_host::{dir, hand};
use autopilot_view as view;
use camino::Utf8Path;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;

/// The most pauses of one replay, so that a run that asks more often than before still ends.
const ANSWERS_MAX: usize = 200;
const DIFFERENT: u8 = 10;

/// Replays a run and prints the differences.
pub fn replay(global: &Global, args: &Replay) -> super::Done {
    let past = past::must(global)?;
    let told = past.run(args.run.as_deref())?;
    if let Some(pid) = told.pid() {
        return Err(CommandFailure::failed(format!(
            "process {pid} still works on run {}",
            told.run.id
        ))
        .hint("wait for its end, or stop it with `autopilot stop`"));
    }
    let recording =
        Recording::read(&past.place, &past.history, &told.run.id).map_err(unreadable)?;
    let (temp, root) = work::temporary_folder("autopilot-replay-")?;
    let replayed = play(global, &past, &recording, &root)?;
    let mut differences = compare(&recording.decisions, &replayed.decisions);
    if differences.is_empty() {
        let trees = (replayed.recorded_tree.as_deref(), replayed.tree.as_deref());
        differences.extend(compare_ends(trees.0, trees.1));
    }
    tell(global, &told.run.id, &recording, &replayed, &differences);
    if args.keep {
        let kept = temp.keep();
        terminal::note(&format!("kept: {}", kept.display()));
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

struct ReplayedRun {
    decisions: autopilot_engine::replay::Decisions,
    state: State,
    /// The files that the branches end with, as trees: recorded and replayed.
    recorded_tree: Option<String>,
    tree: Option<String>,
}

fn play(
    global: &Global,
    past: &RunArchive,
    recording: &Recording,
    root: &Utf8Path,
) -> Result<ReplayedRun, CommandFailure> {
    let repo = ground::repo(&past.place)?;
    let hub = Hub::open(past.place.state.as_std_path(), &repo)?;
    let project = root.join("project");
    let base = Oid::parse(&recording.spec.base)?;
    let branch = &recording.spec.base_branch;
    make_rehearsal(&hub, &base, branch, &repo.identity, project.as_std_path())?;
    bring_along(&past.place.root, &project, recording)
        .or_failed("cannot copy files of the project")?;
    let recorded_tree = end_tree(&hub, recording.tip.as_deref())?;
    let player = Arc::new(recording.player(hub));
    let mut spec = Box::new(recording.spec.clone());
    // The output files of the recorded run stay as they are.
    spec.options.out = None;
    let mut intent = Intent::Again { spec, texts: recording.texts.clone() };
    let (mut answers, mut visits) = (recording.ends.answers.clone(), recording.ends.visits.clone());
    for _ in 0..ANSWERS_MAX {
        let opened = open(&project, root, recording)?;
        let place = opened.place.clone();
        let machine = work::machine()?;
        let playing = Some(Arc::clone(&player));
        let run = run_process::open(opened, intent, machine, playing, &mut terminal::note)?;
        let quiet = Global { json: false, quiet: true, ..global.clone() };
        let watching = lines::watch(&quiet, &run);
        let host = EngineHost::new()?;
        let ended = host.start(run, WaitPolicy::default()).join();
        watching.drain();
        let state = ended?;
        let texts = recording.texts.clone();
        let ended = player.ended();
        if let Some((_, ask)) = visits.pop_front_if(|(after, _)| *after <= ended) {
            player.go_on();
            let run = recording.spec.id.clone();
            intent = match ask {
                Ask::Continue { .. } => {
                    Intent::Only { run, ask, limits: Default::default(), texts }
                }
                ask => again(vec![ask], texts),
            };
            continue;
        }
        let next = state.gate().and_then(|_| answers.pop_front());
        let is_left = state.run.halt.as_ref().is_some_and(|halt| halt.why == HaltWhy::Continued);
        let goes_on = is_left && player.has_more();
        let asks: Vec<Ask> = next.into_iter().collect();
        if asks.is_empty() && !goes_on || state.end().is_some() {
            let history = workspace::reader(&place)?;
            let records =
                store::records(&history, &recording.spec.id).map_err(CommandFailure::failed)?;
            let hub = Hub::open(place.state.as_std_path(), &examined(&project, recording)?)?;
            let tree = end_tree(&hub, state.run.tip.as_deref())?;
            let decisions = decisions(&records);
            return Ok(ReplayedRun { decisions, state, recorded_tree, tree });
        }
        intent = again(asks, texts);
    }
    Err(CommandFailure::failed(format!(
        "the replay paused more than {ANSWERS_MAX} times without an end"
    )))
}

/// Copies the files that a slot or a check needs and git does not have.
fn bring_along(from: &Utf8Path, to: &Utf8Path, recording: &Recording) -> std::io::Result<()> {
    let config = &recording.config;
    let schemas =
        [&config.reviewer.schema_path, &config.planner.schema_path].into_iter().flatten().cloned();
    for path in schemas.chain(config.worktrees.copy.iter().cloned()) {
        let (source, target) = (from.join(&path), to.join(&path));
        if source.is_dir() {
            dir::copy(source.as_std_path(), target.as_std_path())?;
        } else if source.is_file() {
            hand::copy(source.as_std_path(), target.as_std_path())?;
        }
    }
    Ok(())
}

fn open(
    project: &Utf8Path,
    root: &Utf8Path,
    recording: &Recording,
) -> Result<OpenedRepository, CommandFailure> {
    let config = recording.config.clone();
    let repo = examined(project, recording)?;
    let env = StateEnv {
        autopilot_state_dir: Some(root.join("state").into_string().into()),
        ..StateEnv::default()
    };
    let place = workspace::adopt(&repo, &env)?;
    Ok(OpenedRepository { place, repo, config })
}

fn examined(project: &Utf8Path, recording: &Recording) -> Result<UserRepo, CommandFailure> {
    let (base, filters) = (&recording.spec.base_branch, &recording.config.git.filters);
    Ok(UserRepo::examine(project.as_std_path(), base, filters)?)
}

fn again(asks: Vec<Ask>, texts: Vec<String>) -> Intent {
    Intent::Resume { asks, limits: Default::default(), model: None, texts }
}

/// The tree of the commit that a branch ends with.
fn end_tree(hub: &Hub, tip: Option<&str>) -> Result<Option<String>, CommandFailure> {
    let Some(tip) = tip else { return Ok(None) };
    Ok(Some(hub.tree_of(&Oid::parse(tip)?)?.to_string()))
}

fn unreadable(error: RecordingError) -> CommandFailure {
    match error {
        RecordingError::NotRecorded { .. } => CommandFailure::usage(error).hint(
            "runs are recorded unless `logging.record: false` says otherwise, and until their \
             artifacts are removed",
        ),
        RecordingError::Store(_)
        | RecordingError::Empty { .. }
        | RecordingError::Config { .. }
        | RecordingError::Recorded(_) => CommandFailure::failed(error),
    }
}

fn tell(
    global: &Global,
    run: &str,
    recording: &Recording,
    replayed: &ReplayedRun,
    differences: &[Difference],
) {
    let count: usize = recording.decisions.values().map(Vec::len).sum();
    let tasks = recording.decisions.keys().filter(|name| *name != "run").count();
    if global.json {
        return terminal::json(&json!({
            "run": run,
            "same": differences.is_empty(),
            "decisions": count,
            "tasks": tasks,
            "answers_played": recording.turns.count,
            "answers_missing": recording.turns.missing,
            "not_repeated": recording.ends.interventions,
            "outcome": view::run_word(&replayed.state),
            "differences": differences,
        }));
    }
    for text in &recording.ends.interventions {
        terminal::note(&format!("not repeated: {text}"));
    }
    for name in &recording.turns.missing {
        terminal::note(&format!("{name} has no recorded output"));
    }
    if differences.is_empty() {
        terminal::say(&format!(
            "replayed run {run}: {} of agents, {} about {}, all the same",
            view::count(recording.turns.count, "answer"),
            view::count(count, "decision"),
            view::count(tasks, "task"),
        ));
        return;
    }
    terminal::say(&format!("replayed run {run}: {}", differing(differences)));
    for difference in differences {
        let word =
            |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing more".to_owned());
        terminal::say(&format!(
            "  {}: the same for {}, then\n    recorded: {}\n    now:      {}",
            difference.task,
            view::count(difference.after, "decision"),
            word(&difference.recorded),
            word(&difference.replayed),
        ));
    }
}

/// The number of tasks that differ; the run itself is not one of them.
fn differing(differences: &[Difference]) -> String {
    let tasks = differences.iter().filter(|difference| difference.task != "run").count();
    match (tasks, differences.len() - tasks) {
        (1, 0) => "1 task differs".to_owned(),
        (tasks, 0) => format!("{} differ", view::count(tasks, "task")),
        (0, _) => "the run itself differs".to_owned(),
        (tasks, _) => format!("{} and the run itself differ", view::count(tasks, "task")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_itself_is_not_counted_as_a_task_that_differs() {
        let of = |names: &[&str]| {
            let one = |name: &&str| Difference {
                task: (*name).to_owned(),
                after: 0,
                recorded: None,
                replayed: None,
            };
            differing(&names.iter().map(one).collect::<Vec<_>>())
        };
        assert_eq!(of(&["a"]), "1 task differs");
        assert_eq!(of(&["a", "b"]), "2 tasks differ");
        assert_eq!(of(&["run"]), "the run itself differs");
        assert_eq!(of(&["a", "b", "run"]), "2 tasks and the run itself differ");
    }
}
