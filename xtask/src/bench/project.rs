//! Real projects to measure gates on: sources of pinned versions, fetched by the package managers
//! themselves from wherever this machine's are set up to fetch from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::repository::git;
use super::{Bed, Effort};
use crate::step::{self, Failure, failed_to};
use crate::workspace::{cargo, find_program};

/// A project, the commands that judge it and the change that a builder makes in it.
pub struct RealProject {
    /// The name of its directory.
    pub name: &'static str,
    /// The programs that it needs besides git.
    needs: &'static [&'static str],
    /// Puts the sources into an empty directory, from another one for what is fetched.
    fetch: fn(&Path, &Path) -> Result<(), Failure>,
    /// The files that are no sources.
    ignored: &'static str,
    /// Installs what the commands need.
    pub setup: Option<&'static str>,
    pub tests: &'static str,
    pub lint: &'static str,
    /// Adds a line that names `$AUTOPILOT_TASK_ID`, at the place that the number after its last dash
    /// says, so that the changes of several tasks can be merged.
    pub edit: &'static str,
    /// Adds a function and a test of it, so that the change is proven by three runs.
    pub tested_edit: &'static str,
}

/// A command-line tool with 68 packages in its lock file.
const CARGO: RealProject = RealProject {
    name: "cargo",
    needs: &["cargo", "cargo-clippy"],
    fetch: fetch_crate,
    ignored: "/target\n",
    setup: None,
    tests: "cargo test",
    lint: "cargo clippy --all-targets",
    edit: EDIT_RUST,
    tested_edit: TESTED_EDIT_RUST,
};

/// A library with 797 assertions, checked by eslint. Of its tools only those of its tests and its lint
/// rules are installed.
const NPM: RealProject = RealProject {
    name: "npm",
    needs: &["npm", "npx", "node", "tar"],
    fetch: fetch_tarball,
    ignored: "node_modules\n",
    setup: Some("npm ci --silent --ignore-scripts --no-audit --no-fund"),
    tests: "npx tape test/*.js",
    lint: "npx eslint --ext=js,mjs .",
    edit: r#"echo "// $AUTOPILOT_TASK_ID" >>lib/utils.js"#,
    tested_edit: r#"echo "module.exports.added = 'added';" >>lib/utils.js
cat >test/added.js <<'TEST'
'use strict';

var test = require('tape');
var utils = require('../lib/utils');

test('added', function (t) {
    t.equal(utils.added, 'added');
    t.end();
});
TEST"#,
};

const NPM_TOOLS: &[&str] = &[
    "tape@5.9.0",
    "es-value-fixtures@1.7.1",
    "for-each@0.3.5",
    "has-bigints@1.1.0",
    "has-override-mistake@1.0.1",
    "has-property-descriptors@1.0.2",
    "has-proto@1.2.0",
    "has-symbols@1.1.0",
    "iconv-lite@0.5.1",
    "mock-property@1.1.0",
    "object-inspect@1.13.4",
    "qs-iconv@1.0.4",
    "safer-buffer@2.1.2",
    "eslint@8.8.0",
    "@ljharb/eslint-config@21.1.1",
];

/// A library with 297 tests, checked by mypy.
const PYTHON: RealProject = RealProject {
    name: "python",
    needs: &["python3", "pip", "tar"],
    fetch: fetch_sdist,
    ignored: "__pycache__\n.pytest_cache\n.mypy_cache\n.venv\n",
    setup: Some(
        "python3 -m venv .venv && .venv/bin/pip install -q -r requirements/tests.txt mypy==1.9.0",
    ),
    tests: "PYTHONPATH=src .venv/bin/python -m pytest -q",
    lint: ".venv/bin/python -m mypy",
    edit: r##"echo "# $AUTOPILOT_TASK_ID" >>src/itsdangerous/signer.py"##,
    tested_edit: r#"printf '\n\ndef added() -> int:\n    return 7\n' >>src/itsdangerous/signer.py
cat >tests/test_itsdangerous/test_added.py <<'TEST'
from itsdangerous.signer import added


def test_added() -> None:
    assert added() == 7
TEST"#,
};

