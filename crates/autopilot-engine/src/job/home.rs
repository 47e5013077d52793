//! The home directory of each attempt's agent, with settings, login and sessions, and links to the
//! user's own files.
//!
//! Builders and reviewers often run the same kind of agent. Settings that one of them writes must
//! not affect the next, nor the agent that the user starts tomorrow.

mod skill;

use super::{Job, JobError};
use crate::environment::Variables;
use crate::place::StatePaths;
use autopilot_agents::gateway::{self, GatewayWay};
use autopilot_agents::{Access, Agent};
use autopilot_host::agent_home::{self, COPY_BYTES_MAX, HomePlan, LoginFile, links, login};
use autopilot_host::{dir, file};
use camino::{Utf8Path, Utf8PathBuf};
use std::path::{Path, PathBuf};

/// The suffix of home directories; notes about a home lie beside it.
pub(super) const HOME: &str = "home";
/// The files in which people keep scripts, rules and instructions, for every vendor.
const USUAL: &[&str] = &[
    "hooks*", "commands", "agents", "skills", "plugins", "rules", "prompts", "scripts", "bin",
    "*.sh", "*.py", "*.js", "*.mjs", "*.cjs", "*.ts", "*.md",
];
/// The settings of Claude Code that may name an account.
const SETTINGS: &[&str] = &["settings.json", "settings.local.json"];
const CLAUDE: &[&str] = &[
    "settings.json",
    "settings.local.json",
    "output-styles",
    "local",
    "keybindings.json",
    "statusline*",
];
const SHARED: &[&str] = &["skills", "plugins"];
/// Files that agents write in their homes when they start.
const ITS_OWN: &[&str] = &["store", ".system"];
/// The folders of sessions in the homes of Claude Code and Codex.
pub(super) const CLAUDE_SESSIONS: &str = "projects";
pub(super) const CODEX_SESSIONS: &str = "sessions";
const CODEX: &[&str] = &["*.toml", "requirements*", ".env"];

/// Agents whose directories are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Vendor {
    Claude,
    Codex,
    /// Gemini uses the user's own directory: which parts can be elsewhere depends on its version.
    Gemini,
    /// An agent that uses the XDG base directories under this name.
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
/// Variable, path in the user's home, path in the agent's home.
const XDG: &[(&str, &str, &str)] = &[
    ("XDG_CONFIG_HOME", ".config", "config"),
    ("XDG_DATA_HOME", ".local/share", "data"),
    ("XDG_STATE_HOME", ".local/state", "state"),
];
/// The login files of an agent that uses the XDG directories.
const XDG_LOGINS: &[&str] = &["auth.json", "mcp-auth.json", "secrets.yaml"];
/// Downloads, caches and logs, which are not part of a session.
const XDG_LEFT_OUT: &[&str] = &["bin", "log", "cache"];

fn vendor(agent: &Agent) -> Option<Vendor> {
    match agent {
        Agent::ClaudeCode { .. } => Some(Vendor::Claude),
        Agent::Codex { .. } => Some(Vendor::Codex),
        // The agent is often started by another program: `npx @vendor/claude-code-acp`.
        Agent::Acp { words } => words.iter().find_map(|word| {
            let name = Utf8Path::new(word).file_name().unwrap_or_default();
            VENDORS.iter().find(|(own, _)| name.contains(own)).map(|(_, vendor)| *vendor)
        }),
        Agent::Command { .. } | Agent::OpenAi(_) | Agent::Script { .. } => None,
    }
}

/// The home of one attempt.
#[derive(Debug, Default)]
pub(super) struct Home {
    plan: HomePlan,
    /// The session directories of this kind of agent, relative to the home.
    sessions: Vec<PathBuf>,
    /// Directories of the user that the agent writes because it can't be given a home.
    shared: Vec<Utf8PathBuf>,
}

impl Home {
    /// The directories the agent may write.
    pub fn writable(&self) -> Vec<Utf8PathBuf> {
        let own = (!self.plan.dir.as_os_str().is_empty()).then(|| self.plan.dir.clone());
        let own = own.and_then(|path| Utf8PathBuf::from_path_buf(path).ok());
        own.into_iter().chain(self.shared.iter().cloned()).collect()
    }

    /// The path of the home; empty for an agent that has none.
    pub fn dir(&self) -> &Path {
        &self.plan.dir
    }

