//! The REST APIs of GitHub, of GitLab, and of Gitea and Forgejo. Their words differ more than their
//! ways.

use super::address::{ForgeAddress, ForgeKind, encoded, encoded_path};
use super::error::AnswerError;
use super::http::{Http, Verb, web_address};
use super::{Forge, ForgeError, PullRequest, PullRequestChange, PullRequestDraft};
use serde_json::{Value, json};

/// How many pull requests Gitea returns at a time, unless its owner says otherwise.
const GITEA_PAGE: usize = 50;
/// How many pages are read. The newest come first, so ours is among them even where hundreds are
/// open.
const GITEA_PAGES_MAX: usize = 20;

/// The words of a forge for a pull request and its parts.
struct RestWords {
    noun: &'static str,
    number: &'static str,
    url: &'static str,
    head: &'static str,
    base: &'static str,
    body: &'static str,
    update: Verb,
    pages_max: usize,
}

const GITHUB: RestWords = RestWords {
    noun: "pull request",
    number: "number",
    url: "html_url",
    head: "head",
    base: "base",
    body: "body",
    update: Verb::PATCH,
    pages_max: 1,
};

const GITLAB: RestWords = RestWords {
    noun: "merge request",
    number: "iid",
    url: "web_url",
    head: "source_branch",
    base: "target_branch",
    body: "description",
    update: Verb::PUT,
    pages_max: 1,
};

const GITEA: RestWords = RestWords { pages_max: GITEA_PAGES_MAX, ..GITHUB };

/// The API of one repository at its forge.
pub(super) struct RestForge<'a> {
    pub http: Http<'a>,
    pub address: ForgeAddress,
}

impl RestForge<'_> {
    fn words(&self) -> &'static RestWords {
        match self.http.kind {
            ForgeKind::Github => &GITHUB,
            ForgeKind::Gitlab => &GITLAB,
            ForgeKind::Gitea => &GITEA,
        }
    }

    /// Returns the path of all pull requests.
    fn requests(&self) -> String {
        let path = &self.address.path;
        match self.http.kind {
            ForgeKind::Github | ForgeKind::Gitea => format!("/repos/{}/pulls", encoded_path(path)),
            ForgeKind::Gitlab => format!("/projects/{}/merge_requests", encoded(path)),
        }
    }

    /// Returns the query for the open pull requests of a branch. Gitea can't be asked by branch: the
    /// answer to that question may be a request that is closed.
    fn query(&self, head: &str, page: usize) -> String {
        match self.http.kind {
            ForgeKind::Github => {
                let head = encoded(&format!("{}:{head}", self.address.owner()));
                format!("state=open&per_page=100&head={head}")
            }
            ForgeKind::Gitlab => {
                format!("state=opened&per_page=100&source_branch={}", encoded(head))
            }
            ForgeKind::Gitea => {
                format!("state=open&sort=recentupdate&limit={GITEA_PAGE}&page={page}")
            }
        }
    }

    /// Returns whether the request comes from this branch of this repository. A fork may have a
    /// branch of the same name, and a server that does not know the filter returns everything.
    fn is_ours(&self, one: &Value, head: &str) -> bool {
        match self.http.kind {
            ForgeKind::Github | ForgeKind::Gitea => {
                let of = one["head"]["repo"]["full_name"].as_str().unwrap_or_default();
                one["head"]["ref"] == head && of.eq_ignore_ascii_case(&self.address.path)
            }
            ForgeKind::Gitlab => {
                one["source_branch"] == head && one["source_project_id"] == one["target_project_id"]
            }
        }
    }

    fn read(&self, asked: &str, value: &Value) -> Result<PullRequest, ForgeError> {
        let RestWords { number, url, body, .. } = self.words();
        read(value, [number, url, body]).map_err(|source| self.http.unreadable(asked, source))
    }
}

impl Forge for RestForge<'_> {
    fn find(&self, head: &str) -> Result<Option<PullRequest>, ForgeError> {
        let words = self.words();
        let asked = format!("look for the {}", words.noun);
        for page in 1..=words.pages_max {
            let path = format!("{}?{}", self.requests(), self.query(head, page));
            let found = self.http.ask(&asked, Verb::GET, &path, None)?;
            let Some(found) = found.as_array() else {
                return Err(self.http.unreadable(&asked, AnswerError::NoList));
            };
            if let Some(ours) = found.iter().find(|one| self.is_ours(one, head)) {
                return self.read(&asked, ours).map(Some);
            }
            if found.is_empty() {
                break;
            }
        }
        Ok(None)
    }

    fn open(&self, draft: &PullRequestDraft) -> Result<PullRequest, ForgeError> {
        let words = self.words();
        let asked = format!("open the {}", words.noun);
        let body = json!({
            (words.head): draft.head,
            (words.base): draft.base,
            "title": draft.title,
            (words.body): draft.body,
        });
        let opened = self.http.ask(&asked, Verb::POST, &self.requests(), Some(&body))?;
        self.read(&asked, &opened)
    }

    fn update(&self, known: &PullRequest, change: &PullRequestChange) -> Result<(), ForgeError> {
        let words = self.words();
        let path = format!("{}/{}", self.requests(), known.number);
        let asked = format!("update the {}", words.noun);
        let body = changed(change, words.body);
        self.http.ask(&asked, words.update.clone(), &path, Some(&body)).map(|_| ())
    }
}

/// Reads a pull request, whose number, page and text are under these keys.
pub(super) fn read(
    value: &Value,
    [number, url, body]: [&str; 3],
) -> Result<PullRequest, AnswerError> {
    let (number, url) = (value[number].as_u64(), web_address(&value[url]));
    let (Some(number), Some(url)) = (number, url) else { return Err(AnswerError::Incomplete) };
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Ok(PullRequest { number, url, title: text("title"), body: text(body) })
}

/// Returns the change as JSON; `body_key` is the forge's name for the text.
pub(super) fn changed(change: &PullRequestChange, body_key: &str) -> Value {
    let parts = [("title", &change.title), (body_key, &change.body)];
    let changed = parts.into_iter().filter_map(|(key, text)| Some((key, text.as_deref()?)));
    changed.map(|(key, text)| (key.to_owned(), Value::from(text))).collect()
}
