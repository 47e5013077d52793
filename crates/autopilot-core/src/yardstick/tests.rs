//! Which files decide a verdict, in both directions: a false yes makes an honest change doubted, a false
//! no lets a cheat through.

mod reading;

use super::*;

/// A tree of files with texts.
fn shares(
    files: &[(&str, &str)],
    commands: &[(&str, &str)],
    patterns: &[&str],
    path: &str,
) -> YardstickShare {
    let paths: BTreeSet<String> = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    let text =
        |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| (*text).to_owned());
    let trees = [TreeView { paths: &paths, read: &text }];
    let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
    let commands: Vec<(String, String)> =
        commands.iter().map(|(name, line)| ((*name).to_owned(), (*line).to_owned())).collect();
    let rules = YardstickRules::new(&patterns, &commands, &trees);
    rules.share(path, [text(path).as_deref(), None])
}

fn word(share: &YardstickShare) -> String {
    match share {
        YardstickShare::None => "product".to_owned(),
        YardstickShare::Whole(reason) => reason.to_string(),
        YardstickShare::Part(reason) => format!("part: {reason}"),
    }
}

fn alone(path: &str) -> String {
    word(&shares(&[], &[], &[], path))
}

const TESTS: &[&str] = &[
    // Rust, Go, Python.
    "src/test_utils.py",
    "tests/cli.rs",
    "crates/a/tests/it/main.rs",
    "src/a/tests.rs",
    "src/a_test.rs",
    "pkg/a_test.go",
    "internal/test/run.go",
    "test_a.py",
    "app/a_test.py",
    "tests/unit/a.py",
    "tests/__init__.py",
    // JavaScript and its kin.
    "src/a.test.ts",
    "src/a.spec.jsx",
    "src/__tests__/a.js",
    "web/e2e/login.ts",
    "cypress/a.cy.js",
    "test/mocha.opts",
    "a.e2e.mjs",
    // The JVM, .NET, and others.
    "src/test/java/a/FooTest.java",
    "src/test/resources/a.xml",
    "app/src/androidTest/A.kt",
    "FooTests.cs",
    "Foo.Tests/FooTest.cs",
    "spec/a_spec.rb",
    "spec/spec_helper.rb",
    "spec/support/a.rb",
    "test/a_test.exs",
    "tests/FooTest.php",
    "a_test.cc",
    "Tests/AppTests/A.swift",
    "t/basic.t",
    "a.bats",
    "tests/run.sh",
    "login.feature",
    "tests/expected.md",
    "__tests__/a.snap",
    "test/a_test.dart",
    "a_test.lua",
];

const TEST_DATA: &[&str] = &[
    "testdata/a.json",
    "jest.setup.js",
    "__tests__/__snapshots__/a.snap",
    "pkg/x/testdata/in.txt",
    "fixtures/a.csv",
    "src/golden/out.txt",
    "src/snapshots/a.snap.new",
    "test_data/a",
    "__fixtures__/a.ts",
    "src/__mocks__/fs.js",
    "src/testUtils.ts",
    "src/setupTests.ts",
    "internal/testutil/db.go",
    "src/test-helpers.js",
    "src/test_support/mod.rs",
    "testdata/README.md",
];

const RUNNERS: &[&str] = &[
    "pytest.ini",
    ".pytest.ini",
    "tox.ini",
    ".coveragerc",
    "noxfile.py",
    "mypy.ini",
    "ruff.toml",
    ".flake8",
    ".pylintrc",
    "requirements-test.txt",
    "requirements/dev.txt",
    ".npmrc",
    "jest.config.js",
    "web/jest.config.ts",
    "vitest.config.mts",
    "vitest.workspace.ts",
    "playwright.config.ts",
    ".mocharc.yml",
    ".nycrc.json",
    "karma.conf.js",
    "cypress.config.ts",
    ".eslintrc.json",
    "eslint.config.mjs",
    "tsconfig.test.json",
    ".stylelintrc",
    "biome.json",
    "ava.config.js",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "justfile",
    "Taskfile.yml",
    "Rakefile",
    ".cargo/config.toml",
    ".cargo/config",
    ".config/nextest.toml",
    "clippy.toml",
    "rustfmt.toml",
    "deny.toml",
    "tarpaulin.toml",
    ".golangci.yml",
    ".rspec",
    ".rubocop.yml",
    ".simplecov",
    "phpunit.xml",
    "phpunit.xml.dist",
    "phpstan.neon",
    ".bazelrc",
    "testng.xml",
    ".pre-commit-config.yaml",
    ".shellcheckrc",
    "behat.yml",
];

