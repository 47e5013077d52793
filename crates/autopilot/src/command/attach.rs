//! `autopilot attach`: watches the agent that works on a task, and sends it messages.

use super::past;
use crate::cli::{Attach, Global};
use crate::exit::CommandFailure;
use crate::terminal;
use autopilot_agents::{AgentEvent, listens, telling};
use autopilot_core::config::Mode;
use autopilot_core::id::TaskId;
use autopilot_core::pipeline::Stage;
use autopilot_core::state::{State, Status, Task};
use autopilot_core::step::Role;
use autopilot_engine::ask;
use autopilot_engine::feed::{FeedItem, FeedNews, GrowthWatch, Subscription};
use autopilot_engine::inbox::InboxRequest;
use autopilot_engine::job::{EVENTS, Metadata, execs_of};
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::log::read_from;
use autopilot_engine::query::{KnownRun, QueryError, RunArchive};
use autopilot_engine::recorded::{RecordedExec, RecordedRun};
use autopilot_view as view;
use camino::{Utf8Path, Utf8PathBuf};
use std::io::BufRead;
use std::time::Duration;

/// How much of the conversation so far is shown, from its end.
const EARLIER_BYTES_MAX: u64 = 64 * 1024;

/// Watches a task's agent, or sends it one message or an interrupt.
pub fn attach(global: &Global, args: &Attach) -> super::Done {
    let past = past::must(global)?;
    let watched = WatchedTask::of(&past, &args.task)?;
    watched.must_be_live(&past)?;
    if let Some(why) = watched.nobody(&watched.told(&past)?) {
        return Err(CommandFailure::usage(why).hint(
            "`autopilot status` shows the tasks at work, `autopilot attach <task>` watches one",
        ));
    }
    let task = watched.task.clone();
    if args.interrupt {
        tell(&past.place, &watched.run, InboxRequest::Interrupt { task })?;
        terminal::say(
            "the agent was asked to end its turn; the run decides what becomes of the step",
        );
        return super::done();
    }
    if let Some(message) = &args.message {
        if message.trim().is_empty() {
            return Err(CommandFailure::usage(
                "say something: autopilot attach TASK --message \"text\"",
            ));
        }
        tell(&past.place, &watched.run, InboxRequest::Tell { task, text: message.clone() })?;
        terminal::say("the message was delivered");
        return super::done();
    }
    terminal::note(&format!("watching {task}; Ctrl-C stops watching and leaves the agent at work"));
    watched.watch(global, &past)
}

/// Sends a request to the agent's process.
fn tell(place: &StatePaths, run: &str, request: InboxRequest) -> Result<(), CommandFailure> {
    ask::tell(place, run, request).map_err(|error| {
        if error.is_taken() {
            return error.into();
        }
        CommandFailure::failed(error)
            .context("the message was not delivered")
            .hint("`autopilot status` shows what works on it now")
    })
}

struct WatchedTask {
    run: String,
    /// The task's name; `run` stands for the run itself.
    task: String,
    views: Utf8PathBuf,
}

impl WatchedTask {
    fn of(past: &RunArchive, name: &str) -> Result<WatchedTask, CommandFailure> {
        let (told, id) = match name {
            "run" => (past.run(None)?, TaskId::ROOT),
            _ => past.task(name)?,
        };
        let task = told.state.task(id).label();
        let views = past.place.views();
        Ok(WatchedTask { run: told.run.id.clone(), task: task.to_owned(), views })
    }

    fn told(&self, past: &RunArchive) -> Result<KnownRun, CommandFailure> {
        Ok(past.run(Some(&self.run))?)
    }

    fn must_be_live(&self, past: &RunArchive) -> Result<(), CommandFailure> {
        if self.told(past)?.is_live() {
            return Ok(());
        }
        let logs = match self.task.as_str() {
            "run" => "autopilot logs".to_owned(),
            task => format!("autopilot logs {task}"),
        };
        Err(CommandFailure::usage(format!("no process works on run {} now", self.run)).hint(
            format!(
                "`{logs}` has what was said, `autopilot sessions` the conversations that can be \
                 resumed"
            ),
        ))
    }

    /// Why the run itself has no agent to watch, neither now nor at its next step.
    fn nobody(&self, told: &KnownRun) -> Option<String> {
        if self.task != "run" {
            return None;
        }
        let (run, flow) = (&self.run, told.state.run.flow);
        let root = told.state.root()?;
        let is_planned = |stage: &Stage| stage.step.role() == Some(Role::Planner);
        if !root.pipeline.stages().iter().any(is_planned) {
            return Some(format!("run {run} has no planner: it is a {} run", flow.word()));
        }
        // The step comes again after every iteration.
        if root.pipeline.has_tasks_by_round() {
            return None;
        }
        let begun = root.pipeline.children().and_then(|step| root.pipeline.place(step));
        let stage = root.stage()?;
        let is_to_come = root.pipeline.place(stage.step) < begun;
        let is_over = stage.step.role().is_none() && !is_to_come;
        is_over.then(|| format!("the planner of run {run} has done its work"))
    }

