//! The environment of a gate's commands: a home and a temporary directory of their own, and the
//! tools that the user has installed below the real home.

use super::user_tool::use_own_base;
use super::{Variables, of_command};
use camino::{Utf8Path, Utf8PathBuf};

/// Tools that are installed below the home: the variable by which each finds its installation, and
/// the directory if the variable is not set. Without it a tool would look in the gate's own home.
const TOOLS: &[(&str, &str)] = &[
    ("ASDF_DATA_DIR", ".asdf"),
    ("BUN_INSTALL", ".bun"),
    ("CYPRESS_CACHE_FOLDER", ".cache/Cypress"),
    ("DENO_INSTALL", ".deno"),
    ("DOTNET_ROOT", ".dotnet"),
    ("FNM_DIR", ".local/share/fnm"),
    ("GHCUP_INSTALL_BASE_PREFIX", ".ghcup"),
    ("JABBA_HOME", ".jabba"),
    ("MISE_DATA_DIR", ".local/share/mise"),
    ("NODENV_ROOT", ".nodenv"),
    ("NVM_DIR", ".nvm"),
    ("PLAYWRIGHT_BROWSERS_PATH", ".cache/ms-playwright"),
    ("PNPM_HOME", ".local/share/pnpm"),
    ("PUPPETEER_CACHE_DIR", ".cache/puppeteer"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("RUSTUP_HOME", ".rustup"),
    ("SDKMAN_DIR", ".sdkman"),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    ("VOLTA_HOME", ".volta"),
];

/// Variables that lead to the user's settings, sessions and sockets, whatever HOME is.
const LEFT_OUT: &[&str] = &[
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OLDPWD",
    "PWD",
];

/// Variables that differ from one terminal to the next and say nothing about a command.
const OF_SESSION: &[&str] = &[
    "COLUMNS",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LINES",
    "SHLVL",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TERM_SESSION_ID",
    "TMUX",
    "TMUX_PANE",
    "WINDOWID",
    "XDG_SESSION_ID",
    "_",
];

/// Whether a variable belongs to the terminal in which Autopilot was started.
pub fn is_of_session(name: &str) -> bool {
    OF_SESSION.contains(&name)
}

/// Files and directories of the user's home that no test needs unless it is given them: the homes
/// of agents, with their logins and conversations, and the keys to other machines.
const KEPT_FROM_GATES: &[&str] = &[
    ".aws",
    ".azure",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/crush",
    ".config/gcloud",
    ".config/gh",
    ".config/goose",
    ".config/opencode",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/crush",
    ".local/share/goose",
    ".local/share/opencode",
    ".netrc",
    ".ssh",
];

/// The directories that a gate has to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateRoom {
    pub home: Utf8PathBuf,
    pub tmp: Utf8PathBuf,
    pub caches: Utf8PathBuf,
}

impl GateRoom {
    /// The room in a directory.
    pub fn below(dir: &Utf8Path) -> GateRoom {
        GateRoom { home: dir.join("home"), tmp: dir.join("tmp"), caches: dir.join("cache") }
    }
}

/// The variables of a gate's commands: everything but secrets, in the gate's own home. They tell
/// nothing of the run: a test that can tell a gate could pass there alone.
pub fn of_gate(
    ours: &Variables,
    is_secret: impl Fn(&str) -> bool,
    room: &GateRoom,
    exists: impl Fn(&Utf8Path) -> bool,
) -> Variables {
    let mut variables = of_command(ours, is_secret);
    variables.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    if let Some(user) = user_home(ours) {
        for (name, dir) in TOOLS {
            let dir = user.join(dir);
            if !variables.contains_key(*name) && exists(&dir) {
                variables.insert((*name).to_owned(), dir.into_string());
            }
        }
    }
    use_own_base(ours, room, &mut variables);
    variables.insert("HOME".to_owned(), room.home.to_string());
    variables.insert("TMPDIR".to_owned(), room.tmp.to_string());
    variables
}

/// The paths of the user's home that gates can't see where the kernel can hide them.
pub fn kept_from_gates(ours: &Variables) -> Vec<Utf8PathBuf> {
    let below = |user: Utf8PathBuf| KEPT_FROM_GATES.iter().map(move |name| user.join(name));
    user_home(ours).into_iter().flat_map(below).collect()
}

/// The user's real home.
pub fn user_home(ours: &Variables) -> Option<Utf8PathBuf> {
    ours.get("HOME").map(Utf8PathBuf::from).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(ours: &[(&str, &str)], there: &[&str]) -> Variables {
        let ours = ours.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let room = GateRoom::below("/room".into());
        of_gate(&ours.collect(), |name| name == "KEY", &room, |path| there.contains(&path.as_str()))
    }

    #[test]
    fn a_gate_has_its_own_home_and_finds_the_tools_below_the_users() {
        let ours = [("HOME", "/home/u"), ("KEY", "secret"), ("PATH", "/home/u/.cargo/bin:/bin")];
        let variables = given(&ours, &["/home/u/.rustup", "/home/u/.nvm"]);
        let expected = [
            ("HOME", "/room/home"),
            ("NVM_DIR", "/home/u/.nvm"),
            ("PATH", "/home/u/.cargo/bin:/bin"),
            ("RUSTUP_HOME", "/home/u/.rustup"),
            ("TMPDIR", "/room/tmp"),
        ];
        let found: Vec<_> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_tool_that_the_user_put_elsewhere_stays_there() {
        let ours = [("HOME", "/home/u"), ("PYENV_ROOT", "/opt/pyenv")];
        assert_eq!(given(&ours, &["/home/u/.pyenv"])["PYENV_ROOT"], "/opt/pyenv");
    }

    #[test]
    fn nothing_leads_back_to_the_users_settings_and_nothing_tells_of_the_run() {
        let ours = [
            ("HOME", "/home/u"),
            ("XDG_CONFIG_HOME", "/home/u/.config"),
            ("XDG_RUNTIME_DIR", "/run/user/1000"),
            ("CODEX_HOME", "/home/u/.codex"),
            ("AUTOPILOT_RUN_ID", "1"),
        ];
        let variables = given(&ours, &[]);
        assert_eq!(variables.keys().collect::<Vec<_>>(), ["HOME", "TMPDIR"]);
    }
}
