//! The runs beside a gate: the base's tests over the new code, and the new tests over the base's code,
//! each on a tree that the controller composes in the hub. What they mean is decided in the core.

use super::own_work::blocking;
use super::{Job, JobError};
use autopilot_core::event::TaskEnd;
use autopilot_core::evidence::RoundEvidence;
use autopilot_core::id::TaskId;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::Status;
use autopilot_core::step::Step;
use autopilot_core::task_file::TaskSpec;
use autopilot_core::three_runs::{
    AskedChange, AskedTest, ChangedText, OpenTest, ProofRun, RED_FILES_MAX, RunsSeen, ThreeRuns,
    accounts, open_tests, red_tests, vanished_tests,
};
use autopilot_core::yardstick::{
    ChangedEntry, ComposedEntry, ComposedTrees, EntrySide, TreeView, YardstickReason,
    YardstickRules, compose, test_bodies,
};
use autopilot_host::git::{
    ChangedPathSides, CommitTexts, EditRequest, GitChange, Oid, TreeEdit, changed_sides, edited,
    text_of,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The changed files whose texts are read.
const TEXTS_MAX: usize = 2_000;
/// The command that the runs repeat; lint, format and acceptance are asked of the change alone.
const TESTS: &str = "tests";

/// What the runs beside a gate are about.
pub(super) struct RunsOrder<'a> {
    /// The commit whose tests count, and whose code the new tests run over.
    pub base: &'a Oid,
    pub head: &'a Oid,
    /// What the commands have shown on the change.
    pub green: &'a RoundEvidence,
    pub commands: &'a [(&'static str, String)],
    pub wanted: RunsWanted,
}

/// Which of the runs are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RunsWanted {
    Both,
    /// What was red on its own base is not proven so again where it is merged.
    NoRegression,
}

/// The names of tests in the files of the yardstick that a change touches.
#[derive(Default)]
struct TestNames {
    base: BTreeMap<String, BTreeSet<String>>,
    changed: BTreeSet<String>,
    moved: BTreeMap<String, String>,
    /// The touched files that have tests with the change, and the names of those.
    files: Vec<(String, Vec<String>)>,
}

impl Job {
    /// The tests of the base that the validation of this round has left open.
    pub(super) fn open_tests(&self) -> &[OpenTest] {
        let shown = self.task.shown(Step::Validate);
        shown.map(|shown| shown.facts.open.as_slice()).unwrap_or_default()
    }

