//! Recognizes projects with a package.json.

use serde_json::Value;

use super::ProjectFacts;
use super::kind::{FoundKind, ProjectKind, propose};

pub(super) fn read(facts: &ProjectFacts) -> Option<FoundKind> {
    let package = facts.content(facts.first(&["package.json"])?);
    let (manager, lock) = manager(facts, package);
    let scripted = |names: &[&str]| {
        let name = names.iter().find(|name| script(package, name).is_some())?;
        let why = format!("the {name} script in package.json");
        propose(&format!("{} run {name}", manager.name), &why)
    };
    // `npm init` writes a placeholder that always fails.
    let tested =
        script(package, "test").is_some_and(|command| !command.contains("no test specified"));
    let tests = tested.then(|| propose(manager.test, "the test script in package.json")).flatten();
    let setup = match lock {
        Some(lock) => propose(manager.install, lock),
        None if manager.kind == ProjectKind::Npm => {
            propose("npm install", "package.json without a lock file")
        }
        None => propose(manager.install, "packageManager in package.json"),
    };
    Some(FoundKind {
        kind: manager.kind,
        tests,
        lint: scripted(&["lint"]),
        format: scripted(&["format:check", "fmt:check", "check:format"]),
        setup,
    })
}

struct Manager {
    kind: ProjectKind,
    name: &'static str,
    test: &'static str,
    install: &'static str,
    locks: &'static [&'static str],
}

const NPM: Manager = Manager {
    kind: ProjectKind::Npm,
    name: "npm",
    test: "npm test",
    install: "npm ci",
    locks: &["package-lock.json", "npm-shrinkwrap.json"],
};

const OTHERS: &[Manager] = &[
    Manager {
        kind: ProjectKind::Pnpm,
        name: "pnpm",
        test: "pnpm test",
        install: "pnpm install --frozen-lockfile",
        locks: &["pnpm-lock.yaml"],
    },
    Manager {
        kind: ProjectKind::Yarn,
        name: "yarn",
        test: "yarn test",
        install: "yarn install --immutable",
        locks: &["yarn.lock"],
    },
    Manager {
        kind: ProjectKind::Bun,
        name: "bun",
        test: "bun run test",
        install: "bun install --frozen-lockfile",
        locks: &["bun.lock", "bun.lockb"],
    },
];

fn manager(facts: &ProjectFacts, package: &str) -> (&'static Manager, Option<&'static str>) {
    let lock_of = |manager: &'static Manager| manager.locks.iter().find(|lock| facts.has(lock));
    let locked = OTHERS.iter().chain([&NPM]).find_map(|m| Some((m, *lock_of(m)?)));
    if let Some((manager, lock)) = locked {
        return (manager, Some(lock));
    }
    let value: Value = serde_json::from_str(package).unwrap_or(Value::Null);
    let named = value.get("packageManager").and_then(Value::as_str).unwrap_or_default();
    let name = named.split('@').next().unwrap_or_default();
    (OTHERS.iter().find(|manager| manager.name == name).unwrap_or(&NPM), None)
}

/// A script of package.json or composer.json; a broken file has none.
pub(super) fn script(package: &str, name: &str) -> Option<String> {
    let value: Value = serde_json::from_str(package).ok()?;
    let script = value.get("scripts")?.get(name)?;
    match script.as_str() {
        Some(text) => Some(text.to_owned()),
        None => script.is_array().then(|| script.to_string()),
    }
}