const SERVERS: &[&str] = &[
    ".github/workflows/ci.yml",
    ".gitlab-ci.yml",
    ".circleci/config.yml",
    "Jenkinsfile",
    "azure-pipelines.yml",
    ".travis.yml",
    "codecov.yml",
    ".buildkite/pipeline.yml",
];

const INSTRUCTIONS: &[&str] =
    &["AGENTS.md", "web/CLAUDE.md", ".claude/skills/a/SKILL.md", ".cursorrules", "GEMINI.md"];

const PRODUCT: &[&str] = &[
    "src/lib.rs",
    "src/main.rs",
    "build/lib.rs",
    "src/latest.rs",
    "src/attest.rs",
    "contest/a.rs",
    "benches/a.rs",
    "examples/a.rs",
    "Cargo.lock",
    "src/testing.rs",
    "src/snapshots/create.rs",
    "app/models.py",
    "protest.py",
    "app/contest.py",
    "requirements.txt",
    "poetry.lock",
    "tasks.py",
    "uv.lock",
    "src/fixture.py",
    "src/index.ts",
    "src/latest.ts",
    "src/inspector.ts",
    "src/tester.ts",
    "package-lock.json",
    "webpack.config.js",
    "rollup.config.mjs",
    "src/specification.ts",
    "src/expected.ts",
    "src/features/login.ts",
    "public/test.html",
    "src/attestation.tsx",
    "main.go",
    "cmd/a/main.go",
    "go.sum",
    "contest.go",
    "src/main/java/a/Foo.java",
    "src/main/java/a/test/Util.java",
    "src/main/java/a/PodSpec.java",
    "Contest.java",
    "Testimonial.java",
    "Testimonials.php",
    "Testament.kt",
    "Sources/App/PodSpec.swift",
    "lib/a.rb",
    "Gemfile.lock",
    "src/Foo.cs",
    "lib/protest.rb",
    "README.md",
    "docs/a.md",
    "docs/tests/a.md",
    "docs/testing.md",
    "tests/README.md",
    "CHANGELOG.md",
    "LICENSE",
    "spec/openapi.yaml",
    "specs/001/spec.md",
    "spec/README.md",
    "doc/test/a.rst",
    "Dockerfile",
    "docker-compose.yml",
    ".gitignore",
    ".env",
    "config/app.yml",
    "scripts/release.sh",
    "ci/deploy.sh",
    "tools/gen.py",
    "bin/app",
    "data/cities.json",
    "assets/logo.svg",
    "schema.sql",
    "src/golden.rs",
    "src/spec.ts",
    ".github/ISSUE_TEMPLATE.md",
];

const BUILDS: &[&str] =
    &["build.rs", "tsconfig.json", "rust-toolchain.toml", ".nvmrc", "babel.config.js", "rules.mk"];

#[test]
fn files_are_told_apart_by_name_and_place() {
    for (paths, wanted) in [
        (TESTS, "tests"),
        (TEST_DATA, "data and helpers of tests"),
        (RUNNERS, "settings of test runners and linters"),
        (SERVERS, "settings of a build server"),
        (INSTRUCTIONS, "instructions of agents"),
        (PRODUCT, "product"),
    ] {
        let wrong: Vec<String> = paths
            .iter()
            .filter(|path| alone(path) != wanted)
            .map(|path| format!("{path}: {}", alone(path)))
            .collect();
        assert!(wrong.is_empty(), "not {wanted}: {wrong:#?}");
    }
    for path in BUILDS {
        let share = shares(&[(path, "x")], &[], &[], path);
        assert_eq!(word(&share), "part: settings of the build", "{path}");
    }
    let lists = [TESTS, TEST_DATA, RUNNERS, SERVERS, INSTRUCTIONS, PRODUCT, BUILDS];
    assert!(lists.iter().map(|list| list.len()).sum::<usize>() >= 150);
}

