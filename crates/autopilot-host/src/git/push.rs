//! Pushing a branch with the user's own credentials, with recovery per kind of failure, and a patch
//! and a bundle when it can't be done.

mod classify;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::artifact::{Artifacts, write_artifacts};
use super::command::{CommandError, GitCommand, Output, find_program};
use super::error::{GitError, OnFile};
use super::hub::{ExpectedRef, Hub};
use super::object::Oid;
use super::replay::{RebaseOutcome, replay};
use super::repo::UserRepo;
use super::transfer::ObjectSource;

pub use classify::{PushClass, classify};

/// How often the branch is replayed onto the remote's.
const REBASES_MAX: usize = 3;
const GH_TIMEOUT: Duration = Duration::from_secs(15);
const WAIT_SLICE: Duration = Duration::from_millis(50);
/// How much of gh's report is kept.
const REPORT_BYTES_MAX: usize = 4096;

/// The branch to push, and how patient to be.
#[derive(Clone, Debug)]
pub struct PushRequest<'a> {
    /// The name of the remote in the user's repository.
    pub remote: &'a str,
    /// The short branch name, in the hub and at the remote.
    pub branch: &'a str,
    /// The commit before the branch's own commits; patch and bundle start from it.
    pub base: &'a Oid,
    /// The name of the task, part of the artifacts' names.
    pub task: &'a str,
    /// A time, part of the artifacts' names.
    pub timestamp: &'a str,
    /// The directory for the patch and the bundle.
    pub artifacts_dir: &'a Path,
    /// The waits before the second, third … try after a network failure.
    pub network_delays: &'a [Duration],
    /// The deadline of each git command.
    pub timeout: Duration,
    /// Whether the branch may be rebased.
    pub rebase: Rebase,
    /// Whether the project's pre-push hook runs.
    pub hooks: Hooks,
    /// The time of replayed commits, in seconds since 1970.
    pub now: i64,
}

/// Whether a branch may be rebased onto the remote's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebase {
    /// A branch that the remote has other commits on is not pushed.
    Never,
    /// The branch is rebased, and pushed if the caller accepts the new tip.
    IfAccepted,
}

/// Whether the project's own pre-push hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hooks {
    /// No hook runs.
    Off,
    /// The user's hook runs and may refuse the push.
    On,
}

/// A branch that is at the remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The commit at the remote.
    pub commit: Oid,
    /// Whether the remote had this commit before we sent anything (an earlier push whose answer was
    /// lost).
    pub already: bool,
    /// Whether the branch was replayed onto the remote's tip first.
    pub rebased: bool,
}

/// The reason why the push was given up, and what the user has instead.
#[derive(Clone, Debug)]
pub struct PushFailure {
    /// The kind of failure.
    pub class: PushClass,
    /// The messages of git and the server.
    pub stderr: String,
    /// How often the push was tried.
    pub tries: usize,
    /// The output of `gh auth status`, after an authentication failure, where gh is installed.
    pub gh_auth: Option<String>,
    /// The branch as files.
    pub artifacts: Artifacts,
    /// What a person can do about it.
    pub next_step: String,
}

/// The result of a push.
#[derive(Clone, Debug)]
pub enum PushOutcome {
    /// The branch is at the remote.
    Pushed(Pushed),
    /// The push was given up.
    Failed(PushFailure),
    /// The caller did not want the push any more; it may or may not have reached the remote.
    Unwanted,
}

/// Pushes the hub's branch. `accept` is asked about every replayed tip before it is pushed: a tree
/// that was never validated must not be called done. `unwanted` is called many times a second and
/// ends the push when it returns true.
pub fn push(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    accept: &mut dyn FnMut(&Oid) -> bool,
    unwanted: &dyn Fn() -> bool,
) -> Result<PushOutcome, GitError> {
    let result = push_until(hub, repo, request, accept, unwanted);
    match result {
        Err(GitError::Command(CommandError::Unwanted { .. })) => Ok(PushOutcome::Unwanted),
        other => other,
    }
}

