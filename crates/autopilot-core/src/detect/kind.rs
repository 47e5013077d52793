//! One function per kind of project: how it is recognized and what it proposes.

use serde::{Deserialize, Serialize};

use super::{ProjectFacts, Proposal, node, python};

/// The kinds of projects, by their build tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProjectKind {
    Cargo,
    Npm,
    Pnpm,
    Yarn,
    Bun,
    Deno,
    Uv,
    Poetry,
    Tox,
    Pytest,
    Go,
    Gradle,
    Maven,
    Cmake,
    Dotnet,
    Mix,
    Ruby,
    Composer,
    Make,
}

/// A kind of project that was recognized, and the commands that it proposes.
#[derive(Debug)]
pub(super) struct FoundKind {
    pub(super) kind: ProjectKind,
    pub(super) tests: Option<Proposal>,
    pub(super) lint: Option<Proposal>,
    pub(super) format: Option<Proposal>,
    pub(super) setup: Option<Proposal>,
}

impl FoundKind {
    /// A kind that proposes nothing yet.
    pub(super) fn new(kind: ProjectKind) -> FoundKind {
        FoundKind { kind, tests: None, lint: None, format: None, setup: None }
    }

    /// A kind that proposes a test command and nothing else.
    fn with_tests(kind: ProjectKind, command: &str, why: &str) -> FoundKind {
        FoundKind { tests: propose(command, why), ..FoundKind::new(kind) }
    }
}

pub(super) fn propose(value: &str, why: &str) -> Option<Proposal> {
    Some(Proposal { value: value.to_owned(), why: why.to_owned() })
}

/// The kinds found in a repository. Make comes last and only proposes when nothing else does: its
/// targets usually call the others.
pub(super) fn found(facts: &ProjectFacts) -> Vec<FoundKind> {
    const READERS: &[fn(&ProjectFacts) -> Option<FoundKind>] = &[
        cargo,
        node::read,
        deno,
        python::read,
        go,
        gradle,
        maven,
        cmake,
        dotnet,
        mix,
        ruby,
        composer,
    ];
    let mut all: Vec<FoundKind> = READERS.iter().filter_map(|read| read(facts)).collect();
    if let Some(make) = make(facts) {
        let spoken_for = all.iter().any(|found| found.tests.is_some());
        all.push(if spoken_for { FoundKind::new(make.kind) } else { make });
    }
    all
}

fn cargo(facts: &ProjectFacts) -> Option<FoundKind> {
    let why = facts.first(&["Cargo.toml"])?;
    Some(FoundKind {
        kind: ProjectKind::Cargo,
        tests: propose("cargo test --workspace", why),
        lint: propose("cargo clippy --workspace --all-targets -- -D warnings", why),
        format: propose("cargo fmt --check", why),
        setup: None,
    })
}

fn deno(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["deno.json", "deno.jsonc"])?;
    let task = facts.content(name).contains("\"test\"");
    Some(FoundKind {
        kind: ProjectKind::Deno,
        tests: propose(if task { "deno task test" } else { "deno test" }, name),
        lint: propose("deno lint", name),
        format: propose("deno fmt --check", name),
        setup: None,
    })
}

fn go(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["go.mod"])?;
    let linter = facts.first(&[".golangci.yml", ".golangci.yaml", ".golangci.toml"]);
    Some(FoundKind {
        kind: ProjectKind::Go,
        tests: propose("go test ./...", name),
        lint: match linter {
            Some(linter) => propose("golangci-lint run", linter),
            None => propose("go vet ./...", name),
        },
        format: propose("test -z \"$(gofmt -l .)\"", name),
        setup: None,
    })
}

fn gradle(facts: &ProjectFacts) -> Option<FoundKind> {
    let names = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
    let name = facts.first(&names)?;
    let command = if facts.has("gradlew") { "./gradlew test" } else { "gradle test" };
    Some(FoundKind::with_tests(ProjectKind::Gradle, command, name))
}

fn maven(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["pom.xml"])?;
    let command = if facts.has("mvnw") { "./mvnw -B test" } else { "mvn -B test" };
    Some(FoundKind::with_tests(ProjectKind::Maven, command, name))
}

fn cmake(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["CMakeLists.txt"])?;
    let command = "cmake -S . -B build && cmake --build build && \
                   ctest --test-dir build --output-on-failure";
    Some(FoundKind::with_tests(ProjectKind::Cmake, command, name))
}

fn dotnet(facts: &ProjectFacts) -> Option<FoundKind> {
    let endings = [".sln", ".slnx", ".csproj", ".fsproj"];
    let why = format!("a {} file", endings.into_iter().find(|e| facts.has_ending(e))?);
    Some(FoundKind {
        kind: ProjectKind::Dotnet,
        tests: propose("dotnet test", &why),
        lint: None,
        format: propose("dotnet format --verify-no-changes", &why),
        setup: propose("dotnet restore", &why),
    })
}

fn mix(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["mix.exs"])?;
    Some(FoundKind {
        kind: ProjectKind::Mix,
        tests: propose("mix test", name),
        lint: facts.first(&[".credo.exs"]).and_then(|credo| propose("mix credo", credo)),
        format: propose("mix format --check-formatted", name),
        setup: propose("mix deps.get", name),
    })
}

fn ruby(facts: &ProjectFacts) -> Option<FoundKind> {
    let gems = facts.first(&["Gemfile"]);
    let rake = facts.first(&["Rakefile"]);
    gems.or(rake)?;
    let rspec =
        facts.has(".rspec") || facts.has("spec/") || facts.content("Gemfile").contains("rspec");
    let exec = if gems.is_some() { "bundle exec " } else { "" };
    Some(FoundKind {
        kind: ProjectKind::Ruby,
        tests: match (rspec, rake) {
            (true, _) => propose(&format!("{exec}rspec"), "RSpec in the project"),
            (false, Some(rake)) => propose(&format!("{exec}rake test"), rake),
            (false, None) => None,
        },
        lint: facts
            .first(&[".rubocop.yml"])
            .and_then(|name| propose(&format!("{exec}rubocop"), name)),
        format: None,
        setup: gems.and_then(|gems| propose("bundle install", gems)),
    })
}

fn composer(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["composer.json"])?;
    let scripted = node::script(facts.content(name), "test").is_some();
    Some(FoundKind {
        tests: match (scripted, facts.first(&["phpunit.xml", "phpunit.xml.dist"])) {
            (true, _) => propose("composer test", "the test script in composer.json"),
            (false, Some(phpunit)) => propose("vendor/bin/phpunit", phpunit),
            (false, None) => None,
        },
        setup: propose("composer install --no-interaction", name),
        ..FoundKind::new(ProjectKind::Composer)
    })
}

fn make(facts: &ProjectFacts) -> Option<FoundKind> {
    let name = facts.first(&["Makefile", "makefile", "GNUmakefile"])?;
    let target = |target: &str| {
        let is_rule = |line: &str| {
            let rest = line.strip_prefix(target).map(str::trim_start);
            rest.is_some_and(|rest| rest.starts_with(':') && !rest.starts_with(":="))
        };
        let has_rule = facts.content(name).lines().any(is_rule);
        let why = format!("target {target} in {name}");
        propose(&format!("make {target}"), &why).filter(|_| has_rule)
    };
    Some(FoundKind {
        tests: target("test").or_else(|| target("check")),
        lint: target("lint"),
        ..FoundKind::new(ProjectKind::Make)
    })
}