#[test]
fn mixed_files_belong_to_the_yardstick_in_part() {
    for (path, text, wanted) in [
        ("src/a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {}\n", "part: tests"),
        ("src/a.rs", "fn a() {}\n", "product"),
        ("src/a.rs", "/// ```\n/// a();\n/// ```\nfn a() {}\n", "part: tests"),
        ("src/a.rs", "#![cfg(test)]\nfn a() {}\n", "tests"),
        ("src/a.rs", "{ broken", "product"),
        ("Cargo.toml", "[dev-dependencies]\na = \"1\"\n", "part: settings of the build"),
        ("Cargo.toml", "[dependencies]\na = \"1\"\n", "product"),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\na = 1\n",
            "part: settings of test runners and linters",
        ),
        ("setup.cfg", "[metadata]\nname = a\n", "product"),
        (
            "package.json",
            "{\"scripts\":{\"test\":\"x\"}}",
            "part: settings of test runners and linters",
        ),
        ("package.json", "{\"name\":\"test\"}", "product"),
        ("package.json", "{ broken", "part: settings of test runners and linters"),
        ("a.py", "def a():\n    \"\"\"\n    >>> a()\n    1\n    \"\"\"\n", "part: tests"),
        ("a.py", "if __name__ == \"__main__\":\n    main()\n", "product"),
        ("a.py", "if __name__ == \"__main__\":\n    assert a() == 1\n", "part: tests"),
        ("src/a.ts", "if (import.meta.vitest) { it() }", "part: tests"),
        ("src/a.ts", "export const a = 1;", "product"),
        ("go.mod", "module a\nrequire b v1\n", "product"),
        ("go.mod", "module a\nreplace b => ./c\n", "part: settings of the build"),
        (
            "pom.xml",
            "<artifactId>maven-surefire-plugin</artifactId>",
            "part: settings of the build",
        ),
        ("pom.xml", "<artifactId>a</artifactId>", "product"),
        ("build.gradle", "test { useJUnitPlatform() }", "part: settings of the build"),
        ("Makefile", "test:\n\tpytest\n", "settings of test runners and linters"),
        ("Makefile", "a.o: a.c\n\t$(CC) -c a.c\n", "part: settings of the build"),
        ("CMakeLists.txt", "add_test(NAME a COMMAND a)", "part: settings of the build"),
        ("CMakeLists.txt", "add_executable(a a.c)", "product"),
    ] {
        assert_eq!(word(&shares(&[(path, text)], &[], &[], path)), wanted, "{path}: {text}");
    }
}

#[test]
fn patterns_name_more_files_and_come_first() {
    let share = |path| word(&shares(&[], &[], &["ci/**", "*.golden", "docs/api.md"], path));
    assert_eq!(share("ci/a/b.sh"), "named by `ci/**`");
    assert_eq!(share("src/x.golden"), "named by `*.golden`");
    assert_eq!(share("docs/api.md"), "named by `docs/api.md`");
    assert_eq!(share("docs/b.md"), "product");
}

#[test]
fn a_module_of_rust_is_what_the_sources_declare_it_for() {
    let files = [
        ("src/lib.rs", "mod a;\n#[cfg(test)]\nmod helper;\nmod speed_test;\n"),
        ("src/a.rs", "mod b;\n#[cfg(test)]\nmod samples;\n"),
        ("src/a/samples/mod.rs", "pub mod deep;"),
        ("src/a/samples/deep.rs", "pub fn a() {}"),
        ("src/helper.rs", "pub fn a() {}"),
        ("src/a/b.rs", "pub fn a() {}"),
        ("src/speed_test.rs", "pub fn measure() {}"),
        ("src/other_test.rs", "pub fn measure() {}"),
    ];
    for (path, wanted) in [
        ("src/helper.rs", "tests"),
        ("src/a/samples/mod.rs", "tests"),
        ("src/a/samples/deep.rs", "tests"),
        ("src/a/b.rs", "product"),
        ("src/speed_test.rs", "product"),
        ("src/other_test.rs", "tests"),
    ] {
        assert_eq!(word(&shares(&files, &[], &[], path)), wanted, "{path}");
    }
}

