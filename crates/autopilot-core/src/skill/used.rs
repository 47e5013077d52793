//! The skills, MCP servers and sub-agents that an attempt used: by the builder's report, by
//! observation, and by the rules of the configuration. Nothing here blocks; contradictions are
//! reported to the reviewer.

use crate::config::SkillPolicy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The number of names of one kind that are kept for an attempt or a task.
const USED_NAMES_MAX: usize = 50;
/// The number of names of one kind that are noticed while an agent works.
pub const DEEDS_MAX: usize = 200;
/// The longest name or reason.
const WORDS_BYTES_MAX: usize = 300;
/// The number of claimed names of one kind that are compared.
const CLAIMS_MAX: usize = 100;
/// The number of lines of [`against`].
const AGAINST_MAX: usize = 20;
const UPSCALE: &str = "upscale";

/// The skills, MCP servers and sub-agents of one attempt or task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Used {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub skills: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub mcp_servers: BTreeSet<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subagents: Vec<Subagent>,
    /// The number of sub-agents that were started, reported or not.
    #[serde(skip_serializing_if = "is_zero")]
    pub subagents_count: u32,
    /// The abilities gained by `upscale`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gained: Vec<Gain>,
    /// The contradictions with the rules or with the builder's report.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A sub-agent that the builder reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subagent {
    pub name: String,
    pub purpose: String,
    /// The result that the sub-agent delivered.
    pub deliverable: String,
}

/// An ability that the builder gained by `upscale`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gain {
    pub gained: String,
    pub why: String,
}

/// The builder's own report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimedUse {
    pub skills: Vec<String>,
    pub mcp_servers: Vec<String>,
    pub subagents: Vec<Subagent>,
    pub gained: Vec<Gain>,
    /// The plan that the builder says it announced before its first edit.
    pub skill_plan: String,
}

/// The observed deeds of an agent at work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    pub skills: BTreeSet<String>,
    /// The skills whose files the agent read itself.
    pub skills_read: BTreeSet<String>,
    pub mcp_servers: BTreeSet<String>,
    pub subagents: u32,
    /// Whether the agent has changed a file.
    pub has_edited: bool,
    /// Whether the agent spoke of skills before its first edit.
    pub has_planned: bool,
    /// The kinds of use that this agent always shows: only for these is silence an answer.
    pub shows: Shows,
}

/// The kinds of use that an agent always shows in its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shows {
    pub skills: bool,
    pub mcp_servers: bool,
    pub subagents: bool,
}

/// The rules that an attempt was given.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    pub policy: SkillPolicy,
    /// The skills that the task asks for; their text was given or their call ordered.
    pub asked: &'a [String],
    /// Whether there are skills to choose from.
    pub has_skills: bool,
}

/// Whether two names are the same, however they are written: `code-review`, `Code Review`,
/// `code_review`.
pub fn is_same_name(a: &str, b: &str) -> bool {
    let plain = |text: &str| -> String {
        text.chars()
            .map(|c| if c.is_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
            .collect()
    };
    plain(a) == plain(b)
}

fn has<'a>(names: impl IntoIterator<Item = &'a String>, wanted: &str) -> bool {
    names.into_iter().any(|name| is_same_name(name, wanted))
}

/// All contradictions, in words for the reviewer.
fn against(said: &ClaimedUse, deeds: &Deeds, terms: &Terms<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    policy(said, deeds, terms, &mut lines);
    upscale(said, deeds, terms, &mut lines);
    plan(said, deeds, terms, &mut lines);
    differences(said, deeds, terms, &mut lines);
    lines.truncate(AGAINST_MAX);
    lines.iter().map(|line| words(line)).collect()
}

fn policy(said: &ClaimedUse, deeds: &Deeds, terms: &Terms<'_>, lines: &mut Vec<String>) {
    let servers: BTreeSet<&String> = said.mcp_servers.iter().chain(&deeds.mcp_servers).collect();
    if !terms.policy.use_mcp && !servers.is_empty() {
        let names = servers.into_iter().cloned().collect::<Vec<_>>().join(", ");
        lines.push(format!("MCP servers were used although use_mcp is off: {names}"));
    }
    let (count, max) = (count(said, deeds), terms.policy.max_subagents);
    if count > max {
        lines.push(format!("sub-agents started: {count}; the limit is {max}"));
    }
    for agent in said.subagents.iter().take(USED_NAMES_MAX) {
        let lacks: Vec<&str> = [("purpose", &agent.purpose), ("deliverable", &agent.deliverable)]
            .into_iter()
            .filter(|(_, text)| text.trim().is_empty())
            .map(|(what, _)| what)
            .collect();
        if !lacks.is_empty() {
            let name = &agent.name;
            lines.push(format!(
                "the sub-agent `{name}` is reported without {}",
                lacks.join(" and ")
            ));
        }
    }
}

