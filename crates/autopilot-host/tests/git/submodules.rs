//! Submodules that nobody touches: their files come from the user's own objects.

use std::fs;
use std::path::{Path, PathBuf};

use autopilot_host::git::{
    ChangeLimits, GitChange, GitError, Oid, RepoRefusal, UserRepo, Violation, fresh_checkout,
    salvage,
};

use crate::world::{
    Open, World, git, git_fed, oid, prepare, put, raw_git, tree_digest, user_digest,
};

const FILE: [&str; 4] = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];

/// A repository that others have as a submodule.
fn library(world: &World, name: &str) -> PathBuf {
    let dir = world.user.parent().unwrap().join(name);
    fs::create_dir(&dir).unwrap();
    git(&dir, &["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "Eve"), ("user.email", "eve@example.org")] {
        git(&dir, &["config", key, value]);
    }
    put(&dir, "value.txt", "42\n");
    put(&dir, "src/deep.txt", "deep\n");
    put(&dir, ".gitignore", "built\n");
    save(&dir, "library");
    dir
}

fn save(dir: &Path, message: &str) -> Oid {
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "-m", message]);
    oid(&git(dir, &["rev-parse", "HEAD"]))
}

fn submodule(dir: &Path, words: &[&str]) {
    git(dir, &[&FILE[..], words].concat());
}

/// A world with the submodule `lib`, as `git submodule add` makes it.
fn with_library() -> World {
    let world = World::new();
    let other = library(&world, "library");
    submodule(&world.user, &["add", other.to_str().unwrap(), "lib"]);
    world.commit("submodule");
    world
}

