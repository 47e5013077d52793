//! `autopilot init`: sets a repository up. It asks nothing and changes no existing file.

mod agents_md;
mod look;
mod skills;

pub use look::base_branch;

use super::{Done, answer, equipment, work};
use crate::cli::{Global, Init};
use crate::exit::{CommandFailure, OrFailed};
use autopilot_agents::answer::{AgentAnswer, Plan, ReviewAnswer};
use autopilot_core::config::{AgentChoice, Config, KINDS, Role, template};
use autopilot_core::detect::{Detected, ProjectKind, Proposal, detect};
use autopilot_core::task_file;
use autopilot_engine::place::StatePaths;
use autopilot_engine::views;
use autopilot_host::{dir, file};
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::{Value, json};
use skills::Skills;
use std::io;
use std::path::Path;

/// The task template; a queue skips it.
const TASK_TEMPLATE: &str = "tasks/TEMPLATE.md";
const CONFIG: &str = ".autopilot/config.yml";
/// Words that YAML does not read as text.
const YAML_WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
const FOLDERS: [&str; 4] = ["logs", "uat", "plan", "artifacts"];

/// Writes the missing files and prints what was found.
pub fn init(global: &Global, args: &Init) -> Done {
    let found = look::look(&global.repo)?;
    let mut detected = detect(&found.facts);
    if let Some(tests) = &args.tests {
        let why = "the command line".to_owned();
        detected.tests = Some(Proposal { value: tests.clone(), why });
    }
    let place = StatePaths { root: found.root.clone(), state: Utf8PathBuf::new() };
    let (agents, left_out) = agents(args, &found.root);
    let written = write_all(&place, &config(&detected, agents, &found.base_branch), &detected)?;
    let skills = args.skills.then(|| skills::write(&found.root)).transpose()?;
    let report = InitReport {
        faults: faults(&place),
        missing: missing(&place),
        root: found.root,
        base_branch: found.base_branch,
        warnings: found.warnings,
        agents,
        left_out,
        is_agent_ignored: args.agent.is_some() && written.kept.iter().any(|path| path == CONFIG),
        detected,
        written,
        skills,
    };
    let printed = answer(global, report.object(), |_| report.text());
    report.skills.as_ref().and_then(Skills::failure).map_or(printed, Err)
}

/// The agents that were asked for, else those that can be used here.
fn agents(args: &Init, root: &Utf8Path) -> (AgentChoice, Vec<String>) {
    let named = args.agent.as_deref();
    match KINDS.iter().find(|(name, _)| Some(*name) == named) {
        Some((_, mode)) => (AgentChoice::all(*mode), Vec::new()),
        None => equipment::choice(root),
    }
}

/// The configuration that `init` would write, for a run in a repository that has none, and a
/// sentence about it.
pub fn unwritten(dir: &Utf8Path) -> Result<(Config, String), CommandFailure> {
    let found = look::look(dir)?;
    let detected = detect(&found.facts);
    let (agents, left_out) = equipment::choice(&found.root);
    let text = config(&detected, agents, &found.base_branch);
    let (config, _) = Config::parse(&text).map_err(CommandFailure::config)?;
    let tests = match &detected.tests {
        Some(Proposal { value, why }) => format!("tests `{value}` (from {why})"),
        None => "no tests found, so nothing is proven".to_owned(),
    };
    let agents = agents_line(agents, &left_out);
    Ok((config, format!("{agents}; {tests}; `autopilot init` writes this down to be changed")))
}

/// The agents in one line: `claude_code_cli for all roles (codex is not installed)`.
fn agents_line(agents: AgentChoice, left_out: &[String]) -> String {
    let words = match AgentChoice::all(agents.builder) == agents {
        true => format!("{} for all roles", agents.builder.word()),
        false => {
            let role = |role: &Role| format!("{} {}", role.word(), agents.mode(*role).word());
            Role::ALL.iter().map(role).collect::<Vec<_>>().join(", ")
        }
    };
    if left_out.is_empty() { words } else { format!("{words} ({})", left_out.join(", ")) }
}

