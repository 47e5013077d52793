//! Secrets in a change: the value of a known secret blocks, wherever it is and however it is
//! written; a text that only looks like a key is told to the reviewer and to the person, because
//! example keys exist.

use super::finding::visible;
use super::{Change, Finding, FindingSource, Severity};
use crate::key_shape::{KEY_SHAPES, any_key};
use regex::{Regex, RegexSet};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The value of a known secret that was found where it must not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretLeak {
    /// The name of the secret: a variable, a key of the configuration, a file. Never the value.
    pub secret: String,
    /// How the value is written.
    pub form: LeakForm,
    pub place: LeakPlace,
}

/// How the value of a secret is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeakForm {
    Plain,
    Base64,
    Hex,
    UrlEncoded,
    /// In pieces, with line ends, quotes or operators between them, or with escapes.
    Split,
}

impl LeakForm {
    fn words(self) -> &'static str {
        match self {
            LeakForm::Plain => "",
            LeakForm::Base64 => ", in base64",
            LeakForm::Hex => ", in hexadecimal",
            LeakForm::UrlEncoded => ", URL-encoded",
            LeakForm::Split => ", in pieces or with escapes",
        }
    }
}

/// The place where the value of a secret was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeakPlace {
    /// A line of a file.
    File { path: String, line: u64 },
    /// The name of a file or of a directory.
    FileName { path: String },
    /// A line of a file in an earlier commit of the branch.
    OldFile { path: String, line: u64 },
    /// The message or the author of a commit.
    Commit { commit: String },
    /// The name of a branch.
    Branch,
    /// A text that is not in git, such as that of a pull request.
    Text { what: String },
}

impl SecretLeak {
    fn finding(&self) -> Finding {
        let what = format!("the value of the known secret `{}`{}", self.secret, self.form.words());
        // Only the message is shown everywhere, so the way past a wrong guess is in it.
        let way = setting_of(&self.secret).map(|name| {
            format!(" (if it is no secret, a person can set `secrets.ignore: [{name}]` and retry)")
        });
        let what = format!("{what}{}", way.unwrap_or_default());
        let new = |message: String, fix: &str| {
            Finding::new(FindingSource::Secret, Severity::Blocker, message, fix)
        };
        let in_file = "remove it, and read it from the environment when the program runs";
        match &self.place {
            LeakPlace::File { path, line } => {
                new(format!("this line holds {what}"), in_file).in_file(path).at_line(*line)
            }
            LeakPlace::FileName { path } => {
                new(format!("the name of this file holds {what}"), "rename the file").in_file(path)
            }
            LeakPlace::OldFile { path, line } => {
                let path = visible(path);
                new(
                    format!("line {line} of {path} in an earlier commit holds {what}"),
                    "leave that commit out of the history",
                )
            }
            LeakPlace::Commit { commit } => {
                new(format!("the message of commit {commit} holds {what}"), "reword it")
            }
            LeakPlace::Branch => {
                new(format!("the name of the branch holds {what}"), "rename the task")
            }
            LeakPlace::Text { what: text } => new(format!("{text} holds {what}"), "reword it"),
        }
    }
}

/// The beginning of the name of a password in an address.
pub const PASSWORD_IN: &str = "the password in ";

/// The name under which a person lists a secret in `secrets.ignore`: that of its variable, or of its
/// key in the configuration. None for a login or a remote, which have none.
pub fn setting_of(secret: &str) -> Option<&str> {
    let place = secret.strip_prefix(PASSWORD_IN).unwrap_or(secret);
    let name = place.split_once(" in ").map_or(place, |(name, _)| name);
    (!name.contains(' ')).then_some(name)
}

/// Whether a person has said that this is no secret.
pub fn is_ignored(secret: &str, ignore: &[String]) -> bool {
    setting_of(secret).is_some_and(|name| ignore.iter().any(|ignored| ignored == name))
}

/// The findings about known secrets, which block, and about texts that look like keys, which do not.
pub(super) fn check(change: &Change) -> Vec<Finding> {
    let known = change.leaks.iter().map(SecretLeak::finding);
    known.chain(look_like_keys(change)).collect()
}

