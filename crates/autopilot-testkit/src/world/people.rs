//! People around a run: what they ask at random, and what a scenario has them ask on cue.

use super::{Happening, World};
use crate::fault::Fault;
use crate::random::mix;
use autopilot_core::event::{HaltWhy, SessionPrompt, TaskEnd};
use autopilot_core::flow::Flow;
use autopilot_core::id::{AttemptId, Micros};
use autopilot_core::input::{Ask, AttemptWord, Input};
use autopilot_core::limit::Limits;
use autopilot_core::pipeline::Switch;
use autopilot_core::state::{State, Status};
use autopilot_core::step::Step;
use autopilot_core::wanted::Want;

/// Something that is to happen at a certain point of a scenario.
#[derive(Clone, Debug)]
pub struct Cue {
    pub when: When,
    pub act: Act,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Halfway through a step, of this task if one is named.
    During(Option<String>, Step),
    /// The step has done its work and has not been heard.
    After(Option<String>, Step),
    /// Halfway through whatever begins next.
    Next,
    Rest,
}

#[derive(Clone, Debug)]
pub enum Act {
    Ask(Ask),
    /// The machine is short of something, or has enough again.
    Room(Option<String>),
    /// A person continues the session of a step; what they say is told apart by a number.
    Continue {
        task: String,
        said: u64,
    },
    /// Somebody starts the run again and says nothing.
    Boot,
    Crash,
    /// The story ends here.
    Look,
    /// A word of the last attempt of a step that no longer runs.
    Late {
        task: String,
        step: Step,
        word: AttemptWord,
    },
}

#[derive(Clone, Copy)]
enum Wish {
    Stop,
    StopNow,
    Pause,
    Retry,
    Skip,
    Limit,
    Waive,
    Answer,
    Continue,
}

/// How often people ask, in a thousand happenings.
const WISHES: [(Wish, Fault, u64); 9] = [
    (Wish::Stop, Fault::Stop, 8),
    (Wish::StopNow, Fault::StopNow, 8),
    (Wish::Pause, Fault::Pause, 8),
    (Wish::Retry, Fault::Retry, 20),
    (Wish::Skip, Fault::Skip, 8),
    (Wish::Limit, Fault::Limit, 10),
    (Wish::Waive, Fault::Waive, 10),
    (Wish::Answer, Fault::Answer, 15),
    (Wish::Continue, Fault::Continue, 15),
];

impl World {
    /// People ask for things at any moment, sometimes twice.
    pub(super) fn meddle(&mut self) {
        if self.is_scripted || self.shell.is_none() {
            return;
        }
        let is_plan = matches!(self.spec.flow, Flow::Plan | Flow::Goal);
        if is_plan && self.strikes(Fault::Room, 15) {
            let short = self.whims.chance(500).then(|| "memory".to_owned());
            self.note(|| format!("room {short:?}"));
            self.hear(Input::Room { short });
        }
        for (wish, fault, permille) in WISHES {
            // Without gates there is nobody to answer.
            if matches!(wish, Wish::Answer) && !is_plan {
                continue;
            }
            if matches!(wish, Wish::Continue) && self.spec.flow != Flow::Goal {
                continue;
            }
            if !self.strikes(fault, permille) {
                continue;
            }
            let ask = self.wish_of(wish);
            self.note(|| format!("asked {ask:?}"));
            self.hear(Input::Asked(ask.clone()));
            // Some think better of it while the executors are still dying.
            if matches!(wish, Wish::StopNow) && self.tie.chance(400) {
                let ms = self.tie.below(3_000);
                self.later(ms, Happening::Act(Act::Ask(Ask::Resume)));
            }
            // Whoever continues a step has a run that rests go on, and does so each time.
            let ahead = self.shell.as_ref().map(|shell| shell.pilot.ahead());
            let is_at_rest = ahead.is_some_and(|state| state.run.halt.is_some());
            let resumes = is_at_rest && matches!(wish, Wish::Continue);
            let is_twice = self.strikes(Fault::AskedTwice, 500) && !resumes;
            if is_twice && self.hear(Input::Asked(ask.clone())) {
                self.audit.broken(&format!("asked twice, {ask:?} changed something twice"));
            }
        }
        if self.strikes(Fault::Nonsense, 15) {
            self.ask_nonsense();
        }
    }

    /// Whatever the run is at, nobody can have any of this.
    fn ask_nonsense(&mut self) {
        let Some(limits) = self.shell.as_ref().map(|shell| &shell.pilot.ahead().run.limits) else {
            return;
        };
        let nobody = || "nobody".to_owned();
        let asks = [
            Ask::Limit(Box::new(limits.clone())),
            Ask::Limit(Box::new(Limits { workers_max: 0, ..limits.clone() })),
            Ask::Retry { task: nobody() },
            Ask::Skip { task: nobody() },
            Ask::Skip { task: String::new() },
            self.continues("", 0),
            Ask::Reject { by: nobody(), why: " ".to_owned() },
        ];
        for ask in asks {
            if self.hear(Input::Asked(ask.clone())) {
                self.audit.broken(&format!("I9: {ask:?} was carried out"));
            }
        }
    }

