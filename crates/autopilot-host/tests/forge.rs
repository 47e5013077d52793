//! Pull requests against forges on this machine: opened once, updated, never doubled, and messages
//! for whoever has to open one by hand.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

#[path = "forge/server.rs"]
mod server;

use autopilot_host::cause::chain;
use autopilot_host::forge::{
    ForgeError, ForgeRequest, How, Published, PullRequestDraft, choose, publish,
};
use server::{FakeForge, Fault, Flavour, Pull};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const TOKEN: &str = "tok-5ecr3t-value-77";
const SOON: [Duration; 3] = [Duration::from_millis(10); 3];
const FLAVOURS: [Flavour; 3] = [Flavour::Github, Flavour::Gitlab, Flavour::Gitea];

type Variables = BTreeMap<String, String>;

/// A repository with a remote on a forge, and the environment's settings for it.
struct Place {
    dir: tempfile::TempDir,
    variables: Variables,
    timeout: Duration,
}

impl Place {
    fn new(url: &str, variables: &[(&str, &str)]) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let place = Place {
            dir,
            variables: variables.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            timeout: Duration::from_secs(20),
        };
        place.git(&["init", "-q"]);
        place.git(&["remote", "add", "origin", url]);
        place
    }

    fn at(forge: &FakeForge, flavour: Flavour) -> Place {
        let (url, kind, token) = match flavour {
            Flavour::Github => ("git@github.com:ada/engine.git", "github", "GH_TOKEN"),
            Flavour::Gitlab => ("https://gitlab.com/ada/engine.git", "gitlab", "GITLAB_TOKEN"),
            Flavour::Gitea => ("https://git.acme.org/ada/engine", "gitea", "GITEA_TOKEN"),
        };
        let api = forge.api();
        let variables = [("AUTOPILOT_FORGE", kind), ("AUTOPILOT_FORGE_API", &api), (token, TOKEN)];
        Place::new(url, &variables)
    }

    fn git(&self, args: &[&str]) {
        let out = Command::new("git").args(args).current_dir(self.dir.path()).output().unwrap();
        assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    }

    fn asked<'a>(&'a self, unwanted: &'a dyn Fn() -> bool) -> ForgeRequest<'a> {
        ForgeRequest {
            dir: self.dir.path(),
            remote: "origin",
            variables: &self.variables,
            timeout: self.timeout,
            unwanted,
        }
    }

    fn publish(&self, draft: &PullRequestDraft) -> Result<Published, ForgeError> {
        self.publish_after(draft, &SOON)
    }

    fn publish_after(
        &self,
        draft: &PullRequestDraft,
        delays: &[Duration],
    ) -> Result<Published, ForgeError> {
        let chosen = choose(&self.asked(&|| false))?;
        publish(chosen.forge.as_ref(), draft, delays, &|| false)
    }
}

fn draft(text: &str) -> PullRequestDraft {
    PullRequestDraft {
        head: "autopilot/run-1".into(),
        base: "main".into(),
        title: format!("[autopilot] {text}"),
        body: format!("<!-- autopilot-run: 1 -->\n{text}\n<!-- autopilot-end: 1 -->"),
    }
}

fn words(error: &ForgeError) -> String {
    format!("{}; {}", chain(error), error.next_step())
}

#[test]
fn an_error_keeps_its_cause() {
    use autopilot_host::forge::{AnswerError, SettingError};
    use autopilot_host::git::CommandError;
    use autopilot_host::web::NoAnswer;
    use std::error::Error;
    fn is<T: Error + 'static>(error: &ForgeError, kind: fn(&T) -> bool) -> bool {
        error.source().and_then(|source| source.downcast_ref::<T>()).is_some_and(kind)
    }
    let failed = |place: &Place| place.publish_after(&draft("first"), &[]).unwrap_err();
    let github = |api: &str| {
        let variables = [("AUTOPILOT_FORGE_API", api), ("GH_TOKEN", TOKEN)];
        Place::new("https://github.com/a/b", &variables)
    };

    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = failed(&github(&format!("http://{nobody}")));
    assert!(is(&error, |cause: &NoAnswer| matches!(cause, NoAnswer::Http(_))), "{error:?}");
    let error = failed(&github("ftp://x"));
    assert!(is(&error, |cause| matches!(cause, SettingError::Protocol)), "{error:?}");
    let forge = FakeForge::start(Flavour::Github);
    forge.next(Fault::status(200, "{}"));
    let error = failed(&Place::at(&forge, Flavour::Github));
    assert!(is(&error, |cause| matches!(cause, AnswerError::NoList)), "{error:?}");
    let place = github("https://x");
    place.git(&["remote", "remove", "origin"]);
    let error = failed(&place);
    assert!(is(&error, |cause| matches!(cause, CommandError::Failed { .. })), "{error:?}");
}