/// The reason why something must not leave the machine, or none if it may.
pub fn withheld(leaks: &[SecretLeak]) -> Option<String> {
    if leaks.is_empty() {
        return None;
    }
    let findings: Vec<Finding> = leaks.iter().map(SecretLeak::finding).collect();
    Some(super::report(&super::finding::limited(findings)).replace('\n', "; "))
}

fn look_like_keys(change: &Change) -> Vec<Finding> {
    static ANY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&any_key()).ok());
    static EACH: LazyLock<Option<RegexSet>> =
        LazyLock::new(|| RegexSet::new(KEY_SHAPES.iter().map(|shape| shape.pattern)).ok());
    let (Some(any), Some(each)) = (ANY.as_ref(), EACH.as_ref()) else { return Vec::new() };
    let mut findings = Vec::new();
    for line in change.added.iter().filter(|line| any.is_match(&line.text)) {
        let kinds = each.matches(&line.text).into_iter().filter_map(|at| KEY_SHAPES.get(at));
        let names: Vec<&str> = kinds.map(|shape| shape.name).collect();
        let known = change.leaks.iter().any(|leak| is_at(leak, &line.path, line.line));
        if known {
            continue;
        }
        let message = format!("this line looks as if it holds {}", names.join(" and "));
        let fix = "if it is a real one, remove it and have it revoked";
        let found = Finding::new(FindingSource::Secret, Severity::Major, message, fix);
        findings.push(found.in_file(&line.path).at_line(line.line));
    }
    findings
}