    /// The directories of the home that make up its sessions.
    pub fn sessions(&self) -> &[PathBuf] {
        &self.sessions
    }

    /// Copies a renewed login back to the user, and returns messages about what was not copied.
    pub fn put_back(&mut self) -> Vec<String> {
        self.plan.put_back()
    }
}

impl Job {
    /// Creates the home of this attempt's agent, and names it in `variables`.
    pub(super) fn home(
        &self,
        agent: &Agent,
        variables: &mut Variables,
        session: Option<&str>,
        access: Access,
    ) -> Result<Home, JobError> {
        if self.context.player.is_some() {
            return Ok(Home::default());
        }
        let dir = self.beside_scratch(HOME);
        let mut home = planned(agent, variables, &dir);
        if access == Access::Read && vendor(agent) == Some(Vendor::Claude) {
            self.add_base_skills(&mut home.plan)?;
        }
        if home.plan.dir.as_os_str().is_empty() {
            for shared in &home.shared {
                // A sandbox admits only existing paths; without it the agent reports what it
                // misses.
                let _later = dir::create(shared.as_std_path());
            }
            return Ok(home);
        }
        home.plan.make()?;
        home.plan.note()?;
        self.seen().session_parts.clone_from(&home.sessions);
        if let Some(session) = session {
            let kept = self.kept_before(session);
            for part in &home.sessions {
                agent_home::keep(kept.as_std_path(), part, &home.plan.dir, |_| false)
                    .map_err(|source| JobError::Session { session: session.to_owned(), source })?;
            }
        }
        Ok(home)
    }

    /// Removes the home with the attempt.
    pub(super) fn leave_home(&self) {
        // Best effort: the next boot removes leftovers.
        let _leftover = dir::remove(self.beside_scratch(HOME).as_std_path());
        for note in ["logins.json", "session.json"] {
            let _leftover = dir::remove_file(self.beside_scratch(note).as_std_path());
        }
    }

    pub(super) fn beside_scratch(&self, suffix: &str) -> Utf8PathBuf {
        format!("{}.{suffix}", self.scratch()).into()
    }
}

/// Whether a file, named relative to a session's directory, is no part of the session.
pub(super) fn is_left_out(name: &Path) -> bool {
    is_among(name, XDG_LEFT_OUT) || is_among(name, XDG_LOGINS)
}

/// Tells by a session's id and a file's name whether the file holds the session; none for an agent
/// whose sessions are not in a home of ours.
pub(super) fn session_file(agent: &Agent) -> Option<fn(&str, &str) -> bool> {
    match vendor(agent)? {
        Vendor::Claude | Vendor::Codex => Some(|session, name| name.contains(session)),
        // All sessions are in one database.
        Vendor::Xdg(_) => {
            Some(|_, name| !XDG_LOGINS.contains(&name) && !name.ends_with(crate::kept::NOTE))
        }
        Vendor::Gemini => None,
    }
}

/// Copies back the logins that agents renewed before their controller was killed. Runs before any
/// agent starts.
pub(crate) fn put_back_left(place: &StatePaths, notice: &mut dyn FnMut(&str)) {
    for told in agent_home::put_back_left(place.state.join("tmp").as_std_path()) {
        notice(&told);
    }
}

fn planned(agent: &Agent, variables: &mut Variables, dir: &Utf8Path) -> Home {
    let user = set(variables, "HOME").map(Utf8PathBuf::from);
    let in_user = |name: &str| user.as_ref().map(|user| user.join(name)).unwrap_or_default();
    // An agent with another address or key must not use the user's login.
    let way = agent.way();
    let own_login = way == GatewayWay::Own;
    match vendor(agent) {
        None => Home::default(),
        Some(Vendor::Gemini) => {
            let moved =
                set(variables, "GEMINI_CLI_HOME").map(|own| Utf8Path::new(own).join(".gemini"));
            Home { shared: vec![moved.unwrap_or_else(|| in_user(".gemini"))], ..Home::default() }
        }
        Some(Vendor::Claude) => {
            let named = set(variables, "CLAUDE_CONFIG_DIR").map(Utf8PathBuf::from);
            let state =
                named.clone().map_or(in_user(".claude.json"), |own| own.join(".claude.json"));
            let from = named.unwrap_or_else(|| in_user(".claude"));
            variables.insert("CLAUDE_CONFIG_DIR".to_owned(), dir.to_string());
            claude_home(&from, &state, dir, way)
        }
        Some(Vendor::Codex) => {
            let from = set(variables, "CODEX_HOME").map_or(in_user(".codex"), Utf8PathBuf::from);
            variables.insert("CODEX_HOME".to_owned(), dir.to_string());
            let logins = logins_of(&from, "", &["auth.json", ".credentials.json"], own_login);
            let mut links = settings(&from, CODEX);
            // The file may hold another key under the same name.
            links.retain(|(name, _)| own_login || name != Path::new(".env"));
            let plan = HomePlan { dir: dir.into(), links, logins, ..HomePlan::default() };
            home_with(plan, CODEX_SESSIONS)
        }
        Some(Vendor::Xdg(name)) => xdg_home(name, variables, &user.unwrap_or_default(), dir),
    }
}

