//! Why a pull request could not be opened, in words for the person who has to open it then.

use super::address::Kind;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("cannot read the address of the remote `{remote}`: {reason}")]
    Remote { remote: String, reason: String },
    #[error("the remote `{remote}` ({url}) is on no forge")]
    NoForge { remote: String, url: String },
    #[error("nothing tells which forge is at {host}")]
    UnknownForge { host: String },
    #[error("{name} can't be used: {reason}")]
    Setting { name: &'static str, reason: String },
    #[error("there is no token for {host}")]
    NoToken { host: String, kind: Kind, variables: &'static [&'static str] },
    #[error("{whom} refused to {asked}: {status} {said}")]
    Refused {
        asked: String,
        whom: String,
        kind: Kind,
        status: u16,
        said: String,
        /// The variable whose token was sent.
        token: &'static str,
        pause: Option<Duration>,
    },
    #[error("cannot {asked} at {whom}: {reason}")]
    Unreachable { asked: String, whom: String, reason: String },
    #[error("cannot {asked} at {whom}: its answer can't be understood: {reason}")]
    Unreadable { asked: String, whom: String, reason: String },
    #[error("`gh` could not {asked} at {whom}: {said}")]
    Gh { asked: String, whom: String, said: String },
    #[error("given up because nobody wants it any more")]
    Unwanted,
}

/// Words by which `gh` tells of a network or a server that is away.
const PASSING: [&str; 8] = [
    "http 5",
    "http 429",
    "timeout",
    "timed out",
    "connection",
    "no such host",
    "error connecting",
    "rate limit",
];

impl ForgeError {
    /// Whether the same may succeed in a moment.
    pub fn may_pass(&self) -> bool {
        match self {
            ForgeError::Refused { status, said, pause, .. } => {
                matches!(status, 408 | 429 | 500..=599) || pause.is_some() || exists(said)
            }
            ForgeError::Unreachable { .. } => true,
            ForgeError::Gh { said, .. } => {
                let said = said.to_ascii_lowercase();
                exists(&said) || PASSING.iter().any(|word| said.contains(word))
            }
            ForgeError::Remote { .. }
            | ForgeError::NoForge { .. }
            | ForgeError::UnknownForge { .. }
            | ForgeError::Setting { .. }
            | ForgeError::NoToken { .. }
            | ForgeError::Unreadable { .. }
            | ForgeError::Unwanted => false,
        }
    }

    pub fn pause_wanted(&self) -> Option<Duration> {
        match self {
            ForgeError::Refused { pause, .. } => *pause,
            ForgeError::Remote { .. }
            | ForgeError::NoForge { .. }
            | ForgeError::UnknownForge { .. }
            | ForgeError::Setting { .. }
            | ForgeError::NoToken { .. }
            | ForgeError::Unreachable { .. }
            | ForgeError::Unreadable { .. }
            | ForgeError::Gh { .. }
            | ForgeError::Unwanted => None,
        }
    }

    /// What to do about it.
    pub fn next_step(&self) -> String {
        match self {
            ForgeError::Remote { remote, .. } => format!("look at `git remote -v` for `{remote}`"),
            ForgeError::NoForge { remote, .. } => format!(
                "give `{remote}` the address of a repository on GitHub, GitLab or Gitea with \
                 `git remote set-url {remote} <url>`, or run without a pull request"
            ),
            ForgeError::UnknownForge { .. } => "set AUTOPILOT_FORGE to github, gitlab or gitea \
                 (and AUTOPILOT_FORGE_API, if its API is not at the usual place)"
                .to_owned(),
            ForgeError::Setting { name, .. } => format!("set {name} again or unset it"),
            ForgeError::NoToken { host, kind, variables } => no_token(host, *kind, variables),
            ForgeError::Refused { kind, status, token, pause, .. } => {
                refused(*kind, *status, token, *pause)
            }
            ForgeError::Unreachable { .. } => {
                "see that the network and the address are right, then try again".to_owned()
            }
            ForgeError::Unreadable { .. } => {
                "see that AUTOPILOT_FORGE and AUTOPILOT_FORGE_API name what is really there"
                    .to_owned()
            }
            ForgeError::Gh { whom, .. } => {
                format!("try it by hand, or look at `gh auth status --hostname {whom}`")
            }
            ForgeError::Unwanted => "run `autopilot resume`".to_owned(),
        }
    }
}

/// The forge knows of one that it did not show when it was asked; it will, in a moment.
fn exists(said: &str) -> bool {
    said.to_ascii_lowercase().contains("already exists")
}

fn no_token(host: &str, kind: Kind, variables: &[&str]) -> String {
    let variables = variables.join(" or ");
    match kind {
        Kind::Github => {
            format!("log in with `gh auth login --hostname {host}`, or set {variables}")
        }
        Kind::Gitlab | Kind::Gitea => format!("set {variables}"),
    }
}

fn refused(kind: Kind, status: u16, token: &str, pause: Option<Duration>) -> String {
    let scope = match kind {
        Kind::Github => "write access to pull requests",
        Kind::Gitlab => "the scope `api`",
        Kind::Gitea => "the scopes `write:repository` and `write:issue`",
    };
    match status {
        300..=399 => "the repository has moved: give the remote its new address with \
             `git remote set-url`"
            .to_owned(),
        401 => format!("the token in {token} has expired or belongs elsewhere; set a new one"),
        403 if pause.is_none() => format!("the token in {token} needs {scope}"),
        404 => format!(
            "see that the remote names the right repository and that the token in {token} may see \
             it; it needs {scope}"
        ),
        403 | 429 => match pause {
            Some(pause) => format!("it has had enough; try again in {} s", pause.as_secs()),
            None => "it has had enough; try again later".to_owned(),
        },
        500..=599 => "it is in trouble itself; try again later".to_owned(),
        _ => "see that the base branch is there and that the branch has commits of its own"
            .to_owned(),
    }
}
