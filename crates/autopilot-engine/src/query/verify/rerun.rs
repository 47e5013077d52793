//! Proves a commit again on this machine: the commands of its note run in a fresh checkout, in the
//! sandbox and the environment of a gate, and their exit codes are compared.

use crate::environment::{self, GateRoom, Variables};
use crate::job::{caches_below, jail_network, sandbox_mode};
use crate::place::StatePaths;
use autopilot_core::config::{Config, SandboxMode, SandboxNetwork};
use autopilot_core::evidence::SETUP;
use autopilot_host::dir;
use autopilot_host::exec::{self, ChildWord, Launch, SpawnError, Supervisor};
use autopilot_host::git::{GitError, Oid, fresh_checkout};
use autopilot_host::jail::{self, JailPlan};
use autopilot_host::redact::is_secret_name;
use autopilot_host::sandbox::{self, HostSandboxMode, SandboxError, SandboxPlan};
use autopilot_view::evidence::EvidenceStatement;
use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most time that one command may take.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(3600);
/// The end of a failed command's output that is told.
const TAIL_LINES_MAX: usize = 20;

/// Why commands could not be run again.
#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    #[error("no gate in the note ran on exactly this commit's tree")]
    NoCommands,
    #[error(
        "the commands of a note are run in a sandbox alone, and this machine offers none; \
         `sandbox: {{ mode: off }}` runs them without one"
    )]
    NoSandbox,
    #[error("cannot create `{path}`")]
    Directory { path: Utf8PathBuf, source: std::io::Error },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Spawn(#[from] SpawnError),
}

/// A place and the settings for a proof outside of a run.
pub struct RerunGround<'a> {
    pub place: &'a StatePaths,
    pub git_dir: &'a Path,
    /// An empty directory for everything that is written.
    pub root: &'a Utf8Path,
    /// The configuration of the checkout, if it has one.
    pub config: Option<&'a Config>,
    pub variables: &'a Variables,
    pub own: &'a Utf8Path,
}

/// A command that was run again.
#[derive(Clone, Debug, Serialize)]
pub struct RerunCommand {
    pub name: String,
    pub command: String,
    /// The exit code that the note tells; none for a command that the note does not have.
    pub told: Option<i32>,
    /// The exit code here; none if the command did not end by itself in time.
    pub exit_code: Option<i32>,
    /// The end of the output of a command that ended otherwise than the note tells.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<String>,
}

impl RerunCommand {
    /// Whether the command ended as the note tells.
    pub fn holds(&self) -> bool {
        self.exit_code.is_some() && self.exit_code == self.told
    }
}

/// Runs the commands of a statement again, after the configured setup.
pub async fn rerun(
    told: &EvidenceStatement,
    ground: &RerunGround<'_>,
) -> Result<Vec<RerunCommand>, RerunError> {
    let commands = commands(told);
    let (Some(digest), false) = (told.digest(), commands.is_empty()) else {
        return Err(RerunError::NoCommands);
    };
    let commit = Oid::parse(&digest.git_commit)?;
    let setup = ground.config.and_then(|config| config.worktrees.setup.clone());
    let setup = setup.map(|line| (SETUP.to_owned(), line, Some(0)));
    let mut again = Vec::new();
    for (place, (name, command, told)) in setup.into_iter().chain(commands).enumerate() {
        // Each command finds what the setup made, and nothing of the command before.
        let root = ground.root.join(if name == SETUP { "0".to_owned() } else { place.to_string() });
        let room = GateRoom::below(&root);
        let tree = ground.root.join("tree");
        if place == 0 {
            create(&tree)?;
            fresh_checkout(ground.git_dir, &commit, tree.as_std_path())?;
        }
        let (exit_code, tail) = run(ground, &room, &tree, &command).await?;
        let done = RerunCommand { name, command, told, exit_code, tail };
        let is_setup_broken = done.name == SETUP && !done.holds();
        again
            .push(RerunCommand { tail: if done.holds() { Vec::new() } else { done.tail }, ..done });
        if is_setup_broken {
            break;
        }
    }
    Ok(again)
}

/// The digest of the held-out tests that judged the commit. They are not in the repository, so nobody runs
/// them again by its note.
pub fn held_out(told: &EvidenceStatement) -> Option<&str> {
    let commands = told.gates().flat_map(|gate| &gate.commands);
    commands.filter_map(|command| command.held_out_sha256.as_deref()).next()
}