fn claude_home(from: &Utf8Path, state: &Utf8Path, dir: &Utf8Path, way: GatewayWay) -> Home {
    let own_login = way == GatewayWay::Own;
    let mut links = settings(from, CLAUDE);
    let mut copied = vec![(PathBuf::from(".claude.json"), PathBuf::from(state))];
    if !own_login {
        // The settings may lead back to the user's own account, so they are copied without that.
        copied.extend(links.extract_if(.., |(name, _)| is_among(name, SETTINGS)));
    }
    let copy = |(name, path): (PathBuf, PathBuf)| {
        let bytes = file::read_capped(&path, COPY_BYTES_MAX).ok()?;
        match own_login {
            true => Some((name, bytes)),
            false => Some((name, gateway::without_own_way(&bytes, way)?.into_bytes())),
        }
    };
    let files = copied.into_iter().filter_map(copy).collect();
    let logins = logins_of(from, "", &[".credentials.json"], own_login);
    let plan = HomePlan { dir: dir.into(), links, files, logins, ..HomePlan::default() };
    home_with(plan, CLAUDE_SESSIONS)
}

/// The home of an agent that keeps everything in one directory, and its sessions in `sessions`.
/// Instead of a link to a folder that agents write to (skills, plugins) it has a real folder with
/// links to the entries.
fn home_with(mut plan: HomePlan, sessions: &str) -> Home {
    let is_shared = |(name, path): &mut (PathBuf, PathBuf)| is_among(name, SHARED) && path.is_dir();
    let found: Vec<(PathBuf, PathBuf)> = plan.links.extract_if(.., is_shared).collect();
    for (name, path) in found {
        plan.links.extend(agent_home::links(&path, &name, |name| !ITS_OWN.contains(&name)));
        plan.made.push(name);
    }
    Home { plan, sessions: vec![sessions.into()], shared: Vec::new() }
}

/// The XDG base directories, with links to everything of other programs and an own directory for
/// the agent in each.
fn xdg_home(name: &str, variables: &mut Variables, user: &Utf8Path, dir: &Utf8Path) -> Home {
    let mut plan = HomePlan { dir: dir.into(), ..HomePlan::default() };
    for (variable, usual, folder) in XDG {
        let base = set(variables, variable).map_or(user.join(usual), Utf8PathBuf::from);
        let (folder, own) = (Path::new(folder), Path::new(folder).join(name));
        plan.made.extend([folder.to_owned(), own.clone()]);
        plan.links.extend(links(base.as_std_path(), folder, |other| other != name));
        let from = base.join(name);
        let is_login = |file: &str| XDG_LOGINS.contains(&file);
        let is_config = *variable == "XDG_CONFIG_HOME";
        plan.links.extend(links(from.as_std_path(), &own, |file| {
            (is_config || file == "bin") && !is_login(file)
        }));
        plan.logins.extend(logins_of(&from, &own.to_string_lossy(), XDG_LOGINS, true));
        variables
            .insert((*variable).to_owned(), dir.join(folder.to_string_lossy().as_ref()).into());
    }
    Home { plan, sessions: vec![Path::new("data").join(name)], shared: Vec::new() }
}

fn settings(from: &Utf8Path, names: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let wanted = |name: &str| names.iter().chain(USUAL).any(|pattern| fits(pattern, name));
    links(from.as_std_path(), Path::new(""), wanted)
}

