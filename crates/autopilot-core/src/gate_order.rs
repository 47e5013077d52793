//! The order of a gate's commands: what takes least time comes first, so that a person sees the
//! first failure early.

use crate::evidence::RoundEvidence;
use crate::rows::rows;
use serde::{Deserialize, Serialize};

rows! {
/// The order in which the commands of a gate start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
GateOrder -> &'static str {
    /// The one that took least time when the gate ran last comes first.
    #[default]
    Learnt: "learnt",
    /// Tests, lint, format.
    Given: "given",
}}

impl GateOrder {
    /// The commands in the order in which they start. `before` are earlier results, the latest
    /// first; a command that none of them has comes last.
    pub fn sort(
        self,
        mut commands: Vec<(&'static str, String)>,
        before: &[RoundEvidence],
    ) -> Vec<(&'static str, String)> {
        if self == GateOrder::Learnt {
            let time_of = |line: &str| {
                let checks = before.iter().flat_map(|evidence| &evidence.checks);
                checks.filter(|seen| seen.command == line).find_map(|seen| seen.ms)
            };
            commands.sort_by_key(|(_, line)| time_of(line).unwrap_or(u64::MAX));
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::SeenCommand;

    fn evidence(times: &[(&str, u64)]) -> RoundEvidence {
        let seen = |&(command, ms): &(&str, u64)| SeenCommand {
            command: command.to_owned(),
            ms: Some(ms),
            ..SeenCommand::default()
        };
        RoundEvidence { checks: times.iter().map(seen).collect(), ..RoundEvidence::default() }
    }

    #[test]
    fn the_cheapest_comes_first_as_it_was_last_seen_and_the_unknown_last() {
        let commands = || ["t", "l", "f", "new"].map(|line| ("tests", line.to_owned())).to_vec();
        let lines = |order: GateOrder, before: &[RoundEvidence]| {
            let sorted = order.sort(commands(), before);
            sorted.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join(" ")
        };
        let base = evidence(&[("t", 900), ("l", 20), ("f", 30)]);
        assert_eq!(lines(GateOrder::Learnt, std::slice::from_ref(&base)), "l f t new");
        let last = evidence(&[("l", 1000), ("new", 1)]);
        assert_eq!(lines(GateOrder::Learnt, &[last, base.clone()]), "new f t l");
        assert_eq!(lines(GateOrder::Learnt, &[]), "t l f new");
        assert_eq!(lines(GateOrder::Given, &[base]), "t l f new");
    }
}
