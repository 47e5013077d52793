//! The words by which command lines, scripts and their places are told apart.

pub(super) const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "python", "python2", "python3", "node", "ruby", "perl",
    "php", "lua", "Rscript", "pwsh", "deno", "bun", "tsx", "ts-node", "source", ".", "env", "exec",
    "time", "timeout", "nice", "npx", "uv", "poetry", "pipenv", "run", "xvfb-run", "sudo",
    "command", "bundle",
];

/// Programs whose arguments are tests.
pub(super) const RUNNERS: &[&str] = &[
    "pytest",
    "py.test",
    "unittest",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "bats",
    "rspec",
    "phpunit",
    "prove",
    "nose2",
    "trial",
    "shellspec",
    "shunit2",
    "cypress",
    "playwright",
    "behave",
    "cucumber",
];

/// Options whose value is a file of settings or a program.
pub(super) const SETTING_OPTIONS: &[&str] = &[
    "--config",
    "--config-file",
    "--configuration",
    "--rcfile",
    "--cov-config",
    "--makefile",
    "--require",
    "--import",
    "--loader",
    "--setup",
    "--globals",
    "--config-path",
    "--ignore-path",
];

/// The same for runners and `make`; other programs mean something else by them.
pub(super) const SHORT_OPTIONS: &[&str] = &["-c", "-f", "-r"];

pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];

/// Programs that look at what the one before has printed.
pub(super) const LOOKERS: &[&str] = &["grep", "egrep", "fgrep", "diff", "cmp", "jq"];

/// Directories of scripts that build, check and release.
pub(super) const SCRIPT_DIRECTORIES: &[&str] = &[
    "acceptance",
    "automation",
    "build-tools",
    "buildscripts",
    "check",
    "checks",
    "ci",
    ".ci",
    "dev-tools",
    "devtools",
    "hack",
    "qa",
    "script",
    "scripts",
    "tool",
    "tools",
    "xtask",
];

/// Words in the names of files that judge.
pub(super) const JUDGE_WORDS: &[&str] = &[
    "acceptance",
    "assert",
    "asserts",
    "bats",
    "check",
    "checks",
    "ci",
    "coverage",
    "e2e",
    "expected",
    "fixture",
    "fixtures",
    "gate",
    "golden",
    "harness",
    "lint",
    "smoke",
    "spec",
    "specs",
    "test",
    "tests",
    "testing",
    "uat",
    "validate",
    "verify",
];

/// Names of files that are the product where a command starts them.
pub(super) const PRODUCT_NAMES: &[&str] = &[
    "__main__",
    "app",
    "application",
    "asgi",
    "bot",
    "cli",
    "index",
    "main",
    "manage",
    "program",
    "serve",
    "server",
    "setup",
    "start",
    "worker",
    "wsgi",
];

pub(super) const SOURCE_ROOTS: &[&str] =
    &["app", "cmd", "crates", "internal", "lib", "packages", "pkg", "src"];

/// Words in paths of what tests compare with, and of what does the comparing.
pub(super) const EXPECTATION_WORDS: &[&str] = &[
    "assert",
    "assertions",
    "asserts",
    "bats",
    "expect",
    "expectations",
    "expected",
    "fixture",
    "fixtures",
    "golden",
    "harness",
    "spec",
    "specs",
    "test",
    "testing",
    "tests",
];
