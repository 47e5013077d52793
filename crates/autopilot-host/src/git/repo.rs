//! The user's repository, examined without writing to it. One that we can't work with is refused
//! here, with the reason and the next step.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::command::GitCommand;
use super::error::GitError;
use super::identity::CommitIdentity;
use super::object::Oid;
use super::submodule::ModulePlaces;
use crate::{checkout, redact};

/// The oldest version of git that has `merge-tree --write-tree`.
const GIT_OLDEST: (u32, u32) = (2, 38);
/// How many branches are suggested when the base branch does not exist.
const CANDIDATES_MAX: usize = 5;
const EXCLUDES_BYTES_MAX: u64 = 1024 * 1024;

/// The reason why a repository can't be worked on, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepoRefusal {
    /// The installed git lacks commands that we need.
    #[error("git {found} is too old; install git 2.38 or newer")]
    GitTooOld { found: String },
    /// The directory has no working tree around it.
    #[error("`{}` is not inside a git repository; run `git init` and commit, or use -C", path.display())]
    NotARepository { path: PathBuf },
    /// The repository belongs to another user.
    #[error("git does not trust the owner of `{}`; run: git config --global --add safe.directory '{}'", path.display(), path.display())]
    ForeignOwner { path: PathBuf },
    /// The repository has no working tree.
    #[error("`{}` is a bare repository; use a clone with a working tree", path.display())]
    Bare { path: PathBuf },
    /// The repository is empty.
    #[error("`{}` has no commits yet; make a first commit", path.display())]
    NoCommits { path: PathBuf },
    /// The configured base branch does not exist.
    #[error("there is no branch `{wanted}`; set base_branch to one of: {}", candidates.join(", "))]
    NoBaseBranch { wanted: String, candidates: Vec<String> },
    /// A branch has the name of the folder of our branches.
    #[error(
        "a branch named `{name}` prevents the branches `{name}/…` for the work; rename it: git branch -m {name} {name}-old"
    )]
    BranchInTheWay { name: String },
    /// The user's repository does not have the commit of a submodule. `top` is the submodule at the top
    /// in which it lies, or itself.
    #[error(
        "your repository does not have commit {commit} of the submodule `{path}`; run: git submodule update --init --recursive -- {}",
        shell_word(top)
    )]
    SubmoduleMissing { path: String, top: String, commit: String },
    /// The submodule was cloned in part, and files of it are missing.
    #[error(
        "the submodule `{path}` is a partial clone and lacks files of the commit that is used; run: git -C {} fetch --refetch --no-filter",
        shell_word(path)
    )]
    SubmoduleIncomplete { path: String },
    /// A submodule is where git would not put one.
    #[error("the submodule `{path}` is at a path that is not safe; remove it from the base branch")]
    SubmodulePath { path: String },
    /// Objects may be missing and would be fetched when they are read.
    #[error(
        "this is a partial clone, objects may be missing; run: git fetch --refetch --no-filter, then git config --unset remote.<name>.promisor, or clone in full"
    )]
    PartialClone,
    /// A part of the history is missing.
    #[error("this is a shallow clone, history is missing; run: git fetch --unshallow")]
    Shallow,
    /// A `.gitattributes` names a program that the configuration does not allow.
    #[error(
        "`{path}` uses the filter `{filter}`; add it to git.filters in the configuration to allow it to run"
    )]
    FilterNotAllowed { path: String, filter: String },
    /// The configuration allows a filter that git does not know.
    #[error(
        "the filter `{filter}` is allowed in git.filters but git has no configuration for it; install it first (for LFS: git lfs install)"
    )]
    FilterUnknown { filter: String },
}

/// The position of the user's HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepoHead {
    /// HEAD is on this branch.
    Branch(String),
    /// HEAD is at this commit and on no branch.
    Detached(Oid),
}

