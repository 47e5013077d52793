//! Tests of the homes of agents.

use super::*;
use std::os::unix::fs::PermissionsExt;

struct LoginHome {
    temp: tempfile::TempDir,
}

impl LoginHome {
    /// A user with settings, skills and a login.
    fn new() -> LoginHome {
        let case = LoginHome { temp: tempfile::tempdir().unwrap() };
        fs::create_dir_all(case.user().join("skills/mine")).unwrap();
        fs::write(case.user().join("settings.json"), "{\"a\":1}").unwrap();
        fs::write(case.user().join("skills/mine/SKILL.md"), "mine").unwrap();
        fs::write(case.user().join("login.json"), "{\"token\":1}").unwrap();
        case
    }

    fn user(&self) -> PathBuf {
        self.temp.path().join("user")
    }

    fn home(&self) -> PathBuf {
        self.temp.path().join("tmp/1.home")
    }

    fn plan(&self) -> HomePlan {
        let wanted = |name: &str| name != "login.json";
        HomePlan {
            dir: self.home(),
            made: vec!["sessions".into()],
            links: links(&self.user(), Path::new(""), wanted),
            files: vec![("state.json".into(), b"{}".to_vec())],
            logins: login("login.json", &self.user().join("login.json")).into_iter().collect(),
        }
    }

    fn login(&self) -> String {
        fs::read_to_string(self.user().join("login.json")).unwrap()
    }
}