/// A crate without dependencies, in the place of each project where only the bench itself is tried.
const TINY: RealProject = RealProject {
    name: "tiny",
    needs: &["cargo"],
    fetch: write_crate,
    ignored: "/target\n",
    setup: None,
    tests: "cargo test --offline",
    lint: "cargo check --offline --all-targets",
    edit: EDIT_RUST,
    tested_edit: TESTED_EDIT_RUST,
};

/// Adds a line before the item of that number: items are far enough from each other for git.
const EDIT_RUST: &str = r#"awk -v id="$AUTOPILOT_TASK_ID" '
  BEGIN { n = id; sub(/.*-/, "", n); n = n % 10 + 1 }
  /^(#\[derive|impl|pub fn|fn|use std)/ && ++seen == n { print "// " id }
  { print }' src/lib.rs >src/lib.rs.new && mv src/lib.rs.new src/lib.rs"#;

/// The first name in the manifest is that of the package.
const TESTED_EDIT_RUST: &str = r#"
name=$(sed -n 's/^name = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
printf '\n/// Added.\npub fn added() -> usize {\n    7\n}\n' >>src/lib.rs
mkdir -p tests
printf '#[test]\nfn added() {\n    assert_eq!(%s::added(), 7);\n}\n' "$name" >tests/added.rs"#;

impl Bed {
    fn project(&self, real: &'static RealProject) -> &'static RealProject {
        match self.effort {
            Effort::Full { .. } => real,
            Effort::Smoke => &TINY,
        }
    }
}

impl RealProject {
    pub fn cargo(bed: &Bed) -> &'static RealProject {
        bed.project(&CARGO)
    }

    pub fn npm(bed: &Bed) -> &'static RealProject {
        bed.project(&NPM)
    }

    pub fn python(bed: &Bed) -> &'static RealProject {
        bed.project(&PYTHON)
    }

    /// Makes a repository of the sources in `dir`, which must not exist.
    pub fn make(&self, dir: &Path, scratch: &Path) -> Result<(), Failure> {
        for program in self.needs {
            if find_program(program).is_none() {
                return Err(Failure::Task(format!(
                    "the bench on a {} project needs `{program}`, which is not on PATH",
                    self.name
                )));
            }
        }
        for dir in [dir, scratch] {
            fs::create_dir_all(dir).map_err(failed_to(format!("create {}", dir.display())))?;
        }
        (self.fetch)(dir, scratch)?;
        write(&dir.join(".gitignore"), self.ignored)?;
        git(dir, &["init", "-q", "-b", "main"])?;
        git(dir, &["add", "-A"])?;
        git(dir, &["commit", "-q", "-m", "base"]).map(drop)
    }
}

fn fetch_crate(dir: &Path, scratch: &Path) -> Result<(), Failure> {
    const NAME: &str = "hexyl";
    let manifest = format!(
        "[package]\nname = \"fetch\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n{NAME} = \"=0.17.0\"\n"
    );
    write(&scratch.join("Cargo.toml"), &manifest)?;
    write(&scratch.join("src/lib.rs"), "")?;
    let mut metadata = cargo(["metadata", "--quiet", "--format-version", "1"]);
    let answer = step::output_of(metadata.current_dir(scratch))?;
    let answer: Value = serde_json::from_str(&answer).map_err(failed_to("read cargo metadata"))?;
    let packages = answer["packages"].as_array().into_iter().flatten();
    let manifest = packages
        .filter(|package| package["name"] == NAME)
        .find_map(|package| package["manifest_path"].as_str());
    let source = manifest.map(PathBuf::from).and_then(|path| path.parent().map(Path::to_owned));
    let source =
        source.ok_or_else(|| Failure::Task(format!("cargo does not say where it put `{NAME}`")))?;
    step::output_of(Command::new("cp").arg("-R").arg(source.join(".")).arg(dir))?;
    // What cargo adds to a package.
    for name in [".cargo-ok", ".cargo_vcs_info.json", "Cargo.toml.orig"] {
        let _absent = fs::remove_file(dir.join(name));
    }
    // It is measured below our own workspace, and no member of that.
    let path = dir.join("Cargo.toml");
    let manifest = fs::read_to_string(&path).map_err(failed_to("read its manifest"))?;
    write(&path, &format!("{manifest}\n[workspace]\n"))
}

