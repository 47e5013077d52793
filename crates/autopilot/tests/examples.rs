//! The examples that come with the project, as somebody would use them.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

fn bring(stage: &Stage, name: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents").join(name);
    let to = stage.path(name);
    fs::copy(&from, &to).unwrap();
    assert!(name.ends_with(".yml") || fs::metadata(&to).unwrap().permissions().mode() & 0o111 != 0);
}

fn configure(stage: &Stage, section: &str, agent: &str) {
    let config = stage.read(".autopilot/config.yml");
    let old = format!("{section}: {{ mode: script, script: agents.yml }}");
    assert!(config.contains(&old));
    stage.write(".autopilot/config.yml", &config.replace(&old, &format!("{section}: {agent}")));
}

#[test]
fn an_editor_of_the_command_line_builds() {
    let mut stage = Stage::new(BINARY);
    bring(&stage, "aider.sh");
    // Stands for the editor: it changes the file its message is about.
    stage.write_program(
        "bin/aider",
        "#!/bin/sh\nwhile [ $# -gt 1 ]; do shift; done\ngrep -q 'app.txt says done' \"$1\" || exit 3\n\
         echo done >> app.txt\necho edited\n",
    );
    let path = format!("{}:{}", stage.path("bin").display(), std::env::var("PATH").unwrap());
    stage.set("PATH", &path);
    stage.agents(&[APPROVES]);
    configure(&stage, "builder", "{ mode: command, command: ./aider.sh }");
    stage.run_task().expect(0);
    assert!(stage.git(&["show", "autopilot/say-done:app.txt"]).contains("done"));
    assert!(stage.texts_of("_summary.json").contains("\"app.txt\""));
}

#[test]
fn a_shell_script_reviews_by_the_rules_of_the_house() {
    let stage = Stage::new(BINARY);
    bring(&stage, "house-rules.sh");
    let once = "
- step: build
  do:
    - append: { app.txt: \"console.log(1)\\ndone\\n\" }
    - answer: { changed_files: [app.txt], notes: with a print }
- step: fix
  do:
    - write: { app.txt: \"start\\ndone\\n\" }
    - answer: { changed_files: [app.txt], notes: without }
";
    stage.agents(&[once, BUILDS]);
    configure(&stage, "reviewer", "{ mode: command, command: ./house-rules.sh }");
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
    assert!(stage.texts_of("-fix/prompt.txt").contains("console.log is left in the change"));
}

#[test]
fn the_scripted_agent_forgets_half_and_then_does_it() {
    let stage = Stage::new(BINARY);
    bring(&stage, "scripted.yml");
    for section in ["builder", "reviewer"] {
        configure(&stage, section, "{ mode: script, script: scripted.yml }");
    }
    stage.run_task().expect(0);
    assert_eq!(stage.first_task()["iteration"], 2);
}
