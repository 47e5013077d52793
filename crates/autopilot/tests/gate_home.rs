//! The home of a gate's commands: their own, fresh for each, with the listed files of the user, and
//! with the tools that the user has below the real home.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::plan::outside;
use autopilot_testkit::stage::{APPROVES, BUILDS, Stage, files, text};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");
const RUN: [&str; 2] = ["run", "tasks/say-done.md"];

fn user(stage: &Stage, name: &str) -> PathBuf {
    stage.folder().join("home").join(name)
}

/// A file of the user's home; a program if it begins like one.
fn give(stage: &Stage, name: &str, text: &str) {
    let path = user(stage, name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn stage(tests: &str, config: &str) -> Stage {
    let stage = Stage::new(BINARY);
    fs::create_dir(stage.folder().join("stamps")).unwrap();
    stage.write("test.sh", tests);
    stage.commit("tests");
    stage.agents(&[BUILDS, APPROVES]);
    stage.config(config);
    stage
}

const TESTS: &str = "commands: { tests: sh test.sh }\n";

/// The rooms of gates that are left in the state directory.
fn rooms(stage: &Stage) -> Vec<PathBuf> {
    let is_room =
        |path: &PathBuf| text(path).contains("/tmp/room-") || text(path).contains("/layers/");
    files(&stage.state()).into_iter().filter(is_room).collect()
}

#[test]
fn a_gate_finds_the_listed_files_in_its_home_and_nothing_else_of_the_user() {
    let look = "cd $HOME; find . -type f | sort | sed 's/^/has /'; cat .npmrc; \
                env | cut -d= -f1 | grep -E 'AUTOPILOT|XDG_(CONFIG|RUNTIME)' | sed 's/^/sees /'; \
                echo lives $HOME and $TMPDIR\n";
    let mut stage = stage(look, &format!("{TESTS}worktrees: {{ ports: 1 }}\n"));
    stage.set("XDG_CONFIG_HOME", "/nowhere");
    stage.set("XDG_RUNTIME_DIR", "/nowhere");
    give(&stage, ".npmrc", "//registry.example/:_authToken=npm_0123456789abcdef\n");
    give(&stage, ".cargo/config.toml", "[net]\noffline = true\n");
    give(&stage, ".secret", "mine\n");
    stage.run(&RUN).expect(0);
    let told = stage.texts_of("logs/validation_tests");
    let home = text(user(&stage, ""));
    for line in told.lines().filter(|line| line.starts_with("has ")) {
        assert!(["has ./.cargo/config.toml", "has ./.npmrc"].contains(&line), "{told}");
    }
    assert!(told.contains("has ./.npmrc") && told.contains("has ./.cargo/config.toml"), "{told}");
    assert!(told.contains("_authToken=[redacted]") && !told.contains("npm_0123"), "{told}");
    let seen: Vec<&str> = told.lines().filter(|line| line.starts_with("sees ")).collect();
    assert!(seen.iter().all(|line| *line == "sees AUTOPILOT_PORT_0"), "{seen:?}");
    assert!(!seen.is_empty() && !told.contains(&format!("lives {home}")), "{told}");
    assert_eq!(rooms(&stage), [""; 0].map(PathBuf::from), "they are gone with their gates");
}

#[test]
fn only_what_is_listed_is_copied_and_a_run_of_an_empty_list_has_an_empty_home() {
    for (list, has) in [("[.mine/x]", "has ./.mine/x"), ("[]", "nothing")] {
        let look = "cd $HOME; find . -type f | sed 's/^/has /'; [ \"$(find . -type f)\" ] || echo nothing\n";
        let stage = stage(look, &format!("{TESTS}gates: {{ home: {list} }}\n"));
        give(&stage, ".mine/x", "x\n");
        give(&stage, ".npmrc", "x\n");
        stage.run(&RUN).expect(0);
        let told = stage.texts_of("logs/validation_tests");
        assert!(told.contains(has) && !told.contains(".npmrc"), "{list}: {told}");
    }
}

#[test]
fn nothing_that_one_gate_leaves_at_home_or_among_temporary_files_reaches_the_next() {
    let tests = "for place in $HOME $TMPDIR; do\n\
                 [ ! -e $place/left ] || { echo FAILED found $place/left; exit 1; }\n\
                 echo x > $place/left || exit 1\ndone\n";
    for mode in ["auto", "bwrap", "off"] {
        let commands = "tests: sh test.sh, lint: sh test.sh, uat: sh test.sh";
        let config = format!(
            "commands: {{ {commands} }}\nsandbox: {{ mode: {mode} }}\nworktrees: {{ setup: 'true' }}\n"
        );
        let stage = stage(tests, &config);
        stage.run(&RUN).expect(0);
        assert_eq!(rooms(&stage), [""; 0].map(PathBuf::from), "{mode}");
    }
}

/// Every manager finds its tools by its own rule: a variable, else a directory below HOME.
const MANAGERS: &[(&str, &str, &str)] = &[
    ("rustup", "${RUSTUP_HOME:-$HOME/.rustup}", ".rustup"),
    ("nvm", "${NVM_DIR:-$HOME/.nvm}", ".nvm"),
    ("pyenv", "${PYENV_ROOT:-$HOME/.pyenv}", ".pyenv"),
    ("asdf", "${ASDF_DATA_DIR:-$HOME/.asdf}", ".asdf"),
    ("volta", "${VOLTA_HOME:-$HOME/.volta}", ".volta"),
    ("rbenv", "${RBENV_ROOT:-$HOME/.rbenv}", ".rbenv"),
    ("mise", "${MISE_DATA_DIR:-$HOME/.local/share/mise}", ".local/share/mise"),
];

#[test]
fn tools_below_the_users_home_are_found_from_the_home_of_a_gate() {
    let names: Vec<&str> = MANAGERS.iter().map(|(name, ..)| *name).collect();
    let all = names.iter().map(|name| format!("{name} || exit 1\n")).collect::<String>();
    let mut stage = stage(&all, TESTS);
    for (name, rule, dir) in MANAGERS {
        give(
            &stage,
            &format!(".shims/{name}"),
            &format!("#!/bin/sh\nexec {rule}/versions/1/{name}\n"),
        );
        give(
            &stage,
            &format!("{dir}/versions/1/{name}"),
            &format!("#!/bin/sh\necho {name} works\n"),
        );
    }
    let path = std::env::var("PATH").unwrap();
    stage.set("PATH", &format!("{}:{path}", text(user(&stage, ".shims"))));
    stage.run(&RUN).expect(0);
    let told = stage.texts_of("logs/validation_tests");
    assert!(names.iter().all(|name| told.contains(&format!("{name} works"))), "{told}");
}

/// A shim as pyenv makes it, and the parts of pyenv that it needs.
const SHIM: &str = "#!/bin/sh\nexport PYENV_ROOT=@\nexec @/libexec/pyenv exec \"${0##*/}\"\n";
const PYENV: &str = "#!/bin/sh
# Takes PYENV_VERSION, else the nearest .python-version, else the global version.
shift; program=$1; shift; dir=$PWD
while [ -z \"$PYENV_VERSION\" ] && [ -n \"$dir\" ]; do
  [ ! -f \"$dir/.python-version\" ] || PYENV_VERSION=$(cat \"$dir/.python-version\"); dir=${dir%/*}
done
version=${PYENV_VERSION:-$(cat \"$PYENV_ROOT/version\")}
found=$PYENV_ROOT/versions/$version/bin/$program
[ -x \"$found\" ] || { echo \"pyenv: $program: command not found\" >&2; exit 127; }
exec \"$found\" \"$@\"
";

#[test]
fn shims_of_a_version_manager_take_the_version_of_the_checkout() {
    // The file is ignored, above the checkout, or committed.
    for place in ["ignored", "above", "committed", "global"] {
        let mut stage = stage("mypytest || exit 1\n", TESTS);
        let root = text(user(&stage, ".pyenv"));
        give(&stage, ".pyenv/shims/mypytest", &SHIM.replace('@', &root));
        give(&stage, ".pyenv/libexec/pyenv", PYENV);
        give(&stage, ".pyenv/version", "2.7\n");
        let chosen = if place == "global" { "2.7" } else { "3.11" };
        give(
            &stage,
            &format!(".pyenv/versions/{chosen}/bin/mypytest"),
            &format!("#!/bin/sh\necho tested by {chosen}\n"),
        );
        match place {
            "above" => fs::write(stage.folder().join(".python-version"), "3.11\n").unwrap(),
            "ignored" => {
                stage.write(".gitignore", ".python-version\n");
                stage.commit("ignored");
                stage.write(".python-version", "3.11\n");
            }
            "committed" => {
                stage.write(".python-version", "3.11\n");
                stage.commit("a version");
            }
            _ => {}
        }
        let path = std::env::var("PATH").unwrap();
        stage.set("PATH", &format!("{}:{path}", text(user(&stage, ".pyenv/shims"))));
        let ended = stage.run(&RUN);
        let told = stage.texts_of("logs/validation_tests");
        assert_eq!(ended.code, 0, "{place}: {told}{}", ended.said());
        assert!(told.contains(&format!("tested by {chosen}")), "{place}: {told}");
    }
}

/// What `pip install --user` has installed before is found, and what it would install in a gate has its
/// place, its modules and its programs.
#[test]
fn packages_that_are_installed_for_a_user_are_found_and_more_can_be_installed() {
    let tests = "theirtool || exit 1
python3 - <<'X' || exit 1
import os, site
packages = site.getusersitepackages()
os.makedirs(packages, exist_ok=True)
open(packages + '/mine.py', 'w').write('word = \"mine works\"')
programs = os.path.join(site.getuserbase(), 'bin')
os.makedirs(programs, exist_ok=True)
open(programs + '/minetool', 'w').write('#!/usr/bin/env python3\\nimport mine\\nprint(mine.word)\\n')
os.chmod(programs + '/minetool', 0o755)
X
minetool || exit 1
";
    for (config, more) in
        [(TESTS.to_owned(), ""), (format!("{TESTS}gates: {{ warm: off }}\n"), "x")]
    {
        let mut stage = stage(tests, &config);
        let version = std::process::Command::new("python3")
            .args(["-c", "import sys; print('python%d.%d' % sys.version_info[:2])"])
            .output()
            .unwrap();
        let version = String::from_utf8(version.stdout).unwrap();
        let packages = format!(".local/lib/{}/site-packages", version.trim());
        give(&stage, &format!("{packages}/theirs.py"), "word = 'theirs works'\n");
        let program = "#!/usr/bin/env python3\nimport theirs\nprint(theirs.word)\n";
        give(&stage, ".local/bin/theirtool", program);
        if !more.is_empty() {
            stage.set("PYTHONUSERBASE", &text(user(&stage, ".local")));
        }
        let path = std::env::var("PATH").unwrap();
        stage.set("PATH", &format!("{}:{path}", text(user(&stage, ".local/bin"))));
        stage.run(&RUN).expect(0);
        let told = stage.texts_of("logs/validation_tests");
        assert!(told.contains("theirs works") && told.contains("mine works"), "{told}");
        assert!(!user(&stage, &format!("{packages}/mine.py")).exists(), "it is the gate's own");
    }
}

/// The toolchain that builds this very test, reached as a user has it: by rustup's own shims where it
/// is installed so, else by PATH.
#[test]
fn the_real_cargo_builds_and_tests_a_crate_in_a_gate() {
    let mut stage = stage("cargo test --offline -q || exit 1\n", TESTS);
    stage.write(
        "Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    stage.write("src/lib.rs", "#[test]\nfn it_works() {}\n");
    stage.write(".gitignore", "target\n");
    stage
        .write("Cargo.lock", "version = 3\n\n[[package]]\nname = \"small\"\nversion = \"0.1.0\"\n");
    stage.commit("a crate");
    // The user's own installation, below the user's home of this stage.
    for (variable, dir) in [("RUSTUP_HOME", ".rustup"), ("CARGO_HOME", ".cargo")] {
        let real = std::env::var_os(variable).map(PathBuf::from);
        let usual = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(dir));
        if let Some(real) = real.or_else(usual).filter(|path| path.is_dir()) {
            std::os::unix::fs::symlink(real, user(&stage, dir)).unwrap();
        }
    }
    let own = user(&stage, ".cargo/bin");
    if own.join("cargo").exists() {
        stage.set("PATH", &format!("{}:{}", text(own), std::env::var("PATH").unwrap()));
    }
    stage.run(&RUN).expect(0);
    let told = stage.texts_of("logs/validation_tests");
    assert!(told.contains("1 passed"), "{told}");
}

#[test]
fn what_a_killed_controller_left_of_a_gate_is_removed_by_the_next() {
    let stage = stage("true\n", TESTS);
    let go = text(outside(&stage, "go"));
    stage.write(
        "test.sh",
        &format!("echo x > $HOME/left; echo x > $TMPDIR/left; [ -e {go} ] || sleep 600\n"),
    );
    stage.commit("tests that wait");
    let run = stage.start(&RUN);
    stage.wait_until("the gate is at work", |stage| {
        rooms(stage).iter().any(|path| path.ends_with("tmp/left"))
    });
    run.signal("KILL");
    run.wait();
    assert!(!rooms(&stage).is_empty());
    fs::write(outside(&stage, "go"), "").unwrap();
    stage.run(&["resume"]).expect(0);
    assert_eq!(rooms(&stage), [""; 0].map(PathBuf::from));
}
