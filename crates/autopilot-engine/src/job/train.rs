//! The merge queue: approved tasks wait in one line; the job whose turn it is takes a batch of
//! them, stacks them onto the run's branch, proves the result and moves the branch once.
//!
//! Invariant: the branch moves only to a commit whose tree was proven, and only from where the
//! stack was built. A member that breaks the stack is found by bisection; those before it are
//! merged, those after it are tried again.

use super::own_work::{blocking, saving};
use super::three_runs::{RunsOrder, RunsWanted};
use super::workshop::Workshop;
use super::{Cancel, Job, JobError};
use autopilot_core::event::Facts;
use autopilot_core::evidence::NewFailures;
use autopilot_core::three_runs::{Accounts, ThreeRuns, refusal};
use autopilot_host::fail;
use autopilot_host::git::{
    Advanced, AttemptName, Border, Candidate, Conflicts, Coupled, GitError, Hub, Oid, Tip, Track,
    UserRepo, Wagon,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Times a stack is rebuilt because the branch was moved by someone else.
const RACES_LOST_MAX: u32 = 5;
/// Tasks named to a builder whose work breaks together with theirs.
const NAMED_MAX: usize = 10;

/// The result of a task that is to be merged to the run's branch.
#[derive(Clone, Debug)]
pub struct MergeTask {
    pub run: String,
    pub branch: String,
    /// The commit at which the run's branch starts.
    pub start: Oid,
    /// Something was merged onto the branch already.
    pub has_begun: bool,
    pub task: String,
    pub attempt: String,
    pub base: Oid,
    pub tree: Oid,
    /// The time of the commits, in seconds since 1970: that of the attempt. What the same attempt
    /// makes again after a crash is then the same commit.
    pub at: i64,
}

impl MergeTask {
    /// The run's branch. All tasks of a run share it.
    pub fn track<'a>(&'a self, repo: &'a UserRepo) -> Track<'a> {
        Track {
            run: &self.run,
            branch: &self.branch,
            start: &self.start,
            has_begun: self.has_begun,
            identity: &repo.identity,
            now: self.at,
        }
    }

    /// The attempt's name in refs and trailers.
    pub fn attempt(&self) -> AttemptName<'_> {
        AttemptName { task: &self.task, id: &self.attempt }
    }
}

/// A task's commit that waits to be merged.
#[derive(Clone, Debug)]
pub struct MergeRequest {
    pub of: MergeTask,
    pub commit: Oid,
    /// The commands that proved the task by itself: name and command line.
    pub commands: Vec<(&'static str, String)>,
    /// The tests of the base that the task changed, which were accounted for when it was judged.
    pub accounted: Vec<String>,
    pub cancel: Cancel,
}

/// The result of a merge request.
#[derive(Debug)]
pub enum MergeVerdict {
    Merged(Box<Facts>),
    Conflict(Box<Conflicts>),
    /// The commit is proven alone, but not together with what was merged before it.
    Broken {
        why: String,
        facts: Box<Facts>,
    },
    Withdrawn,
    /// An error says nothing about the work.
    Trouble(Arc<JobError>),
}

/// The waiting requests, and the turn to serve them.
#[derive(Debug, Default)]
pub struct MergeQueue {
    waiting: Mutex<VecDeque<Waiting>>,
    turn: tokio::sync::Mutex<()>,
    tickets: AtomicU64,
    /// Held while a branch of the user's repository is written.
    pub publishing: Mutex<()>,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    request: MergeRequest,
    answer: oneshot::Sender<MergeVerdict>,
}

impl Waiting {
    fn tell(self, verdict: MergeVerdict) {
        // The requester may have stopped waiting.
        let _gone = self.answer.send(verdict);
    }
}

impl MergeQueue {
    fn join(&self, request: MergeRequest) -> (u64, oneshot::Receiver<MergeVerdict>) {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let (answer, receiver) = oneshot::channel();
        self.line().push_back(Waiting { ticket, request, answer });
        (ticket, receiver)
    }

    fn take(&self, members_max: usize) -> Vec<Waiting> {
        let mut line = self.line();
        let count = line.len().min(members_max.max(1));
        line.drain(..count).collect()
    }

