//! Pushing a branch with the user's own credentials, with recovery per kind of failure, and a patch
//! and a bundle when it can't be done.

mod classify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::artifact::{Artifacts, write_artifacts};
use super::border::Border;
use super::command::{CommandError, GitCommand, Output, find_program};
use super::error::{GitError, OnFile};
use super::hub::{ExpectedRef, Hub};
use super::object::Oid;
use super::rebase::{RebaseOutcome, rebase};
use super::repo::UserRepo;
use super::transfer::ObjectSource;
use crate::pause::pause;

pub use classify::{PushClass, classify};

/// How often the branch is rebased onto the remote's.
const REBASES_MAX: usize = 3;
const GH_TIMEOUT: Duration = Duration::from_secs(15);
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
    /// The time of rebased commits, in seconds since 1970.
    pub now: i64,
    /// The check that the branch passes before it is sent.
    pub border: &'a Border,
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
    /// Whether the branch was rebased onto the remote's tip first.
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

/// Pushes the hub's branch. `accept` is asked about every rebased tip before it is pushed: a tree
/// that was never validated must not be called done. `unwanted` is called many times a second and
/// ends the push when it returns true.
pub fn push(
    hub: &Hub,
    repo: &UserRepo,
    request: &PushRequest<'_>,
    accept: &mut dyn FnMut(&Oid) -> bool,
    unwanted: &dyn Fn() -> bool,
) -> Result<PushOutcome, GitError> {
    let name = format!("refs/heads/{}", request.branch);
    match (BranchPush { hub, repo, request, name, unwanted }).to_the_end(accept) {
        Err(GitError::Command(CommandError::Unwanted { .. })) => Ok(PushOutcome::Unwanted),
        other => other,
    }
}

/// The push of one branch.
struct BranchPush<'a> {
    hub: &'a Hub,
    repo: &'a UserRepo,
    request: &'a PushRequest<'a>,
    /// The full name of the branch, in the hub and at the remote.
    name: String,
    unwanted: &'a dyn Fn() -> bool,
}

/// A failure that the remote, or the way to it, has reported.
struct PushTrouble {
    class: PushClass,
    stderr: String,
}

/// An answer of the remote; failures of our own are errors around it.
type Answer<T> = Result<T, PushTrouble>;

/// Whether the remote had the commit before it was sent.
enum Sent {
    Now,
    Before,
}