/// A content filter the user has allowed by name, with the commands of the user's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The name in `.gitattributes`.
    pub name: String,
    /// The keys of the filter with their values: `clean`, `smudge`, `process`, `required` as
    /// configured.
    pub settings: Vec<(String, String)>,
}

/// The facts about the user's repository. Nothing here writes to it.
#[derive(Clone, Debug)]
pub struct UserRepo {
    /// The top level of the working tree that was asked for.
    pub root: PathBuf,
    /// The git directory shared by all worktrees.
    pub common_dir: PathBuf,
    /// The branch from which runs start.
    pub base_branch: String,
    /// The commit of the base branch when the repository was examined.
    pub base_tip: Oid,
    /// The position of the user's HEAD.
    pub head: RepoHead,
    /// The author of commits, as configured.
    pub identity: CommitIdentity,
    /// The remotes by name and URL, without passwords: both go where agents can read.
    pub remotes: Vec<(String, String)>,
    /// Passwords and tokens in the URLs and headers of the user's configuration, to be redacted.
    pub remote_secrets: Vec<String>,
    /// The hash of object names, `sha1` or `sha256`.
    pub object_format: String,
    /// The filters that are allowed and configured.
    pub filters: Vec<Filter>,
    /// `core.autocrlf` and `core.eol`, so that text is converted as the user's git does.
    pub eol: Vec<(String, String)>,
    /// Personal ignore rules (`core.excludesFile` and `.git/info/exclude`).
    pub excludes: Vec<u8>,
    /// Whether the base branch has submodules.
    pub has_submodules: bool,
    /// The version of the installed git.
    pub git_version: String,
}

impl UserRepo {
    /// Examines the repository around `dir`; `filters` are the names the configuration allows.
    pub fn examine(dir: &Path, base_branch: &str, filters: &[String]) -> Result<Self, GitError> {
        let git_version = check_version()?;
        let (root, common_dir) = locate(dir)?;
        refuse_incomplete(&root)?;
        let head = read_head(&common_dir, &root)?;
        refuse_branch_in_the_way(&common_dir)?;
        let base_tip = find_base(&common_dir, &root, base_branch)?;
        let mut named = named_filters(isolated(&common_dir), &base_tip, "")?;
        let places = ModulePlaces::around(&common_dir, Some(&root));
        let modules = places.check(&base_tip)?;
        for module in &modules {
            named.extend(module.filters(isolated(&common_dir))?);
        }
        let filters = allowed_filters(&root, named, filters)?;
        Ok(Self {
            identity: read_identity(&root)?,
            remotes: read_remotes(&root)?,
            remote_secrets: read_remote_secrets(&root)?,
            object_format: user(&root, "read the object format")
                .args(["rev-parse", "--show-object-format"])
                .line()?,
            eol: read_eol(&root)?,
            excludes: read_excludes(&root, &common_dir)?,
            has_submodules: !modules.is_empty(),
            root,
            common_dir,
            base_branch: base_branch.to_owned(),
            base_tip,
            head,
            filters,
            git_version,
        })
    }

    /// Returns the tip of the base branch as it is now; the user may have moved it since.
    pub fn tip(&self) -> Result<Oid, GitError> {
        find_base(&self.common_dir, &self.root, &self.base_branch)
    }

    /// Returns the refs below a prefix, with the objects they name.
    pub fn refs(&self, prefix: &str) -> Result<Vec<(String, Oid)>, GitError> {
        list_refs(&self.common_dir, prefix)
    }

    pub(crate) fn objects_dir(&self) -> PathBuf {
        self.common_dir.join("objects")
    }
}

/// Lists the refs of a repository below a prefix.
pub(crate) fn list_refs(git_dir: &Path, prefix: &str) -> Result<Vec<(String, Oid)>, GitError> {
    let out = GitCommand::isolated(format!("list refs below {prefix}"), git_dir)
        .args(["for-each-ref", "--format=%(objectname) %(refname)", "--end-of-options", prefix])
        .ok()?;
    let text = String::from_utf8_lossy(&out);
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(oid, name)| Ok((name.to_owned(), Oid::parse(oid)?)))
        .collect()
}

