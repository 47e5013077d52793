//! A list of files in, proposals out.

use super::*;
use proptest::prelude::*;

fn facts(files: &[&str], contents: &[(&str, &str)]) -> ProjectFacts {
    let mut all: BTreeSet<String> = files.iter().map(|name| (*name).to_owned()).collect();
    all.extend(contents.iter().map(|(name, _)| (*name).to_owned()));
    ProjectFacts {
        files: all,
        contents: contents.iter().map(|(n, t)| ((*n).to_owned(), (*t).to_owned())).collect(),
        ignored: BTreeSet::new(),
        tracked: BTreeSet::new(),
    }
}

fn check(files: &[&str], contents: &[(&str, &str)], tests: &str, setup: &str) {
    let found = detect(&facts(files, contents));
    let value = |proposal: &Option<Proposal>| {
        proposal.as_ref().map_or("-".to_owned(), |proposal| proposal.value.clone())
    };
    assert_eq!((value(&found.tests).as_str(), value(&found.setup).as_str()), (tests, setup));
}

#[test]
fn each_kind_proposes_its_test_command_and_setup() {
    let npm = r#"{"scripts": {"test": "vitest run", "lint": "eslint ."}}"#;
    check(&["Cargo.toml"], &[], "cargo test --workspace", "-");
    check(&["package-lock.json"], &[("package.json", npm)], "npm test", "npm ci");
    check(
        &["pnpm-lock.yaml"],
        &[("package.json", npm)],
        "pnpm test",
        "pnpm install --frozen-lockfile",
    );
    check(&["yarn.lock"], &[("package.json", npm)], "yarn test", "yarn install --immutable");
    check(&["bun.lock"], &[("package.json", npm)], "bun run test", "bun install --frozen-lockfile");
    check(&["deno.json"], &[], "deno test", "-");
    check(&["uv.lock", "tests/"], &[("pyproject.toml", "")], "uv run pytest -q", "uv sync");
    check(
        &["tests/"],
        &[("pyproject.toml", "[tool.poetry]")],
        "poetry run pytest -q",
        "poetry install",
    );
    check(&[], &[("tox.ini", "[tox]")], "tox -q", "-");
    check(
        &[],
        &[("requirements.txt", "pytest==8")],
        "pytest -q",
        "python3 -m venv .venv && .venv/bin/pip install -q -r requirements.txt",
    );
    check(&["go.mod"], &[], "go test ./...", "-");
    check(&["build.gradle.kts", "gradlew"], &[], "./gradlew test", "-");
    check(&["pom.xml"], &[], "mvn -B test", "-");
    check(&["My.sln"], &[], "dotnet test", "dotnet restore");
    check(&["mix.exs"], &[], "mix test", "mix deps.get");
    check(&["Gemfile", "spec/"], &[], "bundle exec rspec", "bundle install");
    check(&["Rakefile"], &[], "rake test", "-");
    check(
        &["phpunit.xml"],
        &[("composer.json", "{}")],
        "vendor/bin/phpunit",
        "composer install --no-interaction",
    );
    check(&[], &[("Makefile", "all: a\ntest: all\n\t./t\n")], "make test", "-");
    assert!(detect(&facts(&["CMakeLists.txt"], &[])).tests.unwrap().value.contains("ctest"));
}

#[test]
fn nothing_is_made_up_where_there_is_no_test_command() {
    check(&["README.md"], &[], "-", "-");
    check(&[], &[("Makefile", "test := x\ntested: y\n")], "-", "-");
    let placeholder = r#"{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}"#;
    check(&[], &[("package.json", placeholder)], "-", "npm install");
    check(&[], &[("package.json", "{ broken")], "-", "npm install");
}

#[test]
fn several_kinds_are_all_tested_and_make_does_not_repeat_them() {
    let found = detect(&facts(
        &["Cargo.toml", "package-lock.json"],
        &[
            ("package.json", r#"{"scripts":{"test":"jest"}}"#),
            ("Makefile", "test:\n\tcargo test\n"),
        ],
    ));
    assert_eq!(found.kinds, [ProjectKind::Cargo, ProjectKind::Npm, ProjectKind::Make]);
    let tests = found.tests.unwrap();
    assert_eq!(tests.value, "cargo test --workspace && npm test");
    assert_eq!(tests.why, "Cargo.toml; the test script in package.json");
}

#[test]
fn ignored_local_settings_are_proposed_for_copying_and_the_rest_is_not() {
    let ignored = [
        ".env",
        ".env.example",
        ".env.local",
        ".claude/settings.local.json",
        "node_modules/x/.env",
        "target/debug/app",
        "notes.txt",
        "web/.env.test",
    ];
    let facts = ProjectFacts {
        ignored: ignored.iter().map(|s| (*s).to_owned()).collect(),
        ..ProjectFacts::default()
    };
    let copied: Vec<String> = detect(&facts).copy.into_iter().map(|p| p.value).collect();
    assert_eq!(copied, [".claude/settings.local.json", ".env", ".env.local", "web/.env.test"]);
}

#[test]
fn the_number_of_files_to_copy_is_limited() {
    let ignored = (0..COPY_MAX * 2).map(|n| format!("app{n}/.env")).collect();
    assert_eq!(detect(&ProjectFacts { ignored, ..ProjectFacts::default() }).copy.len(), COPY_MAX);
}

proptest! {
    #[test]
    fn any_content_is_survived(text in "\\PC*") {
        for name in CONTENTS_WANTED {
            detect(&facts(&[], &[(name, &text)]));
        }
    }
}