    /// Puts members back in their old order, before later ones.
    fn put_back(&self, members: Vec<Waiting>) {
        let mut line = self.line();
        for member in members.into_iter().rev() {
            line.push_front(member);
        }
    }

    /// Leaves the line; returns whether the member was still in it.
    fn leave(&self, ticket: u64) -> bool {
        let mut line = self.line();
        let before = line.len();
        line.retain(|waiting| waiting.ticket != ticket);
        line.len() < before
    }

    fn line(&self) -> std::sync::MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of one pass over the members.
enum Pass {
    /// At least one member has its answer.
    On,
    Lost,
    /// The leading job was cancelled.
    Left,
}

/// Members stacked one onto the other, the first onto the branch.
struct TrainStack {
    from: Tip,
    cars: Vec<Candidate>,
    /// Why the first member can't be merged to the branch as it is.
    clash: Option<MergeVerdict>,
}

/// How much of a stack is proven.
struct Proof {
    good: usize,
    shown: Option<Looked>,
    bad: Option<Looked>,
}

/// The result of the commands on a prefix of a stack.
struct Looked {
    reasons: Vec<String>,
    facts: Facts,
}

impl Job {
    /// Waits for the answer, and serves the line whenever it is this job's turn.
    pub(super) async fn integrate(&self, request: MergeRequest) -> Result<MergeVerdict, JobError> {
        let queue = Arc::clone(&self.context.workshop.queue);
        let batch = self.context.config.integration.batch as usize;
        let left = || JobError::Internal("the job that led the merge ended early");
        let (ticket, mut answer) = queue.join(request);
        let mut handed_over = false;
        loop {
            let turn = tokio::select! {
                biased;
                verdict = &mut answer => return verdict.map_err(|_| left()),
                () = self.cancel.asked(), if !handed_over => {
                    if queue.leave(ticket) {
                        return Ok(MergeVerdict::Withdrawn);
                    }
                    // Another job is serving this request and sees the cancellation before it moves
                    // the branch.
                    handed_over = true;
                    continue;
                }
                turn = queue.turn.lock() => turn,
            };
            if answer.is_empty() {
                self.lead(&queue, batch).await;
            }
            drop(turn);
        }
    }

    async fn lead(&self, queue: &MergeQueue, batch: usize) {
        let mut members = queue.take(batch);
        let mut races_lost = 0;
        while !members.is_empty() {
            let trouble = match self.pass(&mut members).await {
                Ok(Pass::On) => continue,
                Ok(Pass::Left) => {
                    queue.put_back(members);
                    return;
                }
                Ok(Pass::Lost) => {
                    races_lost += 1;
                    if races_lost < RACES_LOST_MAX {
                        continue;
                    }
                    JobError::RacesLost { times: races_lost }
                }
                // What cancels this job alone says nothing to the others.
                Err(_) if self.cancel.is_asked() => {
                    queue.put_back(members);
                    return;
                }
                Err(error) => error,
            };
            let trouble = Arc::new(trouble);
            for member in members.drain(..) {
                member.tell(MergeVerdict::Trouble(Arc::clone(&trouble)));
            }
        }
    }

    async fn pass(&self, members: &mut Vec<Waiting>) -> Result<Pass, JobError> {
        if self.cancel.is_asked() {
            return Ok(Pass::Left);
        }
        dismiss_unwanted(members);
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let requests: Vec<MergeRequest> =
            members.iter().map(|member| member.request.clone()).collect();
        let Some(first) = requests.first() else { return Ok(Pass::On) };
        let track = || first.of.track(repo);
        let stack = blocking(|| stack(&track(), hub, &requests, &self.context.border))?;
        if let Some(verdict) = stack.clash {
            members.remove(0).tell(verdict);
            return Ok(Pass::On);
        }
        fail::point("merge.candidate");
        let Some(proof) = self.prove(&stack, &requests).await? else { return Ok(Pass::Left) };
        fail::point("merge.validated");
        if members.iter().take(proof.good).any(|member| member.request.cancel.is_asked()) {
            // A cancelled member must not be merged; the next pass leaves it out.
            return Ok(if self.cancel.is_asked() { Pass::Left } else { Pass::On });
        }
        if let Some(top) = proof.good.checked_sub(1).and_then(|last| stack.cars.get(last)) {
            // A branch that moves is seen to the end, so that nobody is merged twice.
            match saving(|| track().advance(hub, &stack.from, &top.commit))? {
                Advanced::Moved(_) => {}
                Advanced::Lost => return Ok(Pass::Lost),
            }
        }
        self.tell_all(members, &stack, proof);
        Ok(Pass::On)
    }

