//! A run kept as text, restored to what it was on disk: repository, files, hub and journal.

use autopilot_core::state::State;
use autopilot_engine::store;
use autopilot_journal::SqliteReader;
use autopilot_testkit::stage::Stage;
use camino::Utf8PathBuf;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The id of the restored repository. Nothing in a fixture depends on it.
const REPOSITORY_ID: &str = "0123456789abcdef0123";
/// The hub's HEAD, which must name no commit.
const HUB_HEAD: &str = "ref: refs/heads/autopilot-nothing\n";
/// Where the project was when the fixtures were made.
const PROJECT_THEN: &str = "/tmp/autopilot-fixture/project";

/// The folder of one fixture, and a stage on which its run is restored.
pub struct JournalFixture {
    pub stage: Stage,
    folder: PathBuf,
}

fn fixtures(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(version)
}

/// The names of all fixtures of a version, sorted.
pub fn names(version: &str) -> Vec<String> {
    let entries = fs::read_dir(fixtures(version)).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir());
    let mut names: Vec<String> =
        folders.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

impl JournalFixture {
    pub fn restore(version: &str, name: &str, binary: &str) -> JournalFixture {
        let fixture = JournalFixture::restore_journal(version, name, binary);
        fixture.restore_project();
        fixture.restore_hub();
        fixture
    }

    /// Restores the journal alone, which is all a replay needs.
    pub fn restore_journal(version: &str, name: &str, binary: &str) -> JournalFixture {
        let folder = fixtures(version).join(name);
        let fixture = JournalFixture { stage: Stage::bare(binary), folder };
        fs::create_dir_all(fixture.state_dir()).unwrap();
        let journal = Connection::open(fixture.journal()).unwrap();
        journal.pragma_update(None, "journal_mode", "WAL").unwrap();
        journal.execute_batch(&format!("BEGIN;{}COMMIT;", fixture.text("journal.sql"))).unwrap();
        fixture
    }

    fn restore_project(&self) {
        let stage = &self.stage;
        stage.git(&["init", "-q", "-b", "main"]);
        stage.git(&["config", "user.name", "Ada"]);
        stage.git(&["config", "user.email", "ada@localhost"]);
        self.import("repository.export", &stage.path(".git"));
        stage.git(&["reset", "-q", "--hard"]);
        let files = stage.folder().join("files.git");
        stage.git(&["init", "-q", "--bare", files.to_str().unwrap()]);
        self.import("files.export", &files);
        let git_dir = format!("--git-dir={}", files.display());
        let work_tree = format!("--work-tree={}", stage.root().display());
        stage.git(&[&git_dir, &work_tree, "checkout", "-q", "-f", "main", "--", "."]);
        fs::create_dir(stage.path(".git/autopilot")).unwrap();
        fs::write(stage.path(".git/autopilot/id"), format!("{REPOSITORY_ID}\n")).unwrap();
    }

    fn restore_hub(&self) {
        let hub = self.state_dir().join("hub.git");
        self.stage.git(&["init", "-q", "--bare", "--template=", hub.to_str().unwrap()]);
        self.import("hub.export", &hub);
        fs::write(hub.join("config"), self.text("hub.config")).unwrap();
        fs::write(hub.join("HEAD"), HUB_HEAD).unwrap();
    }

    /// Imports a fast-export, and checks that every object has the id it had.
    fn import(&self, name: &str, git_dir: &Path) {
        let text = self.text(name);
        git_fed_with(&text, git_dir, &["fast-import", "--quiet", "--force"]);
        let ids: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("original-oid ")).collect();
        assert!(!ids.is_empty(), "{name}");
        let check = ["cat-file", "--batch-check=%(objectname)"];
        let found = git_fed_with(&ids.join("\n"), git_dir, &check);
        assert_eq!(found.lines().collect::<Vec<_>>(), ids, "{name}");
    }

    fn state_dir(&self) -> PathBuf {
        self.stage.state().join(REPOSITORY_ID)
    }

    fn journal(&self) -> PathBuf {
        self.state_dir().join("autopilot.db")
    }

    fn text(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Replaces a file of the fixture itself.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    /// A file of the fixture.
    pub fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }

    /// The JSON a command printed, with the paths the project had when the fixture was made.
    pub fn parse(&self, printed: &str) -> Value {
        let here = self.stage.root().canonicalize().unwrap();
        let there = printed.replace(here.to_str().unwrap(), PROJECT_THEN);
        serde_json::from_str(&there).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    /// The state of the fixture's only run, replayed from its records.
    pub fn replay(&self) -> State {
        let run: String = self.query("SELECT id FROM run");
        let path = Utf8PathBuf::from_path_buf(self.journal()).unwrap();
        store::load(&SqliteReader::open(&path).unwrap(), &run).unwrap()
    }

    /// The bodies of all records, as they are stored.
    pub fn records(&self) -> Vec<String> {
        let journal = self.look();
        let sql = "SELECT CAST(body AS TEXT) FROM record ORDER BY run, seq";
        let mut rows = journal.prepare(sql).unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// The configuration the run began with, as it is stored.
    pub fn pinned_config(&self) -> String {
        let first: Value = serde_json::from_str(&self.records()[0]).unwrap();
        let hash = first["events"][0]["run"]["config"].as_str().unwrap();
        self.query(&format!("SELECT CAST(body AS TEXT) FROM blob WHERE hash = '{hash}'"))
    }

    /// A connection that leaves the log of the journal alone when it is closed.
    fn look(&self) -> Connection {
        Connection::open_with_flags(self.journal(), OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
    }

    fn query(&self, sql: &str) -> String {
        self.look().query_row(sql, [], |row| row.get(0)).unwrap()
    }
}

/// What git prints when it reads the text from its standard input.
fn git_fed_with(text: &str, git_dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git")
        .arg("--git-dir")
        .arg(git_dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // A list of ids and what is printed of it fit into the pipes, so neither side waits for ever.
    git.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?} in {}", git_dir.display());
    String::from_utf8(output.stdout).unwrap()
}
