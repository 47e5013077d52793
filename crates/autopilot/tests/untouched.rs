//! The user's checkout is not ours: not a byte of it changes, and nothing an agent or a hook
//! planted is executed by the controller.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, text};

const HOOKS: [&str; 8] = [
    "pre-commit",
    "post-commit",
    "commit-msg",
    "post-checkout",
    "post-merge",
    "pre-push",
    "reference-transaction",
    "update",
];

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

/// A checkout in the middle of someone's day: dirty, staged, stashed, with hooks and settings.
fn make_lived_in(stage: &Stage) -> std::path::PathBuf {
    let marker = stage.folder().join("a-hook-ran");
    stage.write("app.txt", "start\nstashed\n");
    stage.git(&["stash", "-q"]);
    stage.git(&["tag", "v1"]);
    stage.git(&["branch", "feature/x"]);
    stage.write("test.sh", &format!("{}# unstaged\n", stage.read("test.sh")));
    stage.write("staged.txt", "staged\n");
    stage.git(&["add", "staged.txt"]);
    stage.write("untracked.txt", "mine\n");
    for (key, value) in [
        ("user.name", "Grace"),
        ("user.email", "grace@localhost"),
        ("filter.evil.clean", &*format!("touch {}", text(&marker))),
        ("filter.evil.smudge", &*format!("touch {}", text(&marker))),
        ("diff.external", &*format!("touch {}", text(&marker))),
        ("core.fsmonitor", &*format!("touch {}", text(&marker))),
    ] {
        stage.git(&["config", key, value]);
    }
    for hook in HOOKS {
        stage.write_program(
            &format!(".git/hooks/{hook}"),
            &format!("#!/bin/sh\ntouch {}\n", text(&marker)),
        );
    }
    marker
}

#[test]
fn a_whole_run_leaves_the_checkout_index_stash_hooks_settings_and_branches_as_they_were() {
    let stage = stage();
    let marker = make_lived_in(&stage);
    let before = stage.digest();
    let _by_the_digest_itself = std::fs::remove_file(&marker);
    stage.run_task().expect(0);
    assert!(!marker.exists(), "a hook or driver of the user was executed");
    assert_eq!(stage.digest(), before);
    let author = stage.git(&["log", "-1", "--format=%an <%ae>", "autopilot/say-done"]);
    assert_eq!(author, "Grace <grace@localhost>");
    assert!(!stage.git(&["ls-tree", "-r", "--name-only", "autopilot/say-done"]).contains("staged"));
}

#[test]
fn a_failed_run_and_a_stopped_one_leave_the_checkout_as_it_was_too() {
    let stage = stage();
    make_lived_in(&stage);
    stage.agents(&["- step: build\n  do: [{ append: { app.txt: x } }, { exit: 1 }]\n"]);
    let before = stage.digest();
    stage.run_task().expect(10);
    assert_eq!(stage.digest(), before);
}

#[test]
fn hooks_filters_and_settings_an_agent_plants_are_not_executed() {
    let stage = stage();
    let marker = stage.folder().join("an-agent-was-obeyed");
    let plant = format!(
        "m={}; cat > .git/config <<E\n[core]\nhooksPath = .hooks\nfsmonitor = touch $m\n\
         [filter \\\"evil\\\"]\nclean = touch $m\nsmudge = touch $m\nrequired = true\n\
         [diff]\nexternal = touch $m\n[merge \\\"evil\\\"]\ndriver = touch $m\n[gpg]\nprogram = touch\n\
         [commit]\ngpgSign = true\nE\n\
         mkdir -p .git/hooks .hooks .git/info; for h in {}; do printf '#!/bin/sh\\ntouch %s\\n' $m > .git/hooks/$h; \
         cp .git/hooks/$h .hooks/$h; chmod +x .git/hooks/$h .hooks/$h; done; \
         echo '* filter=evil diff=evil merge=evil' | tee .git/info/attributes > .gitattributes; rm -rf .hooks",
        text(&marker),
        HOOKS.join(" ")
    );
    stage.write_program("plant.sh", &plant);
    let agents = format!(
        "
- step: build
  do:
    - append: {{ app.txt: \"done\\n\" }}
    - run: \"sh {}\"
    - answer: {{ changed_files: [app.txt], notes: x }}
- step: fix
  do: [{{ run: \"rm .gitattributes\" }}, {{ answer: {{ changed_files: [], notes: x }} }}]
",
        text(stage.path("plant.sh"))
    );
    stage.write("plant.sh", &plant.replace("\\\"", "\""));
    stage.agents(&[&agents, APPROVES]);
    stage.run_task().expect(0);
    assert!(!marker.exists(), "something an agent planted was executed");
    let branch = stage.state_json()["branch_name"].as_str().unwrap().to_owned();
    assert_eq!(stage.git(&["diff", "--name-only", "main", &branch]), "app.txt");
}

#[test]
fn commits_and_resets_of_the_agent_stay_in_its_slot() {
    let stage = stage();
    let agents = "
- step: build
  do:
    - append: { app.txt: \"done\\n\" }
    - run: \"git add -A && git -c user.name=x -c user.email=x@x commit -qm mine && git checkout -q -b elsewhere && git branch -D main; git stash list\"
    - answer: { changed_files: [app.txt], notes: x }
";
    stage.agents(&[agents, APPROVES]);
    let before = stage.digest();
    stage.run_task().expect(0);
    assert_eq!(stage.digest(), before);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
}

#[test]
fn an_agent_cannot_write_in_the_users_checkout() {
    let stage = stage();
    let target = text(stage.path("app.txt"));
    let agents = format!(
        "
- step: build
  do:
    - run: \"echo harm >> {target}; echo harm > {target}.new\"
    - append: {{ app.txt: \"done\\n\" }}
    - answer: {{ changed_files: [app.txt], notes: x }}
"
    );
    stage.agents(&[&agents, BUILDS, APPROVES]);
    let before = stage.digest();
    stage.run_task().expect(0);
    assert_eq!(stage.digest(), before);
}
