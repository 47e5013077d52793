//! A pull request after the push: opened once, whatever happens, and left as a text when it can't be.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

#[path = "../../autopilot-host/tests/forge/server.rs"]
mod server;

use autopilot_testkit::stage::{Ended, Stage, files_with, text};
use server::{FakeForge, Fault, Flavour};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const TOKEN: &str = "tok-cnry-5ecr3t-value-44";
const RUN: [&str; 3] = ["run", "tasks/say-done.md", "--pr"];

/// An `ssh` that finds `github.com` in a folder of this machine.
const SSH: &str = "#!/bin/sh\nfor last; do :; done\ncd \"$(dirname \"$0\")\" && eval \"$last\"\n";

/// A project whose remote is on GitHub, as git sees it.
fn stage() -> Stage {
    let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
    stage.config("commands: { tests: sh test.sh }\nloop: { retries: { push: 0 } }\n");
    let hosts = stage.folder().join("hosts");
    std::fs::create_dir(&hosts).unwrap();
    let ssh = hosts.join("ssh");
    std::fs::write(&ssh, SSH).unwrap();
    std::fs::set_permissions(&ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    stage.git(&["init", "-q", "--bare", &text(hosts.join("ada/engine.git"))]);
    stage.git(&["remote", "add", "origin", "git@github.com:ada/engine.git"]);
    stage.git(&["config", "core.sshCommand", &text(&ssh)]);
    stage.git(&["config", "ssh.variant", "simple"]);
    stage
}

fn with(forge: &FakeForge) -> Stage {
    let mut stage = stage();
    stage.set("AUTOPILOT_FORGE_API", &forge.api());
    stage.set("GH_TOKEN", TOKEN);
    stage
}

fn remote_branch(stage: &Stage, branch: &str) -> String {
    stage.git_in(&stage.folder().join("hosts/ada/engine.git"), &["rev-parse", branch])
}

fn tells_no_token(stage: &Stage, ended: &Ended) {
    assert!(!ended.said().contains(TOKEN), "{}", ended.said());
    assert_eq!(files_with(stage.folder(), TOKEN), Vec::<PathBuf>::new());
}

#[test]
fn a_finished_run_is_pushed_and_opened_with_what_proves_it() {
    let forge = FakeForge::start(Flavour::Github);
    let stage = with(&forge);
    let ended = stage.run(&RUN).expect(0);
    let state = stage.state_json();
    let branch = state["branch_name"].as_str().unwrap();
    assert_eq!(remote_branch(&stage, branch), stage.git(&["rev-parse", branch]));
    let pulls = forge.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    let pull = &pulls[0];
    assert_eq!((pull.head.as_str(), pull.base.as_str()), (branch, "main"));
    assert_eq!(pull.title, "[autopilot] Say done");
    let run = state["run_id"].as_str().unwrap();
    assert!(pull.body.starts_with(&format!("<!-- autopilot-run: {run} -->\n")), "{}", pull.body);
    for part in ["app.txt says done.", "| `say-done` |", "`sh test.sh` exit 0", "approved"] {
        assert!(pull.body.contains(part), "`{part}` is not in {}", pull.body);
    }
    let url = "https://forge.example/ada/engine/pull/1";
    assert_eq!(state["git"]["pull_request"], url);
    assert_eq!(stage.status()["git"]["pull_request"], url);
    assert!(ended.said().contains(url), "{}", ended.said());
    assert!(forge.lines().iter().all(|line| !line.contains("/merge")), "{:?}", forge.lines());
    tells_no_token(&stage, &ended);
}

#[test]
fn a_crash_after_it_was_opened_leaves_exactly_one() {
    let forge = FakeForge::start(Flavour::Github);
    let mut stage = with(&forge);
    stage.set("AUTOPILOT_FAILPOINT", "pull_request.opened:1");
    stage.run(&RUN).expect(-1);
    assert_eq!(forge.pulls().len(), 1);
    stage.set("AUTOPILOT_FAILPOINT", "none:1");
    stage.run(&["resume"]).expect(0);
    assert_eq!(forge.pulls().len(), 1, "{:?}", forge.lines());
    let posts = forge.lines().iter().filter(|line| line.starts_with("POST")).count();
    assert_eq!(posts, 1, "{:?}", forge.lines());
    let url = "https://forge.example/ada/engine/pull/1";
    assert_eq!(stage.state_json()["git"]["pull_request"], url);
}

#[test]
fn a_refusal_ends_with_12_and_leaves_the_text_the_patch_and_the_way() {
    let forge = FakeForge::start(Flavour::Github);
    let stage = with(&forge);
    forge.next(Fault::status(401, r#"{"message":"Bad credentials"}"#));
    let ended = stage.run(&RUN).expect(12);
    let state = stage.state_json();
    assert_eq!(state["current_state"], "FAILED");
    assert_eq!(
        (&state["git"]["pushed"], &state["git"]["pull_request"]),
        (&true.into(), &().into())
    );
    let branch = state["branch_name"].as_str().unwrap();
    let page = format!("https://github.com/ada/engine/compare/main...{branch}");
    for part in ["401 Bad credentials", "GH_TOKEN", &page] {
        assert!(ended.said().contains(part), "`{part}` is not in {}", ended.said());
    }
    for kind in ["_pull_request.md", ".patch", ".bundle"] {
        let found = stage.views(kind);
        assert_eq!(found.len(), 1, "{kind}: {found:?}");
        assert!(ended.said().contains(&text(&found[0])), "{kind}: {}", ended.said());
    }
    let kept = stage.texts_of("_pull_request.md");
    assert!(kept.starts_with("# [autopilot] Say done\n"), "{kept}");
    tells_no_token(&stage, &ended);
}

#[test]
fn the_configuration_can_ask_for_it_too() {
    let forge = FakeForge::start(Flavour::Gitlab);
    let mut stage = with(&forge);
    stage.set("AUTOPILOT_FORGE", "gitlab");
    stage.set("GITLAB_TOKEN", TOKEN);
    let more = "github: { enabled: true, open_pr: true, pr_title_prefix: 'bot:' }\n";
    stage.config(&format!("commands: {{ tests: sh test.sh }}\n{more}"));
    let ended = stage.run_task().expect(0);
    assert_eq!(forge.pulls()[0].title, "bot: Say done");
    tells_no_token(&stage, &ended);
}

#[test]
fn what_is_missing_is_said_before_any_agent_is_paid() {
    let mut stage = stage();
    stage.run(&RUN).expect(64).says(&["no token for github.com", "GH_TOKEN", "gh auth login"]);
    stage.set("GH_TOKEN", TOKEN);
    stage.git(&["remote", "set-url", "origin", "https://git.acme.org/a/b"]);
    stage.run(&RUN).expect(64).says(&["git.acme.org", "AUTOPILOT_FORGE"]);
    assert!(stage.views("prompt").is_empty());
}

#[test]
fn gh_opens_it_where_it_is_logged_in() {
    let mut stage = stage();
    let bin = stage.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let gh = "#!/bin/sh\nhere=$(dirname \"$0\")\nprintf '%s\\n' \"$*\" >> \"$here/args\"\n\
              case \"$1 $2\" in\n'pr list') echo '[]' ;;\n'pr create') cat > \"$here/body\"; \
              echo https://github.com/ada/engine/pull/9 ;;\nesac\n";
    std::fs::write(bin.join("gh"), gh).unwrap();
    std::fs::set_permissions(bin.join("gh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    stage.set("PATH", &format!("{}:{path}", bin.display()));
    stage.run(&RUN).expect(0).says(&["https://github.com/ada/engine/pull/9"]);
    let args = std::fs::read_to_string(bin.join("args")).unwrap();
    assert!(args.contains("pr create --repo=github.com/ada/engine"), "{args}");
    assert_eq!(args.matches("pr create").count(), 1, "{args}");
    let body = std::fs::read_to_string(bin.join("body")).unwrap();
    assert!(body.contains("`sh test.sh` exit 0"), "{body}");
}

#[test]
fn a_text_that_holds_a_known_secret_in_pieces_is_not_sent() {
    let forge = FakeForge::start(Flavour::Github);
    let stage = with(&forge);
    let (one, two) = TOKEN.split_at(9);
    stage.config(&format!(
        "commands: {{ tests: sh test.sh }}\ngithub: {{ pr_title_prefix: '{one} {two}' }}\n"
    ));
    let ended = stage.run(&RUN).expect(12);
    let ended = ended.says(&["the pull request holds the value of the known secret `GH_TOKEN`"]);
    assert!(forge.pulls().is_empty(), "{:?}", forge.pulls());
    assert!(stage.views("pull_request.md").is_empty(), "nor is it left as a file");
    assert!(!ended.said().contains(two), "{}", ended.said());
}
