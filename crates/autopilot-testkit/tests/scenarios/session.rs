//! The session of a builder, as the events of a task leave it, and whether it is continued.

use super::story;
use autopilot_core::config::SessionPolicy;
use autopilot_core::event::{Event, Facts, Outcome, SessionEnd};
use autopilot_core::flow::builder_session::{
    BuilderTurn, FreshWhy, SessionChances, SessionFiles, builder_turn,
};
use autopilot_core::id::{AttemptId, TaskId, Time};
use autopilot_core::state::State;
use autopilot_core::step::{Role, Step};

const TASK: TaskId = TaskId(1);
const FREE: SessionChances = SessionChances {
    policy: SessionPolicy::Continue,
    keeps_sessions: true,
    lane: 0,
    files: SessionFiles::Kept,
};

/// A task at its build, on which agents work as told.
struct Talk {
    state: State,
    seq: u64,
}

impl Talk {
    fn new() -> Talk {
        let state = story("task a\n stop during a build").state;
        Talk { seq: state.seq, state }
    }

    /// A step of a goal, on which an agent works.
    fn of_step() -> Talk {
        let state = story("goal a\n stop now during a step").state;
        Talk { seq: state.seq, state }
    }

    fn happens(&mut self, event: Event) -> AttemptId {
        self.seq += 1;
        self.state.apply(&event, self.seq, 0, Time(0));
        self.state.seal(self.seq, Time(0));
        AttemptId { seq: self.seq, place: 0 }
    }

    /// An attempt in a session that ends in this way.
    fn tries(&mut self, step: Step, session: &str, outcome: Outcome, turn: Option<SessionEnd>) {
        let id = self.happens(Event::AttemptStarted { task: TASK, step, lane: 0 });
        let (session, continued) = (session.to_owned(), false);
        self.happens(Event::SessionOpened { id, task: TASK, step, session, continued });
        let facts = Box::new(Facts { turn, ..Facts::default() });
        self.happens(Event::AttemptEnded { id, task: TASK, step, outcome, facts });
    }

    /// The session that is continued at a step, or why none is.
    fn at(&self, step: Step, chances: SessionChances) -> Result<String, Option<FreshWhy>> {
        match builder_turn(self.state.task(TASK), step, chances) {
            BuilderTurn::Continued(last) => Ok(last.session.clone()),
            BuilderTurn::Fresh(why) => Err(why),
        }
    }
}

fn broke() -> Outcome {
    Outcome::Broke { why: "no".into() }
}

#[test]
fn a_repair_continues_the_session_of_the_build_and_a_review_none() {
    let mut talk = Talk::new();
    assert_eq!(talk.at(Step::Build, FREE), Err(None), "there was none");
    talk.tries(Step::Build, "s1", Outcome::Passed, Some(SessionEnd::Answered));
    talk.tries(Step::Review, "r1", Outcome::Passed, Some(SessionEnd::Answered));
    assert_eq!(talk.at(Step::Fix, FREE), Ok("s1".into()));
    for step in Step::ALL.into_iter().filter(|step| step.role() != Some(Role::Builder)) {
        assert_eq!(talk.at(step, FREE), Err(None), "{step}");
    }
    let fresh = SessionChances { policy: SessionPolicy::Fresh, ..FREE };
    assert_eq!(talk.at(Step::Fix, fresh), Err(Some(FreshWhy::Configured)));
    let other = SessionChances { lane: 1, ..FREE };
    assert_eq!(talk.at(Step::Fix, other), Err(Some(FreshWhy::OtherAgent)));
    let gone = SessionChances { files: SessionFiles::Gone, ..FREE };
    assert_eq!(talk.at(Step::Fix, gone), Err(Some(FreshWhy::Gone)));
}

#[test]
fn a_step_of_a_goal_that_is_tried_again_continues_its_session() {
    for (outcome, turn) in [
        (Outcome::Lost, None),
        (Outcome::Revoked, Some(SessionEnd::Stopped)),
        (Outcome::Failed { why: "it crashed".into() }, Some(SessionEnd::Broke)),
    ] {
        let mut talk = Talk::of_step();
        talk.tries(Step::WorkflowStep, "s1", outcome.clone(), turn);
        assert_eq!(talk.at(Step::WorkflowStep, FREE), Ok("s1".into()), "{outcome:?}");
        assert_eq!(talk.at(Step::Completion, FREE), Err(None), "whoever judges has a new one");
    }
    let mut full = Talk::of_step();
    let failed = Outcome::Failed { why: "no room".into() };
    full.tries(Step::WorkflowStep, "s1", failed, Some(SessionEnd::Full));
    assert_eq!(full.at(Step::WorkflowStep, FREE), Err(Some(FreshWhy::Full)));
}

#[test]
fn whatever_cuts_a_turn_short_its_session_is_continued() {
    for outcome in [Outcome::Lost, Outcome::Revoked, Outcome::Quota { until: Time(9) }] {
        let mut talk = Talk::new();
        talk.tries(Step::Build, "s1", outcome.clone(), None);
        assert_eq!(talk.at(Step::Build, FREE), Ok("s1".into()), "{outcome:?}");
    }
}

#[test]
fn a_session_that_is_full_or_broke_twice_is_left() {
    let mut talk = Talk::new();
    talk.tries(Step::Build, "s1", broke(), Some(SessionEnd::Broke));
    assert_eq!(talk.at(Step::Build, FREE), Ok("s1".into()));
    talk.tries(Step::Build, "s1", broke(), Some(SessionEnd::Broke));
    assert_eq!(talk.at(Step::Build, FREE), Err(Some(FreshWhy::BrokeAgain)));
    talk.tries(Step::Build, "s2", broke(), Some(SessionEnd::Full));
    assert_eq!(talk.at(Step::Build, FREE), Err(Some(FreshWhy::Full)));
    talk.tries(Step::Build, "s3", Outcome::Passed, Some(SessionEnd::Answered));
    assert_eq!(talk.at(Step::Fix, FREE), Ok("s3".into()));
}

#[test]
fn only_the_same_session_continues_the_work_of_a_try_that_broke() {
    let mut talk = Talk::new();
    let left = |talk: &Talk, same| talk.state.task(TASK).left_work(same).count();
    let before = left(&talk, false);
    talk.tries(Step::Build, "s1", broke(), Some(SessionEnd::Broke));
    // The try had taken over what was cut short before it.
    assert_eq!((left(&talk, true), left(&talk, false)), (before + 1, 0));
    talk.tries(Step::Build, "s1", Outcome::Lost, None);
    assert_eq!((left(&talk, true), left(&talk, false)), (before + 2, 1));
    talk.tries(Step::Build, "s1", Outcome::Passed, Some(SessionEnd::Answered));
    assert_eq!((left(&talk, true), left(&talk, false)), (0, 0));
}
