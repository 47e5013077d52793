//! The directories an agent keeps its log-in, sessions and settings in: which those are, and that
//! it leaves in them nothing for others to obey.

use super::workshop::blocking;
use super::{Job, JobError};
use crate::environment::Variables;
use crate::place::Place;
use autopilot_agents::Agent;
use autopilot_host::dir;
use autopilot_host::settings_guard::{Before, Limits, Report, Watched};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a note about it begins.
pub const CHANGED: &str = "it changed its own settings";
const NAMED_MAX: usize = 5;
/// Copies of attempts that were under way.
const BEFORE: &str = "before";
/// What people have scripts, rules and instructions in, whoever the vendor is.
const USUAL: &[&str] = &[
    "hooks*", "commands", "agents", "skills", "plugins", "rules", "prompts", "scripts", "bin",
    "*.sh", "*.py", "*.js", "*.mjs", "*.cjs", "*.ts", "*.md",
];

/// Agents whose directories are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    Claude,
    Codex,
    Gemini,
    /// One that keeps to the XDG base directories, under this name.
    Xdg(&'static str),
}

const VENDORS: &[(&str, Vendor)] = &[
    ("claude", Vendor::Claude),
    ("codex", Vendor::Codex),
    ("gemini", Vendor::Gemini),
    ("opencode", Vendor::Xdg("opencode")),
    ("goose", Vendor::Xdg("goose")),
    ("crush", Vendor::Xdg("crush")),
];
const XDG_CONFIG: (&str, &str) = ("XDG_CONFIG_HOME", ".config");
const XDG: &[(&str, &str)] =
    &[XDG_CONFIG, ("XDG_DATA_HOME", ".local/share"), ("XDG_STATE_HOME", ".local/state")];

fn vendor(agent: &Agent) -> Option<Vendor> {
    match agent {
        Agent::ClaudeCode { .. } => Some(Vendor::Claude),
        Agent::Codex { .. } => Some(Vendor::Codex),
        // Often started by another program: `npx @vendor/claude-code-acp`.
        Agent::Acp { words } => words.iter().find_map(|word| {
            let name = Utf8Path::new(word).file_name().unwrap_or_default();
            VENDORS.iter().find(|(own, _)| name.contains(own)).map(|(_, vendor)| *vendor)
        }),
        Agent::Command { .. } | Agent::OpenAi(_) | Agent::Script { .. } => None,
    }
}

/// Where this kind of agent keeps its log-in, its settings and its sessions; `variables` are those
/// it is started with.
pub(super) fn own_directories(agent: &Agent, variables: &Variables) -> Vec<Utf8PathBuf> {
    let home = set(variables, "HOME").map(Utf8PathBuf::from);
    let in_home = |name: &str| home.iter().map(|home| home.join(name)).collect::<Vec<_>>();
    match vendor(agent) {
        None => Vec::new(),
        Some(Vendor::Claude) => match set(variables, "CLAUDE_CONFIG_DIR") {
            Some(own) => vec![Utf8PathBuf::from(own)],
            None => [".claude", ".claude.json", ".config/claude"].map(in_home).concat(),
        },
        Some(Vendor::Codex) => match set(variables, "CODEX_HOME") {
            Some(own) => vec![Utf8PathBuf::from(own)],
            None => [".codex", ".config/codex"].map(in_home).concat(),
        },
        Some(Vendor::Gemini) => in_home(".gemini"),
        Some(Vendor::Xdg(name)) => XDG
            .iter()
            .filter_map(|base| xdg(variables, *base))
            .map(|base| base.join(name))
            .collect(),
    }
}

/// What of it others obey.
fn watched(agent: &Agent, variables: &Variables) -> Vec<Watched> {
    let below = |dir: Utf8PathBuf, names: &[&str]| Watched::Below {
        dir: dir.into(),
        names: names.iter().chain(USUAL).map(|name| (*name).to_owned()).collect(),
    };
    let own = own_directories(agent, variables);
    match vendor(agent) {
        None => Vec::new(),
        Some(Vendor::Claude) => {
            const NAMES: &[&str] = &[
                "settings.json",
                "settings.local.json",
                "output-styles",
                "local",
                "keybindings.json",
                // What plugins remember: written at every start, and nothing of it is run.
                "!plugins/store",
            ];
            let mut watched = Vec::new();
            for dir in own {
                if dir.file_name() == Some(".claude.json") {
                    watched.push(Watched::Keys { file: dir.into() });
                } else {
                    watched.push(Watched::Keys { file: dir.join(".claude.json").into() });
                    watched.push(below(dir, NAMES));
                }
            }
            watched
        }
        Some(Vendor::Codex) => {
            own.into_iter().map(|dir| below(dir, &["*.toml", "requirements*"])).collect()
        }
        Some(Vendor::Gemini) => {
            const NAMES: &[&str] =
                &["settings.json", "extensions", "policies", "trustedFolders.json"];
            own.into_iter().map(|dir| below(dir, NAMES)).collect()
        }
        Some(Vendor::Xdg(name)) => {
            const NAMES: &[&str] = &[
                "*.json",
                "*.jsonc",
                "*.yaml",
                "*.yml",
                "agent",
                "command",
                "plugin",
                "tool",
                "tools",
                "mode",
                "modes",
                "skill",
                ".goosehints",
                "recipes",
            ];
            let config = xdg(variables, XDG_CONFIG).map(|base| below(base.join(name), NAMES));
            config.into_iter().collect()
        }
    }
}