fn count(said: &ClaimedUse, deeds: &Deeds) -> u32 {
    u32::try_from(said.subagents.len()).unwrap_or(u32::MAX).max(deeds.subagents)
}

fn upscale(said: &ClaimedUse, deeds: &Deeds, terms: &Terms<'_>, lines: &mut Vec<String>) {
    let is_used = has(said.skills.iter().chain(&deeds.skills), UPSCALE) || !said.gained.is_empty();
    if !is_used {
        return;
    }
    if !terms.policy.allow_upscale {
        lines.push("`upscale` was used although allow_upscale is off".to_owned());
    }
    let is_full = |gain: &Gain| !gain.gained.trim().is_empty() && !gain.why.trim().is_empty();
    if said.gained.is_empty() || !said.gained.iter().all(is_full) {
        let text = "`upscale` was used, but the summary does not say what was gained and why";
        lines.push(text.to_owned());
    }
}

fn plan(said: &ClaimedUse, deeds: &Deeds, terms: &Terms<'_>, lines: &mut Vec<String>) {
    let is_about = terms.has_skills || !terms.asked.is_empty() || !said.skills.is_empty();
    if !terms.policy.require_skill_plan || !is_about {
        return;
    }
    let is_said = !said.skill_plan.trim().is_empty();
    if !deeds.has_planned && !is_said {
        let text = "the builder did not state which skills it would use before the first edit";
        lines.push(text.to_owned());
    } else if is_said && !deeds.has_planned && deeds.shows.skills && deeds.has_edited {
        let text =
            "the builder says it stated its skills before the first edit; this was not observed";
        lines.push(text.to_owned());
    }
}

fn differences(said: &ClaimedUse, deeds: &Deeds, terms: &Terms<'_>, lines: &mut Vec<String>) {
    for name in deeds.skills.iter().filter(|name| !has(&said.skills, name)) {
        lines.push(format!("the builder used the skill `{name}` but does not report it"));
    }
    let known = || deeds.skills.iter().chain(&deeds.skills_read).chain(terms.asked);
    for name in said.skills.iter().filter(|name| deeds.shows.skills && !has(known(), name)) {
        lines.push(format!("the builder reports the skill `{name}`, but its use was not observed"));
    }
    let reported = || said.skills.iter().chain(&deeds.skills);
    for name in terms.asked.iter().filter(|name| !has(reported(), name)) {
        lines.push(format!(
            "the task asks for the skill `{name}`, but the builder does not report it"
        ));
    }
    for name in deeds.mcp_servers.iter().filter(|name| !has(&said.mcp_servers, name)) {
        lines.push(format!("the builder used the MCP server `{name}` but does not report it"));
    }
    let unseen = |name: &&String| deeds.shows.mcp_servers && !has(&deeds.mcp_servers, name);
    for name in said.mcp_servers.iter().filter(unseen) {
        lines.push(format!(
            "the builder reports the MCP server `{name}`, but its use was not observed"
        ));
    }
    let reported = u32::try_from(said.subagents.len()).unwrap_or(u32::MAX);
    if deeds.shows.subagents && reported != deeds.subagents {
        let seen = deeds.subagents;
        lines.push(format!("sub-agents reported by the builder: {reported}; observed: {seen}"));
    }
}

impl ClaimedUse {
    /// The part of the report that is looked at: an agent may claim anything, of any length.
    fn bounded(&self) -> ClaimedUse {
        let names = |names: &[String]| names.iter().take(CLAIMS_MAX).map(|n| words(n)).collect();
        let subagents = self.subagents.iter().take(CLAIMS_MAX).map(|agent| Subagent {
            name: words(&agent.name),
            purpose: words(&agent.purpose),
            deliverable: words(&agent.deliverable),
        });
        let gained = self.gained.iter().take(CLAIMS_MAX);
        ClaimedUse {
            skills: names(&self.skills),
            mcp_servers: names(&self.mcp_servers),
            subagents: subagents.collect(),
            gained: gained.map(|g| Gain { gained: words(&g.gained), why: words(&g.why) }).collect(),
            skill_plan: words(&self.skill_plan),
        }
    }
}