/// Returns the object that a ref names, if there is such a ref.
pub(crate) fn resolve_ref(git_dir: &Path, name: &str) -> Result<Option<Oid>, GitError> {
    let out = GitCommand::isolated(format!("resolve {name}"), git_dir)
        .args(["rev-parse", "--quiet", "--verify", "--end-of-options", name])
        .run()?;
    match out.code() {
        Some(0) => Ok(Some(Oid::from_bytes(out.stdout.trim_ascii())?)),
        _ => Ok(None),
    }
}

fn check_version() -> Result<String, GitError> {
    let line = GitCommand::bare_minimum("ask git for its version").arg("--version").line()?;
    let found = line.trim_start_matches("git version ").to_owned();
    if version_at_least(&found, GIT_OLDEST) {
        Ok(found)
    } else {
        Err(RepoRefusal::GitTooOld { found }.into())
    }
}

fn version_at_least(found: &str, oldest: (u32, u32)) -> bool {
    let mut parts = found.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= oldest
}

fn user(dir: &Path, operation: &str) -> GitCommand {
    GitCommand::as_user(operation, dir)
}

/// The exit code by which git refuses.
const REFUSED: i32 = 128;

fn locate(dir: &Path) -> Result<(PathBuf, PathBuf), GitError> {
    if !dir.is_dir() {
        return Err(RepoRefusal::NotARepository { path: dir.to_owned() }.into());
    }
    let bare =
        user(dir, "find the repository").args(["rev-parse", "--is-bare-repository"]).run()?;
    if bare.code() != Some(0) {
        if bare.stderr.contains("dubious ownership") {
            // Git compares the whole path of the top level; `.` would trust every repository.
            let root = checkout::find(dir).map(|found| found.root);
            let path = root.or_else(|| dir.canonicalize().ok()).unwrap_or_else(|| dir.to_owned());
            return Err(RepoRefusal::ForeignOwner { path }.into());
        }
        let path = dir.to_owned();
        // Where there is a repository to be seen, it is git that does not work.
        if bare.code().is_none() || checkout::find(dir).is_some() {
            bare.expect_code(&[0])?;
        }
        return Err(RepoRefusal::NotARepository { path }.into());
    }
    if bare.stdout.trim_ascii() == b"true" {
        return Err(RepoRefusal::Bare { path: dir.to_owned() }.into());
    }
    let ask = |what: &str| -> Result<PathBuf, GitError> {
        let out = user(dir, "find the repository")
            .args(["rev-parse", "--path-format=absolute", what])
            .run()?
            .expect_code(&[0, REFUSED])?;
        if out.code() != Some(0) {
            // Inside `.git` itself there is a repository but no working tree.
            return Err(RepoRefusal::NotARepository { path: dir.to_owned() }.into());
        }
        let path = out.stdout.strip_suffix(b"\n").unwrap_or(&out.stdout);
        Ok(PathBuf::from(OsString::from_vec(path.to_vec())))
    };
    Ok((ask("--show-toplevel")?, ask("--git-common-dir")?))
}

fn refuse_incomplete(root: &Path) -> Result<(), GitError> {
    let shallow = user(root, "look for a shallow clone")
        .args(["rev-parse", "--is-shallow-repository"])
        .line()?;
    if shallow == "true" {
        return Err(RepoRefusal::Shallow.into());
    }
    let promisor = "^(extensions\\.partialclone|remote\\..*\\.(promisor|partialclonefilter))$";
    if config_entries(root, promisor)?.iter().any(|(_, value)| value != "false") {
        return Err(RepoRefusal::PartialClone.into());
    }
    Ok(())
}