const SCRIPTS: &[(&str, &str)] = &[
    (
        "ci/all.sh",
        "set -e\n. \"$(dirname \"$0\")/lib.sh\"\npython3 tools/compare.py out expected\nsh shop.sh\n# see ci/notes.sh\nnpm run unit\n",
    ),
    ("ci/lib.sh", "say() { :; }"),
    ("ci/notes.sh", ""),
    ("ci/notes.md", ""),
    ("tools/compare.py", "import tools.read_all\n"),
    ("tools/read_all.py", ""),
    ("tools/release.py", ""),
    ("shop.sh", ""),
    ("go.sh", ". ./assert.sh\n. ./shop.sh\n"),
    ("assert.sh", ""),
    ("app.py", ""),
    ("selfcheck/__main__.py", ""),
    (
        "package.json",
        "{\"scripts\":{\"test\":\"npm run build && node run.js\",\"build\":\"node make.mjs\",\"unit\":\"jest --config unit.json\",\"start\":\"node index.js\"}}",
    ),
    ("run.js", ""),
    ("make.mjs", ""),
    ("index.js", ""),
    ("unit.json", ""),
    ("Makefile", "check:\n\tsh hack/gate.sh\n"),
    ("hack/gate.sh", ""),
    ("checks/one.py", ""),
    ("src/one.py", ""),
    ("xtask/src/main.rs", "fn main() {}"),
    ("greeting.txt", ""),
    ("sub/run.sh", ". ./verify.sh"),
    ("sub/verify.sh", ""),
    (".claude/test.sh", ""),
    (".claude/checks/one.sh", ""),
    (".claude/checks/AGENTS.md", ""),
];

#[test]
fn the_scripts_of_commands_and_what_these_call_count() {
    for (name, line, path, wanted) in [
        ("tests", "sh ci/all.sh", "ci/all.sh", "run by `tests`"),
        ("tests", "./ci/all.sh -v", "ci/lib.sh", "used by `ci/all.sh`"),
        ("tests", "sh ci/all.sh", "tools/compare.py", "used by `ci/all.sh`"),
        ("tests", "sh ci/all.sh", "tools/read_all.py", "used by `tools/compare.py`"),
        ("tests", "sh ci/all.sh", "tools/release.py", "product"),
        ("tests", "sh ci/all.sh", "ci/notes.sh", "product"),
        ("tests", "sh ci/all.sh", "shop.sh", "product"),
        ("tests", "sh ci/all.sh", "unit.json", "run by `ci/all.sh`"),
        ("tests", "sh go.sh", "go.sh", "run by `tests`"),
        ("tests", "sh go.sh", "assert.sh", "used by `go.sh`"),
        ("tests", "sh go.sh", "shop.sh", "product"),
        ("tests", "sh -c 'sh go.sh && true'", "go.sh", "run by `tests`"),
        ("tests", "cd sub && ./run.sh", "sub/verify.sh", "used by `sub/run.sh`"),
        ("tests", "cd sub && ./run.sh", "sub/run.sh", "run by `tests`"),
        ("uat", "sh shop.sh help", "shop.sh", "product"),
        ("uat", "sh ci/all.sh", "ci/all.sh", "run by `uat`"),
        ("tests", "sh shop.sh help | grep -q help", "shop.sh", "product"),
        ("tests", "sh go.sh 2>&1 | tail -5", "go.sh", "run by `tests`"),
        ("tests", "python3 app.py", "app.py", "product"),
        ("tests", "python3 -m selfcheck", "selfcheck/__main__.py", "product"),
        ("tests", "python3 -m tools.compare", "tools/compare.py", "run by `tests`"),
        ("tests", "grep -q hello greeting.txt", "greeting.txt", "product"),
        ("tests", "test -f greeting.txt", "greeting.txt", "product"),
        ("tests", "npm test", "run.js", "run by `tests`"),
        ("tests", "npm test", "make.mjs", "run by `tests`"),
        ("tests", "npm test", "index.js", "product"),
        ("tests", "npm t && yarn unit", "unit.json", "run by `tests`"),
        ("tests", "make check", "hack/gate.sh", "used by `Makefile`"),
        ("tests", "make check", "Makefile", "run by `tests`"),
        ("tests", "pytest checks", "checks/one.py", "run by `tests`"),
        ("tests", "pytest src", "src/one.py", "product"),
        ("tests", "pytest -q checks/one.py", "checks/one.py", "run by `tests`"),
        ("tests", "cargo xtask ci", "xtask/src/main.rs", "run by `tests`"),
        ("tests", "cargo test", "xtask/src/main.rs", "product"),
        ("tests", "sh ../outside.sh", "shop.sh", "product"),
        ("lint", "ruff check --config unit.json .", "unit.json", "run by `lint`"),
        ("tests", "true", "ci/all.sh", "product"),
        ("tests", "sh .claude/test.sh", ".claude/test.sh", "run by `tests`"),
        ("tests", "bats .claude/checks", ".claude/checks/AGENTS.md", "instructions of agents"),
        ("tests", "true", ".claude/test.sh", "instructions of agents"),
    ] {
        let share = shares(SCRIPTS, &[(name, line)], &[], path);
        assert_eq!(word(&share), wanted, "{line}: {path}");
    }
}

