//! Simulated executors: how long a step takes, what is said meanwhile, and how it ends.
//!
//! Drawn endings are functions of the task, step, round and broken tries so far, never of time, so
//! that a run with crashes must make what the same run makes without them.

mod coverage;
mod drought;
mod planner;
mod scripted;
mod whole;
mod workflow;

use crate::audit::table::is_serial;
use crate::fault::{Fault, Faults};
use crate::random::{Random, mix, mix_bytes};
use autopilot_core::coverage::{CoverageCheck, CoverageVerdict};
use autopilot_core::event::{Bill, Facts, HoldWhy, Outcome, StepAnswer, Verdict};
use autopilot_core::flow::{Flow, FlowInput};
use autopilot_core::id::{Micros, Time};
use autopilot_core::input::AttemptWord;
use autopilot_core::state::{Shown, State};
use autopilot_core::step::Step;
use autopilot_core::three_runs::{AcceptedTest, OpenTest, OpenTestKind};
use autopilot_core::wanted::Want;
pub use coverage::{ScriptedMap, TestsOf};
pub use drought::Drought;
pub use planner::count_urgency;
pub use scripted::{Ending, Line, Scripted};

/// One attempt as it is going to be played.
#[derive(Clone, Debug)]
pub struct Play {
    pub ms: u64,
    pub words: Vec<(u64, AttemptWord)>,
    pub outcome: Outcome,
    pub facts: Facts,
    /// A serial step changes the outside world halfway through.
    pub has_effect: bool,
    /// What went wrong in it, to be counted when it has happened.
    pub faults: Vec<Fault>,
}

#[derive(Debug)]
pub enum Agents {
    Drawn(Drawn),
    Scripted(Scripted),
}

/// What an executor can see when it begins.
pub struct Scene<'a> {
    pub state: &'a State,
    pub want: Want,
    pub now: u64,
    pub clock: Time,
}

impl Agents {
    pub fn play(&mut self, scene: &Scene<'_>) -> Play {
        let mut play = match self {
            Agents::Drawn(drawn) => drawn.play(scene),
            Agents::Scripted(scripted) => scripted.play(scene),
        };
        stand(scene, &mut play);
        play
    }

    /// It ended by itself, not by a crash or an order: its line of the script is used up.
    pub fn played(&mut self, name: &str, step: Step) {
        match self {
            Agents::Drawn(_) => {}
            Agents::Scripted(scripted) => scripted.played(name, step),
        }
    }
}

/// Work stands on the tip of the branch as it was when it began, and a merge moves the tip.
#[expect(clippy::wildcard_enum_match_arm, reason = "no other step has to do with the branch")]
fn stand(scene: &Scene<'_>, play: &mut Play) {
    let run = &scene.state.run;
    match scene.want.step {
        Step::Build | Step::Fix | Step::WorkflowStep if play.facts.tree.is_some() => {
            play.facts.base = Some(run.tip.as_ref().unwrap_or(&run.base).clone());
        }
        Step::Merge if play.outcome == Outcome::Passed => {
            play.facts.tip = Some(format!("m{}", scene.want.id));
        }
        _ => {}
    }
}

/// The steps in the order in which they came to be; new ones follow, so that old seeds keep their
/// meaning.
const IN_ORDER: [Step; 20] = [
    Step::Preflight,
    Step::Tasks,
    Step::Build,
    Step::Fix,
    Step::Validate,
    Step::Review,
    Step::UatGenerate,
    Step::Uat,
    Step::Decide,
    Step::Merge,
    Step::Push,
    Step::Plan,
    Step::ApprovePlan,
    Step::Schedule,
    Step::ApproveResult,
    Step::PullRequest,
    Step::Workflow,
    Step::WorkflowStep,
    Step::Completion,
    Step::Prove,
];

fn number(step: Step) -> u64 {
    let known = IN_ORDER.iter().position(|known| *known == step);
    known.unwrap_or(IN_ORDER.len() + step as usize) as u64
}

#[derive(Debug)]
pub struct Drawn {
    pub seed: u64,
    pub faults: Faults,
    pub droughts: Vec<Drought>,
    pub luck: Random,
}

impl Drawn {
    fn has(&self, fault: Fault) -> bool {
        self.faults.contains(&fault)
    }