fn refusal(world: &World) -> RepoRefusal {
    match UserRepo::examine(&world.user, "main", &[]) {
        Err(GitError::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn read(dir: &Path, path: &str) -> String {
    fs::read_to_string(dir.join(path)).unwrap()
}

/// A slot and a clean checkout have these files, the agent's git finds nothing changed, and what is
/// captured is the base.
fn all_have(open: &Open, files: &[(&str, &str)]) {
    let (slot, proof) = (open.slot(1), open.slots.proof(1));
    open.fill(&proof, &open.base());
    for (path, text) in files {
        assert_eq!(read(slot.dir(), path), *text, "{path}");
        assert_eq!(read(proof.dir(), path), *text, "{path}");
    }
    proof.verify_clean(&open.base()).unwrap();
    assert_eq!(proof.changed_files(&open.base()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(git(slot.dir(), &["status", "--porcelain"]), "");
    put(slot.dir(), "README", "changed\n");
    let capture = open.capture(&slot);
    assert_eq!(capture.violations, []);
    let change = change(open, &capture.tree);
    assert_eq!(change.paths.len(), 1, "{}", change.diff);
    let base = open.hub.tree_of(&open.base()).unwrap();
    assert_eq!(open.capture(&open.slot(2)).tree, base);
}

fn change(open: &Open, tree: &Oid) -> GitChange {
    GitChange::between(&open.hub, &open.base(), tree, &ChangeLimits::default()).unwrap()
}

#[test]
fn a_slot_has_the_files_of_a_submodule() {
    let world = with_library();
    let digest = || {
        let modules = tree_digest(&world.user.join(".git/modules"));
        (user_digest(&world.repo(), &|_| false), modules)
    };
    let before = digest();
    all_have(&world.open(), &[("lib/value.txt", "42\n"), ("lib/src/deep.txt", "deep\n")]);
    assert_eq!(digest(), before);
    // A hub that is made again has them as well.
    fs::remove_dir_all(&world.state).unwrap();
    all_have(&world.open(), &[("lib/value.txt", "42\n")]);
}

#[test]
fn a_submodule_in_a_submodule_and_one_with_a_space_and_a_relative_url() {
    let world = World::new();
    let (outer, inner) = (library(&world, "outer lib"), library(&world, "inner"));
    put(&inner, "value.txt", "inner\n");
    save(&inner, "value");
    submodule(&outer, &["add", "../inner", "parts/in ner"]);
    save(&outer, "nested");
    let url = outer.to_str().unwrap();
    submodule(&world.user, &["add", "--name", "a/b c", url, "vendor/outer lib"]);
    world.commit("a submodule");
    // The nested one was not cloned.
    let nested = "vendor/outer lib/parts/in ner";
    let refused = refusal(&world);
    assert!(
        matches!(&refused, RepoRefusal::SubmoduleMissing { path, .. } if path == nested),
        "{refused}"
    );
    let told = "run: git submodule update --init --recursive -- 'vendor/outer lib'";
    assert!(refused.to_string().ends_with(told), "{refused}");
    submodule(&world.user, &["update", "--init", "--recursive", "--", "vendor/outer lib"]);
    submodule(&world.user, &["add", inner.to_str().unwrap(), "lib"]);
    world.commit("submodules");
    all_have(
        &world.open(),
        &[
            ("vendor/outer lib/value.txt", "42\n"),
            ("vendor/outer lib/parts/in ner/value.txt", "inner\n"),
            ("lib/value.txt", "inner\n"),
        ],
    );
    let fresh = tempfile::tempdir().unwrap();
    let repo = world.repo();
    fresh_checkout(&repo.common_dir, &repo.base_tip, fresh.path()).unwrap();
    assert_eq!(read(fresh.path(), "vendor/outer lib/parts/in ner/value.txt"), "inner\n");
    assert_eq!(git(fresh.path(), &["status", "--porcelain"]), "");
}

#[test]
fn a_submodule_that_was_never_cloned_or_lacks_the_commit_is_refused_with_the_command() {
    let world = with_library();
    let clone = world.user.with_file_name("clone");
    git(world.user.parent().unwrap(), &["clone", "-q", "user", "clone"]);
    let clone = World {
        user: clone,
        state: world.state.with_file_name("state of the clone"),
        temp: tempfile::tempdir().unwrap(),
    };
    let refused = refusal(&clone).to_string();
    for part in ["`lib`", "git submodule update --init --recursive -- lib"] {
        assert!(refused.contains(part), "{refused}");
    }
    submodule(&clone.user, &["update", "--init", "lib"]);
    all_have(&clone.open(), &[("lib/value.txt", "42\n")]);
    // The base branch names a commit that only others have.
    put(&world.user, "lib/value.txt", "43\n");
    git(
        &world.user.join("lib"),
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "x"],
    );
    world.commit("moved");
    git(&clone.user, &["pull", "-q", "--no-recurse-submodules"]);
    let moved = refusal(&clone);
    assert!(matches!(moved, RepoRefusal::SubmoduleMissing { .. }), "{moved}");
    all_have(&world.open(), &[("lib/value.txt", "43\n")]);
}

#[test]
fn a_repository_in_the_checkout_itself_and_a_linked_worktree_are_found() {
    // A repository that was never absorbed, in the file that older gits did not write either.
    let world = World::new();
    library(&world, "user/lib");
    world.commit("a gitlink without .gitmodules");
    assert!(world.user.join("lib/.git").is_dir());
    all_have(&world.open(), &[("lib/value.txt", "42\n")]);
    // The run starts from a linked worktree, where the submodule has nothing of its own.
    let linked = world.user.with_file_name("linked");
    git(&world.user, &["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap()]);
    let repo = UserRepo::examine(&linked, "main", &[]).unwrap();
    assert_eq!(repo.base_tip, world.repo().base_tip);
    // And where only the linked worktree has it.
    let world = World::new();
    let other = library(&world, "library");
    git(&world.user, &["worktree", "add", "-q", "-b", "other", "../linked"]);
    let linked = world.user.with_file_name("linked");
    submodule(&linked, &["add", other.to_str().unwrap(), "lib"]);
    save(&linked, "submodule");
    assert!(!world.user.join(".git/modules").exists());
    for dir in [&world.user, &linked] {
        let repo = UserRepo::examine(dir, "other", &[]).unwrap();
        assert_eq!(repo.base_branch, "other");
    }
}

#[test]
fn what_gitmodules_says_decides_nothing() {
    let world = with_library();
    let evil = world.user.with_file_name("evil");
    fs::create_dir(&evil).unwrap();
    let hostile = "[submodule \"../../evil\"]\n\tpath = ../evil\n\turl = ext::sh -c touch% evil/ran\n\
                   \tupdate = !touch evil/ran\n[submodule \"lib\"]\n\tpath = /etc\n\turl = --upload-pack=x\n";
    world.write(".gitmodules", hostile);
    world.commit("hostile");
    all_have(&world.open(), &[("lib/value.txt", "42\n"), (".gitmodules", hostile)]);
    assert_eq!(fs::read_dir(&evil).unwrap().count(), 0);
}

#[test]
fn a_tree_with_a_submodule_outside_of_it_is_refused() {
    let world = with_library();
    let commit = git(&world.user.join("lib"), &["rev-parse", "HEAD"]);
    // Git itself refuses to make such a tree.
    let tree = |entry: String| git_fed(&world.user, &["mktree", "--missing"], &entry);
    let inner = tree(format!("160000 commit {commit}\t..\n"));
    let outer = tree(format!("040000 tree {inner}\ta\n"));
    let base = git(&world.user, &["commit-tree", "-m", "x", &outer]);
    git(&world.user, &["update-ref", "refs/heads/main", &base]);
    assert_eq!(refusal(&world), RepoRefusal::SubmodulePath { path: "a/..".into() });
}

#[test]
fn a_partial_clone_of_a_submodule_is_refused_and_nothing_is_fetched() {
    let world = with_library();
    let library = world.user.with_file_name("library");
    git(&library, &["config", "uploadpack.allowFilter", "true"]);
    let module = world.user.join(".git/modules/lib");
    let url = format!("file://{}", library.display());
    fs::remove_dir_all(module.join("objects")).unwrap();
    let partial = world.user.with_file_name("partial");
    let part = ["clone", "-q", "--filter=blob:none", "--no-checkout", &url];
    git(world.user.parent().unwrap(), &[&part[..], &["partial"]].concat());
    fs::rename(partial.join(".git/objects"), module.join("objects")).unwrap();
    fs::copy(partial.join(".git/config"), module.join("config")).unwrap();
    let before = tree_digest(&module);
    let repo = UserRepo::examine(&world.user, "main", &[]);
    let refused = repo.and_then(|repo| autopilot_host::git::Hub::open(&world.state, &repo));
    let Err(GitError::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused, RepoRefusal::SubmoduleIncomplete { path: "lib".into() });
    assert_eq!(tree_digest(&module), before);
}

#[test]
fn a_filter_that_a_submodule_names_must_be_allowed_too() {
    let world = with_library();
    put(&world.user, "lib/src/.gitattributes", "*.bin filter=lfs\n");
    git(&world.user.join("lib"), &["add", "-A"]);
    git(
        &world.user.join("lib"),
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    );
    world.commit("moved");
    assert_eq!(
        refusal(&world),
        RepoRefusal::FilterNotAllowed {
            path: "lib/src/.gitattributes".into(),
            filter: "lfs".into()
        }
    );
}

#[test]
fn edits_in_a_submodule_are_told_kept_and_no_part_of_the_change() {
    let world = with_library();
    let open = world.open();
    let slot = open.slot(1);
    put(slot.dir(), "README", "mine\n");
    put(slot.dir(), "lib/value.txt", "43\n");
    put(slot.dir(), "lib/new", "new\n");
    put(slot.dir(), "lib/built", "ignored\n");
    fs::remove_file(slot.dir().join("lib/src/deep.txt")).unwrap();
    let kept = "refs/autopilot/salvage/t1/1-submodules".to_owned();
    let files = ["lib/new", "lib/src/deep.txt", "lib/value.txt"];
    let files = files.iter().map(|file| file.as_bytes().to_vec()).collect();
    let told = Violation::SubmoduleEdited { path: b"lib".to_vec(), files, kept: kept.clone() };
    for _ in 0..2 {
        let capture = open.capture(&slot);
        assert_eq!(capture.violations, std::slice::from_ref(&told));
        let change = change(&open, &capture.tree);
        assert_eq!(change.paths.iter().map(|path| path.display()).collect::<Vec<_>>(), ["README"]);
        assert!(capture.saved_at().unwrap().contains(&kept));
    }
    let saved = salvage::list(&open.hub).unwrap();
    let edits = saved.iter().find(|saved| saved.name == kept).unwrap();
    let text = git(open.hub.dir(), &["show", &format!("{}:lib/value.txt", edits.commit)]);
    assert_eq!(text, "43");
    // The next attempt finds the submodule as it is.
    open.fill(&slot, &open.base());
    assert_eq!(read(slot.dir(), "lib/value.txt"), "42\n");
    assert!(!slot.dir().join("lib/new").exists());
    assert_eq!(open.capture(&slot).violations, []);
}

#[test]
fn a_submodule_that_is_moved_or_staged_for_removal_is_told() {
    let world = with_library();
    let open = world.open();
    let moved = [Violation::SubmoduleMoved { path: b"lib".to_vec() }];
    let entry = format!("160000,{},lib", "1".repeat(40));
    let bump: &[&str] = &["update-index", "--cacheinfo", &entry];
    for (command, commits) in
        [(bump, false), (bump, true), (&["rm", "-q", "--cached", "lib"], false)]
    {
        let slot = open.slot(1);
        git(slot.dir(), command);
        if commits {
            git(slot.dir(), &["commit", "-q", "-m", "moved"]);
        }
        let capture = open.capture(&slot);
        assert_eq!(capture.violations, moved, "{command:?}");
        assert_eq!(capture.tree, open.hub.tree_of(&open.base()).unwrap());
    }
}

#[test]
fn a_submodule_that_is_removed_or_replaced_is_so_in_the_change() {
    let world = with_library();
    let open = world.open();
    for replace in [false, true] {
        let slot = open.slot(1);
        fs::remove_dir_all(slot.dir().join("lib")).unwrap();
        if replace {
            put(slot.dir(), "lib", "a file\n");
        }
        let capture = open.capture(&slot);
        let change = change(&open, &capture.tree);
        let modes: Vec<_> = change.paths.iter().map(|it| (it.display(), it.old_mode)).collect();
        assert_eq!(modes, [("lib".to_owned(), 0o160_000)], "{}", change.diff);
    }
}

#[test]
fn an_agents_git_does_no_harm_in_a_submodule() {
    let world = with_library();
    let open = world.open();
    let slot = open.slot(1);
    git(slot.dir(), &["add", "-A"]);
    let status = git(slot.dir(), &["submodule", "status"]);
    assert!(status.starts_with('-') && status.ends_with(" lib"), "{status}");
    put(slot.dir(), "README", "mine\n");
    for words in [
        &["commit", "-q", "-am", "mine"][..],
        &["clean", "-fdxq"],
        &["reset", "-q", "--hard"],
        &["stash", "-u"],
        &["checkout", "-q", "."],
    ] {
        git(slot.dir(), words);
        assert_eq!(git(slot.dir(), &["status", "--porcelain"]), "", "{words:?}");
        assert_eq!(read(slot.dir(), "lib/value.txt"), "42\n", "{words:?}");
    }
    raw_git(slot.dir(), &["submodule", "update", "--init"]);
    git(slot.dir(), &["init", "-q", "lib"]);
    let capture = open.capture(&slot);
    assert_eq!(capture.violations, []);
    assert_eq!(change(&open, &capture.tree).paths.len(), 1);
    // The repository that it made there is gone with the next attempt.
    open.fill(&slot, &open.base());
    assert!(!slot.dir().join("lib/.git").exists());
}

#[test]
fn a_gate_that_changes_a_submodule_is_seen_by_content() {
    let world = with_library();
    let open = world.open();
    let proof = open.slots.proof(1);
    proof.prepare(&prepare(&open.base())).unwrap();
    put(proof.dir(), "lib/value.txt", "41\n");
    let changed = proof.changed_files(&open.base()).unwrap();
    assert_eq!(changed, [PathBuf::from("lib/value.txt")]);
    let differs = proof.verify_clean(&open.base()).unwrap_err();
    assert!(matches!(differs, GitError::ProofDiffers { .. }), "{differs}");
    proof.prepare(&prepare(&open.base())).unwrap();
    proof.verify_clean(&open.base()).unwrap();
}

#[test]
fn work_on_both_sides_of_a_submodule_is_merged_and_published() {
    let world = with_library();
    let open = world.open();
    let before = git(&world.user, &["ls-tree", "main", "lib"]);
    for (n, path) in [(1, "one"), (2, "two")] {
        let tree = open.tree_with(n, path, "text\n");
        let done = open.commit(path, &tree);
        open.merge(path, &done.commit).unwrap();
    }
    let tip = open.track().tip(&open.hub).unwrap().commit;
    let slot = open.slots.proof(2);
    slot.prepare(&prepare(&tip)).unwrap();
    assert_eq!(read(slot.dir(), "lib/value.txt"), "42\n");
    assert!(slot.dir().join("one").exists() && slot.dir().join("two").exists());
    let listed = git(open.hub.dir(), &["ls-tree", tip.as_str(), "lib"]);
    assert_eq!(listed, before);
}
