//! What an agent does to settings is undone, and nothing else is.

use super::*;
use std::os::unix::fs::symlink;

struct Case {
    temp: tempfile::TempDir,
}

impl Case {
    fn new() -> Case {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("own/skills/mine")).unwrap();
        let case = Case { temp };
        case.write("settings.json", "{\"a\":1}");
        case.write("skills/mine/SKILL.md", "mine");
        case.write("sessions.log", "one");
        case
    }

    fn own(&self) -> PathBuf {
        self.temp.path().join("own")
    }

    fn kept(&self) -> PathBuf {
        self.temp.path().join("kept")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.own().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.own().join(path)).unwrap()
    }

    fn watched(&self) -> Vec<Watched> {
        let names = ["settings.json", "skills", "hooks*", "*.sh", "!skills/store"]
            .map(str::to_owned)
            .to_vec();
        let file = self.temp.path().join("own/.claude.json");
        vec![Watched::Below { dir: self.own(), names }, Watched::Keys { file }]
    }

    fn before(&self) -> Before {
        Before::take(&self.watched(), Limits::default()).unwrap()
    }
}

fn names(report: &Report) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    report.changed.iter().map(name).collect()
}

#[test]
fn what_was_added_changed_and_removed_is_as_before_and_the_other_version_is_kept() {
    let case = Case::new();
    let script = case.own().join("line.sh");
    case.write("line.sh", "echo line");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    let before = case.before();
    case.write("settings.json", "{\"hooks\":1}");
    case.write("hooks/evil", "evil");
    case.write("skills/other/SKILL.md", "planted");
    case.write("sessions.log", "two");
    case.write("skills/store/counted", "2");
    fs::remove_dir_all(case.own().join("skills/mine")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o777)).unwrap();
    let report = before.restore(&case.kept());
    assert_eq!(report.failed, [""; 0]);
    let changed = ["evil", "line.sh", "settings.json", "SKILL.md", "SKILL.md"];
    assert_eq!(names(&report), changed);
    assert_eq!(case.read("settings.json"), "{\"a\":1}");
    assert_eq!(case.read("skills/mine/SKILL.md"), "mine");
    assert_eq!(case.read("sessions.log"), "two", "what is not looked after is left alone");
    assert_eq!(case.read("skills/store/counted"), "2", "nor what is left out");
    assert!(!case.own().join("hooks").exists() && !case.own().join("skills/other").exists());
    assert_eq!(script.metadata().unwrap().mode() & 0o7777, 0o750);
    let kept = |path: &str| fs::read_to_string(case.kept().join("0").join(path)).unwrap();
    assert_eq!(kept("settings.json"), "{\"hooks\":1}");
    assert_eq!(kept("skills/other/SKILL.md"), "planted");
    assert_eq!(before.restore(&case.kept()), Report::default(), "once is enough");
}

#[test]
fn a_link_in_the_place_of_settings_leads_nobody_away() {
    let case = Case::new();
    let before = case.before();
    let away = case.temp.path().join("away");
    fs::create_dir_all(away.join("mine")).unwrap();
    fs::write(away.join("mine/SKILL.md"), "away").unwrap();
    fs::write(away.join("file"), "away").unwrap();
    fs::remove_dir_all(case.own().join("skills")).unwrap();
    symlink(&away, case.own().join("skills")).unwrap();
    fs::remove_file(case.own().join("settings.json")).unwrap();
    symlink(away.join("file"), case.own().join("settings.json")).unwrap();
    symlink(&away, case.own().join("hooks")).unwrap();
    let report = before.restore(&case.kept());
    assert_eq!(report.failed, [""; 0]);
    assert_eq!(case.read("skills/mine/SKILL.md"), "mine");
    assert_eq!(case.read("settings.json"), "{\"a\":1}");
    assert!(case.own().join("hooks").symlink_metadata().is_err());
    assert!(!case.own().join("skills").is_symlink());
    assert_eq!(fs::read_to_string(away.join("mine/SKILL.md")).unwrap(), "away");
    assert_eq!(fs::read_to_string(away.join("file")).unwrap(), "away");
    let kept = fs::read_to_string(case.kept().join("0/skills")).unwrap();
    assert!(kept.contains("a link to"), "{kept}");
}