fn push_until(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    accept: &mut dyn FnMut(&Oid) -> bool,
    unwanted: &dyn Fn() -> bool,
) -> Result<PushOutcome, GitError> {
    let name = format!("refs/heads/{}", request.branch);
    let mut commit = hub.resolve(&name)?.ok_or_else(|| GitError::NotFound {
        what: "branch in the hub",
        name: request.branch.into(),
    })?;
    let mut delays = request.network_delays.iter();
    let (mut tries, mut rebases) = (0, 0);
    loop {
        tries += 1;
        let (class, stderr) = match try_once(hub, repo, request, &commit, unwanted)? {
            PushTry::Done { already } => {
                let pushed =
                    Pushed { commit, already: already && tries == 1, rebased: rebases > 0 };
                return Ok(PushOutcome::Pushed(pushed));
            }
            PushTry::Failed { class, stderr } => (class, stderr),
        };
        let again = match class {
            PushClass::Network => match delays.next() {
                Some(delay) => {
                    if !wait(*delay, unwanted) {
                        return Ok(PushOutcome::Unwanted);
                    }
                    true
                }
                None => false,
            },
            PushClass::NonFastForward
                if request.rebase == Rebase::IfAccepted && rebases < REBASES_MAX =>
            {
                rebases += 1;
                match rebase(hub, repo, request, &name, &commit, accept, unwanted)? {
                    Some(tip) => {
                        commit = tip;
                        true
                    }
                    None => false,
                }
            }
            PushClass::NonFastForward
            | PushClass::Auth
            | PushClass::Policy
            | PushClass::Size
            | PushClass::Unknown => false,
        };
        if !again {
            let failure =
                give_up(hub, repo, request, &commit, PushFailed { class, stderr, tries })?;
            return Ok(PushOutcome::Failed(failure));
        }
    }
}

/// Waits; returns false when the wait was cut short.
fn wait(delay: Duration, unwanted: &dyn Fn() -> bool) -> bool {
    let end = Instant::now() + delay;
    while !unwanted() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(WAIT_SLICE));
    }
    false
}

enum PushTry {
    Done { already: bool },
    Failed { class: PushClass, stderr: String },
}

fn try_once(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    commit: &Oid,
    unwanted: &dyn Fn() -> bool,
) -> Result<PushTry, GitError> {
    match remote_tip(repo, request, unwanted)? {
        Ok(Some(tip)) if tip == *commit => return Ok(PushTry::Done { already: true }),
        Ok(_) => {}
        Err((class, stderr)) => return Ok(PushTry::Failed { class, stderr }),
    }
    let objects = hub.dir().join("objects");
    let mut git =
        as_user(repo, request, "push").also_objects(&[&objects]).args(["push", "--porcelain"]);
    git = match request.hooks {
        Hooks::Off => git.arg("--no-verify"),
        Hooks::On => git.config("core.hooksPath", hooks_path(repo)?),
    };
    let out = git
        .args(["--no-follow-tags", "--recurse-submodules=no", "--end-of-options", request.remote])
        .arg(format!("{commit}:refs/heads/{}", request.branch))
        .run_unless(unwanted);
    match out {
        Ok(out) if out.code() == Some(0) => Ok(PushTry::Done { already: false }),
        Ok(out) => Ok(failed(&out)),
        Err(error) => timed_out(error),
    }
}

fn failed(out: &Output) -> PushTry {
    // With --porcelain the line that says why a ref was rejected is on stdout.
    let text = format!("{}\n{}", out.stderr, String::from_utf8_lossy(&out.stdout));
    PushTry::Failed { class: classify(&text), stderr: text.trim().to_owned() }
}

fn timed_out(error: CommandError) -> Result<PushTry, GitError> {
    match error {
        CommandError::TimedOut { .. } => {
            Ok(PushTry::Failed { class: PushClass::Network, stderr: error.to_string() })
        }
        CommandError::NoGit
        | CommandError::Spawn { .. }
        | CommandError::Failed { .. }
        | CommandError::Unwanted { .. }
        | CommandError::TooLong { .. } => Err(error.into()),
    }
}