/// Refuses a branch with the name of our folder. Git keeps refs like files: not both `autopilot`
/// and `autopilot/…`.
fn refuse_branch_in_the_way(common_dir: &Path) -> Result<(), GitError> {
    let name = super::name::FOLDER;
    match resolve_ref(common_dir, &format!("refs/heads/{name}"))? {
        Some(_) => Err(RepoRefusal::BranchInTheWay { name: name.to_owned() }.into()),
        None => Ok(()),
    }
}

fn read_head(common_dir: &Path, root: &Path) -> Result<RepoHead, GitError> {
    let symbolic = user(root, "read HEAD").args(["symbolic-ref", "--quiet", "HEAD"]).run()?;
    if symbolic.code() == Some(0) {
        let name = String::from_utf8_lossy(symbolic.stdout.trim_ascii()).into_owned();
        return Ok(RepoHead::Branch(name.trim_start_matches("refs/heads/").to_owned()));
    }
    let out = user(root, "read HEAD").args(["rev-parse", "--quiet", "--verify", "HEAD"]).run()?;
    match Oid::from_bytes(out.stdout.trim_ascii()) {
        Ok(oid) => Ok(RepoHead::Detached(oid)),
        Err(_) => Err(RepoRefusal::NoCommits { path: common_dir.to_owned() }.into()),
    }
}

fn find_base(common_dir: &Path, root: &Path, base_branch: &str) -> Result<Oid, GitError> {
    if let Some(oid) = resolve_ref(common_dir, &format!("refs/heads/{base_branch}"))? {
        return Ok(oid);
    }
    let branches = list_refs(common_dir, "refs/heads/")?;
    if branches.is_empty() {
        return Err(RepoRefusal::NoCommits { path: root.to_owned() }.into());
    }
    let mut candidates: Vec<String> =
        branches.into_iter().map(|(n, _)| n.trim_start_matches("refs/heads/").to_owned()).collect();
    candidates.sort_by_key(|name| (!matches!(name.as_str(), "main" | "master"), name.clone()));
    candidates.truncate(CANDIDATES_MAX);
    Err(RepoRefusal::NoBaseBranch { wanted: base_branch.to_owned(), candidates }.into())
}

/// Returns a text as one word of a shell's command line.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

fn allowed_filters(
    root: &Path,
    named: Vec<(String, String)>,
    allowed: &[String],
) -> Result<Vec<Filter>, GitError> {
    for (path, filter) in named {
        if !allowed.contains(&filter) {
            return Err(RepoRefusal::FilterNotAllowed { path, filter }.into());
        }
    }
    let mut filters = Vec::new();
    for name in allowed.iter().collect::<BTreeSet<_>>() {
        let unknown = || RepoRefusal::FilterUnknown { filter: name.clone() };
        if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
            return Err(unknown().into());
        }
        let pattern = format!("^filter\\.{name}\\.(clean|smudge|process|required)$");
        let settings = config_entries(root, &pattern)?;
        if settings.is_empty() {
            return Err(unknown().into());
        }
        filters.push(Filter { name: name.clone(), settings });
    }
    Ok(filters)
}

fn isolated(git_dir: &Path) -> GitCommand {
    GitCommand::isolated("look for content filters", git_dir)
}

/// Returns every `filter=name` in the `.gitattributes` files of a commit or tree, with the file that
/// names it, below `prefix`.
pub(super) fn named_filters(
    git: GitCommand,
    tip: &Oid,
    prefix: &str,
) -> Result<Vec<(String, String)>, GitError> {
    let out = git
        .args(["grep", "-z", "--no-color", "--full-name", "-I", "-e", "filter="])
        .args([tip.as_str(), "--", ":(glob)**/.gitattributes"])
        .run()?
        // With 1 git says that no line matches.
        .expect_code(&[0, 1])?;
    let text = String::from_utf8_lossy(&out.stdout);
    let mut found = Vec::new();
    for (place, rule) in text.lines().filter_map(|line| line.split_once('\0')) {
        let path = place.split_once(':').map_or(place, |(_, path)| path);
        let words = rule.split_whitespace().take_while(|word| !word.starts_with('#'));
        let names = words.filter_map(|word| word.strip_prefix("filter="));
        found.extend(names.map(|name| (format!("{prefix}{path}"), name.to_owned())));
    }
    Ok(found)
}