fn fetch_tarball(dir: &Path, scratch: &Path) -> Result<(), Failure> {
    let npm = |words: &[&str], dir: &Path| {
        let mut npm = Command::new("npm");
        npm.arg("--silent").args(words).current_dir(dir);
        step::output_of(&mut npm).map(drop)
    };
    npm(&["pack", "qs@6.14.0"], scratch)?;
    unpack(&scratch.join("qs-6.14.0.tgz"), dir)?;
    npm(&["pkg", "delete", "devDependencies"], dir)?;
    let lock = ["install", "--package-lock-only", "--no-audit", "--save-exact", "--save-dev"];
    npm(&[&lock, NPM_TOOLS].concat(), dir)
}

fn unpack(archive: &Path, dir: &Path) -> Result<(), Failure> {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).args(["--strip-components=1", "-C"]).arg(dir);
    step::output_of(&mut tar).map(drop)
}

fn fetch_sdist(dir: &Path, scratch: &Path) -> Result<(), Failure> {
    let mut pip = Command::new("pip");
    pip.args(["download", "--quiet", "--no-deps", "--no-binary", ":all:", "itsdangerous==2.2.0"]);
    step::output_of(pip.current_dir(scratch))?;
    unpack(&scratch.join("itsdangerous-2.2.0.tar.gz"), dir)
}

fn write_crate(dir: &Path, _scratch: &Path) -> Result<(), Failure> {
    write(
        &dir.join("Cargo.toml"),
        "[package]\nname = \"tiny\"\nedition = \"2021\"\n[workspace]\n",
    )?;
    let item = |n: usize| {
        format!(
            "pub fn item{n}() -> usize {{\n    {n}\n}}\n\n#[test]\nfn item{n}_is_{n}() {{\n    assert_eq!(item{n}(), {n});\n}}\n\n"
        )
    };
    write(&dir.join("src/lib.rs"), &(0..6).map(item).collect::<String>())?;
    // Written by the tests instead, it would be a change of theirs.
    let mut lock = cargo(["generate-lockfile", "--quiet", "--offline"]);
    step::output_of(lock.current_dir(dir)).map(drop)
}

pub fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed_to(format!("create {}", parent.display())))?;
    }
    fs::write(path, text).map_err(failed_to(format!("write {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ten_tasks_each_add_a_line_at_a_place_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let (project, scratch) = (dir.path().join("project"), dir.path().join("fetched"));
        TINY.make(&project, &scratch).unwrap();
        let places = (0..10).map(|n| {
            git(&project, &["reset", "-q", "--hard"]).unwrap();
            let mut edit = Command::new("sh");
            edit.args(["-c", TINY.edit]).env("AUTOPILOT_TASK_ID", format!("line-{n}"));
            step::output_of(edit.current_dir(&project)).unwrap();
            let diff = git(&project, &["diff", "--numstat"]).unwrap();
            assert_eq!(diff, "1\t0\tsrc/lib.rs");
            let text = fs::read_to_string(project.join("src/lib.rs")).unwrap();
            text.lines().position(|line| line == format!("// line-{n}")).unwrap()
        });
        assert_eq!(places.collect::<BTreeSet<_>>().len(), 10);
    }

    #[test]
    fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let project = RealProject { needs: &["no-such-program"], ..TINY };
        let failure = project.make(&dir.path().join("project"), dir.path()).unwrap_err();
        assert!(failure.to_string().contains("needs `no-such-program`"), "{failure}");
    }
}