struct InitReport {
    root: Utf8PathBuf,
    base_branch: String,
    agents: AgentChoice,
    /// Sentences about the agents that were not chosen.
    left_out: Vec<String>,
    /// `--agent` was given, and the configuration that exists was kept.
    is_agent_ignored: bool,
    detected: Detected,
    written: Written,
    /// The shipped skills, with `--skills`.
    skills: Option<Skills>,
    /// Faults of the configuration that prevent a run.
    faults: Option<String>,
    missing: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Default)]
struct Written {
    new: Vec<String>,
    kept: Vec<String>,
}

fn write_all(
    place: &StatePaths,
    config: &str,
    detected: &Detected,
) -> Result<Written, CommandFailure> {
    let views = place.views();
    make_folder(&views, dir::create)?;
    let mut written = Written::default();
    let files = [
        (".autopilot/.gitignore", views::IGNORE.to_owned()),
        (CONFIG, config.to_owned()),
        (".autopilot/review_schema.json", ReviewAnswer::SCHEMA_JSON.to_owned()),
        (".autopilot/plan_schema.json", Plan::SCHEMA_JSON.to_owned()),
        (TASK_TEMPLATE, task_file::TEMPLATE.to_owned()),
        ("AGENTS.md", agents_md::text(detected)),
    ];
    for folder in FOLDERS {
        make_folder(&views.join(folder), dir::create_private)?;
    }
    make_folder(&place.root.join("tasks"), dir::create)?;
    for (path, text) in files {
        if write_new(&place.root, path, &text)? {
            written.new.push(path.to_owned());
        } else {
            written.kept.push(path.to_owned());
        }
    }
    Ok(written)
}

fn make_folder(path: &Utf8Path, create: fn(&Path) -> io::Result<()>) -> Result<(), CommandFailure> {
    let created = match path.symlink_metadata() {
        Ok(meta) if !meta.is_dir() => {
            Err(io::Error::other("something that is not a directory is there"))
        }
        Ok(_) | Err(_) => create(path.as_std_path()),
    };
    created.or_failed(format!("cannot create `{path}`"))
}

/// Writes a file unless something exists at its path. Returns whether it was written.
fn write_new(root: &Utf8Path, path: &str, text: &str) -> Result<bool, CommandFailure> {
    let full = root.join(path);
    if full.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let ended = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    file::write_atomic(full.as_std_path(), ended.as_bytes()).map_err(CommandFailure::failed)?;
    Ok(true)
}

fn config(detected: &Detected, agents: AgentChoice, base: &str) -> String {
    const LINE: &str = "base_branch: main\n";
    // A JSON string is a YAML string too, so any branch name can be quoted this way.
    let plain = base.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'/'))
        && base.starts_with(|c: char| c.is_ascii_alphabetic())
        && !YAML_WORDS.contains(&base.to_ascii_lowercase().as_str());
    let name = if plain { base.to_owned() } else { Value::from(base).to_string() };
    template(detected, agents).replacen(LINE, &format!("base_branch: {name}\n"), 1)
}

/// What must be corrected in the configuration before a run can start.
fn faults(place: &StatePaths) -> Option<String> {
    match autopilot_engine::workspace::read_config(place) {
        Err(error) => Some(autopilot_engine::cause::chain(&error)),
        Ok((config, warnings)) if !config.commands.has_tests() => {
            let gap = warnings.iter().find(|warning| warning.message.contains("`commands.tests`"));
            gap.map(|gap| format!("{}: {gap}", place.config()))
        }
        Ok(_) => None,
    }
}

/// Agents whose programs are missing; those of the defaults if the configuration is faulty.
fn missing(place: &StatePaths) -> Vec<String> {
    let config = autopilot_engine::workspace::read_config(place).map(|(config, _)| config);
    let config = config.ok().or_else(|| work::usual_config().ok());
    let found = config.map(|config| equipment::agents(&config, &place.root)).unwrap_or_default();
    found
        .into_iter()
        .filter_map(|agent| agent.missing().map(|why| format!("{}: {why}", agent.role)))
        .collect()
}

