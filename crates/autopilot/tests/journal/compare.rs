//! A replayed run as JSON, and the differences between what 0.3.0 said and what is said today.

use autopilot_core::state::{Shown, State, Task};
use autopilot_core::step::Step;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Members that hold sentences for people. Their wording may improve; whether there is a sentence at
/// all is data.
const SENTENCES: [&str; 9] = [
    "reason",
    "why",
    "waits",
    "unproven",
    "remark",
    "text",
    "validation",
    "resume",
    "not_resumable_because",
];

/// Members that hold a list of sentences, worded anew by every replay. How many there are is data.
const SENTENCE_LISTS: [&str; 3] = ["notes", "warnings", "next"];

/// Words of 0.3.0 that may be replaced by better ones: TASK_INIT stood for a goal's step both before
/// it was started and while it was running.
const VAGUE_WORDS: [(&str, &str); 1] = [("state", "TASK_INIT")];

/// How sentences for people are compared.
#[derive(Clone, Copy, PartialEq)]
pub enum SentenceRule {
    Exact,
    MayDiffer,
}

/// The members of `then` that are missing from `now` or have another value there. Members that only
/// `now` has are not differences: later versions may say more.
pub fn differences(then: &Value, now: &Value, rule: SentenceRule) -> Vec<String> {
    let mut found = Vec::new();
    compare(then, now, rule, "", &mut found);
    found
}

fn compare(then: &Value, now: &Value, rule: SentenceRule, path: &str, found: &mut Vec<String>) {
    match (then, now) {
        (Value::Object(members), Value::Object(others)) => {
            for (name, then) in members {
                let now = others.get(name).unwrap_or(&Value::Null);
                let may_differ = rule == SentenceRule::MayDiffer;
                if are_as_many_sentences(name, then, now)
                    || may_differ && is_reworded(name, then, now)
                {
                    continue;
                }
                compare(then, now, rule, &format!("{path}/{name}"), found);
            }
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            for (index, (then, now)) in then.iter().zip(now).enumerate() {
                compare(then, now, rule, &format!("{path}/{index}"), found);
            }
        }
        _ if then == now => {}
        _ => found.push(format!("{path}: was {then}, is {now}")),
    }
}

fn are_as_many_sentences(name: &str, then: &Value, now: &Value) -> bool {
    let count = |list: &Value| list.as_array().map(Vec::len);
    SENTENCE_LISTS.contains(&name) && count(then).is_some() && count(then) == count(now)
}

fn is_reworded(name: &str, then: &Value, now: &Value) -> bool {
    let was_vague = VAGUE_WORDS.iter().any(|(member, word)| *member == name && then == word);
    let is_sentence = SENTENCES.contains(&name) && then.is_null() == now.is_null();
    is_sentence || was_vague && now.is_string()
}

/// The state of a run, under member names that do not follow the names of the code.
pub fn state_as_json(state: &State) -> Value {
    let run = &state.run;
    let live = state.live.iter().map(|(id, live)| {
        json!({
            "attempt": id,
            "task": live.task,
            "step": live.step,
            "lane": live.lane,
            "since": live.since,
        })
    });
    json!({
        "seq": state.seq,
        "at": state.at,
        "run": {
            "id": run.id,
            "flow": run.flow,
            "title": run.title,
            "source": run.source,
            "started_by": run.started_by,
            "base_branch": run.base_branch,
            "base": run.base,
            "branch": run.branch,
            "switches": run.switches,
            "limits": run.limits,
            "config": run.config,
            "red_base_allowed": run.red_base_allowed,
            "options": run.options,
            "plan": run.plan,
            "started_at": run.started_at,
            "moved_at": run.moved_at,
            "boots": run.boots,
            "halt": run.halt,
            "spent": run.spent,
            "active_ms": run.active_ms,
            "reviews_waived_by": run.reviews_waived_by,
            "accounts": run.accounts,
            "focus": run.focus,
        },
        "tasks": state.tasks.iter().map(task_as_json).collect::<Vec<_>>(),
        "live": live.collect::<Vec<_>>(),
    })
}

fn task_as_json(task: &Task) -> Value {
    json!({
        "id": task.id,
        "parent": task.parent,
        "pipeline": task.pipeline,
        "spec": task.spec,
        "status": task.status,
        "round": task.round,
        "of_round": task.of_round,
        "words": task.words,
        "spent": task.spent,
        "results": task.results.iter().map(result_as_json).collect::<BTreeMap<_, _>>(),
        "broken": task.broken,
        "cut_short": task.cut_short,
        "reasons": task.reasons,
        "skipped": task.skipped,
        "notes": task.notes,
        "sessions": task.sessions,
        "totals": task.totals,
        "base": task.base,
        "tree": task.tree,
        "commit": task.commit,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
    })
}

/// A result of a step. 0.3.0 kept what an answer says beside the other facts.
fn result_as_json((step, shown): (&Step, &Shown)) -> (String, Value) {
    let mut result = json!(shown);
    let facts = &mut result["facts"];
    facts["verdict"] = json!(shown.facts.verdict());
    facts["issues"] = json!(shown.facts.issues());
    facts["blocking"] = json!(shown.facts.blocking());
    (json!(step).as_str().unwrap().to_owned(), result)
}