#[test]
fn one_is_opened_and_then_updated_at_every_forge() {
    for flavour in FLAVOURS {
        let forge = FakeForge::start(flavour);
        let place = Place::at(&forge, flavour);
        let opened = place.publish(&draft("first")).unwrap();
        assert_eq!((opened.number, opened.how), (1, How::Opened), "{flavour:?}");
        assert!(opened.url.ends_with("/1"), "{}", opened.url);
        let again = place.publish(&draft("first")).unwrap();
        assert_eq!((again.number, again.how), (1, How::Unchanged), "{flavour:?}");
        let updated = place.publish(&draft("second")).unwrap();
        assert_eq!((updated.number, updated.how), (1, How::Updated), "{flavour:?}");
        assert_eq!(updated.url, opened.url);
        let pulls = forge.pulls();
        assert_eq!(pulls.len(), 1, "{flavour:?}: {pulls:?}");
        let Pull { head, base, title, body, .. } = &pulls[0];
        let wanted = draft("second");
        assert_eq!(
            (head, base, title, body),
            (&wanted.head, &wanted.base, &wanted.title, &wanted.body)
        );
        // No other request is ever sent: above all no merge.
        let (top, verb) = match flavour {
            Flavour::Github | Flavour::Gitea => ("/repos/ada/engine/pulls", "PATCH"),
            Flavour::Gitlab => ("/projects/ada%2Fengine/merge_requests", "PUT"),
        };
        let (get, post) = (format!("GET {top}"), format!("POST {top}"));
        let lines = forge.lines();
        let allowed = [&get, &post, &format!("{verb} {top}/1")];
        assert!(lines.iter().all(|line| allowed.contains(&line)), "{lines:?}");
        assert_eq!(lines.iter().filter(|line| **line == post).count(), 1, "{lines:?}");
        let header = match flavour {
            Flavour::Github => format!("authorization: Bearer {TOKEN}"),
            Flavour::Gitlab => format!("private-token: {TOKEN}"),
            Flavour::Gitea => format!("authorization: token {TOKEN}"),
        };
        assert!(forge.asked().iter().all(|asked| asked.headers.contains(&header)));
    }
}

#[test]
fn one_that_was_closed_stays_closed_and_another_is_opened() {
    for flavour in FLAVOURS {
        let forge = FakeForge::start(flavour);
        let place = Place::at(&forge, flavour);
        place.publish(&draft("first")).unwrap();
        forge.change(|pulls| pulls[0].open = false);
        let second = place.publish(&draft("second")).unwrap();
        assert_eq!((second.number, second.how), (2, How::Opened), "{flavour:?}");
        let states: Vec<bool> = forge.pulls().iter().map(|pull| pull.open).collect();
        assert_eq!(states, [false, true], "{flavour:?}");
        assert!(forge.pulls()[0].body.contains("first"));
    }
}

#[test]
fn that_of_a_fork_with_the_same_branch_is_not_ours_and_ours_is_found_behind_many() {
    for flavour in FLAVOURS {
        let forge = FakeForge::start(flavour);
        let place = Place::at(&forge, flavour);
        place.publish(&draft("ours")).unwrap();
        let ours = forge.pulls()[0].clone();
        let foreign =
            |number| Pull { number, from_fork: true, body: "theirs".into(), ..ours.clone() };
        forge.change(|pulls| {
            *pulls = (2..6).map(foreign).chain([ours.clone()]).chain((6..9).map(foreign)).collect();
        });
        let updated = place.publish(&draft("ours, later")).unwrap();
        assert_eq!((updated.number, updated.how), (1, How::Updated), "{flavour:?}");
        let pulls = forge.pulls();
        let mut theirs = pulls.iter().filter(|pull| pull.from_fork);
        assert!(theirs.all(|pull| pull.body == "theirs"), "{flavour:?}");
    }
}