fn read_identity(root: &Path) -> Result<CommitIdentity, GitError> {
    let get = |key: &str| -> Result<String, GitError> {
        let out = user(root, "read the user's identity").args(["config", "--get", key]).run()?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    Ok(CommitIdentity::or_default(&get("user.name")?, &get("user.email")?))
}

fn read_remotes(root: &Path) -> Result<Vec<(String, String)>, GitError> {
    let entries = config_entries(root, "^remote\\..*\\.url$")?;
    Ok(entries
        .into_iter()
        .filter_map(|(key, url)| {
            let name = key.strip_prefix("remote.")?.strip_suffix(".url")?;
            Some((name.to_owned(), redact::without_secrets(&url)))
        })
        .collect())
}

fn read_remote_secrets(root: &Path) -> Result<Vec<String>, GitError> {
    let pattern = "^(remote\\..*\\.(url|pushurl)|url\\..*|http\\.(.*\\.)?extraheader)$";
    let mut secrets = Vec::new();
    for (key, value) in config_entries(root, pattern)? {
        if key.ends_with(".extraheader") {
            // `Authorization: basic …`
            secrets.extend(value.split_whitespace().last().map(str::to_owned));
        } else {
            secrets.extend(redact::secrets_of_url(key.strip_prefix("url.").unwrap_or(&value)));
        }
    }
    Ok(secrets)
}

fn read_eol(root: &Path) -> Result<Vec<(String, String)>, GitError> {
    let mut entries = config_entries(root, "^core\\.(autocrlf|eol)$")?;
    entries
        .retain(|(_, value)| matches!(value.as_str(), "true" | "false" | "input" | "lf" | "crlf"));
    // The last value of a key is the one in force.
    entries.reverse();
    let mut seen = BTreeSet::new();
    entries.retain(|(key, _)| seen.insert(key.clone()));
    Ok(entries)
}

fn read_excludes(root: &Path, common_dir: &Path) -> Result<Vec<u8>, GitError> {
    let out = user(root, "find personal ignore rules")
        .args(["config", "--type=path", "--get", "core.excludesFile"])
        .run()?;
    let configured = out.stdout.trim_ascii_end();
    let global = if configured.is_empty() {
        std::env::var_os("XDG_CONFIG_HOME")
            .filter(|dir| !dir.is_empty())
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))
            .map(|dir| dir.join("git/ignore"))
    } else {
        Some(PathBuf::from(OsString::from_vec(configured.to_vec())))
    };
    let mut rules = Vec::new();
    for file in global.into_iter().chain([common_dir.join("info/exclude")]) {
        let small = std::fs::metadata(&file)
            .is_ok_and(|meta| meta.is_file() && meta.len() <= EXCLUDES_BYTES_MAX);
        if small && let Ok(bytes) = std::fs::read(&file) {
            rules.extend_from_slice(&bytes);
            rules.push(b'\n');
        }
    }
    Ok(rules)
}

fn config_entries(root: &Path, pattern: &str) -> Result<Vec<(String, String)>, GitError> {
    let out = user(root, "read the user's configuration")
        .args(["config", "-z", "--get-regexp", pattern])
        .run()?;
    let entries = out.stdout.split(|b| *b == 0).filter(|entry| !entry.is_empty());
    Ok(entries
        .map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (key, value) = text.split_once('\n').unwrap_or((&text, "true"));
            (key.to_owned(), value.to_owned())
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version_at_least("2.47.3", GIT_OLDEST));
        assert!(version_at_least("2.38.0.windows.1", GIT_OLDEST));
        assert!(version_at_least("3.0", GIT_OLDEST));
        assert!(!version_at_least("2.9.5", GIT_OLDEST));
        assert!(!version_at_least("garbage", GIT_OLDEST));
    }
}
