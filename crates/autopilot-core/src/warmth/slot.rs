//! What an agent's slot gets of the seeds of the base, so that its first build starts where the gate's
//! does. Nothing of a slot reaches a gate, so only the agent's time depends on these rules.

use super::copy_pays;
use crate::config::KeepWorktrees;
use std::time::Duration;

/// What the seed of one command offers to a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotOffer {
    /// How long the gate that made the seed took from nothing.
    pub cold: Duration,
    /// How long putting it into a slot took the last time, if it was tried.
    pub laid: Option<Duration>,
    /// The build directories that it has, relative to the worktree.
    pub dirs: Vec<String>,
}

/// The build directories that a slot gets of one seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotShare {
    /// The place of the seed among those that were offered.
    pub seed: usize,
    pub dirs: Vec<String>,
}

/// Whoever works in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotUser {
    /// An agent that does a part of the work.
    Builder,
    /// An agent that judges or plans.
    Judge,
    /// A command of the controller, on exactly a commit.
    Gate,
}

/// Returns whether a slot keeps the build output that was left in it. A judge finds nothing that
/// another agent left, because that could be written for it; files that one gate's tests leave could
/// make the next gate pass.
pub fn keeps_output(user: SlotUser, keep: KeepWorktrees) -> bool {
    match (user, keep) {
        (SlotUser::Judge, _)
        | (SlotUser::Gate, KeepWorktrees::Auto)
        | (SlotUser::Builder | SlotUser::Gate, KeepWorktrees::Never) => false,
        (SlotUser::Builder, KeepWorktrees::Auto | KeepWorktrees::Always)
        | (SlotUser::Gate, KeepWorktrees::Always) => true,
    }
}

/// Returns whether slots get build output at all. Whoever wants none kept between two attempts wants
/// none of the base's either.
pub fn fills_slots(keep: KeepWorktrees) -> bool {
    match keep {
        KeepWorktrees::Auto | KeepWorktrees::Always => true,
        KeepWorktrees::Never => false,
    }
}

/// Chooses what a slot gets: every build directory from that seed which took longest from nothing, of
/// two that took as long the first. Seeds that cost more than they save are left out.
pub fn slot_shares(offers: &[SlotOffer]) -> Vec<SlotShare> {
    let pays = |offer: &SlotOffer| offer.laid.is_none_or(|laid| copy_pays(laid, offer.cold));
    let mut order: Vec<(usize, &SlotOffer)> =
        offers.iter().enumerate().filter(|(_, offer)| pays(offer)).collect();
    order.sort_by_key(|(_, offer)| std::cmp::Reverse(offer.cold));
    let mut shares: Vec<SlotShare> = Vec::new();
    for (seed, offer) in order {
        let is_taken = |dir: &String| shares.iter().any(|share| share.dirs.contains(dir));
        let dirs: Vec<String> = offer.dirs.iter().filter(|dir| !is_taken(dir)).cloned().collect();
        if !dirs.is_empty() {
            shares.push(SlotShare { seed, dirs });
        }
    }
    shares
}

/// The longest time that putting a seed into a slot may take before it is given up.
pub fn slot_time_max(cold: Duration) -> Duration {
    cold / super::COPY_PART_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_judge_is_left_no_output_however_much_is_kept() {
        for (keep, builder, gate) in [
            (KeepWorktrees::Auto, true, false),
            (KeepWorktrees::Always, true, true),
            (KeepWorktrees::Never, false, false),
        ] {
            assert_eq!(keeps_output(SlotUser::Builder, keep), builder, "{keep:?}");
            assert_eq!(keeps_output(SlotUser::Gate, keep), gate, "{keep:?}");
            assert!(!keeps_output(SlotUser::Judge, keep), "{keep:?}");
        }
    }

    fn offer(cold_ms: u64, laid_ms: Option<u64>, dirs: &[&str]) -> SlotOffer {
        SlotOffer {
            cold: Duration::from_millis(cold_ms),
            laid: laid_ms.map(Duration::from_millis),
            dirs: dirs.iter().map(|dir| (*dir).to_owned()).collect(),
        }
    }

    fn shares(offers: &[SlotOffer]) -> Vec<(usize, String)> {
        slot_shares(offers).into_iter().map(|share| (share.seed, share.dirs.join(" "))).collect()
    }

    #[test]
    fn each_build_directory_comes_from_the_seed_that_took_longest() {
        let lint = offer(9_000, None, &["target"]);
        let tests = offer(20_000, None, &["target"]);
        let web = offer(4_000, None, &["web/node_modules", "target"]);
        let seen = shares(&[lint.clone(), tests, web]);
        assert_eq!(seen, [(1, "target".to_owned()), (2, "web/node_modules".to_owned())]);
        assert_eq!(shares(&[lint.clone(), lint]), [(0, "target".to_owned())]);
        assert_eq!(shares(&[]), []);
    }

    #[test]
    fn a_seed_whose_copy_took_too_long_is_left_out() {
        let slow = offer(20_000, Some(7_000), &["target"]);
        let quick = offer(9_000, Some(3_000), &["target"]);
        assert_eq!(shares(&[slow.clone(), quick]), [(1, "target".to_owned())]);
        assert_eq!(shares(&[slow]), []);
        assert_eq!(slot_time_max(Duration::from_millis(9_000)), Duration::from_millis(3_000));
    }

    #[test]
    fn slots_whose_build_output_is_never_kept_get_none() {
        assert!(fills_slots(KeepWorktrees::Auto) && fills_slots(KeepWorktrees::Always));
        assert!(!fills_slots(KeepWorktrees::Never));
    }
}