#[test]
fn a_filter_that_the_server_does_not_know_finds_nobody_elses() {
    let forge = FakeForge::start(Flavour::Github);
    let place = Place::at(&forge, Flavour::Github);
    let shown = |branch: &str, owner: &str| {
        let repo = format!(r#"{{"full_name":"{owner}/engine"}}"#);
        let head = format!(r#"{{"ref":"{branch}","repo":{repo}}}"#);
        format!(r#"{{"number":8,"html_url":"https://x/8","title":"t","body":"b","head":{head}}}"#)
    };
    let everything = [shown("another", "ada"), shown("autopilot/run-1", "eve")].join(",");
    forge.next(Fault::status(200, &format!("[{everything}]")));
    assert_eq!(place.publish(&draft("first")).unwrap().how, How::Opened);
}

#[test]
fn a_lost_answer_leaves_exactly_one() {
    for flavour in FLAVOURS {
        let forge = FakeForge::start(flavour);
        let place = Place::at(&forge, flavour);
        forge.next(Fault::Answer { status: 200, header: "X: 1", body: "[]".into() });
        forge.next(Fault::LostAnswer);
        let published = place.publish(&draft("first")).unwrap();
        assert_eq!((published.number, published.how), (1, How::Unchanged), "{flavour:?}");
        assert_eq!(forge.pulls().len(), 1, "{flavour:?}");
    }
}

#[test]
fn one_that_the_forge_did_not_show_at_first_is_found_after_its_refusal() {
    for flavour in FLAVOURS {
        let forge = FakeForge::start(flavour);
        let place = Place::at(&forge, flavour);
        place.publish(&draft("first")).unwrap();
        // The forge's list lags behind.
        forge.next(Fault::Answer { status: 200, header: "X: 1", body: "[]".into() });
        let published = place.publish(&draft("second")).unwrap();
        assert_eq!((published.number, published.how), (1, How::Updated), "{flavour:?}");
        assert_eq!(forge.pulls().len(), 1, "{flavour:?}");
    }
}

#[test]
fn trouble_that_passes_is_waited_for_and_no_longer_than_it_may() {
    let forge = FakeForge::start(Flavour::Github);
    let place = Place::at(&forge, Flavour::Github);
    for status in [500, 503] {
        forge.next(Fault::status(status, "<html>away</html>"));
    }
    forge.next(Fault::Answer { status: 429, header: "Retry-After: 0", body: "{}".into() });
    assert_eq!(place.publish(&draft("first")).unwrap().how, How::Opened);

    for _ in 0..4 {
        forge.next(Fault::status(502, ""));
    }
    let before = forge.asked().len();
    let error = place.publish(&draft("first")).unwrap_err();
    assert_eq!(forge.asked().len() - before, 1 + SOON.len(), "{error}");
    assert!(words(&error).contains("502"), "{error}");

    let began = Instant::now();
    let body = r#"{"message":"You have exceeded a secondary rate limit"}"#.to_owned();
    forge.next(Fault::Answer { status: 403, header: "Retry-After: 3600", body });
    let said = words(&place.publish(&draft("first")).unwrap_err());
    assert!(said.contains("secondary rate limit") && said.contains("3600 s"), "{said}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_refusal_says_what_was_asked_of_whom_and_what_to_do() {
    let cases = [
        (
            401,
            r#"{"message":"Bad credentials"}"#,
            &["401 Bad credentials", "GH_TOKEN", "expired"][..],
        ),
        (
            403,
            r#"{"message":"Resource not accessible"}"#,
            &["403", "write access to pull requests"],
        ),
        (404, r#"{"message":"Not Found"}"#, &["404 Not Found", "right repository", "GH_TOKEN"]),
        (
            422,
            r#"{"message":"Validation Failed","errors":[{"message":"No commits between main and x"}]}"#,
            &["422 Validation Failed; No commits between main and x", "base branch"],
        ),
    ];
    for (status, body, wanted) in cases {
        let forge = FakeForge::start(Flavour::Github);
        let place = Place::at(&forge, Flavour::Github);
        forge.next(Fault::status(200, "[]"));
        forge.next(Fault::status(status, body));
        let error = place.publish(&draft("first")).unwrap_err();
        let said = words(&error);
        for part in wanted.iter().chain(&["refused to open the pull request", "127.0.0.1"]) {
            assert!(said.contains(part), "`{part}` is not in: {said}");
        }
        assert!(!said.contains(TOKEN) && !format!("{error:?}").contains(TOKEN), "{said}");
        assert_eq!(forge.asked().len(), 2, "{status} is not tried again");
    }
    let forge = FakeForge::start(Flavour::Github);
    let place = Place::at(&forge, Flavour::Github);
    forge.next(Fault::Answer {
        status: 301,
        header: "Location: https://x/repositories/7",
        body: String::new(),
    });
    let said = words(&place.publish(&draft("first")).unwrap_err());
    assert!(
        said.contains("moved to https://x/repositories/7") && said.contains("set-url"),
        "{said}"
    );
    forge.next(Fault::status(200, "<html>login</html>"));
    let said = words(&place.publish(&draft("first")).unwrap_err());
    assert!(
        said.contains("could not be understood") && said.contains("AUTOPILOT_FORGE_API"),
        "{said}"
    );
}

#[test]
fn a_forge_that_is_silent_endless_or_not_there_is_told_in_words() {
    let forge = FakeForge::start(Flavour::Gitea);
    let mut place = Place::at(&forge, Flavour::Gitea);
    place.timeout = Duration::from_millis(300);
    forge.next(Fault::Silence(Duration::from_secs(3)));
    let said = words(&place.publish_after(&draft("first"), &[]).unwrap_err());
    assert!(said.contains("no answer in time"), "{said}");

    place.timeout = Duration::from_secs(20);
    forge.next(Fault::Endless);
    let said = words(&place.publish_after(&draft("first"), &[]).unwrap_err());
    assert!(said.contains("longer than 16777216 bytes"), "{said}");

    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    place.variables.insert("AUTOPILOT_FORGE_API".into(), format!("http://{free}"));
    let said = words(&place.publish_after(&draft("first"), &[]).unwrap_err());
    assert!(
        said.contains("cannot look for the pull request") && said.contains("refused"),
        "{said}"
    );
    assert!(!said.contains(TOKEN), "{said}");
}

#[test]
fn what_nobody_wants_any_more_is_left_at_once() {
    let forge = FakeForge::start(Flavour::Gitlab);
    let place = Place::at(&forge, Flavour::Gitlab);
    forge.next(Fault::Silence(Duration::from_secs(15)));
    let began = Instant::now();
    let unwanted = || began.elapsed() > Duration::from_millis(200);
    let chosen = choose(&place.asked(&unwanted)).unwrap();
    let error = publish(chosen.forge.as_ref(), &draft("first"), &SOON, &unwanted).unwrap_err();
    assert!(matches!(error, ForgeError::Unwanted), "{error}");
    // The wait between two tries is cut short as well.
    forge.next(Fault::status(500, ""));
    let (delays, began) = ([Duration::from_secs(30)], Instant::now());
    let unwanted = || began.elapsed() > Duration::from_millis(400);
    let error = publish(chosen.forge.as_ref(), &draft("first"), &delays, &unwanted).unwrap_err();
    assert!(matches!(error, ForgeError::Unwanted), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_is_sent() {
    let github = "https://ada:pa55word@github.com/ada/engine.git";
    let with_user = "https://ada:pa55word@127.0.0.1/api";
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);
    let cases: [Case<'_>; 9] = [
        (github, &[], &["no token for github.com", "gh auth login", "GH_TOKEN or GITHUB_TOKEN"]),
        (github, &[("GH_TOKEN", "  ")], &["no token for github.com"]),
        ("git@gitlab.com:a/b.git", &[("GH_TOKEN", TOKEN)], &["gitlab.com", "set GITLAB_TOKEN"]),
        ("https://codeberg.org/a/b", &[], &["set GITEA_TOKEN"]),
        ("https://github.evil.org/a/b", &[("GH_TOKEN", TOKEN)], &["GH_ENTERPRISE_TOKEN"]),
        ("https://git.acme.org/a/b", &[("GH_TOKEN", TOKEN)], &["git.acme.org", "AUTOPILOT_FORGE"]),
        ("/srv/remote.git", &[("GH_TOKEN", TOKEN)], &["/srv/remote.git", "set-url origin"]),
        (github, &[("AUTOPILOT_FORGE", "sourcehut")], &["`sourcehut`", "github, gitlab, gitea"]),
        (github, &[("AUTOPILOT_FORGE_API", with_user)], &["AUTOPILOT_FORGE_API", "password"]),
    ];
    for (url, variables, wanted) in cases {
        let place = Place::new(url, variables);
        let said = words(&place.publish(&draft("first")).unwrap_err());
        for part in wanted {
            assert!(said.contains(part), "{url}: `{part}` is not in: {said}");
        }
        assert!(!said.contains("pa55word") && !said.contains(TOKEN), "{said}");
    }
    let place = Place::new(github, &[("GH_TOKEN", "line\nbreak-in-it")]);
    let said = words(&place.publish(&draft("first")).unwrap_err());
    assert!(said.contains("GH_TOKEN is not valid") && !said.contains("break-in-it"), "{said}");
    let mut place = Place::new(github, &[("GH_TOKEN", TOKEN)]);
    place.variables.insert("SSL_CERT_FILE".into(), "/nowhere/ca.pem".into());
    let said = words(&place.publish(&draft("first")).unwrap_err());
    assert!(said.contains("SSL_CERT_FILE") && said.contains("/nowhere/ca.pem"), "{said}");
}

#[test]
fn the_address_is_that_of_the_push_as_git_understands_it() {
    let forge = FakeForge::start(Flavour::Github);
    let place = Place::at(&forge, Flavour::Github);
    place.git(&["remote", "set-url", "origin", "https://github.com/upstream/engine"]);
    place.git(&["remote", "set-url", "--push", "origin", "work:ada/engine.git"]);
    place.git(&["config", "url.git@github.com:.insteadOf", "work:"]);
    let unwanted = || false;
    let site = choose(&place.asked(&unwanted)).unwrap().site;
    assert_eq!(
        (site.address.host.as_str(), site.address.path.as_str()),
        ("github.com", "ada/engine")
    );
    let page = "https://github.com/ada/engine/compare/main...autopilot/run-1";
    assert_eq!(site.page("main", "autopilot/run-1"), page);
    // A push URL on this machine has no forge; the fetch URL has one.
    place.git(&["remote", "set-url", "--push", "origin", "/srv/copy.git"]);
    assert_eq!(choose(&place.asked(&unwanted)).unwrap().site.address.path, "upstream/engine");
}

/// A `gh` that keeps its input and arguments beside itself and answers from `list.json`.
const FAKE_GH: &str = r#"#!/bin/sh
here=$(dirname "$0")
printf '%s\n' "$*" >> "$here/args"
env | grep -E '^(GH_PROMPT_DISABLED|GH_NO_UPDATE_NOTIFIER)=' >> "$here/env"
case "$1 $2" in
"auth status") exit "$(cat "$here/auth")" ;;
"pr list") cat "$here/list.json" ;;
"pr create")
    cat > "$here/body"
    if [ -e "$here/refuse" ]; then cat "$here/refuse" >&2; exit 1; fi
    printf '[{"number":7,"url":"https://github.com/ada/engine/pull/7","title":"t","body":"","headRefName":"autopilot/run-1","isCrossRepository":false}]' > "$here/list.json"
    echo "Creating pull request" >&2
    if [ -e "$here/lose" ]; then rm "$here/lose"; echo "error connecting to api.github.com" >&2; exit 1; fi
    echo "https://github.com/ada/engine/pull/7" ;;
"pr edit")
    cat > "$here/body"
    if [ -e "$here/old" ]; then
        echo "GraphQL: Projects (classic) is being deprecated (repository.pullRequest.projectCards)" >&2
        exit 1
    fi ;;
"api --method=PATCH") cat > "$here/body" ;;
*) echo "unknown: $*" >&2; exit 2 ;;
esac
"#;