impl InitReport {
    fn text(&self) -> String {
        let mut lines = Vec::new();
        for path in &self.written.new {
            lines.push(format!("wrote    {path}"));
        }
        for path in &self.written.kept {
            lines.push(format!("kept     {path} (was there)"));
        }
        if self.is_agent_ignored {
            lines.push(format!("ignored  --agent: {CONFIG} names the agents; change it there"));
        }
        lines.extend(self.skills.iter().flat_map(Skills::lines));
        lines.push(format!("project  {}", self.kinds()));
        for (name, proposal) in self.proposals() {
            match proposal {
                Some(Proposal { value, why }) => {
                    lines.push(format!("{name:<9}{value}   (from {why})"))
                }
                None if name == "tests" => {
                    lines.push("tests    not found: fill in `commands.tests`".to_owned());
                }
                None => {}
            }
        }
        for Proposal { value, why } in &self.detected.copy {
            lines.push(format!("copy     {value}   ({why})"));
        }
        for Proposal { value, why } in &self.detected.yardstick {
            lines.push(format!("proof    {value}   ({why})"));
        }
        lines.push(format!("base     {}", self.base_branch));
        if self.written.new.iter().any(|path| path == CONFIG) {
            lines.push(format!("agents   {}", agents_line(self.agents, &self.left_out)));
        }
        let notes = self.faults.iter().chain(&self.warnings).chain(&self.missing);
        lines.extend(notes.map(|note| format!("missing  {note}")));
        lines.push(format!("next     {}", self.next()));
        lines.join("\n")
    }

    fn kinds(&self) -> String {
        let kinds: Vec<String> = self.detected.kinds.iter().map(kind_word).collect();
        if kinds.is_empty() { "of an unknown kind".to_owned() } else { kinds.join(", ") }
    }

    fn proposals(&self) -> [(&'static str, &Option<Proposal>); 4] {
        let Detected { tests, lint, format, setup, .. } = &self.detected;
        [("tests", tests), ("lint", lint), ("format", format), ("setup", setup)]
    }

    fn next(&self) -> &'static str {
        match (&self.faults, self.missing.is_empty()) {
            (Some(_), _) => "correct .autopilot/config.yml, then `autopilot doctor`",
            (None, false) => {
                "get what is missing (`autopilot doctor` says how), or see `autopilot demo`"
            }
            (None, true) => {
                "`autopilot task new \"<title>\"`, fill it in, `autopilot run tasks/<name>.md`"
            }
        }
    }

    fn object(&self) -> Value {
        let commands: serde_json::Map<String, Value> = self
            .proposals()
            .into_iter()
            .map(|(name, proposal)| (name.to_owned(), json!(proposal)))
            .collect();
        let agents: serde_json::Map<String, Value> = Role::ALL
            .iter()
            .map(|role| (role.word().to_owned(), self.agents.mode(*role).word().into()))
            .collect();
        json!({
            "root": self.root,
            "written": self.written.new,
            "kept": self.written.kept,
            "skills": self.skills,
            "kinds": self.detected.kinds.iter().map(kind_word).collect::<Vec<_>>(),
            "commands": commands,
            "copy": self.detected.copy,
            "yardstick": self.detected.yardstick,
            "base_branch": self.base_branch,
            "agents": agents,
            "config_fault": self.faults,
            "missing": self.missing,
            "warnings": self.warnings,
            "next": self.next(),
        })
    }
}

fn kind_word(kind: &ProjectKind) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => format!("{kind:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_branch_goes_into_a_configuration_that_parses() {
        let tests = Some(Proposal { value: "true".into(), why: "a test".into() });
        let detected = Detected { tests, ..Detected::default() };
        for base in ["main", "master", "trunk/v2", "1.0", "null", "a&b", "no"] {
            let (config, _) = Config::parse(&config(&detected, AgentChoice::USUAL, base)).unwrap();
            assert_eq!(config.repo.base_branch, base);
        }
    }

    #[test]
    fn what_is_there_stays() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        assert!(write_new(root, "a", "one").unwrap());
        assert!(!write_new(root, "a", "two").unwrap());
        assert_eq!(std::fs::read_to_string(root.join("a")).unwrap(), "one\n");
        std::os::unix::fs::symlink("nowhere", root.join("b")).unwrap();
        assert!(!write_new(root, "b", "x").unwrap(), "a link is something too");
    }
}
