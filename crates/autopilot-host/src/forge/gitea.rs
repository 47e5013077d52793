//! The REST API of Gitea and Forgejo.

use super::address::{ForgeAddress, encoded_path};
use super::github::changed;
use super::http::{Http, Verb, web_address};
use super::{Forge, ForgeError, PullRequest, PullRequestChange, PullRequestDraft};
use serde_json::{Value, json};

/// How many pull requests Gitea returns at a time, unless its owner says otherwise.
const PAGE: usize = 50;
/// How many pages are read. The newest come first, so ours is among them even where hundreds are
/// open.
const PAGES_MAX: usize = 20;

/// The API of one repository on Gitea or Forgejo.
pub(super) struct Gitea<'a> {
    pub http: Http<'a>,
    pub address: ForgeAddress,
}

impl Gitea<'_> {
    fn pulls(&self) -> String {
        format!("/repos/{}/pulls", encoded_path(&self.address.path))
    }

    fn read(&self, asked: &str, value: &Value) -> Result<PullRequest, ForgeError> {
        let (Some(number), Some(url)) = (value["number"].as_u64(), web_address(&value["html_url"]))
        else {
            return Err(self.http.unreadable(asked, "the number or the address is missing"));
        };
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Ok(PullRequest { number, url, title: text("title"), body: text("body") })
    }

    fn is_ours(&self, one: &Value, head: &str) -> bool {
        let of = one["head"]["repo"]["full_name"].as_str().unwrap_or_default();
        one["head"]["ref"] == head && of.eq_ignore_ascii_case(&self.address.path)
    }
}

impl Forge for Gitea<'_> {
    /// Reads the list of open requests. Gitea can't be asked by branch: the answer to that question
    /// may be a request that is closed.
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        let asked = "look for the pull request";
        for page in 1..=PAGES_MAX {
            let query = format!("state=open&sort=recentupdate&limit={PAGE}&page={page}");
            let path = format!("{}?{query}", self.pulls());
            let found = self.http.ask(asked, Verb::GET, &path, None)?;
            let Some(found) = found.as_array() else {
                return Err(self.http.unreadable(asked, "it is not a list"));
            };
            if let Some(ours) = found.iter().find(|one| self.is_ours(one, head)) {
                return self.read(asked, ours).map(Some);
            }
            if found.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    fn open(&self, draft: &PullRequestDraft) -> Result<PullRequest, ForgeError> {
        let asked = "open the pull request";
        let body = json!({
            "head": draft.head, "base": draft.base, "title": draft.title, "body": draft.body,
        });
        let opened = self.http.ask(asked, Verb::POST, &self.pulls(), Some(&body))?;
        self.read(asked, &opened)
    }

    fn update(&self, known: &PullRequest, change: &PullRequestChange) -> Result<(), ForgeError> {
        let path = format!("{}/{}", self.pulls(), known.number);
        let asked = "update the pull request";
        self.http.ask(asked, Verb::PATCH, &path, Some(&changed(change, "body"))).map(|_| ())
    }
}