/// The commands that ran on exactly the commit's tree, each once.
fn commands(told: &EvidenceStatement) -> Vec<(String, String, Option<i32>)> {
    let tree = told.digest().map(|digest| digest.git_tree.as_str());
    let on_it = told.gates().filter(|gate| gate.tree.as_deref() == tree);
    let mut commands: Vec<(String, String, Option<i32>)> = Vec::new();
    let repeated = on_it.flat_map(|gate| &gate.commands).filter(|it| it.held_out_sha256.is_none());
    for command in repeated {
        if !commands.iter().any(|(_, line, _)| *line == command.command) {
            commands.push((command.name.clone(), command.command.clone(), command.exit_code));
        }
    }
    commands
}

async fn run(
    ground: &RerunGround<'_>,
    room: &GateRoom,
    tree: &Utf8Path,
    command: &str,
) -> Result<(Option<i32>, Vec<String>), RerunError> {
    let is_secret = |name: &str| {
        let keys =
            ground.config.map(|config| environment::key_variables(config).any(|key| key == name));
        is_secret_name(name) || keys.unwrap_or_default()
    };
    let mut env = environment::of_gate(ground.variables, is_secret, room, |path| path.exists());
    let mut write = vec![tree.to_owned(), room.home.clone(), room.tmp.clone()];
    for (name, cache) in caches_below(&room.caches) {
        env.insert(name.to_owned(), cache.to_string());
        write.push(cache);
    }
    write.iter().try_for_each(|path| create(path))?;
    for (name, value) in jail::variables() {
        env.entry((*name).to_owned()).or_insert((*value).to_owned());
    }
    let settings = ground.config.map(|config| &config.sandbox);
    let mut hide = ground.place.all_states();
    hide.extend(environment::kept_from_gates(ground.variables));
    let jail = JailPlan {
        write: write.into_iter().map(PathBuf::from).collect(),
        hide: hide
            .into_iter()
            .filter(|path| !path.as_str().is_empty())
            .map(PathBuf::from)
            .collect(),
        show: vec![ground.own.into(), ground.git_dir.join("objects")],
        network: jail_network(settings.map_or(SandboxNetwork::Open, |settings| settings.network)),
        tmp: Some(room.tmp.clone().into()),
        ..JailPlan::default()
    };
    let supervisor = Supervisor { program: ground.own.into(), args: vec![exec::ARGUMENT.into()] };
    let path = env.get("PATH").map(String::as_str).unwrap_or_default();
    let mode = sandbox_mode(settings.map_or(SandboxMode::Auto, |settings| settings.mode));
    let choice = sandbox::probe(path.as_ref(), &supervisor).choose(mode, jail)?;
    // Whoever may write notes would run commands as this user.
    if choice.plan == SandboxPlan::Off && mode != HostSandboxMode::Off {
        return Err(RerunError::NoSandbox);
    }
    let launch = Launch {
        args: vec!["-c".into(), command.into()],
        env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
        sandbox: choice.plan,
        supervisor,
        ..Launch::new("/bin/sh", tree.as_std_path())
    };
    let (control, mut child) = exec::spawn(launch).await?;
    let end = async {
        loop {
            if let ChildWord::Ended(exit) = child.next().await {
                break exit;
            }
        }
    };
    let mut end = std::pin::pin!(end);
    let (exit, is_late) = match tokio::time::timeout(COMMAND_TIME_MAX, &mut end).await {
        Ok(exit) => (exit, false),
        Err(_elapsed) => {
            control.kill();
            (end.await, true)
        }
    };
    let code = exit.code.filter(|_| !is_late && !exit.supervisor_lost);
    let both = format!("{}\n{}", exit.output.stdout.text, exit.output.stderr.text);
    let lines: Vec<&str> = both.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(TAIL_LINES_MAX);
    Ok((code, lines[from..].iter().map(|line| (*line).to_owned()).collect()))
}

fn create(path: &Utf8Path) -> Result<(), RerunError> {
    let failed = |source| RerunError::Directory { path: path.to_owned(), source };
    dir::create_private(path.as_std_path()).map_err(failed)
}