fn xdg(variables: &Variables, (variable, usual): (&str, &str)) -> Option<Utf8PathBuf> {
    let home = || set(variables, "HOME").map(|home| Utf8Path::new(home).join(usual));
    set(variables, variable).map(Utf8PathBuf::from).or_else(home)
}

fn set<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// A sandbox admits only what exists, and an agent that was never used has nothing yet.
pub(super) fn make_own_directories(agent: &Agent, variables: &Variables) {
    if let Agent::Acp { .. } = agent {
        for own in own_directories(agent, variables) {
            if own.file_name() != Some(".claude.json") {
                // Without it the agent itself says what it misses.
                let _later = dir::create(own.as_std_path());
            }
        }
    }
}

/// The settings that are looked after now. Agents that share some share the copy from before the
/// first of them began.
#[derive(Debug, Default)]
pub struct Settings {
    held: Mutex<BTreeMap<String, Held>>,
}

#[derive(Debug)]
struct Held {
    before: Arc<Before>,
    agents: usize,
}

impl Settings {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, watched: &[Watched], place: &Place) -> Result<String, JobError> {
        let name = name_of(watched);
        let mut held = self.lock();
        if let Some(known) = held.get_mut(&name) {
            known.agents += 1;
            return Ok(name);
        }
        let failed = |error| JobError::Setup(crate::shell::chain(&error));
        let before = Before::take(watched, Limits::default()).map_err(failed)?;
        before.store(stored(place, &name).as_std_path()).map_err(failed)?;
        held.insert(name.clone(), Held { before: Arc::new(before), agents: 1 });
        Ok(name)
    }

    fn release(&self, name: &str, place: &Place, keep: &Utf8Path) -> Report {
        let mut held = self.lock();
        let Some(known) = held.get_mut(name) else { return Report::default() };
        let report = known.before.restore(keep.as_std_path());
        known.agents = known.agents.saturating_sub(1);
        if known.agents == 0 {
            held.remove(name);
            if report.failed.is_empty() {
                // Found by the next process, it finds nothing to do.
                let _harmless = dir::remove_file(stored(place, name).as_std_path());
            }
        }
        report
    }
}

impl Job {
    /// Runs an agent between the copy of its settings and their return. The notes are about what
    /// it had made of them.
    pub(super) async fn looked_after<T>(
        &self,
        agent: &Agent,
        variables: &Variables,
        work: impl Future<Output = Result<T, JobError>>,
    ) -> Result<(T, Vec<String>), JobError> {
        let watched = watched(agent, variables);
        if watched.is_empty() || self.context.player.is_some() {
            return Ok((work.await?, Vec::new()));
        }
        let context = Arc::clone(&self.context);
        let name = blocking(move || context.settings.hold(&watched, &context.place)).await?;
        let done = work.await;
        let context = Arc::clone(&self.context);
        let keep = kept(&context.place).join(format!("{}-{}", self.run.id, self.want.id));
        let into = keep.clone();
        let release =
            move || Ok::<_, JobError>(context.settings.release(&name, &context.place, &into));
        let report = blocking(release).await?;
        if !report.failed.is_empty() {
            let what = format!(
                "what it did to its own settings could not be undone: {}",
                report.failed.join("; ")
            );
            return Err(JobError::Setup(what));
        }
        Ok((done?, note(&report, &keep).into_iter().collect()))
    }
}

fn note(report: &Report, keep: &Utf8Path) -> Option<String> {
    let named: Vec<String> =
        report.changed.iter().take(NAMED_MAX).map(|path| format!("`{}`", path.display())).collect();
    let more = report.changed.len().saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        format!(
            "{CHANGED}: {}{more}; they are as before, its version is at {keep}",
            named.join(", ")
        )
    })
}