    /// The longest proven prefix; `None` when the job was cancelled.
    async fn prove(
        &self,
        stack: &TrainStack,
        requests: &[MergeRequest],
    ) -> Result<Option<Proof>, JobError> {
        let count = stack.cars.len();
        if !self.context.config.integration.revalidate {
            return Ok(Some(Proof { good: count, shown: None, bad: None }));
        }
        // On its own base, a task gives the tree that its validation has proven.
        let proven = requests.first().is_some_and(|first| first.of.base == stack.from.commit);
        let mut halving = Halving::new(usize::from(proven), count);
        let (mut shown, mut bad) = (None, None);
        while let Some(at) = halving.next() {
            let looked = self.look(stack, requests, at).await?;
            if self.cancel.is_asked() {
                return Ok(None);
            }
            let passed = looked.reasons.is_empty();
            halving.saw(at, passed);
            *(if passed { &mut shown } else { &mut bad }) = Some(looked);
        }
        Ok(Some(Proof { good: halving.good, shown, bad }))
    }

    /// Runs the commands of the first `count` members on all of them together.
    async fn look(
        &self,
        stack: &TrainStack,
        requests: &[MergeRequest],
        count: usize,
    ) -> Result<Looked, JobError> {
        let missing = || JobError::Internal("there is no candidate to validate");
        let top = stack.cars.get(count - 1).ok_or_else(missing)?;
        let commands = all_commands(requests.iter().take(count));
        let gate = self.checks(&top.commit, commands.clone(), Instant::now()).await?;
        let checks = &gate.checks;
        let mut evidence = gate.evidence();
        let NewFailures { mut reasons, excused } = self.new_failures(checks, &evidence)?;
        if reasons.is_empty() {
            let order = RunsOrder {
                base: &stack.from.commit,
                head: &top.commit,
                green: &evidence,
                commands: &commands,
                wanted: RunsWanted::NoRegression,
            };
            let runs = self.runs_beside(&order).await?;
            let of_members = requests.iter().take(count).flat_map(|it| &it.accounted);
            reasons.extend(runs.as_ref().and_then(|runs| self.lost_by_merging(runs, of_members)));
            evidence.three_runs = runs.map(Box::new);
        }
        let mut facts = self.facts_of_gate(&gate, &evidence)?;
        facts.excuse(excused);
        if !reasons.is_empty() {
            facts.fingerprint = Some(super::validate::fingerprint(checks, &[]));
        }
        Ok(Looked { reasons, facts })
    }

    /// The reason why tests of the branch that no member has accounted for are lost by merging them.
    fn lost_by_merging<'a>(
        &self,
        runs: &ThreeRuns,
        accounted: impl Iterator<Item = &'a String>,
    ) -> Option<String> {
        let accounted: BTreeSet<&String> = accounted.collect();
        let mut open = runs.open.clone();
        open.retain(|test| !accounted.contains(&test.id));
        refusal(&open, self.run.limits.yardstick_changes, Accounts::default())
    }