#[test]
fn settings_are_read_through_and_what_is_planted_is_gone_with_the_home() {
    let case = LoginHome::new();
    case.plan().make().unwrap();
    let home = case.home();
    assert_eq!(fs::read_to_string(home.join("skills/mine/SKILL.md")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(home.join("state.json")).unwrap(), "{}");
    assert_eq!(home.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    // An agent replaces a file by renaming another over it.
    fs::write(home.join("new"), "planted").unwrap();
    fs::rename(home.join("new"), home.join("settings.json")).unwrap();
    // This link would lead the next home to be made elsewhere.
    let victim = case.temp.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::remove_dir(home.join("sessions")).unwrap();
    symlink(&victim, home.join("sessions")).unwrap();
    case.plan().make().unwrap();
    assert_eq!(fs::read_to_string(home.join("settings.json")).unwrap(), "{\"a\":1}");
    assert_eq!(fs::read_to_string(case.user().join("settings.json")).unwrap(), "{\"a\":1}");
    assert!(!home.join("sessions").is_symlink());
    assert_eq!(fs::read_dir(victim).unwrap().count(), 0);
}

const LOGIN: &str = r#"{"o":{"accessToken":"a","expiresAt":1,"plan":"p","refreshToken":"r"}}"#;

#[test]
fn a_renewed_login_is_the_users() {
    let case = LoginHome::new();
    fs::write(case.user().join("login.json"), LOGIN).unwrap();
    let mut plan = case.plan();
    plan.make().unwrap();
    let renewed = LOGIN.replace("\"a\"", "\"a2\"").replace("\"r\"", "\"r2\"").replace('1', "2");
    fs::write(case.home().join("login.json"), &renewed).unwrap();
    assert_eq!(case.login(), LOGIN, "it has a copy");
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(case.login(), renewed);
    let mode = case.user().join("login.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The login is renewed once more in the same home.
    let again = renewed.replace("a2", "a3");
    fs::write(case.home().join("login.json"), &again).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(case.login(), again);
}

#[test]
fn nothing_but_other_tokens_takes_a_logins_place() {
    let case = LoginHome::new();
    fs::write(case.user().join("login.json"), LOGIN).unwrap();
    let mut plan = case.plan();
    plan.make().unwrap();
    let there = case.home().join("login.json");
    let other = [
        "",
        "not json",
        "{}",
        r#"{"evil":1}"#,
        &LOGIN.replace("\"a\"", "{\"x\":1}"),
        &LOGIN.replace("\"r\"", "\"\""),
        &LOGIN.replace("\"refreshToken\":\"r\"", "\"b\":1"),
    ];
    for planted in other {
        fs::write(&there, planted).unwrap();
        assert_eq!(plan.put_back().len(), 1, "{planted}");
        assert_eq!(case.login(), LOGIN, "{planted}");
    }
    let secret = case.temp.path().join("secret");
    fs::write(&secret, LOGIN.replace("\"a\"", "\"b\"")).unwrap();
    fs::remove_file(&there).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    symlink(&secret, &there).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    fs::remove_file(&there).unwrap();
    fs::create_dir(&there).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(case.login(), LOGIN);
}

#[test]
fn of_a_renewed_login_only_the_tokens_are_taken() {
    let case = LoginHome::new();
    fs::write(case.user().join("login.json"), LOGIN).unwrap();
    let mut plan = case.plan();
    plan.make().unwrap();
    let other = LOGIN.replace("\"p\"", "\"enterprise\"").replace("\"a\"", "\"a2\"");
    let other = other.replacen('{', "{\"hooks\":{\"x\":1},", 1);
    fs::write(case.home().join("login.json"), other).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(case.login(), LOGIN.replace("\"a\"", "\"a2\""));
    // The same tokens are not a renewal.
    assert_eq!(plan.put_back(), [""; 0]);
}

#[test]
fn a_login_that_is_the_users_own_since_is_left_alone() {
    let case = LoginHome::new();
    fs::write(case.user().join("login.json"), LOGIN).unwrap();
    let mut plan = case.plan();
    plan.make().unwrap();
    plan.note().unwrap();
    let newer = LOGIN.replace("\"a\"", "\"mine\"");
    fs::write(case.user().join("login.json"), &newer).unwrap();
    fs::write(case.home().join("login.json"), LOGIN.replace("\"a\"", "\"its\"")).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(case.login(), newer);
    assert_eq!(put_back_left(&case.temp.path().join("tmp")), [""; 0]);
    assert_eq!(case.login(), newer);
}

#[test]
fn a_login_renewed_elsewhere_reaches_the_agents_at_work() {
    let case = LoginHome::new();
    fs::write(case.user().join("login.json"), LOGIN).unwrap();
    let mut plan = case.plan();
    plan.make().unwrap();
    let newer = LOGIN.replace("\"a\"", "\"elsewhere\"");
    fs::write(case.user().join("login.json"), &newer).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(fs::read_to_string(case.home().join("login.json")).unwrap(), newer);
    // A renewal of that login is taken over again.
    let again = newer.replace("elsewhere", "again");
    fs::write(case.home().join("login.json"), &again).unwrap();
    assert_eq!(plan.put_back(), [""; 0]);
    assert_eq!(case.login(), again);
}

#[test]
fn a_login_renewed_before_a_crash_is_found_by_the_next_process() {
    let case = LoginHome::new();
    fs::write(case.user().join("login.json"), LOGIN).unwrap();
    let plan = case.plan();
    plan.make().unwrap();
    plan.note().unwrap();
    let renewed = LOGIN.replace("\"a\"", "\"a2\"");
    fs::write(case.home().join("login.json"), &renewed).unwrap();
    assert_eq!(put_back_left(&case.temp.path().join("tmp")), [""; 0]);
    assert_eq!(case.login(), renewed);
}

#[test]
fn sessions_are_kept_without_what_links_lead_to() {
    let case = LoginHome::new();
    let (from, to) = (case.temp.path().join("from"), case.temp.path().join("kept"));
    fs::create_dir_all(from.join("a/b")).unwrap();
    fs::write(from.join("a/b/one"), "1").unwrap();
    fs::write(from.join("a/login"), "secret").unwrap();
    symlink("/etc", from.join("a/etc")).unwrap();
    let part = Path::new("a");
    for _ in 0..2 {
        keep(&from, part, &to, |path| path.ends_with("login")).unwrap();
    }
    assert_eq!(fs::read_to_string(to.join("a/b/one")).unwrap(), "1");
    assert!(!to.join("a/etc").exists() && !to.join("a/login").exists());
    // The copy is a separate file.
    fs::write(to.join("a/b/one"), "2").unwrap();
    assert_eq!(fs::read_to_string(from.join("a/b/one")).unwrap(), "1");
    // A link on the way to the part is not followed.
    symlink(from.join("a"), from.join("link")).unwrap();
    for part in ["none", "link", "link/b", "a/etc"] {
        let other = case.temp.path().join("other");
        keep(&from, Path::new(part), &other, |_| false).unwrap();
        assert!(!other.exists(), "{part}");
    }
}
