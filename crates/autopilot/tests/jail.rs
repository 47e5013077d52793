//! The jail of agents and of the commands that prove a change, as a run and `doctor` show it.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Ended, Stage, Started, text};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::Command;

fn stage() -> Stage {
    Stage::new(env!("CARGO_BIN_EXE_autopilot"))
}

const REFUSE: &str = "echo 0 > /proc/sys/user/max_user_namespaces";
const GIVE: &str = "echo 1000 > /proc/sys/user/max_user_namespaces";

/// Runs Autopilot where the kernel gives no user namespaces.
fn run_without_namespaces(stage: &Stage, args: &[&str]) -> Ended {
    start_after(stage, REFUSE, args).wait()
}

/// Starts Autopilot after a script that may change how many namespaces there can be.
fn start_after(stage: &Stage, script: &str, args: &[&str]) -> Started {
    let plain = stage.command(args);
    let script = format!("{script}\nexec \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "sh", "-c", &script, "sh"]);
    command.arg(plain.get_program()).args(plain.get_args()).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(plain.get_current_dir().unwrap());
    stage.start_command(command)
}

/// Tells of each socket whether it can be reached.
const ASK: &str = r#"
import socket, sys
for name in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(name)
        print("reached " + name.rsplit("/", 1)[1])
    except OSError:
        print("refused " + name.rsplit("/", 1)[1])
"#;

#[test]
fn a_socket_that_is_let_through_is_told_and_no_other_is_reached() {
    let stage = stage();
    let (own, other) = (stage.folder().join("own.sock"), stage.folder().join("other.sock"));
    let _listeners = [&own, &other].map(|path| UnixListener::bind(path).unwrap());
    let ask = format!("python3 ask.py {} {}", text(&own), text(&other));
    stage.write("ask.py", ASK);
    stage.write("test.sh", &format!("{ask}\n"));
    stage.commit("asks for sockets");
    let builds = format!(
        "
- step: build
  do:
    - run: {ask} > app.txt
    - answer: {{ changed_files: [app.txt], notes: asked }}
"
    );
    stage.agents(&[&builds, APPROVES]);
    let sandbox = format!("sandbox: {{ sockets: ['{}'] }}\n", text(&own));
    stage.config(&format!("commands: {{ tests: sh test.sh }}\n{sandbox}"));
    let told = format!("lets agents and commands through to `{}`", text(&own));
    stage.run_task().expect(0).says(&[&told]);
    let expected = "reached own.sock\nrefused other.sock";
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), expected);
    assert!(stage.texts_of("logs/validation").contains(expected));
    stage.run(&["doctor"]).says(&[&told]);
}

#[test]
fn with_the_network_off_the_tests_have_none_and_the_agents_have_theirs() {
    let stage = stage();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!(
        "python3 -c \"import socket; socket.create_connection(('127.0.0.1', {}))\"",
        server.local_addr().unwrap().port()
    );
    let look = format!("{connect} 2>&1 && echo reached || echo refused");
    stage.write("look.sh", &look);
    stage.write("test.sh", "sh look.sh\n");
    stage.commit("looks for a network");
    let builds = "
- step: build
  do:
    - run: sh look.sh > app.txt
    - answer: { changed_files: [app.txt], notes: looked }
";
    stage.agents(&[builds, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { network: off }\n");
    stage.run_task().expect(0);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "reached");
    let tests = stage.texts_of("logs/validation");
    assert!(tests.contains("refused") && !tests.contains("reached"), "{tests}");
}

#[test]
fn what_an_agent_leaves_in_tmp_and_in_shared_memory_is_not_there_for_the_tests() {
    let stage = stage();
    let left = "/tmp/left /var/tmp/left /dev/shm/left";
    stage.write("test.sh", &format!("for file in {left}; do ! test -e $file || exit 1; done\n"));
    stage.commit("looks for what was left");
    let builds = format!(
        "
- step: build
  do:
    - run: for file in {left}; do echo x > $file || exit 1; done; echo done >> app.txt
    - answer: {{ changed_files: [app.txt], notes: left }}
"
    );
    stage.agents(&[&builds, APPROVES]);
    stage.run_task().expect(0);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
}

#[test]
fn where_namespaces_are_refused_a_run_works_and_is_told_what_is_not_kept() {
    let stage = stage();
    stage.agents(&[BUILDS, APPROVES]);
    let doctor = run_without_namespaces(&stage, &["doctor"]);
    doctor.says(&["refuses namespaces", "mode, owner, times", "Docker", "terminals"]);
    let ended = run_without_namespaces(&stage, &["run", "tasks/say-done.md"]).expect(0);
    ended.says(&["works without namespaces here"]);
    assert_eq!(stage.git(&["show", "autopilot/say-done:app.txt"]), "start\ndone");
}

#[test]
fn a_network_that_cannot_be_taken_away_is_a_fault_of_the_configuration() {
    let stage = stage();
    stage.agents(&[BUILDS, APPROVES]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { network: off }\n");
    let refused = run_without_namespaces(&stage, &["run", "tasks/say-done.md"]).expect(78);
    refused.says(&["`sandbox.network: off` is configured", "namespaces"]);
    stage.config("commands: { tests: sh test.sh }\nsandbox: { mode: bwrap, network: off }\n");
    stage.run_task().expect(78).says(&["only the sandbox modes `auto` and `landlock`"]);
    assert_eq!(stage.texts_of("build/events.jsonl"), "", "nobody was asked");
}

#[test]
fn a_jail_that_can_no_longer_be_made_is_a_fault_of_the_machine_and_costs_the_task_nothing() {
    let stage = stage();
    let signs = stage.folder().join("signs");
    std::fs::create_dir(&signs).unwrap();
    let sign = |name: &str| text(signs.join(name));
    let wait_for = |name: &str| format!("until [ -e {} ]; do sleep 0.05; done", sign(name));
    let builds = format!(
        "
- step: [build, fix]
  do:
    - run: touch {}; {}; echo done >> app.txt
    - answer: {{ changed_files: [app.txt], notes: x }}
",
        sign("at-work"),
        wait_for("refused")
    );
    stage.agents(&[&builds, APPROVES]);
    let sandbox = format!("sandbox: {{ write: ['{}'] }}\n", text(&signs));
    stage.config(&format!("commands: {{ tests: sh test.sh }}\n{sandbox}"));
    let (at_work, mended) = (wait_for("at-work"), wait_for("mended"));
    let meanwhile = format!("({at_work}; {REFUSE}; touch {}; {mended}; {GIVE}) &", sign("refused"));
    let run = start_after(&stage, &meanwhile, &["run", "tasks/say-done.md"]);
    stage.wait_until("the fault is told", |_| run.err().contains("refused the jail's namespaces"));
    std::fs::write(signs.join("mended"), "").unwrap();
    run.wait().expect(0).says(&["DONE"]);
    let task = stage.first_task();
    assert_eq!((&task["retries"], &task["iteration"]), (&0.into(), &1.into()), "{task}");
    assert!(stage.survivors().is_empty(), "{:?}", stage.survivors());
}