/// Undoes what attempts did whose process was killed before it could. Before anything is started.
pub(crate) fn restore_left(place: &Place, notice: &mut dyn FnMut(&str)) {
    let before = kept(place).join(BEFORE);
    for name in dir::names(before.as_std_path()).unwrap_or_default() {
        if name.starts_with('.') {
            continue;
        }
        let path = before.join(&name);
        let keep = kept(place).join(format!("interrupted-{}", jiff::Timestamp::now().as_second()));
        match Before::load(path.as_std_path()) {
            Ok(left) => {
                let report = left.restore(keep.as_std_path());
                if let Some(note) = note(&report, &keep) {
                    notice(&format!("an interrupted attempt: {note}"));
                }
                for failed in &report.failed {
                    notice(&format!("an agent's settings could not be put back: {failed}"));
                }
            }
            Err(error) => notice(&crate::shell::chain(&error)),
        }
        let _again = dir::remove_file(path.as_std_path());
    }
}

fn kept(place: &Place) -> Utf8PathBuf {
    place.state.join("kept-settings")
}

fn stored(place: &Place, name: &str) -> Utf8PathBuf {
    kept(place).join(BEFORE).join(name)
}

fn name_of(watched: &[Watched]) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(format!("{watched:?}").as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(agent: &Agent, more: &[(&str, &str)]) -> String {
        let mut variables = Variables::from([("HOME".to_owned(), "/h".to_owned())]);
        variables.extend(more.iter().map(|(name, value)| ((*name).into(), (*value).into())));
        own_directories(agent, &variables)
            .iter()
            .map(|own| own.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn acp(words: &[&str]) -> Agent {
        Agent::Acp { words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    #[test]
    fn an_agent_may_write_what_is_its_own_and_nothing_of_another_vendor() {
        let claude = Agent::ClaudeCode { executable: "claude".into(), gateway: Default::default() };
        assert_eq!(dirs(&claude, &[]), "/h/.claude /h/.claude.json /h/.config/claude");
        assert_eq!(dirs(&claude, &[("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "/x")]), "/c");
        let codex = Agent::Codex { executable: "codex".into(), gateway: Default::default() };
        assert_eq!(dirs(&codex, &[("CODEX_HOME", "/x")]), "/x");
        assert_eq!(dirs(&codex, &[]), "/h/.codex /h/.config/codex");
        assert_eq!(dirs(&acp(&["/bin/gemini", "--acp"]), &[]), "/h/.gemini");
        assert_eq!(
            dirs(&acp(&["opencode", "acp"]), &[("XDG_CONFIG_HOME", "/cfg")]),
            "/cfg/opencode /h/.local/share/opencode /h/.local/state/opencode"
        );
        assert!(dirs(&acp(&["npx", "@zed/claude-code-acp"]), &[]).starts_with("/h/.claude "));
        assert_eq!(dirs(&acp(&["./mine"]), &[]), "");
        assert_eq!(dirs(&Agent::Command { words: vec!["claude".into()] }, &[]), "");
        assert_eq!(dirs(&Agent::Script { file: "claude.yml".into() }, &[]), "");
    }

    #[test]
    fn agents_of_a_kind_share_the_copy_from_before_the_first() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(temp.path().into()).unwrap();
        let place = Place { root: root.clone(), state: root.join("state") };
        let variables = Variables::from([("HOME".to_owned(), root.to_string())]);
        let claude = Agent::ClaudeCode { executable: "claude".into(), gateway: Default::default() };
        let watched = watched(&claude, &variables);
        let file = root.join(".claude/settings.json");
        std::fs::create_dir(root.join(".claude")).unwrap();
        let settings = Settings::default();
        let name = settings.hold(&watched, &place).unwrap();
        std::fs::write(&file, "planted").unwrap();
        assert_eq!(settings.hold(&watched, &place).unwrap(), name, "with the plant in its place");
        let keep = root.join("keep");
        assert_eq!(settings.release(&name, &place, &keep).changed.len(), 1);
        assert!(!file.exists() && stored(&place, &name).exists());
        std::fs::write(&file, "planted again").unwrap();
        assert_eq!(settings.release(&name, &place, &keep).changed.len(), 1);
        assert!(!file.exists() && !stored(&place, &name).exists());
        std::fs::write(&file, "the user's own, later").unwrap();
        restore_left(&place, &mut |_| {});
        assert!(file.exists(), "nobody was under way");
        settings.hold(&watched, &place).unwrap();
        std::fs::write(&file, "planted by one that was killed").unwrap();
        let mut said = String::new();
        restore_left(&place, &mut |text| said.push_str(text));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "the user's own, later");
        assert!(said.contains("settings.json"), "{said}");
    }
}
