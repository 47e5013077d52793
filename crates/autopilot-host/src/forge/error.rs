//! The reasons why a pull request could not be opened, in words for the person who then has to open
//! it.

use super::address::ForgeKind;
use crate::git::CommandError;
use crate::web::{CertificateError, NoAnswer};
use std::time::Duration;

/// The reason why a pull request could not be found, opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// Git could not tell the URL of the remote.
    #[error("cannot read the address of the remote `{remote}`")]
    Remote { remote: String, source: CommandError },
    /// The remote is a path on this machine, or something else without a host.
    #[error("the remote `{remote}` ({url}) is not a repository on a forge")]
    NoForge { remote: String, url: String },
    /// The host's name does not tell the kind of forge, and no setting does.
    #[error("cannot tell which forge runs at {host}")]
    UnknownForge { host: String },
    /// A variable of the environment has a value that cannot be used.
    #[error("{name} is not valid")]
    Setting { name: &'static str, source: SettingError },
    /// None of the variables is set, and `gh` is not logged in.
    #[error("no token for {host}")]
    NoToken { host: String, kind: ForgeKind, variables: &'static [&'static str] },
    /// The forge answered with an error.
    #[error("{whom} refused to {asked}: {status} {said}")]
    Refused {
        /// The operation, in words that complete "refused to …".
        asked: String,
        /// The name of the forge.
        whom: String,
        /// The kind of forge.
        kind: ForgeKind,
        /// The HTTP status.
        status: u16,
        /// The forge's message.
        said: String,
        /// The variable whose token was sent.
        token: &'static str,
        /// The pause that the forge asked for.
        pause: Option<Duration>,
    },
    /// The request failed before there was an answer.
    #[error("cannot {asked} at {whom}")]
    Unreachable { asked: String, whom: String, source: NoAnswer },
    /// The answer does not have the form of the forge's API.
    #[error("cannot {asked} at {whom}: the answer could not be understood")]
    Unreadable { asked: String, whom: String, source: AnswerError },
    /// The program `gh` reported a failure.
    #[error("`gh` could not {asked} at {whom}: {said}")]
    Gh { asked: String, whom: String, said: String },
    /// The program `gh` could not be run to its end.
    #[error("`gh` failed at {whom}")]
    GhRun { whom: String, source: CommandError },
    /// The caller did not want the result any more.
    #[error("cancelled before the pull request was published")]
    Unwanted,
}

/// The reason why the value of a variable cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingError {
    /// The value names no kind of forge.
    #[error("`{word}` is not one of github, gitlab, gitea")]
    Kind { word: String },
    /// The address has no protocol of the web.
    #[error("it must start with https:// or http://")]
    Protocol,
    /// The address has a secret in it, which would appear in messages.
    #[error("it contains a user name or password; put the token in its own variable")]
    Credentials,
    /// The value is not an address.
    #[error("it is not a valid address; use e.g. https://git.example.org/api/v4")]
    Address,
    /// The token cannot be sent in a header.
    #[error("it contains characters that a token cannot have")]
    Token,
    /// The file of certificates cannot be used.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// The part of an answer that does not have the form of the forge's API.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The answer is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The forge was asked for a list and returned something else.
    #[error("it is not a list")]
    NoList,
    /// A pull request has no number or no page.
    #[error("the number or the address is missing")]
    Incomplete,
}

/// The words by which `gh` reports a network or a server that is away.
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
    /// Returns whether the same request may succeed in a moment.
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
            ForgeError::GhRun { source, .. } => matches!(source, CommandError::TimedOut { .. }),
            ForgeError::Remote { .. }
            | ForgeError::NoForge { .. }
            | ForgeError::UnknownForge { .. }
            | ForgeError::Setting { .. }
            | ForgeError::NoToken { .. }
            | ForgeError::Unreadable { .. }
            | ForgeError::Unwanted => false,
        }
    }

    /// Returns the pause that the forge asked for.
    pub fn pause_wanted(&self) -> Option<Duration> {
        if let ForgeError::Refused { pause, .. } = self { *pause } else { None }
    }

    /// Returns what a person can do about it.
    pub fn next_step(&self) -> String {
        match self {
            ForgeError::Remote { remote, .. } => format!("check `git remote -v` for `{remote}`"),
            ForgeError::NoForge { remote, .. } => format!(
                "give `{remote}` the address of a repository on GitHub, GitLab or Gitea with \
                 `git remote set-url {remote} <url>`, or run without a pull request"
            ),
            ForgeError::UnknownForge { .. } => "set AUTOPILOT_FORGE to github, gitlab or gitea \
                 (and AUTOPILOT_FORGE_API, if its API is not at the usual address)"
                .to_owned(),
            ForgeError::Setting { name, .. } => format!("correct {name} or unset it"),
            ForgeError::NoToken { host, kind, variables } => no_token(host, *kind, variables),
            ForgeError::Refused { kind, status, token, pause, .. } => {
                refused(*kind, *status, token, *pause)
            }
            ForgeError::Unreachable { .. } => {
                "check the network and the address, then try again".to_owned()
            }
            ForgeError::Unreadable { .. } => {
                "check that AUTOPILOT_FORGE and AUTOPILOT_FORGE_API match the forge at that address"
                    .to_owned()
            }
            ForgeError::Gh { whom, .. } | ForgeError::GhRun { whom, .. } => {
                format!("try it by hand, or check `gh auth status --hostname {whom}`")
            }
            ForgeError::Unwanted => "run `autopilot resume`".to_owned(),
        }
    }
}

/// Returns whether the forge knows of a pull request that it did not show when it was asked; it
/// will show it in a moment.
fn exists(said: &str) -> bool {
    said.to_ascii_lowercase().contains("already exists")
}

fn no_token(host: &str, kind: ForgeKind, variables: &[&str]) -> String {
    let variables = variables.join(" or ");
    match kind {
        ForgeKind::Github => {
            format!("log in with `gh auth login --hostname {host}`, or set {variables}")
        }
        ForgeKind::Gitlab | ForgeKind::Gitea => format!("set {variables}"),
    }
}

fn refused(kind: ForgeKind, status: u16, token: &str, pause: Option<Duration>) -> String {
    let scope = match kind {
        ForgeKind::Github => "write access to pull requests",
        ForgeKind::Gitlab => "the scope `api`",
        ForgeKind::Gitea => "the scopes `write:repository` and `write:issue`",
    };
    match status {
        300..=399 => "the repository has moved: give the remote its new address with \
             `git remote set-url`"
            .to_owned(),
        401 => format!("the token in {token} has expired or is for another host; set a new one"),
        403 if pause.is_none() => format!("the token in {token} needs {scope}"),
        404 => format!(
            "check that the remote names the right repository and that the token in {token} has \
             access to it; it needs {scope}"
        ),
        403 | 429 => match pause {
            Some(pause) => format!("its rate limit is reached; try again in {} s", pause.as_secs()),
            None => "its rate limit is reached; try again later".to_owned(),
        },
        500..=599 => "the server failed; try again later".to_owned(),
        _ => "check that the base branch exists and that the branch has commits of its own"
            .to_owned(),
    }
}