impl Used {
    /// Combines the report with the observation, and notes the contradictions.
    pub fn of(said: &ClaimedUse, deeds: &Deeds, terms: &Terms<'_>) -> Used {
        let said = &said.bounded();
        let names = |said: &[String], seen: &BTreeSet<String>| {
            let unsaid = seen.iter().filter(|name| !has(said, name));
            let all = said.iter().chain(unsaid).filter(|name| !name.trim().is_empty());
            all.map(|name| words(name)).take(USED_NAMES_MAX).collect()
        };
        Used {
            skills: names(&said.skills, &deeds.skills),
            mcp_servers: names(&said.mcp_servers, &deeds.mcp_servers),
            subagents: said.subagents.iter().take(USED_NAMES_MAX).cloned().collect(),
            subagents_count: count(said, deeds),
            gained: said.gained.iter().take(USED_NAMES_MAX).cloned().collect(),
            against: against(said, deeds, terms),
        }
    }

    /// Whether nothing was used and nothing noted.
    pub fn is_empty(&self) -> bool {
        *self == Used::default()
    }

    /// Adds the uses of another attempt; the contradictions stay with that attempt.
    pub fn add(&mut self, other: &Used) {
        for (mine, theirs) in
            [(&mut self.skills, &other.skills), (&mut self.mcp_servers, &other.mcp_servers)]
        {
            for name in theirs {
                if mine.len() < USED_NAMES_MAX {
                    mine.insert(name.clone());
                }
            }
        }
        self.subagents_count = self.subagents_count.saturating_add(other.subagents_count);
        let room = |have: usize| USED_NAMES_MAX.saturating_sub(have);
        self.subagents.extend(other.subagents.iter().take(room(self.subagents.len())).cloned());
        self.gained.extend(other.gained.iter().take(room(self.gained.len())).cloned());
    }