    fn tell_all(&self, members: &mut Vec<Waiting>, stack: &TrainStack, proof: Proof) {
        let merged: Vec<Waiting> = members.drain(..proof.good).collect();
        for member in merged {
            let facts = proof.shown.as_ref().map(|looked| looked.facts.clone()).unwrap_or_default();
            member.tell(MergeVerdict::Merged(Box::new(facts)));
        }
        let Some(bad) = proof.bad else { return };
        let before = proof.good.checked_sub(1).and_then(|last| stack.cars.get(last));
        let before = before.map_or(&stack.from.commit, |car| &car.commit);
        let culprit = members.remove(0);
        let Workshop { hub, repo, .. } = &self.context.workshop;
        let of = &culprit.request.of;
        let verdict = match blocking(|| of.track(repo).merged_between(hub, &of.base, before)) {
            Ok(others) => {
                let (others, reasons) = (named(&others), bad.reasons.join("; "));
                let why = format!("passes alone, fails together with {others}: {reasons}");
                MergeVerdict::Broken { why, facts: Box::new(bad.facts) }
            }
            Err(error) => MergeVerdict::Trouble(Arc::new(error)),
        };
        culprit.tell(verdict);
    }
}

/// Stacks as many members as possible. A member that conflicts with an earlier one waits for the
/// result of that one.
fn stack(
    track: &Track<'_>,
    hub: &Hub,
    requests: &[MergeRequest],
    border: &Border,
) -> Result<TrainStack, JobError> {
    let mut cars: Vec<Candidate> = Vec::new();
    let from = track.tip(hub)?;
    for MergeRequest { of, commit, .. } in requests {
        let onto = cars.last().map_or(&from.commit, |car| &car.commit);
        let message = format!("Merge task {}", of.task);
        let wagon = Wagon { attempt: of.attempt(), commit, message: &message };
        let track = Track { now: of.at, ..*track };
        match track.couple(hub, onto, &wagon)? {
            Coupled::On(car) => {
                if *onto == of.base && car.tree != of.tree {
                    let why = "the merged tree is not the one that was validated";
                    return Err(JobError::Internal(why));
                }
                // Two tasks may each hold a part of a secret.
                let known = [onto.clone(), commit.clone()];
                match border.pass(hub, &car.commit, &known, &of.branch) {
                    Ok(()) => cars.push(car),
                    Err(GitError::Withheld { why, .. }) if cars.is_empty() => {
                        let verdict = MergeVerdict::Broken { why, facts: Box::default() };
                        return Ok(TrainStack { from, cars, clash: Some(verdict) });
                    }
                    Err(GitError::Withheld { .. }) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            Coupled::Conflict(conflicts) if cars.is_empty() => {
                let verdict = MergeVerdict::Conflict(conflicts);
                return Ok(TrainStack { from, cars, clash: Some(verdict) });
            }
            Coupled::Conflict(_) => break,
        }
    }
    Ok(TrainStack { from, cars, clash: None })
}

fn dismiss_unwanted(members: &mut Vec<Waiting>) {
    for member in members.extract_if(.., |member| member.request.cancel.is_asked()) {
        member.tell(MergeVerdict::Withdrawn);
    }
}

/// Every distinct command line, in the order of the members.
fn all_commands<'a>(
    requests: impl Iterator<Item = &'a MergeRequest>,
) -> Vec<(&'static str, String)> {
    let mut commands: Vec<(&'static str, String)> = Vec::new();
    for command in requests.flat_map(|request| &request.commands) {
        if !commands.contains(command) {
            commands.push(command.clone());
        }
    }
    commands
}

fn named(others: &[String]) -> String {
    if others.is_empty() {
        return "other commits on the run's branch".to_owned();
    }
    let skipped = others.len().saturating_sub(NAMED_MAX);
    let mut text = others.iter().skip(skipped).cloned().collect::<Vec<_>>().join(", ");
    if skipped > 0 {
        text.push_str(&format!(" and {skipped} before them"));
    }
    text
}

/// Bisects for the first bad prefix, after the whole stack was checked.
pub(super) struct Halving {
    pub(super) good: usize,
    /// The shortest prefix known to be bad; one more than the number of members while none is.
    bad: usize,
    whole: usize,
    looked: bool,
}

impl Halving {
    pub(super) fn new(proven: usize, whole: usize) -> Halving {
        Halving { good: proven.min(whole), bad: whole + 1, whole, looked: false }
    }

    pub(super) fn next(&mut self) -> Option<usize> {
        if self.bad - self.good <= 1 {
            return None;
        }
        let whole = !std::mem::replace(&mut self.looked, true);
        Some(if whole { self.whole } else { usize::midpoint(self.good, self.bad) })
    }

    pub(super) fn saw(&mut self, at: usize, passed: bool) {
        if passed {
            self.good = at;
        } else {
            self.bad = at;
        }
    }
}

#[cfg(test)]
mod tests;
