//! Skills in a job: those available to its agent, those its task names, and those that were used.

use super::own_work::blocking;
use super::{Job, JobError};
use crate::skill::{SkillPlaces, shelf};
use autopilot_agents::answer::Summary;
use autopilot_agents::{AgentEvent, doing};
use autopilot_core::config::{AgentConfig, Mode, Role, SkillPolicy};
use autopilot_core::plan::{self, Plan, PlanTask};
use autopilot_core::prompt::Caps;
use autopilot_core::skill::{self, Owner, Shelf, Skill, SkillRequest, Terms, Used, WantedSkill};
use autopilot_core::task_file::TaskSpec;
use autopilot_host::git::Oid;

/// Unknown skills that are named in one note.
const NAMED_MAX: usize = 10;

/// The skills available to an agent and those its task names.
pub struct Kit {
    pub shelf: Shelf,
    asked: Vec<SkillRequest>,
    mode: Mode,
}

impl Job {
    /// The kit for the builder: this job's agent if it builds, or else the default builder.
    pub(super) fn kit(&self, spec: &TaskSpec, commit: &Oid) -> Result<Kit, JobError> {
        let builder = match self.role() {
            Role::Builder => self.agent_config(),
            Role::Reviewer | Role::Planner => self.context.config.agent(Role::Builder),
        };
        self.kit_of(builder, spec, commit)
    }

    /// The kit for one agent, in its own environment.
    pub(super) fn kit_of(
        &self,
        agent: &AgentConfig,
        spec: &TaskSpec,
        commit: &Oid,
    ) -> Result<Kit, JobError> {
        let context = &self.context;
        let places = SkillPlaces::new(
            context.workshop.hub.dir(),
            commit.as_str(),
            &context.place.root,
            Some(&context.config),
            Some(agent),
            &context.variables,
        );
        let shelf = blocking(|| shelf(&places))?;
        Ok(Kit::new(shelf, spec, self.agent_config().mode))
    }

    /// Starts watching what an agent does; the meaning of silence depends on the agent.
    pub(super) fn watch_deeds(&self, mode: Mode) {
        self.seen().deeds.shows = doing::shows(mode);
    }

    pub(super) fn notice(&self, event: &AgentEvent) {
        doing::notice(&mut self.seen().deeds, event);
    }

    /// The skills that a text names explicitly.
    pub(super) fn asked_names(&self, spec: &TaskSpec) -> Vec<String> {
        spec.asked_skills().into_iter().filter_map(explicit_name).collect()
    }

    pub(super) fn skill_policy(&self) -> SkillPolicy {
        match self.role() {
            Role::Builder => self.agent.skill_policy,
            // A reviewer or planner uses the builder's policy, because the builder was held to that
            // one.
            Role::Reviewer | Role::Planner => self.context.config.agent(Role::Builder).skill_policy,
        }
    }

    /// The skills the builder reports to have used, beside those it was seen using. `summary` is
    /// redacted already.
    pub(super) fn used(&self, summary: &Summary, kit: &Kit) -> Used {
        let deeds = self.seen().deeds.clone();
        let wanted = kit.wanted().unwrap_or_default();
        let asked: Vec<String> = wanted.iter().map(|wanted| wanted.name().to_owned()).collect();
        let policy = self.skill_policy();
        let has_skills = policy.detect_skills && kit.shelf.in_folders().next().is_some();
        let mut used =
            Used::of(&summary.said(), &deeds, &Terms { policy, asked: &asked, has_skills });
        let clean = |names: &mut std::collections::BTreeSet<String>| {
            *names = names.iter().map(|name| self.clean(name)).collect();
        };
        clean(&mut used.skills);
        clean(&mut used.mcp_servers);
        used.against = used.against.iter().map(|line| self.clean(line)).collect();
        used
    }
}

impl Kit {
    /// The skills on a shelf, for an agent of this mode that works on a task.
    pub fn new(shelf: Shelf, spec: &TaskSpec, mode: Mode) -> Kit {
        Kit { shelf, asked: spec.asked_skills(), mode }
    }

    /// The prompt with the skills that the task names.
    pub fn give(&self, prompt: String, caps: Caps) -> Result<String, JobError> {
        Ok(skill::give(prompt, &self.wanted()?, self.mode, caps))
    }

