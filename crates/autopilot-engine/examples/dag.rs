//! Steps of the paired loop that each start `true` and nothing else, for the benches.
//!
//! `dag supervised|plain layered|chain <tasks> <journal> <supervisor>`: the pilot decides, every
//! record is durable in SQLite before what follows from it begins, and every step is a process:
//! under the supervisor that agents have, or started plainly. At most four at once.

use autopilot_core::event::{Facts, Outcome, RunSpec, StepAnswer, TaskEntry, Verdict};
use autopilot_core::flow::Flow;
use autopilot_core::input::{AttemptWord, Input};
use autopilot_core::limit::Limits;
use autopilot_core::pilot::{Pilot, PilotOrder};
use autopilot_core::pipeline::Switch;
use autopilot_core::state::State;
use autopilot_core::step::Step;
use autopilot_core::wanted::Want;
use autopilot_engine::clock::now;
use autopilot_engine::store;
use autopilot_host::exec::{self, Launch, Supervisor};
use autopilot_journal::{
    Journal, JournalEntry, LeaseClaim, NewRun, SqliteJournal, Writer, WriterNotice,
};
use autopilot_view as view;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

type Outcomes<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const RUN: &str = "bench";
const AT_ONCE_MAX: usize = 4;
const WRITER_QUEUE_MAX: usize = 1024;
/// Tasks in a layer; each waits for two of the layer before.
const WIDTH: usize = 100;

#[expect(clippy::print_stderr, reason = "a bench that can't run says why")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dag: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcomes<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [how, shape, tasks, journal, supervisor] = arguments.as_slice() else {
        return Err("usage: dag supervised|plain layered|chain <tasks> <journal> <exe>".into());
    };
    let needs: fn(usize) -> Vec<usize> = match shape.as_str() {
        "layered" => layered,
        "chain" => |n: usize| n.checked_sub(1).into_iter().collect(),
        other => return Err(format!("`{other}` is no shape").into()),
    };
    let start = match how.as_str() {
        "supervised" => Start::Supervised(supervisor.into()),
        "plain" => Start::Plain,
        other => return Err(format!("`{other}` is no way to start").into()),
    };
    let tasks = (0..tasks.parse()?).map(|n| task(n, needs(n))).collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let state = runtime.block_on(work(journal.as_str().into(), start, tasks))?;
    let word = view::run_word(&state);
    if word == "DONE" { Ok(()) } else { Err(format!("the run ended as {word}").into()) }
}

fn layered(n: usize) -> Vec<usize> {
    let Some(before) = n.checked_sub(WIDTH) else { return Vec::new() };
    let layer = before / WIDTH * WIDTH;
    vec![before, layer + (n + 1) % WIDTH]
}

fn task(n: usize, needs: Vec<usize>) -> TaskEntry {
    TaskEntry {
        name: format!("t{n}"),
        title: format!("Task {n}"),
        depends_on: needs.iter().map(|task| format!("t{task}")).collect(),
        ..TaskEntry::default()
    }
}

#[derive(Clone)]
enum Start {
    Supervised(PathBuf),
    Plain,
}

struct Bench {
    pilot: Pilot,
    writer: Writer,
    epoch: u64,
    jobs: JoinSet<Outcomes<Want>>,
    slots: Arc<Semaphore>,
    start: Start,
    tasks: Vec<TaskEntry>,
}

async fn work(path: camino::Utf8PathBuf, start: Start, tasks: Vec<TaskEntry>) -> Outcomes<State> {
    let mut journal = SqliteJournal::create(&path)?;
    let title = "steps that do nothing".to_owned();
    let created_at_ms = now().0;
    journal.create_run(&NewRun { id: RUN.into(), mode: "plan".into(), title, created_at_ms })?;
    let epoch = journal.take_lease(RUN, "bench", LeaseClaim::Force, created_at_ms, i64::MAX)?.epoch;
    let (tell, mut durable) = mpsc::unbounded_channel();
    let notify = Box::new(move |notice| {
        let _gone = tell.send(match notice {
            WriterNotice::Durable { seq, .. } => Ok(seq),
            WriterNotice::Failed { error } => Err(error.to_string()),
        });
    });
    let mut bench = Bench {
        pilot: Pilot::default(),
        writer: Writer::start(Box::new(journal), WRITER_QUEUE_MAX, notify)?,
        epoch,
        jobs: JoinSet::new(),
        slots: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        start,
        tasks,
    };
    bench.hear(Input::Start(Box::new(spec())))?;
    while !bench.pilot.is_over() {
        tokio::select! {
            Some(seq) = durable.recv() => {
                let orders = bench.pilot.durable(seq?);
                bench.obey(orders);
            }
            Some(ended) = bench.jobs.join_next(), if !bench.jobs.is_empty() => {
                bench.ended(ended??)?;
            }
        }
    }
    let state = bench.pilot.settled().clone();
    bench.writer.close()?;
    Ok(state)
}

