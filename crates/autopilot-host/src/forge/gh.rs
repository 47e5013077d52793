//! GitHub by its own program `gh`, with the user's login there.

use super::address::ForgeAddress;
use super::http::{one_line, web_address};
use super::rest::{changed, read};
use super::{AnswerError, Forge, ForgeError, PullRequest, PullRequestChange, PullRequestDraft};
use crate::git::command::{CommandError, GitCommand, Output, find_program_on};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LOGIN_TIMEOUT: Duration = Duration::from_secs(15);
/// How many pull requests `gh` is asked to list.
const FOUND_MAX: &str = "100";

/// The program `gh`, logged in to the host of the repository.
pub(super) struct Gh<'a> {
    program: PathBuf,
    dir: &'a Path,
    address: ForgeAddress,
    timeout: Duration,
    unwanted: &'a dyn Fn() -> bool,
}

impl<'a> Gh<'a> {
    /// Finds `gh` and checks its login; `None` where it is missing or has no login for the host.
    pub(super) fn logged_in(
        path: &str,
        dir: &'a Path,
        address: &ForgeAddress,
        timeout: Duration,
        unwanted: &'a dyn Fn() -> bool,
    ) -> Option<Gh<'a>> {
        let program = find_program_on(path.as_ref(), "gh")?;
        let gh = Gh { program, dir, address: address.clone(), timeout, unwanted };
        let status = gh
            .command("see who is logged in", &["auth", "status", "--hostname", &gh.address.host])
            .timeout(LOGIN_TIMEOUT.min(timeout))
            .run_unless(unwanted);
        status.is_ok_and(|out| out.code() == Some(0)).then_some(gh)
    }

    fn command(&self, operation: &str, args: &[&str]) -> GitCommand {
        GitCommand::program_as_user(operation, &self.program, self.dir)
            .args(args.iter().copied())
            .env("GH_PROMPT_DISABLED", "1")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("GH_PAGER", "cat")
            .env("GH_DEBUG", "")
            .env("NO_COLOR", "1")
            .timeout(self.timeout)
    }

    fn run(&self, asked: &str, args: &[&str], input: &str) -> Result<String, ForgeError> {
        match self.command(asked, args).stdin(input).run_unless(self.unwanted) {
            Ok(Output { status, stdout, .. }) if status.success() => {
                Ok(String::from_utf8_lossy(&stdout).into_owned())
            }
            Ok(out) => Err(self.failed(asked, &out.stderr)),
            Err(CommandError::Unwanted { .. }) => Err(ForgeError::Unwanted),
            Err(source) => Err(ForgeError::GhRun { whom: self.address.host.clone(), source }),
        }
    }

    fn failed(&self, asked: &str, said: &str) -> ForgeError {
        let (asked, whom) = (asked.to_owned(), self.address.host.clone());
        ForgeError::Gh { asked, whom, said: one_line(said) }
    }

    fn repository(&self) -> String {
        format!("--repo={}/{}", self.address.host, self.address.path)
    }

    /// Changes the pull request by `gh api`. Older versions of `gh pr edit` fail on a field that
    /// GitHub has removed; the API needs no such field.
    fn update_by_api(
        &self,
        known: &PullRequest,
        change: &PullRequestChange,
    ) -> Result<(), ForgeError> {
        let path = format!("repos/{}/pulls/{}", self.address.path, known.number);
        let host = format!("--hostname={}", self.address.host);
        let args = ["api", "--method=PATCH", &host, &path, "--input=-"];
        let body = changed(change, "body").to_string();
        self.run("update the pull request", &args, &body).map(|_| ())
    }
}

impl Forge for Gh<'_> {
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        let asked = "look for the pull request";
        let fields = "--json=number,url,title,body,headRefName,isCrossRepository";
        let limit = format!("--limit={FOUND_MAX}");
        let (repository, head_is) = (self.repository(), format!("--head={head}"));
        let args = ["pr", "list", &repository, &head_is, "--state=open", &limit, fields];
        let text = self.run(asked, &args, "")?;
        let unreadable = |source| ForgeError::Unreadable {
            asked: asked.to_owned(),
            whom: "gh".to_owned(),
            source,
        };
        let found: Value = serde_json::from_str(&text).map_err(|error| unreadable(error.into()))?;
        let found = found.as_array().ok_or_else(|| unreadable(AnswerError::NoList))?;
        // A fork may have a branch of the same name.
        let ours = found.iter().find(|one| {
            one["headRefName"] == head && one["isCrossRepository"] != Value::Bool(true)
        });
        ours.map(|one| read(one, ["number", "url", "body"]).map_err(unreadable)).transpose()
    }

    fn open(&self, draft: &PullRequestDraft) -> Result<PullRequest, ForgeError> {
        let asked = "open the pull request";
        let args = [
            "pr".to_owned(),
            "create".to_owned(),
            self.repository(),
            format!("--head={}", draft.head),
            format!("--base={}", draft.base),
            format!("--title={}", draft.title),
            "--body-file=-".to_owned(),
        ];
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let said = self.run(asked, &args, &draft.body)?;
        let url = said.lines().rev().find_map(|line| web_address(&json!(line.trim())));
        let number = |url: &str| url.rsplit('/').next().and_then(|last| last.parse().ok());
        let read = url.and_then(|url| Some((number(&url)?, url)));
        let Some((number, url)) = read else {
            return Err(self.failed(asked, &format!("it printed no address: {said}")));
        };
        Ok(PullRequest { number, url, title: draft.title.clone(), body: draft.body.clone() })
    }

    fn update(&self, known: &PullRequest, change: &PullRequestChange) -> Result<(), ForgeError> {
        let number = known.number.to_string();
        let mut args = vec!["pr".to_owned(), "edit".to_owned(), number, self.repository()];
        args.extend(change.title.as_ref().map(|title| format!("--title={title}")));
        args.extend(change.body.as_ref().map(|_| "--body-file=-".to_owned()));
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let body = change.body.as_deref().unwrap_or_default();
        match self.run("update the pull request", &args, body) {
            Err(ForgeError::Gh { said, .. }) if said.contains("Projects (classic)") => {
                self.update_by_api(known, change)
            }
            other => other.map(|_| ()),
        }
    }
}