    fn wish_of(&mut self, wish: Wish) -> Ask {
        let halt = |why, now| Ask::Halt { why, now };
        match wish {
            Wish::Stop => halt(HaltWhy::Stop, false),
            Wish::StopNow => halt(HaltWhy::Stop, true),
            Wish::Pause => halt(HaltWhy::Pause, false),
            Wish::Retry => Ask::Retry { task: self.any_task() },
            Wish::Skip => Ask::Skip { task: self.any_task() },
            Wish::Limit => Ask::Limit(Box::new(self.other_limits())),
            Wish::Waive => {
                let on = self.pace.chance(500);
                Ask::Switch { switch: Switch::Review, on, by: "a person".into() }
            }
            Wish::Answer => {
                let is_no = self.whims.chance(300);
                answer(is_no)
            }
            Wish::Continue => {
                let task = self.any_task();
                let said = self.whims.draw();
                self.continues(&task, said)
            }
        }
    }

    /// Says something in the session a step had last.
    fn continues(&self, task: &str, said: u64) -> Ask {
        let attempt = self.audit.last_of(task).unwrap_or(AttemptId { seq: 0, place: 0 });
        let words = SessionPrompt {
            prompt: format!("words-{said}"),
            session: format!("session-{attempt}"),
            is_its_own: true,
            attempt,
            lane: 0,
        };
        Ask::Continue { task: task.to_owned(), words: Box::new(words) }
    }

    fn any_task(&mut self) -> String {
        if matches!(self.spec.flow, Flow::Plan | Flow::Goal) {
            let tasks = self.shell.as_ref().map_or(&[][..], |shell| &shell.pilot.ahead().tasks[..]);
            let place = self.whims.below(tasks.len() as u64) as usize;
            return tasks.get(place).map(|task| task.name().to_owned()).unwrap_or_default();
        }
        let place = self.pace.below(self.spec.tasks.len() as u64 + 1) as usize;
        self.spec.tasks.get(place).map(|task| task.name.clone()).unwrap_or_default()
    }

    fn other_limits(&mut self) -> Limits {
        let mut limits = match &self.shell {
            Some(shell) => shell.pilot.ahead().run.limits.clone(),
            None => self.spec.limits.clone(),
        };
        limits.workers_max = self.pace.between(1, 4) as u32;
        limits.rounds_max = self.pace.between(1, 6) as u32;
        if limits.usd_max.is_some() {
            limits.usd_max = Some(Micros(self.pace.between(1, 30) * 500_000));
        }
        if limits.usd_per_task_max.is_some() {
            limits.usd_per_task_max = Some(Micros(self.whims.between(1, 15) * 250_000));
        }
        if matches!(self.spec.flow, Flow::Plan | Flow::Goal) {
            limits.effects_max = self.whims.between(1, 3) as u32;
            limits.overlaps_wait = self.whims.chance(700);
        }
        limits
    }

    /// What is asked of a run that rests, if anything.
    pub(super) fn next_wish(&mut self, state: &State) -> Option<Vec<Ask>> {
        if self.is_scripted {
            return self.cue_at_rest();
        }
        if let Some((_, gate)) = state.gate().filter(|_| state.run.halt.is_none()) {
            return Some(self.answers_at(gate.step, state));
        }
        if state.end().is_none() {
            let relaxed = Limits {
                usd_max: None,
                usd_per_task_max: None,
                wall_max_ms: None,
                wait_quota_max_ms: u64::MAX / 4,
                ..state.run.limits.clone()
            };
            let is_limit = match state.run.halt.as_ref().map(|halt| &halt.why) {
                Some(HaltWhy::Money { .. } | HaltWhy::Wall | HaltWhy::Quota { .. }) => true,
                Some(
                    HaltWhy::Stop
                    | HaltWhy::Pause
                    | HaltWhy::Continued
                    | HaltWhy::Host { .. }
                    | HaltWhy::Away { .. },
                )
                | None => false,
            };
            // Sometimes nobody raises the limit first, and the run must rest again.
            let raises = is_limit && self.pace.chance(700);
            let limit = raises.then(|| Ask::Limit(Box::new(relaxed)));
            return Some(limit.into_iter().chain([Ask::Resume]).collect());
        }
        let is_open = |status: &Status| match status {
            Status::Settled(TaskEnd::Failed { .. } | TaskEnd::Skipped { .. }) => true,
            Status::Settled(TaskEnd::Closed)
            | Status::Open
            | Status::At { .. }
            | Status::Running { .. }
            | Status::Waiting { .. } => false,
        };
        let unclosed: Vec<&str> = state
            .tasks
            .iter()
            .filter(|task| is_open(&task.status))
            .map(|task| task.name())
            .collect();
        if self.spec.flow == Flow::Goal && self.strikes(Fault::Continue, 300) {
            let place = self.whims.below(state.tasks.len() as u64) as usize;
            let said = self.whims.draw();
            return Some(vec![self.continues(state.tasks[place].name(), said)]);
        }
        if unclosed.is_empty() || !self.strikes(Fault::Retry, 600) {
            return None;
        }
        let task = unclosed[self.pace.below(unclosed.len() as u64) as usize].to_owned();
        let raised = Limits { usd_per_task_max: None, ..state.run.limits.clone() };
        // Sometimes nobody raises the limit first, and the task must fail again.
        let lacks_money = state.run.limits.usd_per_task_max.is_some();
        let limit = (lacks_money && self.whims.chance(500)).then(|| Ask::Limit(Box::new(raised)));
        Some(limit.into_iter().chain([Ask::Retry { task }, Ask::Resume]).collect())
    }