impl BranchPush<'_> {
    fn to_the_end(&self, accept: &mut dyn FnMut(&Oid) -> bool) -> Result<PushOutcome, GitError> {
        let mut commit = self.hub.resolve(&self.name)?.ok_or_else(|| GitError::NotFound {
            what: "branch in the hub",
            name: self.request.branch.into(),
        })?;
        let may_rebase = self.request.rebase == Rebase::IfAccepted;
        let mut delays = self.request.network_delays.iter();
        let (mut tries, mut rebases) = (0, 0);
        loop {
            tries += 1;
            self.let_out(&commit)?;
            let trouble = match self.try_once(&commit)? {
                Ok(sent) => {
                    let already = matches!(sent, Sent::Before) && tries == 1;
                    let pushed = Pushed { commit, already, rebased: rebases > 0 };
                    return Ok(PushOutcome::Pushed(pushed));
                }
                Err(trouble) => trouble,
            };
            let again = match trouble.class {
                PushClass::Network => match delays.next() {
                    Some(delay) if !pause(*delay, self.unwanted) => {
                        return Ok(PushOutcome::Unwanted);
                    }
                    delay => delay.is_some(),
                },
                PushClass::NonFastForward if may_rebase && rebases < REBASES_MAX => {
                    rebases += 1;
                    let tip = self.rebase(&commit, accept)?;
                    let rebased = tip.is_some();
                    commit = tip.unwrap_or(commit);
                    rebased
                }
                PushClass::NonFastForward
                | PushClass::Auth
                | PushClass::Policy
                | PushClass::Size
                | PushClass::Unknown => false,
            };
            if !again {
                return self.give_up(&commit, trouble, tries).map(PushOutcome::Failed);
            }
        }
    }

    /// Checks everything that the remote does not have.
    fn let_out(&self, commit: &Oid) -> Result<(), GitError> {
        let request = self.request;
        let theirs = self.hub.resolve(&format!("refs/autopilot/remote/{}", request.branch))?;
        let known: Vec<Oid> = [request.base.clone()].into_iter().chain(theirs).collect();
        request.border.pass(self.hub, commit, &known, request.branch)
    }

    fn try_once(&self, commit: &Oid) -> Result<Answer<Sent>, GitError> {
        match self.remote_tip()? {
            Ok(Some(tip)) if tip == *commit => return Ok(Ok(Sent::Before)),
            Ok(_) => {}
            Err(trouble) => return Ok(Err(trouble)),
        }
        let objects = self.hub.dir().join("objects");
        let git = self.as_user("push").also_objects(&[&objects]).args(["push", "--porcelain"]);
        let git = match self.request.hooks {
            Hooks::Off => git.arg("--no-verify"),
            Hooks::On => git.config("core.hooksPath", hooks_path(self.repo)?),
        };
        let git = git
            .args(["--no-follow-tags", "--recurse-submodules=no", "--end-of-options"])
            .args([self.request.remote, &format!("{commit}:{}", self.name)]);
        Ok(self.ask(git)?.map(|_| Sent::Now))
    }

    /// Runs a command that talks to the remote; a deadline that passes is a failure of the network.
    fn ask(&self, git: GitCommand) -> Result<Answer<Output>, GitError> {
        match git.run_unless(self.unwanted) {
            Ok(out) if out.code() == Some(0) => Ok(Ok(out)),
            Ok(out) => {
                // With --porcelain the line that says why a ref was rejected is on stdout.
                let text = format!("{}\n{}", out.stderr, String::from_utf8_lossy(&out.stdout));
                let (class, stderr) = (classify(&text), text.trim().to_owned());
                Ok(Err(PushTrouble { class, stderr }))
            }
            Err(error @ CommandError::TimedOut { .. }) => {
                Ok(Err(PushTrouble { class: PushClass::Network, stderr: error.to_string() }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the commit of the remote's branch. It is asked for first: a push whose answer was
    /// lost is not sent twice.
    fn remote_tip(&self) -> Result<Answer<Option<Oid>>, GitError> {
        let git = self.as_user("ask the remote").args([
            "ls-remote",
            "--end-of-options",
            self.request.remote,
            &self.name,
        ]);
        let out = match self.ask(git)? {
            Ok(out) => out,
            Err(trouble) => return Ok(Err(trouble)),
        };
        let text = String::from_utf8_lossy(&out.stdout);
        let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
        let ours = lines.find(|(_, found)| *found == self.name);
        Ok(Ok(ours.map(|(oid, _)| Oid::parse(oid)).transpose()?))
    }

    /// Replays our commits onto the remote's tip; `None` when that can't be done or is not accepted.
    fn rebase(
        &self,
        commit: &Oid,
        accept: &mut dyn FnMut(&Oid) -> bool,
    ) -> Result<Option<Oid>, GitError> {
        let hub = self.hub;
        let Ok(Some(tip)) = self.remote_tip()? else { return Ok(None) };
        if !self.fetch_into_hub(&tip)? {
            return Ok(None);
        }
        let rebased = match rebase(hub, self.request.base, commit, &tip, self.request.now)? {
            RebaseOutcome::Onto(oid) => oid,
            RebaseOutcome::Conflict { .. } => return Ok(None),
        };
        if !accept(&rebased) {
            return Ok(None);
        }
        let kept = format!("refs/autopilot/salvage/push/{commit}");
        if hub.resolve(&kept)?.is_none() {
            hub.set_ref(&kept, commit, ExpectedRef::Absent)?;
        }
        hub.set_ref(&self.name, &rebased, ExpectedRef::At(commit))?;
        Ok(Some(rebased))
    }

    /// Fetches into a quarantine beside the user's objects, so that none of their refs or files
    /// change, and takes the result into the hub.
    fn fetch_into_hub(&self, tip: &Oid) -> Result<bool, GitError> {
        let (hub, repo) = (self.hub, self.repo);
        let quarantine =
            tempfile::tempdir_in(hub.state()).on("create a directory in", hub.state())?;
        let out = self
            .as_user("fetch what the remote has")
            .also_objects(&[&repo.objects_dir()])
            .env("GIT_OBJECT_DIRECTORY", quarantine.path())
            .args(["fetch", "--no-write-fetch-head", "--no-tags", "--refmap="])
            .args(["--no-auto-maintenance", "--no-recurse-submodules"])
            .args(["--end-of-options", self.request.remote, &self.name])
            .run_unless(self.unwanted)?;
        if out.code() != Some(0) {
            return Ok(false);
        }
        let source = ObjectSource { git_dir: &repo.common_dir, objects: vec![quarantine.path()] };
        let _kept = hub.import(&source, tip)?;
        hub.mark(&format!("refs/autopilot/remote/{}", self.request.branch), tip)?;
        Ok(true)
    }

    fn give_up(
        &self,
        commit: &Oid,
        trouble: PushTrouble,
        tries: usize,
    ) -> Result<PushFailure, GitError> {
        let request = self.request;
        let stem = format!("{}_{}", super::name::ref_component(request.task), request.timestamp);
        let (dir, base) = (request.artifacts_dir, request.base);
        let artifacts =
            write_artifacts(self.hub, dir, &stem, base, commit, request.branch, request.border)?;
        let PushTrouble { class, stderr } = trouble;
        let gh_auth = if class == PushClass::Auth { gh_auth_status(&self.repo.root) } else { None };
        let next_step = next_step(class, request);
        Ok(PushFailure { class, stderr, tries, gh_auth, artifacts, next_step })
    }

    /// Makes a git command in the user's repository with their configuration; ssh must not ask
    /// questions.
    fn as_user(&self, operation: &str) -> GitCommand {
        let (repo, request) = (self.repo, self.request);
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