fn logins_of(from: &Utf8Path, under: &str, names: &[&str], own_login: bool) -> Vec<LoginFile> {
    let found = |name: &&str| login(Path::new(under).join(name), from.join(name).as_std_path());
    if own_login { names.iter().filter_map(found).collect() } else { Vec::new() }
}

fn is_among(name: &Path, names: &[&str]) -> bool {
    names.iter().any(|other| name == Path::new(other))
}

/// Matches a name with a pattern that may begin or end with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    if let Some(end) = pattern.strip_prefix('*') {
        return name.ends_with(end);
    }
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

fn set<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct UserHome {
        temp: tempfile::TempDir,
    }

    impl UserHome {
        fn new(files: &[(&str, &str)]) -> UserHome {
            let case = UserHome { temp: tempfile::tempdir().unwrap() };
            for (name, text) in files {
                let path = case.user().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            case
        }

        fn user(&self) -> Utf8PathBuf {
            Utf8PathBuf::from_path_buf(self.temp.path().canonicalize().unwrap().join("u")).unwrap()
        }

        fn dir(&self) -> Utf8PathBuf {
            self.user().with_file_name("1.home")
        }

        /// The home of an agent, and the variables it is started with.
        fn made(&self, agent: &Agent) -> (Home, Variables) {
            let mut variables = Variables::from([("HOME".to_owned(), self.user().to_string())]);
            let home = planned(agent, &mut variables, &self.dir());
            home.plan.make().unwrap();
            (home, variables)
        }

        fn read(&self, name: &str) -> Option<String> {
            fs::read_to_string(self.dir().join(name)).ok()
        }

        fn writable(&self, home: &Home) -> String {
            let words = home.writable().join_words();
            words.replace(self.user().as_str(), "~").replace(self.dir().as_str(), "home")
        }
    }

    trait Words {
        fn join_words(&self) -> String;
    }

    impl Words for Vec<Utf8PathBuf> {
        fn join_words(&self) -> String {
            self.iter().map(|path| path.as_str()).collect::<Vec<_>>().join(" ")
        }
    }

    fn claude(base_url: Option<&str>) -> Agent {
        let gateway =
            gateway::Gateway { base_url: base_url.map(str::to_owned), ..Default::default() };
        Agent::ClaudeCode { executable: "claude".into(), gateway }
    }

    fn acp(words: &[&str]) -> Agent {
        Agent::Acp { words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    const CLAUDE_FILES: &[(&str, &str)] = &[
        (".claude.json", r#"{"starts":1,"primaryApiKey":"own"}"#),
        (".claude/settings.json", r#"{"apiKeyHelper":"own","model":"m"}"#),
        (".claude/.credentials.json", "{}"),
        (".claude/CLAUDE.md", "be kind"),
        (".claude/skills/mine/SKILL.md", "mine"),
        (".claude/plugins/store/remembered", "1"),
        (".claude/plugins/installed_plugins.json", "{}"),
        (".claude/projects/other/memory/MEMORY.md", "of another"),
        (".claude/history.jsonl", "private"),
    ];

    #[test]
    fn gemini_is_lent_the_directory_it_is_sent_to() {
        let mut variables = Variables::from([("HOME".to_owned(), "/u".to_owned())]);
        let agent = acp(&["gemini", "--acp"]);
        assert_eq!(planned(&agent, &mut variables, "/h".into()).writable(), ["/u/.gemini"]);
        variables.insert("GEMINI_CLI_HOME".to_owned(), "/own".to_owned());
        assert_eq!(planned(&agent, &mut variables, "/h".into()).writable(), ["/own/.gemini"]);
    }

    #[test]
    fn claude_reads_the_users_settings_and_writes_nothing_of_them_but_the_login() {
        let case = UserHome::new(CLAUDE_FILES);
        let (home, variables) = case.made(&claude(None));
        assert_eq!(variables["CLAUDE_CONFIG_DIR"], case.dir());
        assert_eq!(case.writable(&home), "home");
        assert!(case.read(".credentials.json").is_some(), "a copy");
        assert_eq!(case.read("CLAUDE.md").unwrap(), "be kind");
        assert_eq!(case.read("skills/mine/SKILL.md").unwrap(), "mine");
        assert!(case.read(".claude.json").unwrap().contains("own"));
        assert!(case.read("settings.json").unwrap().contains("apiKeyHelper"));
        assert!(case.read("plugins/installed_plugins.json").is_some());
        for other in
            ["projects/other/memory/MEMORY.md", "history.jsonl", "plugins/store/remembered"]
        {
            assert_eq!(case.read(other), None, "{other}");
        }
        // Files the agent changes, and its plugins' data, are not the user's.
        fs::create_dir(case.dir().join("plugins/store")).unwrap();
        fs::write(case.dir().join(".claude.json"), "{}").unwrap();
        assert!(fs::read_to_string(case.user().join(".claude.json")).unwrap().contains("starts"));
        assert!(!case.dir().join("skills").is_symlink(), "it may add some of its own");
    }

    #[test]
    fn at_another_address_claude_finds_nothing_of_the_users_account() {
        let case = UserHome::new(CLAUDE_FILES);
        let (home, _) = case.made(&claude(Some("https://gate.example")));
        assert_eq!(case.writable(&home), "home");
        assert_eq!(case.read(".credentials.json"), None);
        assert_eq!(case.read("settings.json").unwrap(), r#"{"model":"m"}"#);
        assert_eq!(case.read(".claude.json").unwrap(), r#"{"starts":1}"#);
        assert_eq!(case.read("CLAUDE.md").unwrap(), "be kind");
    }

    #[test]
    fn another_place_of_the_users_settings_is_found() {
        let case = UserHome::new(&[("c/settings.json", "{}"), ("c/.claude.json", "{\"c\":1}")]);
        let mut variables = Variables::from([
            ("HOME".to_owned(), case.user().to_string()),
            ("CLAUDE_CONFIG_DIR".to_owned(), case.user().join("c").to_string()),
        ]);
        let home = planned(&claude(None), &mut variables, &case.dir());
        home.plan.make().unwrap();
        assert_eq!(case.read(".claude.json").unwrap(), "{\"c\":1}");
        assert_eq!(case.read("settings.json").unwrap(), "{}");
    }

    #[test]
    fn codex_and_those_of_the_base_directories_have_homes_too() {
        let case = UserHome::new(&[
            (".codex/config.toml", "model = 'm'"),
            (".codex/auth.json", "{}"),
            (".codex/sessions/2026/rollout-1.jsonl", "other"),
            (".codex/skills/mine/SKILL.md", "mine"),
            (".config/opencode/opencode.json", "{}"),
            (".config/git/config", "[user]"),
            (".local/share/opencode/auth.json", "{}"),
            (".local/share/opencode/opencode.db", "sessions"),
        ]);
        let codex = Agent::Codex { executable: "codex".into(), gateway: Default::default() };
        let (home, variables) = case.made(&codex);
        assert_eq!(variables["CODEX_HOME"], case.dir());
        assert_eq!(case.writable(&home), "home");
        assert!(case.read("auth.json").is_some());
        assert!(case.read("config.toml").is_some() && case.read("skills/mine/SKILL.md").is_some());
        assert!(case.read("sessions/2026/rollout-1.jsonl").is_none());
        fs::remove_dir_all(case.dir()).unwrap();
        let (home, variables) = case.made(&acp(&["opencode", "acp"]));
        assert_eq!(variables["XDG_CONFIG_HOME"], case.dir().join("config"));
        assert_eq!(case.writable(&home), "home");
        assert!(case.read("data/opencode/auth.json").is_some());
        assert!(case.read("config/opencode/opencode.json").is_some());
        assert!(case.read("config/git/config").is_some(), "what others read there");
        assert!(case.read("data/opencode/opencode.db").is_none());
    }

    #[test]
    fn others_have_nothing_to_write_but_their_worktree() {
        let case = UserHome::new(&[]);
        let mut none = Variables::new();
        let mut writes = |agent: &Agent| planned(agent, &mut none, &case.dir()).writable().len();
        assert_eq!(writes(&acp(&["./mine"])), 0);
        assert_eq!(writes(&Agent::Command { words: vec!["claude".into()] }), 0);
        assert_eq!(writes(&Agent::Script { file: "claude.yml".into() }), 0);
        // Lent by its user.
        assert_eq!(writes(&acp(&["gemini", "--acp"])), 1);
        // The agent started by another program.
        let (_, variables) = case.made(&acp(&["npx", "@zed/claude-code-acp"]));
        assert!(variables.contains_key("CLAUDE_CONFIG_DIR"));
    }
}
