//! The whole product on tasks whose agents do nothing worth mentioning, against a bare script that
//! does the same git work and starts the same agents, one task after the other.
//!
//! The subject is `autopilot run --from` as a person would call it, from its start to its end: the
//! base is proven, every task is built, validated, reviewed, given acceptance cases, committed,
//! merged and proven again on the merged tree, with the sandbox and the journal as they are by
//! default. The state directory has been used before, like that of a repository one works in.

use std::process::Command;

use serde_json::json;

use super::Bed;
use super::interleave::{Measured, in_turn, time};
use super::repository::Repository;
use crate::step::{self, Failure};

/// A builder, a reviewer and a writer of acceptance cases, as short as they can be.
const AGENT: &str = r##"case "$AUTOPILOT_STEP" in
build | fix)
  echo "$AUTOPILOT_TASK_ID" >"dir0/$AUTOPILOT_TASK_ID.txt"
  echo '{"changed_files":[],"notes":"wrote a file"}'
  ;;
review) echo '{"verdict":"APPROVE","summary":"fine","issues":[]}' ;;
*) echo '# Cases' ;;
esac
"##;

/// What the same work costs without anything that makes it safe.
const BARE: &str = r#"set -e
agent=$1 round=$2 count=$3
export GIT_AUTHOR_NAME=bench GIT_AUTHOR_EMAIL=bench@localhost
export GIT_COMMITTER_NAME=bench GIT_COMMITTER_EMAIL=bench@localhost
tip=$(git rev-parse main)
n=0
while [ $n -lt $count ]; do
  tree=../tree-$round-$n
  git worktree add -q --detach "$tree" "$tip"
  cd "$tree"
  for step in build validate review uat_generate; do
    AUTOPILOT_STEP=$step AUTOPILOT_TASK_ID=r$round-t$n sh "$agent" >/dev/null
  done
  git add -A
  git commit -q -m "t$n"
  commit=$(git rev-parse HEAD)
  cd "$OLDPWD"
  merged=$(git merge-tree --write-tree "$tip" "$commit")
  tip=$(git commit-tree "$merged" -p "$tip" -p "$commit" -m "t$n")
  git update-ref "refs/heads/bare-$round" "$tip"
  git worktree remove --force "$tree"
  n=$((n + 1))
done
"#;

pub fn small(bed: &Bed) -> Result<Measured, Failure> {
    measure(bed, "loop", 100)
}

pub fn large(bed: &Bed) -> Result<Measured, Failure> {
    measure(bed, "loop-large", bed.size(10_000, 500))
}

fn measure(bed: &Bed, name: &str, files: usize) -> Result<Measured, Failure> {
    let count = bed.size(20, 2);
    let ground = Repository::make(bed.scratch.join(name), files, 0)?;
    let agent = ground.write("agent.sh", AGENT)?;
    let bare = ground.write("bare.sh", BARE)?;
    let word = serde_json::Value::from(format!("sh {}", agent.display()));
    let config = format!(
        "repo: {{ base_branch: main }}\n\
         builder: {{ mode: command, command: {word} }}\n\
         reviewer: {{ mode: command, command: {word} }}\n\
         planner: {{ mode: command, command: {word} }}\n\
         commands: {{ tests: \"true\" }}\n"
    );
    ground.write("project/.autopilot/config.yml", &config)?;
    let anchor = |round: usize| {
        let mut script = Command::new("sh");
        script.arg(&bare).arg(&agent).args([round.to_string(), count.to_string()]);
        time(|| step::output_of(script.current_dir(&ground.root)).map(drop))
    };
    let subject = |round: usize| {
        let plan = ground.write("plan.json", &plan(round, count))?;
        let mut run = Command::new(&bed.autopilot);
        run.args(["run", "--no-ui", "--quiet", "--from"]).arg(plan).current_dir(&ground.root);
        run.env("AUTOPILOT_STATE_DIR", ground.dir.join("state"));
        let took = time(|| step::output_of(&mut run).map(drop))?;
        all_merged(&ground, round, count)?;
        Ok(took)
    };
    in_turn(bed.long_rounds(), anchor, subject, |_| Ok(()))
}

/// Tasks that do not depend on each other, with names of their own in every round.
fn plan(round: usize, count: usize) -> String {
    let task = |n: usize| {
        json!({
            "id": format!("r{round}-t{n}"),
            "title": format!("Task {n}"),
            "goal": "Write a file.",
            "acceptance_criteria": ["the file is there"],
            "depends_on": [],
        })
    };
    let tasks: Vec<_> = (0..count).map(task).collect();
    json!({ "plan_summary": format!("Round {round}"), "tasks": tasks }).to_string()
}

/// A fast run that did not do the work is no result. Runs of one second have names in no order, so
/// the branch is found by the work on it.
fn all_merged(ground: &Repository, round: usize, count: usize) -> Result<(), Failure> {
    let refs =
        ground.git(&["for-each-ref", "--format=%(refname)", "refs/heads/autopilot/run-*"])?;
    let own = format!("dir0/r{round}-");
    let mut most = 0;
    for branch in refs.lines() {
        let files = ground.git(&["ls-tree", "-r", "--name-only", branch, "dir0/"])?;
        most = most.max(files.lines().filter(|file| file.starts_with(&own)).count());
    }
    if most == count {
        return Ok(());
    }
    Err(Failure::Task(format!("no branch has the work of more than {most} tasks of {count}")))
}