    fn watch(&self, global: &Global, past: &RunArchive) -> super::Done {
        self.pass_on_typed_lines(&past.place);
        let mut told = self.told(past)?;
        let mut subscription = past.follow(&told)?;
        let mut reader = ExecReader::default();
        let mut growth = GrowthWatch::of([past.place.state.as_path(), &self.execs()]);
        loop {
            // The records are read before the log, so that the log's last lines are not missed.
            let is_live = caught_up(&mut subscription, &mut told.state)?;
            let is_over = !is_live
                || self.state(&told).is_none_or(Task::is_settled)
                || self.nobody(&told).is_some();
            reader.look(global, (&self.views, &self.run), &self.task);
            if is_over {
                return self.last_word(&told, is_live);
            }
            growth.add(&self.execs());
            reader
                .path
                .as_deref()
                .and_then(Utf8Path::parent)
                .into_iter()
                .for_each(|dir| growth.add(dir));
            growth.wait(growth.every());
        }
    }

    /// The directory of the run's questions to agents.
    fn execs(&self) -> Utf8PathBuf {
        self.views.join(execs_of(&self.run))
    }

    /// Sends each line from the keyboard or a pipe to the agent. The end of the input does not end
    /// the watching.
    fn pass_on_typed_lines(&self, place: &StatePaths) {
        let (place, run, task) = (place.clone(), self.run.clone(), self.task.clone());
        std::thread::spawn(move || {
            let lines = std::io::stdin().lock().lines().map_while(Result::ok);
            for text in lines.filter(|line| !line.trim().is_empty()) {
                match tell(&place, &run, InboxRequest::Tell { task: task.clone(), text }) {
                    Ok(()) => terminal::note("the message was delivered"),
                    Err(failure) => terminal::error(&failure.message()),
                }
            }
        });
    }

    fn state<'a>(&self, told: &'a KnownRun) -> Option<&'a Task> {
        if self.task == "run" { told.state.root() } else { told.state.named(&self.task) }
    }

    fn last_word(&self, told: &KnownRun, is_live: bool) -> super::Done {
        if let Some(nobody) = self.nobody(told).filter(|_| is_live) {
            terminal::say(&nobody);
            return super::done();
        }
        let word = match self.state(told) {
            Some(task) => match &task.status {
                Status::Settled(_) => format!("{}: {}", self.task, view::task_word(task)),
                Status::Open
                | Status::At { .. }
                | Status::Running { .. }
                | Status::Waiting { .. } => format!("run {} is halted", self.run),
            },
            None => format!("run {} no longer has this task", self.run),
        };
        terminal::say(&word);
        super::done()
    }
}

/// Applies the records that are there; returns whether a process still works on the run.
fn caught_up(subscription: &mut Subscription, state: &mut State) -> Result<bool, CommandFailure> {
    loop {
        match subscription.take(Duration::ZERO).map_err(QueryError::from)? {
            FeedNews::Item(FeedItem::Record(record)) => state.apply_record(&record),
            FeedNews::Item(_) => {}
            FeedNews::Quiet => return Ok(true),
            FeedNews::Ended => return Ok(false),
        }
    }
}

/// Follows the newest question of a task to its agent, then each later one.
#[derive(Default)]
struct ExecReader {
    number: u32,
    path: Option<Utf8PathBuf>,
    offset: u64,
    /// A line that is still being written.
    rest: String,
}

impl ExecReader {
    fn look(&mut self, global: &Global, (views, run): (&Utf8Path, &str), task: &str) {
        self.print(global);
        let Ok(run) = RecordedRun::open(views, run) else { return };
        let Ok(mut newer) = run.execs() else { return };
        let metadata = |exec: &RecordedExec| run.metadata(exec).unwrap_or_default();
        newer.retain(|exec| exec.number > self.number && is_of(&metadata(exec), task));
        // The first look starts at the current question and skips the earlier ones.
        let skipped = if self.path.is_none() { newer.len().saturating_sub(1) } else { 0 };
        for exec in newer.split_off(skipped) {
            let is_first = self.path.is_none();
            if !global.json {
                let agent = metadata(&exec).agent;
                let ears = if Mode::of(&agent).is_some_and(listens) {
                    "each line you type is sent to it"
                } else {
                    "it can't receive messages while it works"
                };
                terminal::note(&format!("--- {} ({agent}: {ears})", exec.name));
            }
            let path = run.dir(&exec).join(EVENTS);
            let length = path.metadata().map(|meta| meta.len()).unwrap_or(0);
            self.offset = if is_first { length.saturating_sub(EARLIER_BYTES_MAX) } else { 0 };
            (self.number, self.path) = (exec.number, Some(path));
            self.rest.clear();
            self.print(global);
        }
    }

    fn print(&mut self, global: &Global) {
        let Some(path) = &self.path else { return };
        let Ok((from, text)) = read_from(path, self.offset) else { return };
        self.offset = from + text.len() as u64;
        self.rest.push_str(&String::from_utf8_lossy(&text));
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            show(global, line.trim_end());
        }
    }
}

fn show(global: &Global, line: &str) {
    // The first line may be cut off at its beginning.
    let Ok(event) = serde_json::from_str::<AgentEvent>(line) else { return };
    if global.json {
        terminal::put(&format!("{line}\n"));
    } else if let Some(text) = telling::told(&event) {
        terminal::say(&text);
    }
}

fn is_of(said: &Metadata, task: &str) -> bool {
    said.task == task || said.task.is_empty() && task == "run"
}