fn with_gh() -> Place {
    let mut place = Place::new("git@github.com:ada/engine.git", &[("GH_TOKEN", TOKEN)]);
    let bin = place.dir.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("gh"), FAKE_GH).unwrap();
    std::fs::set_permissions(bin.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(bin.join("auth"), "0").unwrap();
    std::fs::write(bin.join("list.json"), "[]").unwrap();
    place.variables.insert("PATH".into(), format!("relative:{}", bin.display()));
    place
}

fn kept(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.dir.path().join("bin").join(name)).unwrap_or_default()
}

fn put(place: &Place, name: &str, text: &str) {
    std::fs::write(place.dir.path().join("bin").join(name), text).unwrap();
}

#[test]
fn gh_is_used_where_it_is_logged_in_and_never_asked_to_ask() {
    let place = with_gh();
    assert_eq!(choose(&place.asked(&|| false)).unwrap().by, "gh");
    let opened = place.publish(&draft("first")).unwrap();
    assert_eq!((opened.number, opened.how), (7, How::Opened));
    assert_eq!(opened.url, "https://github.com/ada/engine/pull/7");
    assert_eq!(kept(&place, "body"), draft("first").body);
    let updated = place.publish(&draft("second")).unwrap();
    assert_eq!((updated.number, updated.how), (7, How::Updated));
    assert_eq!(kept(&place, "body"), draft("second").body);
    let args = kept(&place, "args");
    assert!(args.contains("auth status --hostname github.com"), "{args}");
    let create = "pr create --repo=github.com/ada/engine --head=autopilot/run-1 --base=main \
                  --title=[autopilot] first --body-file=-";
    assert_eq!(args.lines().filter(|line| *line == create).count(), 1, "{args}");
    assert!(args.contains("pr edit 7 --repo=github.com/ada/engine --body-file=-"), "{args}");
    assert!(!args.contains(TOKEN) && !args.contains("merge"), "{args}");
    let env = kept(&place, "env");
    assert!(env.contains("GH_PROMPT_DISABLED=1") && env.contains("GH_NO_UPDATE_NOTIFIER=1"));
}