    /// A summary: `skills tdd, pdf; MCP server docs; 2 sub-agents; gained pdf (to read forms)`.
    pub fn line(&self) -> Option<String> {
        let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
        let many = |count: usize| if count == 1 { "" } else { "s" };
        let mut parts = Vec::new();
        if !self.skills.is_empty() {
            parts.push(format!("skill{} {}", many(self.skills.len()), list(&self.skills)));
        }
        if !self.mcp_servers.is_empty() {
            let servers = &self.mcp_servers;
            parts.push(format!("MCP server{} {}", many(servers.len()), list(servers)));
        }
        if self.subagents_count > 0 {
            let count = self.subagents_count;
            parts.push(format!("{count} sub-agent{}", many(count as usize)));
        }
        let gains = self.gained.iter().filter(|gain| !gain.gained.is_empty());
        let gains: Vec<String> = gains
            .map(|gain| match gain.why.as_str() {
                "" => gain.gained.clone(),
                why => format!("{} ({why})", gain.gained),
            })
            .collect();
        if !gains.is_empty() {
            parts.push(format!("gained {}", gains.join(", ")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// The text as one line of a bounded length.
fn words(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line[..line.floor_char_boundary(WORDS_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: SkillPolicy = SkillPolicy {
        detect_skills: true,
        allow_upscale: true,
        use_mcp: true,
        max_subagents: 1,
        require_skill_plan: true,
    };

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn list(given: &[&str]) -> Vec<String> {
        names(given).into_iter().collect()
    }

    fn agent(name: &str) -> Subagent {
        Subagent { name: name.into(), purpose: "tests".into(), deliverable: "three tests".into() }
    }

    #[track_caller]
    fn is(said: &ClaimedUse, deeds: &Deeds, policy: SkillPolicy, expected: &[&str]) {
        let terms = Terms { policy, asked: &[], has_skills: false };
        assert_eq!(against(said, deeds, &terms), expected);
    }

    #[test]
    fn an_honest_account_within_the_policy_has_nothing_against_it() {
        let said = ClaimedUse {
            skills: list(&["Code Review", "upscale"]),
            mcp_servers: list(&["docs"]),
            subagents: vec![agent("a")],
            gained: vec![Gain { gained: "pdf".into(), why: "forms".into() }],
            skill_plan: String::new(),
        };
        let deeds = Deeds {
            skills: names(&["code-review", "upscale"]),
            mcp_servers: names(&["docs"]),
            subagents: 1,
            has_edited: true,
            has_planned: true,
            shows: Shows { skills: true, mcp_servers: true, subagents: true },
            ..Deeds::default()
        };
        is(&said, &deeds, POLICY, &[]);
        let terms = Terms { policy: POLICY, asked: &[], has_skills: true };
        let line = Used::of(&said, &deeds, &terms).line();
        let expected =
            "skills Code Review, upscale; MCP server docs; 1 sub-agent; gained pdf (forms)";
        assert_eq!(line.as_deref(), Some(expected));
    }

    #[test]
    fn each_rule_that_is_broken_is_named() {
        let none = SkillPolicy { use_mcp: false, allow_upscale: false, max_subagents: 0, ..POLICY };
        let said = ClaimedUse {
            skills: list(&["upscale"]),
            mcp_servers: list(&["docs"]),
            subagents: vec![Subagent { name: "a".into(), ..Subagent::default() }],
            ..ClaimedUse::default()
        };
        is(
            &said,
            &Deeds::default(),
            none,
            &[
                "MCP servers were used although use_mcp is off: docs",
                "sub-agents started: 1; the limit is 0",
                "the sub-agent `a` is reported without purpose and deliverable",
                "`upscale` was used although allow_upscale is off",
                "`upscale` was used, but the summary does not say what was gained and why",
                "the builder did not state which skills it would use before the first edit",
            ],
        );
    }

    #[test]
    fn what_was_seen_and_what_was_said_are_compared() {
        let said = ClaimedUse {
            skills: list(&["python", "read-it"]),
            mcp_servers: list(&["docs"]),
            skill_plan: "python".into(),
            ..ClaimedUse::default()
        };
        let deeds = Deeds {
            skills: names(&["tdd"]),
            skills_read: names(&["read-it"]),
            mcp_servers: names(&["db"]),
            subagents: 1,
            has_edited: true,
            shows: Shows { skills: true, mcp_servers: true, subagents: true },
            ..Deeds::default()
        };
        is(
            &said,
            &deeds,
            POLICY,
            &[
                "the builder says it stated its skills before the first edit; this was not observed",
                "the builder used the skill `tdd` but does not report it",
                "the builder reports the skill `python`, but its use was not observed",
                "the builder used the MCP server `db` but does not report it",
                "the builder reports the MCP server `docs`, but its use was not observed",
                "sub-agents reported by the builder: 0; observed: 1",
            ],
        );
        // The silence of an agent that shows nothing of its work proves nothing.
        let blind = Deeds { has_planned: true, ..Deeds::default() };
        is(&said, &blind, POLICY, &[]);
    }

    #[test]
    fn a_skill_that_was_asked_for_has_to_be_reported() {
        let asked = list(&["pdf", "tdd"]);
        let terms = Terms { policy: POLICY, asked: &asked, has_skills: true };
        let said = ClaimedUse {
            skills: list(&["tdd"]),
            skill_plan: "tdd".into(),
            ..ClaimedUse::default()
        };
        let expected = ["the task asks for the skill `pdf`, but the builder does not report it"];
        assert_eq!(against(&said, &Deeds::default(), &terms), expected);
    }

    #[test]
    fn accounts_are_bounded_however_much_is_said() {
        let many: Vec<String> = (0..500).map(|n| format!("{n} {}", "x".repeat(1000))).collect();
        let said = ClaimedUse { skills: many.clone(), mcp_servers: many, ..ClaimedUse::default() };
        let off = SkillPolicy { use_mcp: false, ..POLICY };
        let asked: Vec<String> = (0..30).map(|n| format!("a{n}")).collect();
        let terms = Terms { policy: off, asked: &asked, has_skills: true };
        let shows = Shows { skills: true, mcp_servers: true, subagents: true };
        let mut used = Used::of(&said, &Deeds { shows, ..Deeds::default() }, &terms);
        assert_eq!((used.skills.len(), used.against.len()), (USED_NAMES_MAX, AGAINST_MAX));
        assert!(used.skills.iter().chain(&used.against).all(|s| s.len() <= WORDS_BYTES_MAX));
        let other = Used { skills: names(&["one more"]), ..Used::default() };
        used.add(&other);
        assert_eq!(used.skills.len(), USED_NAMES_MAX);
    }
}
