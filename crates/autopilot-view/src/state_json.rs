//! `.autopilot/state.json`: the run as one object for scripts.

use super::{all_wait, awaited, current, failure, leaves, run_word, task_word, waits, worker_word};
use autopilot_core::event::HoldWhy;
use autopilot_core::id::Time;
use autopilot_core::skill::Used;
use autopilot_core::state::{Hold, Shown, State, Status, Task};
use autopilot_core::step::Step;
use serde_json::{Map, Value, json};

/// The content of `state.json`.
pub fn state_json(state: &State) -> Value {
    let run = &state.run;
    let task = current(state);
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| {
        object.insert(key.to_owned(), value);
    };
    put("run_id", json!(run.id));
    put("mode", json!(run.flow.word()));
    put("title", json!(run.title));
    put("started_by", json!(run.started_by));
    put("current_state", json!(run_word(state)));
    put("reason", json!(reason(state)));
    put("task_id", json!(task.map(Task::name)));
    put("task_path", json!(task.map(|task| &task.spec.source)));
    put("branch_name", json!(run.branch));
    put("base_branch", json!(run.base_branch));
    put("base_commit", json!(run.base));
    put("iteration", json!(task.map(|task| task.round)));
    put("started_at", json!(run.started_at.rfc3339()));
    put("last_transition_at", json!(run.moved_at.rfc3339()));
    put("last_build", built(task));
    put("last_validate", ran(task, Step::Validate));
    put("last_review", reviewed(task));
    put("last_uat_generation", generated(task));
    put("last_uat_run", ran(task, Step::Uat));
    put("unproven", json!(super::unproven(state)));
    put("scheduler", scheduler(state));
    put("held_accounts", state.holds().map(held).collect());
    put("tasks", leaves(state).map(|task| one_task(state, task)).collect());
    put("used", used(&super::used(state)));
    put("git", git(state));
    Value::Object(object)
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

fn base_of(shown: &Shown) -> Map<String, Value> {
    let facts = &shown.facts;
    let mut object = Map::new();
    object.insert("exit_code".into(), json!(facts.exit));
    object.insert("duration".into(), json!(facts.ms as f64 / 1000.0));
    object.insert("log_path".into(), json!(facts.log.as_deref().map(in_root)));
    object
}

fn ran(task: Option<&Task>, step: Step) -> Value {
    let Some(shown) = task.and_then(|task| task.last(step)) else { return Value::Null };
    Value::Object(base_of(shown))
}

fn built(task: Option<&Task>) -> Value {
    let Some(task) = task else { return Value::Null };
    let newest = [Step::Fix, Step::Build].into_iter().filter_map(|step| task.last(step));
    let Some(shown) = newest.max_by_key(|shown| shown.id) else { return Value::Null };
    let mut object = base_of(shown);
    object.insert("summary_json_path".into(), json!(shown.facts.artifact.as_deref().map(in_root)));
    Value::Object(object)
}

fn reviewed(task: Option<&Task>) -> Value {
    let Some(shown) = task.and_then(|task| task.last(Step::Review)) else { return Value::Null };
    json!({
        "verdict": shown.facts.verdict().map(|verdict| verdict.word()),
        "issues_count": shown.facts.issues(),
        "review_json_path": shown.facts.artifact.as_deref().map(in_root),
    })
}

fn generated(task: Option<&Task>) -> Value {
    let Some(shown) = task.and_then(|task| task.last(Step::UatGenerate)) else {
        return Value::Null;
    };
    let mut object = base_of(shown);
    object.insert("uat_cases_path".into(), json!(shown.facts.artifact.as_deref().map(in_root)));
    Value::Object(object)
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
        "branch": task.is_closed().then(|| format!("autopilot/{}", task.name())),
        "commit": task.commit,
        "skipped": task.skipped.iter().map(|(step, why)| (step.word().to_owned(), json!(why)))
            .collect::<Map<_, _>>(),
        "used": used(&task.used),
        "notes": task.notes,
    })
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
    let pushed = state.root().is_some_and(|root| {
        root.last(Step::Push)
            .is_some_and(|shown| shown.outcome == autopilot_core::event::Outcome::Passed)
    });
    json!({ "last_commit_sha": last.last(), "pushed": pushed, "pull_request": pull_request(state) })
}

/// The address of the run's pull request, if it has one.
pub fn pull_request(state: &State) -> Option<&str> {
    state.root()?.last(Step::PullRequest)?.facts.url.as_deref()
}