impl Bench {
    fn hear(&mut self, input: Input) -> Outcomes<()> {
        if let Ok(Some(record)) = self.pilot.hear(input, now()) {
            let entry: JournalEntry = store::encode(RUN, self.epoch, &record)?;
            self.writer.appender().submit(entry)?;
        }
        Ok(())
    }

    fn obey(&mut self, orders: Vec<PilotOrder>) {
        for order in orders {
            match order {
                PilotOrder::Start(want) => {
                    let (start, slots) = (self.start.clone(), Arc::clone(&self.slots));
                    let is_whole = self.pilot.settled().task(want.task).parent.is_none();
                    self.jobs.spawn(async move {
                        if !is_whole {
                            let _one_of_four = slots.acquire().await?;
                            nothing(&start).await?;
                        }
                        Ok(want)
                    });
                }
                PilotOrder::Tell(_) | PilotOrder::End(_) => {}
            }
        }
    }

    fn ended(&mut self, want: Want) -> Outcomes<()> {
        let facts = Box::new(self.facts(want.step));
        let word = AttemptWord::Ended { outcome: Outcome::Passed, facts };
        self.hear(Input::Heard { id: want.id, task: want.task, word })?;
        self.pilot.gone(want.id);
        let orders = self.pilot.catch_up();
        self.obey(orders);
        Ok(())
    }

    /// As much as the gates want to see.
    fn facts(&mut self, step: Step) -> Facts {
        let object = || Some("0123456789abcdef0123456789abcdef01234567".to_owned());
        let mut facts = Facts { exit: Some(0), ms: 1, ..Facts::default() };
        if step == Step::Schedule {
            facts.tasks = std::mem::take(&mut self.tasks);
        }
        if step == Step::Build {
            (facts.base, facts.commit) = (object(), object());
        }
        if step == Step::Build || step == Step::Validate {
            facts.tree = object();
        }
        if step == Step::Review {
            let verdict = Verdict::Approve;
            facts.said = Some(StepAnswer::Review { verdict, issues: 0, blocking: 0 });
        }
        if step == Step::Merge {
            facts.commit = object();
        }
        facts
    }
}

async fn nothing(start: &Start) -> Outcomes<()> {
    let passed = match start {
        Start::Plain => {
            let mut command = tokio::process::Command::new("true");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().await?.success()
        }
        Start::Supervised(own) => {
            let mut launch = Launch::new("true", "/");
            launch.env.insert("PATH".into(), std::env::var_os("PATH").unwrap_or_default());
            launch.supervisor =
                Supervisor { program: own.clone(), args: vec![exec::ARGUMENT.into()] };
            let (_control, child) = exec::spawn(launch).await?;
            child.wait().await.is_zero()
        }
    };
    if passed { Ok(()) } else { Err("`true` failed".into()) }
}

fn spec() -> RunSpec {
    RunSpec {
        id: RUN.to_owned(),
        flow: Flow::Plan,
        title: "steps that do nothing".to_owned(),
        source: "bench".to_owned(),
        started_by: "bench".to_owned(),
        base_branch: "main".to_owned(),
        base: "0".repeat(40),
        branch: "autopilot/run-bench".to_owned(),
        switches: BTreeSet::from([Switch::Review]),
        limits: Limits { workers_max: 4, effects_max: 4, ..Limits::default() },
        config: String::new(),
        red_base_allowed: false,
        holdout: None,
        options: Default::default(),
        whole: TaskEntry::default(),
        plan: None,
        tasks: Vec::new(),
    }
}