    /// What is said at a gate depends on the gate and the round alone, so that crashes can't matter;
    /// when it is said, and how often, is left to chance.
    fn answers_at(&mut self, gate: Step, state: &State) -> Vec<Ask> {
        if self.whims.chance(200) {
            return Vec::new();
        }
        let round = state.root().map_or(0, |root| root.round);
        let says_no = mix(mix(self.seed, gate as u64), u64::from(round)) % 1000 < 350;
        let is_no = says_no && self.faults.contains(&Fault::Reject);
        if is_no {
            self.count(Fault::Reject);
        }
        let twice = self.whims.chance(200);
        (0..=u32::from(twice)).map(|_| answer(is_no)).collect()
    }

    fn cue_at_rest(&mut self) -> Option<Vec<Ask>> {
        let mut asks = Vec::new();
        while let Some(cue) = self.cues.pop_front_if(|cue| cue.when == When::Rest) {
            match cue.act {
                Act::Ask(ask) => asks.push(ask),
                Act::Continue { task, said } => asks.push(self.continues(&task, said)),
                Act::Boot => return Some(asks),
                act @ (Act::Room(_) | Act::Crash | Act::Look | Act::Late { .. }) => {
                    self.later(60_010, Happening::Act(act))
                }
            }
            let is_last = !matches!(self.cues.front(), Some(next) if next.when == When::Rest);
            // Several asks in a row are one visit of a person unless the run goes on between them.
            let goes_on = matches!(
                asks.last(),
                Some(Ask::Resume | Ask::Continue { .. } | Ask::Approve { .. } | Ask::Reject { .. })
            );
            if is_last || goes_on {
                break;
            }
        }
        (!asks.is_empty()).then_some(asks)
    }

    /// Cues that wait for this step to be under way.
    pub(super) fn cue_for(&mut self, want: Want, ms: u64) {
        let name = self.audit.name_of(want.task);
        let fits = |task: &Option<String>, step: Step| {
            step == want.step && task.as_ref().is_none_or(|task| *task == name)
        };
        // An effect comes at the half; what happens during it comes before.
        let mut at = (ms / 2).saturating_sub(1_000);
        while let Some(cue) = self.cues.pop_front_if(|cue| match &cue.when {
            When::During(task, step) => fits(task, *step),
            When::Next => true,
            When::After(..) | When::Rest => false,
        }) {
            let is_crash = matches!(cue.act, Act::Crash);
            self.later(at, Happening::Act(cue.act));
            at += 10;
            // What comes after a crash is for the next life.
            if is_crash {
                break;
            }
        }
    }

    pub(super) fn crash_cue_after(&mut self, want: Want) -> bool {
        let name = self.audit.name_of(want.task);
        let cue = self.cues.pop_front_if(|cue| match &cue.when {
            When::After(task, step) => {
                *step == want.step && task.as_ref().is_none_or(|task| *task == name)
            }
            When::During(..) | When::Next | When::Rest => false,
        });
        cue.is_some()
    }

    pub(super) fn act(&mut self, act: Act) {
        match act {
            Act::Ask(ask) => {
                self.note(|| format!("asked {ask:?}"));
                self.hear(Input::Asked(ask));
            }
            Act::Continue { task, said } => {
                let ask = self.continues(&task, said);
                self.act(Act::Ask(ask));
            }
            Act::Room(short) => {
                self.hear(Input::Room { short });
            }
            Act::Boot => {}
            Act::Crash => {
                self.struck(Fault::Crash);
                self.crash();
            }
            Act::Look => self.is_done = true,
            Act::Late { task, step, word } => {
                let Some((id, task)) = self.audit.last_dead(&task, step) else {
                    return self.audit.broken("the scenario wants a word of nobody");
                };
                self.hear(Input::Heard { id, task, word });
            }
        }
    }
}

pub fn answer(is_no: bool) -> Ask {
    let by = "a person".to_owned();
    match is_no {
        true => Ask::Reject { by, why: "not like this".to_owned() },
        false => Ask::Approve { by, answer: None },
    }
}
