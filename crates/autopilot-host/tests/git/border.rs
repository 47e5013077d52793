//! Nothing with the value of a known secret leaves the hub, by whichever way.

use std::time::Duration;

use autopilot_host::git::artifact::write_artifacts;
use autopilot_host::git::push::{Hooks, Rebase};
use autopilot_host::git::{
    Border, FoundLeak, FoundPlace, GitCommand, GitError, Oid, PushRequest, publish,
    publish_reachable, push, salvage,
};
use autopilot_host::secret::{NamedSecret, SecretFinder};

use crate::world::{NOW, Open, World, git, in_hub, oid};

const KEY: &str = "cnry-5up3r-s3cr3t/value+91x";

fn border(open: &Open) -> Border {
    let finder = SecretFinder::new(&[NamedSecret::new("A_KEY", KEY)]).unwrap();
    let rule = |leaks: &[FoundLeak]| (!leaks.is_empty()).then(|| format!("{leaks:?}"));
    Border::new(finder, Some(open.base()), rule)
}

/// Commits files on top of a commit in the hub, as nobody but a test would.
fn commit(open: &Open, parent: &Oid, files: &[(&str, &str)], message: &str) -> Oid {
    let index = open.hub.dir().join("test.index");
    let run = |args: &[&str], stdin: &str| -> String {
        let out = GitCommand::isolated("make a commit", open.hub.dir())
            .env("GIT_INDEX_FILE", &index)
            .env("GIT_AUTHOR_NAME", "a")
            .env("GIT_AUTHOR_EMAIL", "a@b")
            .env("GIT_COMMITTER_NAME", "a")
            .env("GIT_COMMITTER_EMAIL", "a@b")
            .args(args.iter().copied())
            .stdin(stdin)
            .line();
        out.unwrap()
    };
    run(&["read-tree", parent.as_str()], "");
    for (name, text) in files {
        let blob = run(&["hash-object", "-w", "--stdin"], text);
        run(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{name}")], "");
    }
    let tree = run(&["write-tree"], "");
    oid(&run(&["commit-tree", &tree, "-p", parent.as_str(), "-F", "-"], message))
}

fn branch(open: &Open, name: &str, commit: &Oid) {
    in_hub(&open.hub, &["update-ref", &format!("refs/heads/{name}"), commit.as_str()]);
}

#[track_caller]
fn withheld<T: std::fmt::Debug>(result: Result<T, GitError>) -> String {
    match result {
        Err(GitError::Withheld { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_branch_with_a_secret_is_neither_published_nor_pushed_nor_written_to_a_file() {
    let world = World::new();
    let open = world.open();
    let remote = world.temp.path().join("remote.git");
    git(world.temp.path(), &["init", "-q", "--bare", "remote.git"]);
    git(&open.repo.root, &["remote", "add", "origin", remote.to_str().unwrap()]);
    let (base, border) = (open.base(), border(&open));
    let bad = commit(&open, &base, &[("a.txt", &format!("x\nkey={KEY}\n"))], "work");
    branch(&open, "autopilot/t1", &bad);
    let place = r#"File { path: "a.txt", line: 2 }"#;
    let why = withheld(publish(&open.hub, &open.repo, "autopilot/t1", &border));
    assert!(why.contains(place) && why.contains("A_KEY") && !why.contains(KEY), "{why}");
    withheld(publish_reachable(&open.hub, &open.repo, "autopilot/t1", &border));
    let files = world.temp.path().join("files");
    let written = |name: &str, head: &Oid| {
        write_artifacts(&open.hub, &files, "t1", &base, head, name, &border)
    };
    withheld(written("autopilot/t1", &bad));
    let request = PushRequest {
        remote: "origin",
        branch: "autopilot/t1",
        base: &base,
        task: "t1",
        timestamp: "ts",
        artifacts_dir: &files,
        network_delays: &[],
        timeout: Duration::from_secs(20),
        rebase: Rebase::Never,
        hooks: Hooks::Off,
        now: NOW,
        border: &border,
    };
    withheld(push(&open.hub, &open.repo, &request, &mut |_| true, &|| false));
    assert_eq!(git(&open.repo.root, &["for-each-ref", "refs/heads/autopilot"]), "");
    assert_eq!(git(&remote, &["for-each-ref"]), "");
    assert!(!files.exists());
}

#[test]
fn history_names_and_messages_are_looked_at_too() {
    let world = World::new();
    let open = world.open();
    let (base, border) = (open.base(), border(&open));
    let bad = commit(&open, &base, &[("a.txt", KEY)], "work");
    let mended = commit(&open, &bad, &[("a.txt", "clean\n")], "mended");
    let worded = commit(&open, &base, &[("a.txt", "clean\n")], &format!("uses {KEY}"));
    let split = commit(&open, &base, &[("cnry-5up3r-s3cr3t/value+91x", "clean\n")], "work");
    let clean = commit(&open, &base, &[("a.txt", "clean\n")], "work");
    let named = format!("autopilot/{}", KEY.replace('+', ""));
    for (name, commit, place) in [
        ("autopilot/t1", &mended, r#"OldFile { path: "a.txt", line: 1 }"#),
        ("autopilot/t2", &worded, "Commit {"),
        ("autopilot/t3", &split, "FileName {"),
        (named.as_str(), &clean, "Branch"),
    ] {
        branch(&open, name, commit);
        let why = withheld(publish(&open.hub, &open.repo, name, &border));
        assert!(why.contains(place), "{name}: {why}");
    }
    branch(&open, "autopilot/t4", &clean);
    publish(&open.hub, &open.repo, "autopilot/t4", &border).unwrap();
    let text = format!("it uses {KEY}");
    withheld(border.pass_text(&open.hub, "the pull request", &text));
    border.pass_text(&open.hub, "the pull request", "it is clean").unwrap();
}

#[test]
fn salvaged_work_with_a_secret_is_not_restored() {
    let world = World::new();
    let open = world.open();
    let bad = commit(&open, &open.base(), &[("a.txt", KEY)], "work");
    in_hub(&open.hub, &["update-ref", "refs/autopilot/salvage/t1/1.0", bad.as_str()]);
    let item = &salvage::list(&open.hub).unwrap()[0];
    withheld(salvage::restore(&open.hub, &open.repo, item, &border(&open)));
    assert_eq!(git(&open.repo.root, &["for-each-ref", "refs/heads/autopilot"]), "");
}

#[test]
fn a_change_is_searched_in_added_changed_and_binary_files_and_not_in_removed_ones() {
    let world = World::new();
    let open = world.open();
    let (base, border) = (open.base(), border(&open));
    let leaks = |from: &Oid, to: &Oid| border.leaks_in_change(&open.hub, from, to).unwrap();
    let files = [
        ("a.txt", format!("one\ntwo\n{KEY}\n")),
        ("b.bin", format!("\0\n\0{KEY}\0")),
        ("c.txt", "clean\n".to_owned()),
        ("d.txt", "x".repeat(100_000) + &KEY.replace('/', "\"\n + \"/")),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let bad = commit(&open, &base, &files, "work");
    let at = |path: &str, line| FoundPlace::File { path: path.into(), line };
    let places: Vec<FoundPlace> = leaks(&base, &bad).into_iter().map(|leak| leak.place).collect();
    assert_eq!(places, [at("a.txt", 3), at("b.bin", 2), at("d.txt", 1)]);
    assert_eq!(leaks(&bad, &base), [], "what is removed is gone");
    assert_eq!(leaks(&bad, &bad), []);
}

#[test]
fn a_value_that_the_users_own_commit_holds_is_not_kept_in() {
    let world = World::new();
    world.write("compose.yml", &format!("password: {KEY}\n"));
    world.commit("known to everybody");
    let open = world.open();
    let more = commit(&open, &open.base(), &[("b.yml", &format!("password: {KEY}\n"))], "work");
    let border = border(&open);
    assert_eq!(border.leaks_in_change(&open.hub, &open.base(), &more).unwrap(), []);
    branch(&open, "autopilot/t1", &more);
    publish(&open.hub, &open.repo, "autopilot/t1", &border).unwrap();
}