    /// Runs the tests on the trees beside a change, where it touches what decides its verdict. None
    /// where it does not, or where the run began before there were such runs.
    pub(super) async fn runs_beside(
        &self,
        order: &RunsOrder<'_>,
    ) -> Result<Option<ThreeRuns>, JobError> {
        let commands: Vec<(&'static str, String)> =
            order.commands.iter().filter(|(name, _)| *name == TESTS).cloned().collect();
        if commands.is_empty() || !self.run.switches.contains(&Switch::ThreeRuns) {
            return Ok(None);
        }
        let entries = blocking(|| self.changed_entries(order.base, order.head))?;
        let trees = blocking(|| self.composed(order, &entries))?;
        if trees.touched.is_empty() {
            return Ok(None);
        }
        let mut runs = ThreeRuns {
            touched: trees.touched.keys().cloned().collect(),
            settings: trees.settings(),
            ..ThreeRuns::default()
        };
        let is_setting = |path: &&String| runs.settings.contains(*path);
        let inseparable = trees.inseparable.keys().filter(|path| !is_setting(path)).cloned();
        runs.inseparable = inseparable.collect();
        let names = test_names(&trees, &entries);
        let mut left_out = BTreeSet::new();
        if trees.needs_runs() {
            left_out = self.make_runs(order, &trees, &names, &mut runs, &commands).await?;
        }
        self.compare(order, &trees, &names, &left_out, &mut runs)?;
        Ok(Some(runs))
    }

    /// Makes the runs on the composed trees; returns the tests that are left out of them.
    async fn make_runs(
        &self,
        order: &RunsOrder<'_>,
        trees: &ComposedTrees,
        names: &TestNames,
        runs: &mut ThreeRuns,
        commands: &[(&'static str, String)],
    ) -> Result<BTreeSet<String>, JobError> {
        let ends = [order.base, order.head];
        runs.no_regression = self.run_on(order.head, &trees.no_regression, ends, commands).await?;
        if order.wanted == RunsWanted::Both && !self.cancel.is_asked() {
            runs.red.extend(self.run_on(order.base, &trees.red, ends, commands).await?);
        }
        if runs.red.first().is_some_and(|run| has_no_names(run, order.green)) {
            return self.run_red_by_file(order, trees, names, runs, commands).await;
        }
        Ok(BTreeSet::new())
    }

    /// Takes down what the runs show.
    fn compare(
        &self,
        order: &RunsOrder<'_>,
        trees: &ComposedTrees,
        names: &TestNames,
        left_out: &BTreeSet<String>,
        runs: &mut ThreeRuns,
    ) -> Result<(), JobError> {
        let base = self.known_failures()?;
        let before = runs.no_regression.as_ref().map(|run| run.checks.as_slice());
        let decisive = trees.touched.iter().filter(|(_, reason)| reason.decides_commands());
        let touched: BTreeSet<String> = decisive.map(|(file, _)| file.clone()).collect();
        let seen = RunsSeen {
            touched: &touched,
            base: &base,
            green: &order.green.checks,
            no_regression: before.unwrap_or_default(),
            red: &runs.red,
            base_tests: &names.base,
            changed_tests: &names.changed,
            moved_tests: &names.moved,
            left_out,
        };
        let open = open_tests(&seen);
        let lost = vanished_tests(&seen, &open);
        let red = red_tests(&seen);
        (runs.open, runs.lost) = (open, lost);
        (runs.proven_red, runs.weakly_red, runs.not_red) = (red.proven, red.weak, red.not);
        runs.not_shown = red.unknown;
        Ok(())
    }

    /// Takes down which of the open tests the task itself accounts for.
    pub(super) fn account(&self, runs: &mut ThreeRuns, spec: &TaskSpec, change: &GitChange) {
        let task = spec.text();
        for test in &runs.open {
            let lines = changed_text(change, test.file.as_deref().unwrap_or(&test.id));
            if let Some(by) = accounts(test, &task, &spec.allowed_paths, &lines) {
                runs.asked.push(AskedTest { test: test.clone(), by });
            }
        }
        runs.lost.retain(|test| {
            let lines = changed_text(change, test.file.as_deref().unwrap_or(&test.id));
            accounts(test, &task, &spec.allowed_paths, &lines) != Some(AskedChange::Text)
        });
    }

    /// The tests of the base that merged tasks have changed, each accounted for where that was done.
    pub(super) fn accounted_by_tasks(&self) -> Result<BTreeSet<String>, JobError> {
        let state = self.state()?;
        let mut known = BTreeSet::new();
        for task in
            state.tasks.iter().filter(|task| task.parent.is_some() && task.id != self.task.id)
        {
            known.extend(self.open_ids_of(task.id)?);
        }
        Ok(known)
    }

    /// What the validations of the tasks that were merged before have shown.
    pub(super) fn merged_evidence(&self) -> Result<Vec<RoundEvidence>, JobError> {
        let state = self.state()?;
        let others = state.tasks.iter().filter(|task| task.id != self.task.id);
        let merged = others.filter(|task| {
            task.parent.is_some() && task.status == Status::Settled(TaskEnd::Closed)
        });
        merged
            .filter_map(|task| task.last(Step::Validate))
            .map(|shown| self.evidence_at(shown.facts.answer.as_deref()))
            .collect()
    }

    /// The tests that the last validation of a task has named.
    pub(super) fn open_ids_of(&self, task: TaskId) -> Result<Vec<String>, JobError> {
        let state = self.state()?;
        let shown = state.task(task).last(Step::Validate);
        let evidence = self.evidence_at(shown.and_then(|shown| shown.facts.answer.as_deref()))?;
        let open = evidence.three_runs.map(|runs| runs.open).unwrap_or_default();
        Ok(open.into_iter().map(|test| test.id).collect())
    }

    fn changed_entries(&self, base: &Oid, head: &Oid) -> Result<Vec<ChangedEntry>, JobError> {
        let hub = &self.context.workshop.hub;
        let mut texts_left = TEXTS_MAX;
        let mut side = |side: Option<(u32, Oid)>| {
            let (mode, oid) = side?;
            texts_left = texts_left.saturating_sub(1);
            let text = if texts_left > 0 { text_of(hub, mode, &oid) } else { None };
            Some(EntrySide { mode, oid: oid.to_string(), text })
        };
        let entry = |ChangedPathSides { path, old, new }| ChangedEntry {
            path: String::from_utf8_lossy(&path).into_owned(),
            base: side(old),
            head: side(new),
        };
        Ok(changed_sides(hub, base, head)?.into_iter().map(entry).collect())
    }

    fn composed(
        &self,
        order: &RunsOrder<'_>,
        entries: &[ChangedEntry],
    ) -> Result<ComposedTrees, JobError> {
        let hub = &self.context.workshop.hub;
        let (base, head) = (CommitTexts::of(hub, order.base)?, CommitTexts::of(hub, order.head)?);
        let (read_base, read_head) = (|path: &str| base.text(path), |path: &str| head.text(path));
        let trees = [
            TreeView { paths: base.paths(), read: &read_base },
            TreeView { paths: head.paths(), read: &read_head },
        ];
        let setup = self.context.config.worktrees.setup.iter();
        let setup = setup.map(|line| ("worktrees.setup".to_owned(), line.clone()));
        let commands: Vec<(String, String)> = order
            .commands
            .iter()
            .map(|(name, line)| ((*name).to_owned(), line.clone()))
            .chain(setup)
            .collect();
        let rules = YardstickRules::new(&self.context.config.gates.yardstick, &commands, &trees);
        Ok(compose(&rules, entries))
    }

    /// Runs the commands on a commit with edits; none if that is one of the trees whose results are
    /// known.
    async fn run_on(
        &self,
        commit: &Oid,
        edits: &BTreeMap<String, ComposedEntry>,
        known: [&Oid; 2],
        commands: &[(&'static str, String)],
    ) -> Result<Option<ProofRun>, JobError> {
        if edits.is_empty() || self.cancel.is_asked() {
            return Ok(None);
        }
        let (hub, repo) = (&self.context.workshop.hub, &self.context.workshop.repo);
        let edits = edits
            .iter()
            .map(|(path, entry)| Ok((path.clone().into_bytes(), tree_edit(entry)?)))
            .collect::<Result<BTreeMap<Vec<u8>, TreeEdit>, JobError>>()?;
        let (composed, tree, is_known) = blocking(|| {
            let message = "Tests and code of two commits";
            let request = EditRequest { commit, message, identity: &repo.identity, now: 0 };
            let composed = edited(hub, &request, &edits)?;
            let tree = hub.tree_of(&composed)?;
            let mut is_known = false;
            for known in known {
                is_known |= hub.tree_of(known)? == tree;
            }
            Ok::<_, JobError>((composed, tree, is_known))
        })?;
        if is_known {
            return Ok(None);
        }
        let gate = self.checks(&composed, commands.to_vec(), Instant::now()).await?;
        Ok(Some(ProofRun { tree: tree.to_string(), checks: gate.evidence().checks }))
    }

    /// Runs the new tests file by file over the base's code, so that one which does not compile hides no
    /// other. Returns the files that are too many, and their tests.
    async fn run_red_by_file(
        &self,
        order: &RunsOrder<'_>,
        trees: &ComposedTrees,
        names: &TestNames,
        runs: &mut ThreeRuns,
        commands: &[(&'static str, String)],
    ) -> Result<BTreeSet<String>, JobError> {
        if names.files.len() < 2 {
            return Ok(BTreeSet::new());
        }
        for (file, _) in names.files.iter().take(RED_FILES_MAX) {
            let others = names.files.iter().map(|(other, _)| other).filter(|other| *other != file);
            let mut edits = trees.red.clone();
            for other in others {
                edits.remove(other);
            }
            let ends = [order.base, order.head];
            runs.red.extend(self.run_on(order.base, &edits, ends, commands).await?);
        }
        let left_out = names.files.iter().skip(RED_FILES_MAX);
        let named = left_out.flat_map(|(file, tests)| [file].into_iter().chain(tests));
        Ok(named.cloned().collect())
    }
}

/// Whether a run failed without naming a test, where the runner named those of the change.
fn has_no_names(run: &ProofRun, green: &RoundEvidence) -> bool {
    let names = |checks: &[autopilot_core::evidence::SeenCommand]| {
        checks.iter().filter_map(|seen| seen.report.as_deref()).any(|report| report.has_ids())
    };
    run.checks.iter().any(|seen| seen.failed()) && !names(&run.checks) && names(&green.checks)
}

fn tree_edit(entry: &ComposedEntry) -> Result<TreeEdit, JobError> {
    Ok(match entry {
        ComposedEntry::Absent => TreeEdit::Absent,
        ComposedEntry::Side { mode, oid } => {
            TreeEdit::Object { mode: *mode, oid: Oid::parse(oid)? }
        }
        ComposedEntry::Text { mode, text } => {
            TreeEdit::File { mode: *mode, content: text.clone().into_bytes() }
        }
    })
}

/// What a change does to a file, under its old or its new name.
fn changed_text<'a>(change: &'a GitChange, file: &str) -> ChangedText<'a> {
    let is_it = |path: &[u8]| path == file.as_bytes();
    let of = |facts: &'a [autopilot_host::git::LineFact]| {
        facts.iter().filter(|fact| is_it(&fact.path)).map(|fact| fact.text.as_str()).collect()
    };
    // Of lines that were not read, nobody knows what they ask.
    if change.lines_cut {
        return ChangedText::default();
    }
    ChangedText { removed: of(&change.removed), added: of(&change.added) }
}

/// The tests that the touched files declare, by their names and bodies.
fn test_names(trees: &ComposedTrees, entries: &[ChangedEntry]) -> TestNames {
    let mut names = TestNames::default();
    let mut gone: Vec<(String, String)> = Vec::new();
    let mut new: Vec<(String, String)> = Vec::new();
    for entry in entries.iter().filter(|entry| trees.touched.contains_key(&entry.path)) {
        let bodies = |side: &Option<EntrySide>| {
            let text = side.as_ref().and_then(|side| side.text.as_deref());
            text.map(|text| test_bodies(&entry.path, text)).unwrap_or_default()
        };
        let (before, after) = (bodies(&entry.base), bodies(&entry.head));
        let is_test = trees.touched.get(&entry.path) == Some(&YardstickReason::Test);
        if entry.head.is_some() && is_test {
            names.files.push((entry.path.clone(), after.keys().cloned().collect()));
        }
        if entry.base.is_some() && (is_test || !before.is_empty()) {
            names.base.insert(entry.path.clone(), before.keys().cloned().collect());
        }
        for (name, body) in &after {
            if before.get(name) != Some(body) {
                names.changed.insert(name.clone());
                new.push((name.clone(), body.clone()));
            }
        }
        gone.extend(before.into_iter().filter(|(name, _)| !after.contains_key(name)));
    }
    for (name, body) in gone {
        if let Some((now, _)) = new.iter().find(|(_, other)| *other == body) {
            names.changed.remove(now);
            names.moved.insert(name, now.clone());
        }
    }
    names
}