fn is_at(leak: &SecretLeak, path: &str, line: u64) -> bool {
    matches!(&leak.place, LeakPlace::File { path: at, line: number } if at == path && *number == line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubt::DoubtKind;
    use crate::guard::{ChangedLine, GuardRules, check};

    fn leak(place: LeakPlace) -> SecretLeak {
        SecretLeak { secret: "SERVICE_API_KEY".to_owned(), form: LeakForm::Base64, place }
    }

    fn adds(text: &str) -> Change {
        let line = ChangedLine { path: "src/a.rs".into(), line: 7, text: text.into() };
        Change { added: vec![line], insertions: 1, ..Change::default() }
    }

    fn rules() -> GuardRules<'static> {
        GuardRules { diff_line_cap: 100, ..GuardRules::default() }
    }

    #[test]
    fn a_known_secret_blocks_and_is_named_by_file_and_line() {
        let place = LeakPlace::File { path: "src/a.rs".into(), line: 7 };
        let change = Change { leaks: vec![leak(place)], ..adds("x") };
        let found = check(&change, &rules());
        insta::assert_snapshot!(crate::guard::report(&found), @"blocker: src/a.rs:7: this line holds the value of the known secret `SERVICE_API_KEY`, in base64 (if it is no secret, a person can set `secrets.ignore: [SERVICE_API_KEY]` and retry); remove it, and read it from the environment when the program runs");
        assert!(super::super::doubts(&found).is_empty(), "what blocks is a reason, not a doubt");
    }

    #[test]
    fn a_secret_is_ignored_by_the_name_of_its_variable_and_nothing_else_is() {
        let ignore = ["KMS_KEY".to_owned(), "DATABASE_URL".to_owned()];
        for (secret, ignored) in [
            ("KMS_KEY", true),
            ("KMS_KEY in .env", true),
            ("the password in DATABASE_URL", true),
            ("the password in DATABASE_URL in .env", true),
            ("KMS_KEY_2", false),
            ("MY_KMS_KEY", false),
            ("a remote of git", false),
            ("the login in /home/me/KMS_KEY", false),
        ] {
            assert_eq!(is_ignored(secret, &ignore), ignored, "{secret}");
        }
        assert_eq!(setting_of("a remote of git"), None);
        assert_eq!(setting_of("the login in /home/me/.codex/auth.json"), None);
        assert_eq!(setting_of("notify.webhook"), Some("notify.webhook"));
    }

    #[test]
    fn nothing_with_a_leak_leaves_wherever_the_leak_is() {
        assert_eq!(withheld(&[]), None);
        let commit = || "abc".to_owned();
        for place in [
            LeakPlace::File { path: "a".into(), line: 1 },
            LeakPlace::FileName { path: "a".into() },
            LeakPlace::OldFile { path: "a".into(), line: 1 },
            LeakPlace::Commit { commit: commit() },
            LeakPlace::Branch,
            LeakPlace::Text { what: "the pull request".into() },
        ] {
            let why = withheld(&[leak(place.clone())]).unwrap();
            assert!(why.contains("the known secret `SERVICE_API_KEY`"), "{place:?}: {why}");
        }
    }

    /// Fakes of every kind, none of them a key of anybody; put together here so that no scanner
    /// takes this file for a leak.
    fn fakes() -> Vec<(&'static str, String)> {
        let body = "0123456789abcdefghijABCDEFGHIJ0123456789";
        let of = |start: &str| format!("{start}{body}");
        vec![
            ("an AWS access key", format!("AK{}", "IAIOSFODNN7EXAMPLE")),
            ("an AWS secret key", format!("aws_secret_access_key = {body}")),
            ("a GitHub token", of("ghp_")),
            ("a GitHub token", of("github_pat_")),
            ("a GitLab token", of("glpat-")),
            ("a Slack token", of("xoxb-")),
            ("a Slack webhook", of("https://hooks.slack.com/services/T0/")),
            ("a Discord webhook", of("https://discord.com/api/webhooks/123456789/")),
            ("a Google key", of("AIza")),
            ("an Anthropic or OpenAI key", of("sk-ant-api03-")),
            ("an Anthropic or OpenAI key", of("sk-proj-")),
            ("an Anthropic or OpenAI key", of("sk-")),
            ("a Stripe key", of("sk_live_")),
            ("an npm token", of("npm_")),
            ("a PyPI token", of("pypi-")),
            ("a crates.io token", format!("cio{}", &body[..32])),
            ("a Hugging Face token", of("hf_")),
            ("a SendGrid key", format!("SG.{body}.{body}")),
            ("a DigitalOcean token", format!("dop_v1_{}", "0a".repeat(32))),
            ("a Docker token", of("dckr_pat_")),
            ("an Azure storage key", format!("AccountKey={body}{body}")),
            ("an age key", format!("AGE-SECRET-KEY-1{}", "A0".repeat(29))),
            ("a JSON Web Token", format!("eyJ{body}.eyJ{body}.{body}")),
            ("a private key", format!("-----BEGIN RSA {} KEY-----", "PRIVATE")),
            ("a private key", format!("-----BEGIN {} KEY-----", "PRIVATE")),
            ("a URL with a password", "postgres://app:s3cr3t@db.internal/app".to_owned()),
        ]
    }

    #[test]
    fn what_looks_like_a_key_is_told_and_does_not_block() {
        for (name, text) in fakes() {
            let found = check(&adds(&format!("let key = \"{text}\";")), &rules());
            let [found] = found.as_slice() else { panic!("{name}: {found:?}") };
            assert_eq!((found.source, found.severity), (FindingSource::Secret, Severity::Major));
            assert_eq!((found.file.as_deref(), found.line), (Some("src/a.rs"), Some(7)));
            assert!(found.message.contains(name), "{name}: {}", found.message);
            assert!(!found.message.contains(&text), "the text itself is not repeated");
            let told = super::super::doubts(std::slice::from_ref(found));
            assert_eq!(told[0].kind, DoubtKind::Secret, "{told:?}");
        }
    }

    #[test]
    fn honest_code_looks_like_no_key() {
        for text in [
            "let level = \"debug\";",
            "class=\"sk-folding-cube-container-animation\"",
            "task-something-with-a-long-name-0123456789",
            "https://localhost:8080/a@b:c",
            "git@github.com:owner/name.git",
            "postgres://${USER}:${PASSWORD}@localhost/app",
            "postgres://<user>:<password>@localhost/app",
            "-----BEGIN CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----",
            "ghp_short",
            "AKIA and others",
            "eyJhbGciOiJIUzI1NiJ9",
            "npm_config_cache",
            "0123456789012345678901234567890123456789",
        ] {
            assert_eq!(check(&adds(text), &rules()), [], "{text}");
        }
    }
}
