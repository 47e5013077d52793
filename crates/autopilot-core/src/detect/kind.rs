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

#[derive(Debug, Default)]
pub(super) struct ProposedCommands {
    pub(super) tests: Option<Proposal>,
    pub(super) lint: Option<Proposal>,
    pub(super) format: Option<Proposal>,
    pub(super) setup: Option<Proposal>,
}

pub(super) struct FoundKind {
    pub(super) kind: ProjectKind,
    pub(super) commands: ProposedCommands,
}

type Read = fn(&ProjectFacts) -> Option<(ProjectKind, ProposedCommands)>;

pub(super) fn propose(value: &str, why: &str) -> Option<Proposal> {
    Some(Proposal { value: value.to_owned(), why: why.to_owned() })
}

/// The kinds found in a repository. Make comes last and only proposes when nothing else does: its
/// targets usually call the others.
pub(super) fn found(facts: &ProjectFacts) -> Vec<FoundKind> {
    const READERS: &[Read] = &[
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
    let read = |read: &Read| read(facts).map(|(kind, commands)| FoundKind { kind, commands });
    let mut all: Vec<FoundKind> = READERS.iter().filter_map(read).collect();
    if let Some((kind, commands)) = make(facts) {
        let spoken_for = all.iter().any(|found| found.commands.tests.is_some());
        let commands = if spoken_for { ProposedCommands::default() } else { commands };
        all.push(FoundKind { kind, commands });
    }
    all
}

fn cargo(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    facts.has("Cargo.toml").then(|| {
        let why = "Cargo.toml";
        let commands = ProposedCommands {
            tests: propose("cargo test --workspace", why),
            lint: propose("cargo clippy --workspace --all-targets -- -D warnings", why),
            format: propose("cargo fmt --check", why),
            setup: None,
        };
        (ProjectKind::Cargo, commands)
    })
}

fn deno(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    let name = ["deno.json", "deno.jsonc"].into_iter().find(|name| facts.has(name))?;
    let task = facts.content(name).contains("\"test\"");
    let commands = ProposedCommands {
        tests: propose(if task { "deno task test" } else { "deno test" }, name),
        lint: propose("deno lint", name),
        format: propose("deno fmt --check", name),
        setup: None,
    };
    Some((ProjectKind::Deno, commands))
}

fn go(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    facts.has("go.mod").then(|| {
        let linter = [".golangci.yml", ".golangci.yaml", ".golangci.toml"];
        let lint = match linter.into_iter().find(|name| facts.has(name)) {
            Some(name) => propose("golangci-lint run", name),
            None => propose("go vet ./...", "go.mod"),
        };
        let format = propose("test -z \"$(gofmt -l .)\"", "go.mod");
        let tests = propose("go test ./...", "go.mod");
        (ProjectKind::Go, ProposedCommands { tests, lint, format, setup: None })
    })
}

fn gradle(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    let name = ["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"]
        .into_iter()
        .find(|name| facts.has(name))?;
    let command = if facts.has("gradlew") { "./gradlew test" } else { "gradle test" };
    Some((
        ProjectKind::Gradle,
        ProposedCommands { tests: propose(command, name), ..ProposedCommands::default() },
    ))
}

fn maven(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    facts.has("pom.xml").then(|| {
        let command = if facts.has("mvnw") { "./mvnw -B test" } else { "mvn -B test" };
        (
            ProjectKind::Maven,
            ProposedCommands { tests: propose(command, "pom.xml"), ..ProposedCommands::default() },
        )
    })
}

fn cmake(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    facts.has("CMakeLists.txt").then(|| {
        let command = "cmake -S . -B build && cmake --build build && \
                       ctest --test-dir build --output-on-failure";
        (
            ProjectKind::Cmake,
            ProposedCommands {
                tests: propose(command, "CMakeLists.txt"),
                ..ProposedCommands::default()
            },
        )
    })
}

fn dotnet(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    let ending =
        [".sln", ".slnx", ".csproj", ".fsproj"].into_iter().find(|e| facts.has_ending(e))?;
    let why = format!("a {ending} file");
    let commands = ProposedCommands {
        tests: propose("dotnet test", &why),
        format: propose("dotnet format --verify-no-changes", &why),
        setup: propose("dotnet restore", &why),
        lint: None,
    };
    Some((ProjectKind::Dotnet, commands))
}

fn mix(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    facts.has("mix.exs").then(|| {
        let credo = facts.has(".credo.exs");
        let commands = ProposedCommands {
            tests: propose("mix test", "mix.exs"),
            lint: credo.then(|| propose("mix credo", ".credo.exs")).flatten(),
            format: propose("mix format --check-formatted", "mix.exs"),
            setup: propose("mix deps.get", "mix.exs"),
        };
        (ProjectKind::Mix, commands)
    })
}

fn ruby(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    let gems = facts.has("Gemfile");
    let rake = facts.has("Rakefile");
    let rspec =
        facts.has(".rspec") || facts.has("spec/") || facts.content("Gemfile").contains("rspec");
    if !gems && !rake {
        return None;
    }
    let exec = if gems { "bundle exec " } else { "" };
    let tests = match (rspec, rake) {
        (true, _) => propose(&format!("{exec}rspec"), "RSpec in the project"),
        (false, true) => propose(&format!("{exec}rake test"), "Rakefile"),
        (false, false) => None,
    };
    let rubocop = facts.has(".rubocop.yml");
    let commands = ProposedCommands {
        tests,
        lint: rubocop.then(|| propose(&format!("{exec}rubocop"), ".rubocop.yml")).flatten(),
        format: None,
        setup: gems.then(|| propose("bundle install", "Gemfile")).flatten(),
    };
    Some((ProjectKind::Ruby, commands))
}

fn composer(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    facts.has("composer.json").then(|| {
        let scripted = node::script(facts.content("composer.json"), "test").is_some();
        let phpunit = ["phpunit.xml", "phpunit.xml.dist"].into_iter().find(|name| facts.has(name));
        let tests = match (scripted, phpunit) {
            (true, _) => propose("composer test", "the test script in composer.json"),
            (false, Some(name)) => propose("vendor/bin/phpunit", name),
            (false, None) => None,
        };
        let setup = propose("composer install --no-interaction", "composer.json");
        (ProjectKind::Composer, ProposedCommands { tests, setup, ..ProposedCommands::default() })
    })
}

fn make(facts: &ProjectFacts) -> Option<(ProjectKind, ProposedCommands)> {
    let name = ["Makefile", "makefile", "GNUmakefile"].into_iter().find(|name| facts.has(name))?;
    let text = facts.content(name);
    let target = |target: &str| {
        let is_rule = |line: &str| {
            line.strip_prefix(target).is_some_and(|rest| {
                let rest = rest.trim_start();
                rest.starts_with(':') && !rest.starts_with(":=")
            })
        };
        text.lines()
            .any(is_rule)
            .then(|| propose(&format!("make {target}"), &format!("target {target} in {name}")))
            .flatten()
    };
    let tests = target("test").or_else(|| target("check"));
    Some((
        ProjectKind::Make,
        ProposedCommands { tests, lint: target("lint"), ..ProposedCommands::default() },
    ))
}