type Answer<T> = Result<T, (PushClass, String)>;

/// Returns the commit of the remote's branch. It is asked for first: a push whose answer was lost
/// is not sent twice.
fn remote_tip(
    repo: &UserRepo,
    request: &PushRequest<'_>,
    unwanted: &dyn Fn() -> bool,
) -> Result<Answer<Option<Oid>>, GitError> {
    let name = format!("refs/heads/{}", request.branch);
    let out = as_user(repo, request, "ask the remote")
        .args(["ls-remote", "--end-of-options", request.remote, &name])
        .run_unless(unwanted);
    let out = match out {
        Ok(out) => out,
        Err(error) => {
            return match timed_out(error)? {
                PushTry::Failed { class, stderr } => Ok(Err((class, stderr))),
                PushTry::Done { .. } => Ok(Ok(None)),
            };
        }
    };
    if out.code() != Some(0) {
        return Ok(Err((classify(&out.stderr), out.stderr)));
    }
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = text.lines().filter_map(|l| l.split_once('\t')).find(|(_, found)| *found == name);
    Ok(Ok(line.map(|(oid, _)| Oid::parse(oid)).transpose()?))
}

/// Replays our commits onto the remote's tip; `None` when that can't be done or is not accepted.
fn rebase(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    name: &str,
    commit: &Oid,
    accept: &mut dyn FnMut(&Oid) -> bool,
    unwanted: &dyn Fn() -> bool,
) -> Result<Option<Oid>, GitError> {
    let Ok(Some(tip)) = remote_tip(repo, request, unwanted)? else { return Ok(None) };
    if !fetch_into_hub(hub, repo, request, &tip, unwanted)? {
        return Ok(None);
    }
    let replayed = match replay(hub, request.base, commit, &tip, request.now)? {
        RebaseOutcome::Onto(oid) => oid,
        RebaseOutcome::Conflict { .. } => return Ok(None),
    };
    if !accept(&replayed) {
        return Ok(None);
    }
    let kept = format!("refs/autopilot/salvage/push/{}", commit);
    if hub.resolve(&kept)?.is_none() {
        hub.set_ref(&kept, commit, ExpectedRef::Absent)?;
    }
    hub.set_ref(name, &replayed, ExpectedRef::At(commit))?;
    Ok(Some(replayed))
}

/// Fetches into a quarantine beside the user's objects, so that none of their refs or files change,
/// and takes the result into the hub.
fn fetch_into_hub(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    tip: &Oid,
    unwanted: &dyn Fn() -> bool,
) -> Result<bool, GitError> {
    let quarantine = tempfile::tempdir_in(hub.state()).on("create a directory in", hub.state())?;
    let out = as_user(repo, request, "fetch what the remote has")
        .also_objects(&[&repo.objects_dir()])
        .env("GIT_OBJECT_DIRECTORY", quarantine.path())
        .args(["fetch", "--no-write-fetch-head", "--no-tags", "--refmap=", "--no-auto-maintenance"])
        .args(["--no-recurse-submodules", "--end-of-options", request.remote])
        .arg(format!("refs/heads/{}", request.branch))
        .run_unless(unwanted)?;
    if out.code() != Some(0) {
        return Ok(false);
    }
    let source = ObjectSource { git_dir: &repo.common_dir, objects: vec![quarantine.path()] };
    let kept = hub.import(&source, tip)?;
    let mark = format!("refs/autopilot/remote/{}", request.branch);
    let old = hub.resolve(&mark)?;
    if old.as_ref() != Some(tip) {
        hub.set_ref(&mark, tip, old.as_ref().map_or(ExpectedRef::Absent, ExpectedRef::At))?;
    }
    drop(kept);
    Ok(true)
}

struct PushFailed {
    class: PushClass,
    stderr: String,
    tries: usize,
}

