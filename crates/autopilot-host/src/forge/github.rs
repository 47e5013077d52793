//! GitHub's REST API, on its own hosts and on enterprise servers.

use super::address::{ForgeAddress, encoded, encoded_path};
use super::http::{Http, Verb, web_address};
use super::{Forge, ForgeError, PullRequest, PullRequestChange, PullRequestDraft};
use serde_json::{Value, json};

/// The API of one repository on GitHub.
pub(super) struct GithubForge<'a> {
    pub http: Http<'a>,
    pub address: ForgeAddress,
}

impl GithubForge<'_> {
    fn pulls(&self) -> String {
        format!("/repos/{}/pulls", encoded_path(&self.address.path))
    }

    fn read(&self, asked: &str, value: &Value) -> Result<PullRequest, ForgeError> {
        let number = value["number"].as_u64();
        let url = web_address(&value["html_url"]);
        let (Some(number), Some(url)) = (number, url) else {
            return Err(self.http.unreadable(asked, "the number or the address is missing"));
        };
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Ok(PullRequest { number, url, title: text("title"), body: text("body") })
    }
}

impl Forge for GithubForge<'_> {
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        let asked = "look for the pull request";
        let wanted = format!("{}:{head}", self.address.owner());
        let path = format!("{}?state=open&per_page=100&head={}", self.pulls(), encoded(&wanted));
        let found = self.http.ask(asked, Verb::GET, &path, None)?;
        let Some(found) = found.as_array() else {
            return Err(self.http.unreadable(asked, "it is not a list"));
        };
        // A server that does not know the filter returns everything.
        let ours = found.iter().find(|one| {
            let of = one["head"]["repo"]["full_name"].as_str().unwrap_or_default();
            one["head"]["ref"] == head && of.eq_ignore_ascii_case(&self.address.path)
        });
        ours.map(|one| self.read(asked, one)).transpose()
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

/// Returns the change as JSON; `body_key` is the forge's name for the text.
pub(super) fn changed(change: &PullRequestChange, body_key: &str) -> Value {
    let mut object = serde_json::Map::new();
    if let Some(title) = &change.title {
        object.insert("title".to_owned(), json!(title));
    }
    if let Some(body) = &change.body {
        object.insert(body_key.to_owned(), json!(body));
    }
    Value::Object(object)
}