#[test]
fn an_answer_of_gh_that_was_lost_leaves_one_and_its_words_are_told() {
    let place = with_gh();
    put(&place, "lose", "");
    assert_eq!(place.publish(&draft("first")).unwrap().number, 7);
    let creates = kept(&place, "args").matches("pr create").count();
    assert_eq!(creates, 1);

    let place = with_gh();
    put(&place, "refuse", "pull request create failed: GraphQL: No commits between main and x\n");
    let said = words(&place.publish(&draft("first")).unwrap_err());
    assert!(said.contains("No commits between main and x"), "{said}");
    assert!(said.contains("could not open the pull request at github.com"), "{said}");
}

#[test]
fn an_old_gh_that_stumbles_over_projects_still_updates() {
    let place = with_gh();
    place.publish(&draft("first")).unwrap();
    put(&place, "old", "");
    assert_eq!(place.publish(&draft("second")).unwrap().how, How::Updated);
    assert!(
        kept(&place, "args").contains(
            "api --method=PATCH --hostname=github.com repos/ada/engine/pulls/7 --input=-"
        )
    );
    assert!(kept(&place, "body").contains("second"));
}

#[test]
fn without_a_login_of_gh_the_token_is_used_instead() {
    let place = with_gh();
    put(&place, "auth", "1");
    assert_eq!(choose(&place.asked(&|| false)).unwrap().by, "https://api.github.com");
    let mut place = with_gh();
    put(&place, "auth", "1");
    place.variables.remove("GH_TOKEN");
    let said = choose(&place.asked(&|| false)).err().map(|error| words(&error)).unwrap();
    assert!(said.contains("gh auth login --hostname github.com"), "{said}");
    assert!(Path::new(&place.dir.path().join("bin/args")).exists());
}