    fn wanted(&self) -> Result<Vec<WantedSkill<'_>>, JobError> {
        self.shelf.wanted(&self.asked, self.mode).map_err(JobError::Skill)
    }

    /// Returns whether every named skill is available.
    pub fn is_complete(&self) -> bool {
        self.wanted().is_ok()
    }

    /// The names of the skills that the task names.
    pub fn asked_names(&self) -> Vec<String> {
        self.asked.iter().map(|asked| asked.text().to_owned()).collect()
    }

    /// The lines of the skill list in a prompt.
    pub fn listed(&self, policy: SkillPolicy) -> Vec<String> {
        if policy.detect_skills { skill::listed(&self.shelf, self.mode) } else { Vec::new() }
    }

    fn has(&self, name: &str, mode: Mode) -> bool {
        let asked = [SkillRequest::Name(name.to_owned())];
        skill::is_name(name) && self.shelf.wanted(&asked, mode).is_ok()
    }

    /// Returns whether a builder could follow a hint to this skill: it sees a shipped skill only if
    /// it is told to use it.
    fn leads_to(&self, name: &str, mode: Mode) -> bool {
        let is_shipped = |skill: &Skill| skill.owner == Owner::Shipped;
        let is_hidden = self.shelf.get(name, mode).is_some_and(is_shipped);
        let is_asked = || self.asked.iter().any(|asked| skill::is_same_name(name, asked.text()));
        self.has(name, mode) && (!is_hidden || is_asked())
    }

    /// A note about skills in a plan that do not exist. Such hints are dropped, because only the
    /// planner suggested them.
    pub fn left_out(&self, plan: &Plan, mode: Mode) -> Option<String> {
        let mut lost: Vec<String> = Vec::new();
        for task in &plan.tasks {
            let hints = task.suggested_claude_skills.iter().cloned();
            let hints = hints.filter(|name| !self.leads_to(name.trim(), mode));
            let spoken = spoken_of(task).into_iter().filter_map(explicit_name);
            let spoken = spoken.filter(|name| !self.has(name, mode));
            for name in hints.chain(spoken) {
                let name: String = name.chars().filter(|c| !c.is_control()).take(80).collect();
                let line = format!("`{name}` of {}", task.id);
                if !lost.contains(&line) {
                    lost.push(line);
                }
            }
        }
        let named = lost.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        let more = match lost.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = "the planner suggested skills that do not exist; ignored";
        (!lost.is_empty()).then(|| format!("{text}: {named}{more}"))
    }

    /// The skills each task of a plan must use: those its text names, and those of the whole plan
    /// that it was chosen for. A skill that no task was chosen for is required of every task.
    pub fn shared_out(&self, tasks: &[&PlanTask], mode: Mode) -> Vec<Option<Vec<String>>> {
        let is_same = |a: &str, b: &str| skill::is_same_name(a.trim(), b);
        let takes = |task: &PlanTask, name: &str| {
            task.suggested_claude_skills.iter().any(|hint| is_same(hint, name))
                || spoken_of(task).iter().any(|asked| is_same(asked.text(), name))
        };
        let known = |asked: &[SkillRequest]| -> Vec<String> {
            let names = asked.iter().map(SkillRequest::text).filter(|name| self.has(name, mode));
            names.map(str::to_owned).collect()
        };
        let required = |task: &&PlanTask| {
            let spoken = spoken_of(task);
            if spoken.is_empty() && self.asked.is_empty() {
                return None;
            }
            let mut names = known(&self.asked);
            names.retain(|name| takes(task, name) || !tasks.iter().any(|other| takes(other, name)));
            for asked in known(&spoken) {
                if !names.iter().any(|name| is_same(name, &asked)) {
                    names.push(asked);
                }
            }
            Some(names)
        };
        tasks.iter().map(required).collect()
    }

    /// Drops hints to skills that do not exist.
    pub fn keep_known(&self, hints: &mut Vec<String>, mode: Mode) {
        hints.retain(|name| self.leads_to(name.trim(), mode));
    }
}

fn explicit_name(asked: SkillRequest) -> Option<String> {
    match asked {
        SkillRequest::Name(name) => Some(name),
        SkillRequest::Words(_) => None,
    }
}

/// The skills that the text of a planned task asks for.
fn spoken_of(task: &PlanTask) -> Vec<SkillRequest> {
    plan::body(task, &TaskSpec::default()).spec.asked_skills()
}