#[test]
fn a_script_that_npm_runs_for_the_tests_is_no_product_of_the_manifest() {
    let base = r#"{"scripts":{"build":"x"}}"#;
    let reached = shares(SCRIPTS, &[("tests", "npm test")], &[], "package.json");
    assert!(matches!(reached, YardstickShare::Part(_)));
    let share =
        |line| word(&shares(&[("package.json", base)], &[("tests", line)], &[], "package.json"));
    assert_eq!(share("npm run build"), "part: settings of test runners and linters");
    assert_eq!(share("cargo test"), "product");
}

#[test]
fn the_search_for_scripts_has_an_end() {
    let mut files: Vec<(String, String)> = Vec::new();
    for at in 0..script::CALLS_MAX + 3 {
        files.push((format!("ci/{at}.sh"), format!("sh ci/{}.sh\nsh ci/0.sh", at + 1)));
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let commands = [("tests", "sh ci/0.sh")];
    let near = format!("ci/{}.sh", script::CALLS_MAX);
    let far = format!("ci/{}.sh", script::CALLS_MAX + 1);
    assert_ne!(word(&shares(&files, &commands, &[], &near)), "product");
    assert_eq!(word(&shares(&files, &commands, &[], &far)), "product");

    let many: Vec<(String, String)> = (0..script::SCRIPTS_MAX + 10)
        .map(|at| (format!("ci/a{at:04}.sh"), format!("sh ci/b{at:04}.sh")))
        .chain((0..script::SCRIPTS_MAX + 10).map(|at| (format!("ci/b{at:04}.sh"), String::new())))
        .collect();
    let all: String =
        (0..script::SCRIPTS_MAX + 10).map(|at| format!("sh ci/a{at:04}.sh\n")).collect();
    let mut files: Vec<(&str, &str)> =
        many.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    files.push(("ci/0.sh", &all));
    assert_ne!(word(&shares(&files, &commands, &[], "ci/b0001.sh")), "product");
    let last = format!("ci/b{:04}.sh", script::SCRIPTS_MAX + 5);
    assert_eq!(word(&shares(&files, &commands, &[], &last)), "product");
}

#[test]
fn only_what_commands_depend_on_needs_runs() {
    assert!(!YardstickReason::Instruction.decides_commands());
    assert!(!YardstickReason::BuildServer.decides_commands());
    assert!(YardstickReason::Test.decides_commands());
    assert!(YardstickReason::Pattern(String::new()).decides_commands());
}
