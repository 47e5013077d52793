//! GitLab's REST API, where a pull request is a merge request.

use super::address::{ForgeAddress, encoded};
use super::github::changed;
use super::http::{Http, Verb, web_address};
use super::{Forge, ForgeError, PullRequest, PullRequestChange, PullRequestDraft};
use serde_json::{Value, json};

/// The API of one project on GitLab.
pub(super) struct Gitlab<'a> {
    pub http: Http<'a>,
    pub address: ForgeAddress,
}

impl Gitlab<'_> {
    fn requests(&self) -> String {
        format!("/projects/{}/merge_requests", encoded(&self.address.path))
    }

    fn read(&self, asked: &str, value: &Value) -> Result<PullRequest, ForgeError> {
        let (Some(number), Some(url)) = (value["iid"].as_u64(), web_address(&value["web_url"]))
        else {
            return Err(self.http.unreadable(asked, "the number or the address is missing"));
        };
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Ok(PullRequest { number, url, title: text("title"), body: text("description") })
    }
}

impl Forge for Gitlab<'_> {
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        let asked = "look for the merge request";
        let query = format!("state=opened&per_page=100&source_branch={}", encoded(head));
        let path = format!("{}?{query}", self.requests());
        let found = self.http.ask(asked, Verb::GET, &path, None)?;
        let Some(found) = found.as_array() else {
            return Err(self.http.unreadable(asked, "it is not a list"));
        };
        // A fork may have a branch of the same name.
        let ours = found.iter().find(|one| {
            one["source_branch"] == head && one["source_project_id"] == one["target_project_id"]
        });
        ours.map(|one| self.read(asked, one)).transpose()
    }

    fn open(&self, draft: &PullRequestDraft) -> Result<PullRequest, ForgeError> {
        let asked = "open the merge request";
        let body = json!({
            "source_branch": draft.head, "target_branch": draft.base,
            "title": draft.title, "description": draft.body,
        });
        let opened = self.http.ask(asked, Verb::POST, &self.requests(), Some(&body))?;
        self.read(asked, &opened)
    }

    fn update(&self, known: &PullRequest, change: &PullRequestChange) -> Result<(), ForgeError> {
        let path = format!("{}/{}", self.requests(), known.number);
        let asked = "update the merge request";
        self.http.ask(asked, Verb::PUT, &path, Some(&changed(change, "description"))).map(|_| ())
    }
}
