//! Times in which an account, a model or the machine does nothing for anybody.

use super::{Drawn, Scene};
use crate::fault::Fault;
use autopilot_core::event::{HoldWhy, Outcome};

/// A time in which an account, or a model of it, does nothing for anybody.
#[derive(Clone, Debug)]
pub struct Drought {
    /// Every lane whose name begins so.
    pub lanes: String,
    /// In virtual time.
    pub from: u64,
    pub until: u64,
    pub why: HoldWhy,
    /// Whether a quota says when it comes back.
    pub is_told: bool,
}

impl Drought {
    pub(super) fn outcome(&self, scene: &Scene<'_>) -> Outcome {
        let until = scene.clock.plus_ms(self.until - scene.now);
        match (self.why, self.is_told) {
            (HoldWhy::Quota, true) => Outcome::Quota { until },
            (why, _) => Outcome::Away { why, text: "it is not there".into(), until: None },
        }
    }

    pub(super) fn fault(&self) -> Fault {
        match self.why {
            HoldWhy::Quota => Fault::Quota,
            HoldWhy::Auth => Fault::Auth,
            HoldWhy::Outage => Fault::Outage,
            HoldWhy::Model => Fault::Model,
            HoldWhy::Program => Fault::Auth,
            HoldWhy::Machine(_) => Fault::Machine,
        }
    }
}

impl Drawn {
    pub(super) fn drought(&self, scene: &Scene<'_>) -> Option<&Drought> {
        let lane = scene.state.lane_name(scene.want.task, scene.want.step, scene.want.lane);
        let is_asked = scene.want.step.role().is_some();
        let is_met = |drought: &Drought| match drought.why {
            HoldWhy::Machine(_) => true,
            HoldWhy::Quota
            | HoldWhy::Auth
            | HoldWhy::Outage
            | HoldWhy::Model
            | HoldWhy::Program => is_asked && lane.starts_with(&drought.lanes),
        };
        let is_on = |drought: &&Drought| {
            (drought.from..drought.until).contains(&scene.now) && is_met(drought)
        };
        self.droughts.iter().find(is_on)
    }
}