    fn play(&mut self, scene: &Scene<'_>) -> Play {
        let step = scene.want.step;
        let mut play = Play {
            ms: self.luck.between(1_000, 240_000),
            words: Vec::new(),
            outcome: Outcome::Passed,
            facts: Facts::default(),
            has_effect: is_serial(step),
            faults: Vec::new(),
        };
        self.end(scene, &mut play);
        if step.role().is_some() {
            self.say(scene, &mut play);
        }
        if let Some(drought) = self.drought(scene) {
            play.outcome = drought.outcome(scene);
            play.faults = vec![drought.fault()];
            play.facts = Facts::default();
            let is_ours = matches!(drought.why, HoldWhy::Machine(_));
            // A fault of ours may strike before or after the effect.
            play.has_effect &= !is_ours || self.luck.chance(500);
        } else if self.has(Fault::WorkerLost) && !play.has_effect && self.luck.chance(40) {
            play.outcome = Outcome::Lost;
            play.faults = vec![Fault::WorkerLost];
            play.facts = Facts::default();
        }
        play
    }

    fn say(&mut self, scene: &Scene<'_>, play: &mut Play) {
        play.words.push((1, AttemptWord::Session(format!("session-{}", scene.want.id))));
        if !self.has(Fault::Bills) {
            return;
        }
        if self.luck.chance(300) {
            play.words.push((0, AttemptWord::Given(Micros(1 + self.luck.below(400_000)))));
        }
        let mut usd = 0;
        for _ in 0..self.luck.below(4) {
            usd += self.luck.below(400_000);
            let bill = Bill {
                usd: Micros(usd),
                tokens_in: usd / 7,
                tokens_out: usd / 31,
                ..Bill::default()
            };
            let at = self.luck.below(play.ms);
            play.words.push((at, AttemptWord::Bill(bill)));
            if self.luck.chance(300) {
                play.words.push((at, AttemptWord::Bill(bill)));
            }
        }
        // The last figure often comes with the end, which may come too late for all but money.
        if self.luck.chance(400) {
            let usd = Micros(usd + self.luck.below(400_000));
            play.facts.bill = Some(Bill { usd, ..Bill::default() });
        }
    }

    fn end(&self, scene: &Scene<'_>, play: &mut Play) {
        let Want { task, step, .. } = scene.want;
        let now = scene.state.task(task);
        let broken = now.spent.retries.get(&step).copied().unwrap_or(0);
        // In a plan the number of a task depends on who was first; its name does not.
        let who = match scene.state.run.flow.row().input {
            FlowInput::PlanFile | FlowInput::Text => mix_bytes(0, now.name().as_bytes()),
            FlowInput::TaskFiles => u64::from(task.0),
        };
        let key = [who, number(step), u64::from(now.round), u64::from(broken)];
        let mut fate = Random::new(key.iter().fold(self.seed, |hash, part| mix(hash, *part)));
        let is_gate = matches!(step, Step::Validate | Step::Merge);
        play.facts.warm = is_gate
            && crate::swarm::is_proven_cold(self.seed)
            && mix(key[0], key[2]).is_multiple_of(2);
        let breaks = match step.row().leaves_machine {
            true => self.has(Fault::PushBreaks) && fate.chance(400),
            false => step != Step::Merge && self.has(Fault::Broke) && fate.chance(120),
        };
        planner::bring(self, scene, &mut fate, play);
        workflow::bring(self, scene, &mut fate, play);
        if breaks {
            play.outcome = Outcome::Broke { why: "exit status 1".into() };
            play.has_effect = false;
            play.faults = vec![Fault::Broke];
            if step.row().leaves_machine {
                play.has_effect = self.has(Fault::PushUnknown) && fate.chance(500);
                let how = if play.has_effect { Fault::PushUnknown } else { Fault::PushBreaks };
                play.faults = vec![how];
            }
            return;
        }
        if self.has(Fault::Hang) && !is_serial(step) && fate.chance(40) {
            play.ms = 3_600_000;
            play.outcome = Outcome::Broke { why: "silent and idle: killed".into() };
            play.faults = vec![Fault::Hang];
            return;
        }
        self.show(scene, play, &mut fate);
        if is_serial(step) && play.outcome != Outcome::Passed {
            play.has_effect = false;
        }
    }