#[test]
fn of_what_is_beyond_the_limits_a_change_is_seen_and_an_addition_undone() {
    let case = Case::new();
    let limits = Limits { files_max: 1, ..Limits::default() };
    let before = Before::take(&case.watched(), limits).unwrap();
    assert_eq!(before.restore(&case.kept()), Report::default());
    case.write("settings.json", "{}");
    case.write("skills/mine/SKILL.md", "other");
    case.write("skills/mine/more.md", "more");
    let report = before.restore(&case.kept());
    assert_eq!(case.read("settings.json"), "{\"a\":1}", "the first has a copy");
    assert!(!case.own().join("skills/mine/more.md").exists());
    assert_eq!(report.failed.len(), 1, "{report:?}");
    assert!(report.failed[0].contains("SKILL.md` was changed"), "{report:?}");
    let limits = Limits { bytes_max: 3, ..Limits::default() };
    let before = Before::take(&case.watched(), limits).unwrap();
    assert!(before.bytes.len() <= 3);
}

#[test]
fn more_files_than_can_be_looked_after_are_refused() {
    let case = Case::new();
    let limits = Limits { entries_max: 2, ..Limits::default() };
    let error = Before::take(&case.watched(), limits).unwrap_err();
    assert!(error.to_string().contains("more than 2 files"), "{error}");
}

#[test]
fn a_copy_survives_its_process() {
    let case = Case::new();
    let path = case.temp.path().join("stored/before");
    case.before().store(&path).unwrap();
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    let before = Before::load(&path).unwrap();
    assert_eq!(before, case.before());
    case.write("settings.json", "{\"hooks\":1}");
    before.restore(&case.kept());
    assert_eq!(case.read("settings.json"), "{\"a\":1}");
    fs::write(&path, "99\n{").unwrap();
    assert!(Before::load(&path).unwrap_err().to_string().contains("cut off"));
}

#[test]
fn of_a_file_that_changes_all_the_time_only_what_runs_programs_is_put_back() {
    let case = Case::new();
    let mine =
        r#"{"starts":1,"mcpServers":{"mine":{"command":"m"}},"projects":{"/p":{"mcpServers":{}}}}"#;
    case.write(".claude.json", mine);
    let before = case.before();
    let grown = r#"{"starts":2,"mcpServers":{"mine":{"command":"m"}},"projects":{"/p":{},"/q":{"mcpServers":{},"seen":true}}}"#;
    case.write(".claude.json", grown);
    assert_eq!(before.restore(&case.kept()), Report::default());
    assert_eq!(case.read(".claude.json"), grown);
    let planted = r#"{"starts":3,"mcpServers":{"evil":{"command":"e"}},"hooks":{"Stop":[1]},"projects":{"/q":{"seen":true,"mcpServers":{"evil":{}}}}}"#;
    case.write(".claude.json", planted);
    let report = before.restore(&case.kept());
    assert_eq!((names(&report), report.failed), (vec![".claude.json".to_owned()], Vec::new()));
    let now: serde_json::Value = serde_json::from_str(&case.read(".claude.json")).unwrap();
    let wanted = serde_json::json!({
        "starts": 3, "mcpServers": { "mine": { "command": "m" } },
        "projects": { "/q": { "seen": true } }
    });
    assert_eq!(now, wanted);
    assert!(fs::read_to_string(case.kept().join("1/.claude.json")).unwrap().contains("evil"));
}

#[test]
fn a_file_that_was_not_there_has_nothing_to_say_and_one_that_is_gone_comes_back() {
    let case = Case::new();
    let before = case.before();
    case.write(".claude.json", r#"{"starts":1,"mcpServers":{"evil":{}}}"#);
    before.restore(&case.kept());
    assert!(!case.read(".claude.json").contains("evil"));
    let before = case.before();
    let path = case.own().join(".claude.json");
    fs::remove_file(&path).unwrap();
    symlink("/etc/hostname", &path).unwrap();
    assert_eq!(before.restore(&case.kept()).changed.len(), 1);
    assert!(case.read(".claude.json").contains("starts") && !path.is_symlink());
}

#[test]
fn an_agent_that_was_never_used_has_nothing_to_put_back() {
    let temp = tempfile::tempdir().unwrap();
    let own = temp.path().join("own");
    let names = vec!["settings.json".to_owned()];
    let watched = [
        Watched::Below { dir: own.clone(), names },
        Watched::Keys { file: own.join(".claude.json") },
    ];
    let before = Before::take(&watched, Limits::default()).unwrap();
    assert_eq!(before.restore(&temp.path().join("kept")), Report::default());
    assert!(!own.exists());
    fs::create_dir(&own).unwrap();
    fs::write(own.join("settings.json"), "planted").unwrap();
    assert_eq!(before.restore(&temp.path().join("kept")).changed.len(), 1);
    assert!(!own.join("settings.json").exists());
}
