//! What agents and gates leave behind, and what the others find of it: nothing.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, Stage, text};

const BINARY: &str = env!("CARGO_BIN_EXE_autopilot");

/// Leaves files, memory and a socket wherever it may; who does it is the first argument.
const LEAVE: &str = r#"
for place in "$HOME" "$TMPDIR" "$XDG_CACHE_HOME" "$CARGO_HOME" /tmp /var/tmp /dev/shm /dev/mqueue; do
  echo x > "$place/left-$1-$UNIQUE" 2>/dev/null
done
ipcmk -M 64 -p 0666 2>/dev/null | sed 's/.*: //' > "$2"
ipcmk -Q -p 0666 > /dev/null 2>&1
true
"#;

/// Says what there is of others: their files by name, their memory by number, their worktrees.
const LOOK: &str = r#"
for place in "$HOME" "$TMPDIR" "$XDG_CACHE_HOME" "$CARGO_HOME" /tmp /var/tmp /dev/shm /dev/mqueue; do
  for file in $(ls -A "$place" 2>/dev/null | grep "^left-.*-$UNIQUE"); do
    [ "$file" = "$1" ] || echo "found $place/$file"
  done
done
if [ -s "$2" ] && ipcs -m -i "$(cat "$2")" 2>/dev/null | grep -q uid; then echo "found memory"; fi
true
"#;

/// What of the state directory can be read besides one's own worktree, home and caches.
const READ: &str = r#"
for name in autopilot.db inbox processes sessions slots cache; do
  for path in STATE/*/$name; do
    [ ! -d "$path" ] || path=$(find "$path" -type f 2>/dev/null | grep -v "^$PWD/" | grep -v "^$CARGO_HOME/" \
      | grep -v "^$XDG_CACHE_HOME/" | grep -v "^$(dirname "$XDG_CACHE_HOME")/" | head -1)
    [ ! -r "$path" ] || [ -z "$path" ] || echo "read $name"
  done
done
true
"#;

/// An agent leaves things and breaks the tests; the gate looks, leaves things itself and fails; the
/// agent that repairs looks; the next gate looks.
fn stage() -> Stage {
    let mut stage = Stage::new(BINARY);
    stage.set("UNIQUE", &format!("{}", std::process::id()));
    let state = text(stage.state());
    stage.write("leave.sh", LEAVE);
    stage.write("look.sh", LOOK);
    stage.write("read.sh", &READ.replace("STATE", &state));
    stage.write(
        "test.sh",
        // What the untouched base leaves in its caches is meant for later gates.
        "sh look.sh none agent.id; sh read.sh; grep -q start app.txt || sh leave.sh gate gate.id\n\
         if grep broken app.txt; then exit 1; fi\necho tests are over\n",
    );
    stage.write(".gitignore", "gate.id\n");
    stage.commit("tests that look around");
    stage.task("tasks/say-done.md", "Say done");
    let agents = "
- step: build
  do:
    - run: \"sh leave.sh agent agent.id; echo broken > app.txt\"
    - answer: { changed_files: [app.txt], notes: left }
- step: fix
  do:
    - run: \"{ sh look.sh left-agent-$UNIQUE agent.id; sh read.sh; echo done; } > app.txt\"
    - answer: { changed_files: [app.txt], notes: looked }
";
    stage.agents(&[agents, APPROVES]);
    stage
}

/// Runs the task and returns what gates and agents found.
fn found(stage: &Stage, config: &str) -> String {
    stage.config(&format!("commands: {{ tests: sh test.sh }}\n{config}"));
    stage.write(
        "tasks/say-done.md",
        "# Task: Say done\n\nGoal:\n- Done.\n\nAcceptance Criteria:\n- Done\n",
    );
    stage.run_task().expect(0);
    let gates = stage.texts_of("logs/validation_tests");
    assert!(gates.contains("tests are over") && gates.contains("broken"), "{gates}");
    let agent = stage.git(&["show", "autopilot/say-done:app.txt"]);
    assert!(agent.contains("done"), "{agent}");
    let is_find = |line: &&str| line.starts_with("found") || line.starts_with("read");
    let lines: Vec<&str> = gates.lines().chain(agent.lines()).filter(is_find).collect();
    lines.join("\n")
}

#[test]
fn with_namespaces_agents_and_gates_find_nothing_of_each_other() {
    let stage = stage();
    assert_eq!(found(&stage, ""), "");
    stage.run(&["doctor"]).says(&["agents and gates have files, memory, sockets"]);
}

#[test]
fn without_namespaces_nothing_that_is_left_is_found_and_what_can_be_read_is_told() {
    let mut stage = stage();
    stage.without_namespaces();
    let found = found(&stage, "");
    let left: Vec<&str> = found.lines().filter(|line| line.starts_with("found")).collect();
    assert_eq!(left, [""; 0], "nothing that one leaves reaches the other");
    assert!(found.contains("read slots"), "{found}");
    let told = "agents and gates can read each other's worktrees, homes and temporary files";
    stage.run(&["doctor"]).says(&[told, "and the journal"]);
}
