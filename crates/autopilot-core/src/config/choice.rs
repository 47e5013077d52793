//! The agents that a repository without a configuration gets: those that can be used here.

use super::{Mode, Role};

/// Whether an agent can be used on this machine; a later one is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentPresence {
    NotInstalled,
    NotLoggedIn,
    Ready,
}

impl AgentPresence {
    /// A few words for messages.
    pub fn word(self) -> &'static str {
        match self {
            AgentPresence::NotInstalled => "not installed",
            AgentPresence::NotLoggedIn => "not logged in",
            AgentPresence::Ready => "ready",
        }
    }
}

/// The kind of agent for each role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentChoice {
    pub builder: Mode,
    pub reviewer: Mode,
    pub planner: Mode,
}

impl AgentChoice {
    /// Two vendors, so that nobody reviews their own work.
    pub const USUAL: AgentChoice = AgentChoice {
        builder: Mode::ClaudeCodeCli,
        reviewer: Mode::CodexCli,
        planner: Mode::CodexCli,
    };

    /// One kind of agent for all roles.
    pub fn all(mode: Mode) -> AgentChoice {
        AgentChoice { builder: mode, reviewer: mode, planner: mode }
    }

    /// The choice for a machine: both agents where both are equally ready, else the one that is. Where
    /// neither is installed, one alone, so that only one has to be.
    pub fn of(claude: AgentPresence, codex: AgentPresence) -> AgentChoice {
        if claude == AgentPresence::NotInstalled && codex == AgentPresence::NotInstalled {
            return AgentChoice::all(Mode::ClaudeCodeCli);
        }
        match claude.cmp(&codex) {
            std::cmp::Ordering::Equal => AgentChoice::USUAL,
            std::cmp::Ordering::Greater => AgentChoice::all(Mode::ClaudeCodeCli),
            std::cmp::Ordering::Less => AgentChoice::all(Mode::CodexCli),
        }
    }

    /// The kind of agent for a role.
    pub fn mode(&self, role: Role) -> Mode {
        match role {
            Role::Builder => self.builder,
            Role::Reviewer => self.reviewer,
            Role::Planner => self.planner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AgentPresence::{NotInstalled, NotLoggedIn, Ready};

    #[test]
    fn one_agent_that_can_work_takes_all_roles_and_two_share_them() {
        let (claude, codex) =
            (AgentChoice::all(Mode::ClaudeCodeCli), AgentChoice::all(Mode::CodexCli));
        for (of_claude, of_codex, wanted) in [
            (Ready, Ready, AgentChoice::USUAL),
            (Ready, NotInstalled, claude),
            (Ready, NotLoggedIn, claude),
            (NotInstalled, Ready, codex),
            (NotLoggedIn, Ready, codex),
            (NotLoggedIn, NotInstalled, claude),
            (NotLoggedIn, NotLoggedIn, AgentChoice::USUAL),
            (NotInstalled, NotInstalled, claude),
        ] {
            assert_eq!(AgentChoice::of(of_claude, of_codex), wanted, "{of_claude:?} {of_codex:?}");
        }
    }
}