    /// What the step shows, when nothing has broken it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "steps that nothing is said of pass")]
    fn show(&self, scene: &Scene<'_>, play: &mut Play, fate: &mut Random) {
        let Want { task, step, .. } = scene.want;
        let now = scene.state.task(task);
        let tree = now.tree.clone().unwrap_or_default();
        let fails = self.has(Fault::Fails);
        match step {
            Step::Preflight => no(play, fails && fate.chance(30), "the base fails"),
            Step::Build | Step::Fix => {
                let made = self.tree(scene, &tree, fate);
                if made != of_round(scene, now.round) {
                    play.faults.push(Fault::Circle);
                }
                play.facts.tree = Some(made);
            }
            Step::Validate if now.parent.is_none() => {
                no(play, fails && fate.chance(300), "the whole does not hold");
                play.facts.fingerprint = Some(format!("f{}", fate.below(7)));
                let has_judge = [Step::Completion, Step::WholeReview];
                if has_judge.into_iter().any(|step| now.pipeline.place(step).is_some()) {
                    self.leave_open(&format!("whole-{}", now.round), play);
                }
                if let Some(why) = whole::refusal(scene, &play.facts.open) {
                    no(play, true, &why);
                }
            }
            Step::Validate => {
                // The same tree shows the same failure.
                let shown = mix_bytes(self.seed, tree.as_bytes());
                no(play, fails && shown % 100 < 40, "tests fail");
                play.facts.fingerprint = Some(format!("f{}", shown % 7));
                self.leave_open(&tree, play);
                play.facts.tree = Some(tree);
            }
            // Which task is the only one left depends on who was faster, where several work at once.
            Step::Prove if now.parent.is_some() => {
                let is_one_by_one = scene.state.run.flow == Flow::Queue;
                let shown = mix_bytes(self.seed ^ 1, tree.as_bytes());
                no(play, fails && is_one_by_one && shown % 100 < 20, "it fails from nothing");
                play.facts.fingerprint = Some(format!("f{}", shown % 7));
            }
            Step::Prove => {
                no(play, fails && fate.chance(200), "it does not hold from nothing");
                play.facts.fingerprint = Some(format!("f{}", fate.below(7)));
            }
            Step::Coverage => self.cover(play, fate),
            Step::Review => {
                self.review(scene, play, fate);
                self.accept(scene, play, fate);
            }
            Step::WholeReview => {
                self.review(scene, play, fate);
                self.accept(scene, play, fate);
                whole::judge(scene, play);
            }
            Step::UatGenerate => no(play, fails && fate.chance(50), "no cases"),
            Step::Uat => match fails && fate.chance(200) {
                true => no(play, true, "acceptance fails"),
                false if fate.chance(100) => {
                    play.outcome = Outcome::Skipped { why: "no command".into() };
                }
                false => {}
            },
            Step::Merge => {
                let conflicts = self.has(Fault::Conflict) && fate.chance(150);
                no(play, conflicts, "merge conflict");
                play.faults = if conflicts { vec![Fault::Conflict] } else { Vec::new() };
                play.has_effect = !conflicts;
                play.facts.commit = (!conflicts).then(|| format!("c-{tree}"));
            }
            Step::Push | Step::PullRequest => {
                no(play, fails && fate.chance(50), "authentication refused");
            }
            Step::Plan => no(play, fails && fate.chance(40), "the plan is not valid"),
            Step::Workflow => no(play, fails && fate.chance(150), "it can't be worked on"),
            Step::WorkflowStep => {
                let made = self.tree(scene, &tree, fate);
                play.facts.tree = Some(made);
                no(play, fails && fate.chance(250), "the step failed");
            }
            Step::Completion => {
                self.complete(scene, play, fate);
                self.accept(scene, play, fate);
            }
            Step::Schedule => no(play, fails && fate.chance(30), "the plan is not valid"),
            _ => {}
        }
    }

    /// Leaves tests of the base open, the same ones for the same tree.
    fn leave_open(&self, tree: &str, play: &mut Play) {
        let shown = mix_bytes(self.seed ^ 2, tree.as_bytes());
        if !self.has(Fault::Fails) || shown % 100 >= 20 {
            return;
        }
        let kind = OpenTestKind::ALL[(shown / 100) as usize % OpenTestKind::ALL.len()];
        let test = |id: &str| OpenTest { id: id.to_owned(), kind, file: None };
        play.facts.open =
            ["t1", "t2"].iter().take(1 + (shown / 7) as usize % 2).map(|id| test(id)).collect();
    }

