//! `.autopilot/state.json`: the run as one object for scripts.

use super::{
    StandingDoubt, all_wait, awaited, current, failure, leaves, run_word, task_word, waits,
    worker_word,
};
use autopilot_core::event::{HoldWhy, Outcome};
use autopilot_core::id::Time;
use autopilot_core::skill::Used;
use autopilot_core::state::{Hold, Shown, State, Status, Task};
use autopilot_core::step::Step;
use serde_json::{Map, Value, json};

/// The content of `state.json`.
pub fn state_json(state: &State) -> Value {
    let run = &state.run;
    let task = current(state);
    let last = |step: Step| task.and_then(|task| task.last(step));
    let built = [Step::Fix, Step::Build].into_iter().filter_map(last).max_by_key(|shown| shown.id);
    json!({
        "run_id": run.id,
        "mode": run.flow.word(),
        "title": run.title,
        "started_by": run.started_by,
        "current_state": run_word(state),
        "reason": reason(state),
        "task_id": task.map(Task::name),
        "task_path": task.map(|task| &task.spec.source),
        "branch_name": run.branch,
        "base_branch": run.base_branch,
        "base_commit": run.base,
        "iteration": task.map(|task| task.round),
        "started_at": run.started_at.rfc3339(),
        "last_transition_at": run.moved_at.rfc3339(),
        "last_build": built.map(|shown| with_artifact(shown, "summary_json_path")),
        "last_validate": last(Step::Validate).map(ran),
        "last_review": last(Step::Review).map(reviewed),
        "last_uat_generation":
            last(Step::UatGenerate).map(|shown| with_artifact(shown, "uat_cases_path")),
        "last_uat_run": last(Step::Uat).map(ran),
        "whole_review": super::still_shown(state, Step::WholeReview).map(reviewed),
        "unproven": super::unproven(state),
        "last_word": super::LastProof::of(state).map(super::LastProof::word),
        "scheduler": scheduler(state),
        "held_accounts": state.holds().map(held).collect::<Vec<_>>(),
        "doubts": doubts(state),
        "tasks": leaves(state).map(|task| one_task(state, task)).collect::<Vec<_>>(),
        "used": used(&super::used(state)),
        "git": git(state),
    })
}

fn reason(state: &State) -> Option<String> {
    if let Some(halt) = &state.run.halt {
        return Some(halt.why.to_string());
    }
    if let Some(task) = all_wait(state) {
        return waits(state, task);
    }
    let asked = awaited(state).map(|what| format!("waiting for a person to approve {what}"));
    asked.or_else(|| state.root().and_then(failure).map(ToString::to_string))
}

/// A path in `.autopilot`, relative to the top of the repository.
pub fn in_root(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!(".autopilot/{path}") }
}

fn ran(shown: &Shown) -> Value {
    let facts = &shown.facts;
    json!({
        "exit_code": facts.exit,
        "duration": facts.ms as f64 / 1000.0,
        "log_path": facts.log.as_deref().map(in_root),
    })
}

/// Like [`ran`], with the path of what the step has written.
fn with_artifact(shown: &Shown, key: &str) -> Value {
    let mut object = ran(shown);
    object[key] = json!(shown.facts.artifact.as_deref().map(in_root));
    object
}

fn reviewed(shown: &Shown) -> Value {
    json!({
        "verdict": shown.facts.verdict().map(|verdict| verdict.word()),
        "issues_count": shown.facts.issues(),
        "review_json_path": shown.facts.artifact.as_deref().map(in_root),
    })
}

fn scheduler(state: &State) -> Value {
    let count = |word: &str| leaves(state).filter(|task| task_word(task) == word).count();
    let ready = leaves(state).filter(|task| task.status == Status::Open && task.needs == 0).count();
    json!({
        "max_workers": state.run.limits.workers_max,
        "workers_active": state.slots_live(),
        "ready_tasks_count": ready,
        "blocked_tasks_count": count("BLOCKED"),
    })
}

fn held((account, why, hold): (&str, HoldWhy, &Hold)) -> Value {
    json!({
        "account": account,
        "why": why.word(),
        "until": hold.until.map(Time::rfc3339),
        "until_is_a_guess": hold.guess,
        "text": hold.text,
    })
}

fn one_task(state: &State, task: &Task) -> Value {
    json!({
        "id": task.name(),
        "title": task.spec.title,
        "path": task.spec.source,
        "status": task_word(task),
        "state": worker_word(state, task),
        "why": failure(task).map(ToString::to_string),
        "waits": waits(state, task),
        "depends_on": task.spec.depends_on,
        "assigned_worker": state.live.iter().position(|(_, live)| live.task == task.id),
        "iteration": task.round,
        "attempts": task.spent.attempts,
        "retries": task.spent.retries_all,
        "interruptions": task.spent.interruptions,
        "duration": task.spent.work_ms as f64 / 1000.0,
        "cost_usd": task.spent.bill.usd.usd(),
        "cost_estimated_usd": task.spent.bill.estimated.usd(),
        "cost_reserved_usd": state.reserved(Some(task.id)).usd(),
        "cost_complete": task.spent.bill.is_complete(),
        "branch": task.is_closed().then(|| format!("autopilot/{}", task.name())),
        "commit": task.commit,
        "skipped": task.skipped.iter().map(|(step, why)| (step.word().to_owned(), json!(why)))
            .collect::<Map<_, _>>(),
        "used": used(&task.used),
        "notes": task.notes,
    })
}

/// What a person should look at before merging, the worst first.
pub fn doubts(state: &State) -> Value {
    let told = super::doubts(state);
    let one = |standing: &StandingDoubt| {
        json!({
            "kind": standing.doubt.kind.row(),
            "tasks": standing.tasks,
            "text": standing.doubt.text,
            "file": standing.doubt.file,
            "test": standing.doubt.test,
        })
    };
    told.iter().map(one).collect()
}

/// The skills, MCP servers and sub-agents of one build or of all builds.
pub fn used(used: &Used) -> Value {
    json!({
        "skills": used.skills,
        "mcp_servers": used.mcp_servers,
        "subagents": used.subagents,
        "subagents_count": used.subagents_count,
        "gained": used.gained,
    })
}

fn git(state: &State) -> Value {
    let last = leaves(state).filter(|task| task.is_closed()).filter_map(|task| task.commit.clone());
    let push = state.root().and_then(|root| root.last(Step::Push));
    let pushed = push.is_some_and(|shown| shown.outcome == Outcome::Passed);
    json!({ "last_commit_sha": last.last(), "pushed": pushed, "pull_request": pull_request(state) })
}

/// The address of the run's pull request, if it has one.
pub fn pull_request(state: &State) -> Option<&str> {
    state.root()?.last(Step::PullRequest)?.facts.url.as_deref()
}