fn give_up(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    commit: &Oid,
    failed: PushFailed,
) -> Result<PushFailure, GitError> {
    let artifacts = write_artifacts(
        hub,
        request.artifacts_dir,
        &format!("{}_{}", super::name::ref_component(request.task), request.timestamp),
        request.base,
        commit,
        request.branch,
    )?;
    let gh_auth = match failed.class {
        PushClass::Auth => gh_auth_status(&repo.root),
        PushClass::NonFastForward
        | PushClass::Policy
        | PushClass::Size
        | PushClass::Network
        | PushClass::Unknown => None,
    };
    let next_step = next_step(failed.class, request);
    Ok(PushFailure {
        class: failed.class,
        stderr: failed.stderr,
        tries: failed.tries,
        gh_auth,
        artifacts,
        next_step,
    })
}

fn next_step(class: PushClass, request: &PushRequest<'_>) -> String {
    let (remote, branch) = (request.remote, request.branch);
    match class {
        PushClass::Auth => format!(
            "log in (`gh auth login`, or add your ssh key), check that you may write to `{remote}`, then: git push {remote} {branch}"
        ),
        PushClass::NonFastForward => format!(
            "`{remote}` has other commits on `{branch}`, and the combination was never validated; merge by hand (git switch {branch} && git pull --no-rebase {remote} {branch}), run the tests, then: git push {remote} {branch}"
        ),
        PushClass::Policy => format!(
            "the rules of `{remote}` refuse this push; push to another branch or change the rule named in the message above"
        ),
        PushClass::Size => format!(
            "`{remote}` refuses a file or pack of this size; remove it from the branch or use LFS"
        ),
        PushClass::Network => format!("when the network is back: git push {remote} {branch}"),
        PushClass::Unknown => format!("read the message above, then: git push {remote} {branch}"),
    }
}

/// Makes a git command in the user's repository with their configuration; ssh must not ask
/// questions.
fn as_user(repo: &UserRepo, request: &PushRequest<'_>, operation: &str) -> GitCommand {
    let git = GitCommand::as_user(format!("{operation} `{}`", request.remote), &repo.root)
        .env("SSH_ASKPASS_REQUIRE", "never")
        .env("GCM_INTERACTIVE", "never")
        .timeout(request.timeout);
    let own_ssh = ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|v| std::env::var_os(v).is_some());
    let configured = GitCommand::as_user("read the ssh command", &repo.root)
        .args(["config", "--get", "core.sshCommand"])
        .run()
        .is_ok_and(|out| out.code() == Some(0));
    if own_ssh || configured { git } else { git.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes") }
}

/// Returns the directory of the project's hooks.
fn hooks_path(repo: &UserRepo) -> Result<PathBuf, GitError> {
    use std::os::unix::ffi::OsStringExt;
    // The path is read with isolated settings, because ours switch the hooks off.
    let out = GitCommand::isolated("find the hooks", &repo.common_dir)
        .args(["config", "--file"])
        .arg(repo.common_dir.join("config"))
        .args(["--type=path", "--get", "core.hooksPath"])
        .run()?;
    let found = out.stdout.strip_suffix(b"\n").unwrap_or(&out.stdout).to_vec();
    if found.is_empty() {
        return Ok(repo.common_dir.join("hooks"));
    }
    Ok(repo.root.join(PathBuf::from(std::ffi::OsString::from_vec(found))))
}

fn gh_auth_status(dir: &Path) -> Option<String> {
    let gh = find_program("gh")?;
    let out = GitCommand::program_as_user("ask gh who is logged in", &gh, dir)
        .args(["auth", "status"])
        .timeout(GH_TIMEOUT)
        .run()
        .ok()?;
    let mut text = format!("{}\n{}", String::from_utf8_lossy(&out.stdout).trim(), out.stderr);
    while text.len() > REPORT_BYTES_MAX {
        text.pop();
    }
    Some(text.trim().to_owned())
}