    /// Accepts some of the tests that the task's round has left open.
    fn accept(&self, scene: &Scene<'_>, play: &mut Play, fate: &mut Random) {
        let shown = scene.state.task(scene.want.task).shown(Step::Validate);
        let open = shown.map(|shown| shown.facts.open.as_slice()).unwrap_or_default();
        for test in open {
            if fate.chance(600) {
                let reason = "the task needs it".to_owned();
                play.facts.accepted.push(AcceptedTest { id: test.id.clone(), reason });
            }
        }
    }

    /// Maps tests to criteria. A yes that the controller has not found true counts for nothing.
    fn cover(&self, play: &mut Play, fate: &mut Random) {
        let lacks = self.has(Fault::Fails) && fate.chance(200);
        let lies = self.has(Fault::Lie) && fate.chance(300);
        no(play, lacks && !lies, "a criterion is not covered");
        let verdict = if lacks { CoverageVerdict::NothingIsRed } else { CoverageVerdict::Covered };
        if lies {
            play.faults.push(Fault::Lie);
        }
        play.facts.coverage = Some(Box::new(CoverageCheck { verdict, ..CoverageCheck::default() }));
    }

    fn tree(&self, scene: &Scene<'_>, tree: &str, fate: &mut Random) -> String {
        let round = scene.state.task(scene.want.task).round;
        if self.has(Fault::Circle) && !tree.is_empty() && fate.chance(300) {
            return match fate.chance(500) {
                true => tree.to_owned(),
                false => of_round(scene, round.saturating_sub(2).max(1)),
            };
        }
        of_round(scene, round)
    }

    fn review(&self, scene: &Scene<'_>, play: &mut Play, fate: &mut Random) {
        let task = scene.state.task(scene.want.task);
        let proven =
            task.shown(Step::Validate).is_some_and(|shown| shown.outcome == Outcome::Passed);
        let likes = proven && !(self.has(Fault::Fails) && fate.chance(200));
        let lies = self.has(Fault::Lie) && fate.chance(400);
        if likes || lies {
            play.facts.said = Some(reviewed(Verdict::Approve, 0, 0));
            if lies && !proven {
                play.faults.push(Fault::Lie);
            }
            if lies && likes && fate.chance(300) {
                play.facts.said = None;
            }
            return;
        }
        let issues = 1 + fate.below(3);
        play.facts.said = Some(reviewed(Verdict::RequestChanges, issues, fate.below(2)));
        if !(self.has(Fault::Lie) && fate.chance(200)) {
            no(play, true, "changes are asked for");
        }
    }
}

impl Drawn {
    /// Whoever checks looks at the tests, if any were run, or does not.
    fn complete(&self, scene: &Scene<'_>, play: &mut Play, fate: &mut Random) {
        let whole = scene.state.task(scene.want.task);
        let failed = |shown: &Shown| matches!(shown.outcome, Outcome::Failed { .. });
        let is_red = whole.shown(Step::Validate).is_some_and(failed);
        let lies = self.has(Fault::Lie) && fate.chance(500);
        let is_no = is_red && !lies || self.has(Fault::Fails) && fate.chance(300);
        if is_no {
            play.facts.said = Some(StepAnswer::Completion { done: false });
            let why = format!("{} is left to do", fate.below(4));
            return no(play, true, &why);
        }
        if is_red {
            play.faults.push(Fault::Lie);
        }
        let is_mute = lies && fate.chance(200);
        play.facts.said = (!is_mute).then_some(StepAnswer::Completion { done: true });
    }
}

fn reviewed(verdict: Verdict, issues: u64, blocking: u64) -> StepAnswer {
    StepAnswer::Review { verdict, issues, blocking }
}

fn of_round(scene: &Scene<'_>, round: u32) -> String {
    if matches!(scene.state.run.flow, Flow::Plan | Flow::Goal) {
        return format!("{}r{round}", scene.state.task(scene.want.task).name());
    }
    format!("t{}r{round}", scene.want.task.0)
}

fn no(play: &mut Play, is_no: bool, why: &str) {
    if is_no {
        play.faults.push(Fault::Fails);
        play.outcome = Outcome::Failed { why: why.to_owned() };
    }
}
