//! Plans that a person supplies instead of having them made.

use super::known_plan::{self, SoundPlan};
use super::{BeginError, PlanBody, Tasks, WorkSource, in_repository, read_file};
use autopilot_agents::answer;
use autopilot_core::config::Config;
use autopilot_core::flow::Flow;
use autopilot_core::plan::PlanRules;
use autopilot_core::task_file::{FileKind, TaskSpec};
use autopilot_host::file;
use camino::Utf8Path;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Room for a plan of 10,000 tasks with a page of text each.
const PLAN_BYTES_MAX: u64 = 64 << 20;

pub(super) fn read(
    from: &Utf8Path,
    file: Option<&Utf8Path>,
    root: &Utf8Path,
) -> Result<Tasks, BeginError> {
    let (text, summary) = read_json(from)?;
    let mut warnings = Vec::new();
    let whole = match file {
        Some(path) => {
            let (mut parsed, more) = read_file(path)?;
            if parsed.kind != FileKind::Plan {
                return Err(BeginError::NotAPlan { path: path.to_owned() });
            }
            warnings = more;
            parsed.spec.path = in_repository(path, root);
            PlanBody { spec: parsed.spec, text: parsed.body }
        }
        None => {
            let title = summary.lines().next().unwrap_or_default().to_owned();
            let path = in_repository(from, root);
            let spec = TaskSpec { title, goal: summary.clone(), path, ..TaskSpec::default() };
            PlanBody { spec, text: summary }
        }
    };
    Ok(Tasks {
        flow: Flow::Plan,
        title: whole.spec.title.clone(),
        source: whole.spec.path.to_string(),
        specs: Vec::new(),
        whole: Some(whole),
        plan: Some(text),
        warnings,
    })
}

/// Reads a JSON plan and its goal. Its faults are reported later, all at once, when the rules are
/// known.
fn read_json(path: &Utf8Path) -> Result<(String, String), BeginError> {
    let bytes = file::read_capped(path.as_std_path(), PLAN_BYTES_MAX)?;
    let refused = |faults: Vec<String>| BeginError::Refused { path: path.to_owned(), faults };
    let text = String::from_utf8(bytes)
        .map_err(|error| refused(vec![format!("it is not UTF-8: {error}")]))?;
    let value = parse_json(&text).map_err(refused)?;
    let summary = value["plan_summary"].as_str().unwrap_or_default().trim().to_owned();
    Ok((text, summary))
}

fn parse_json(text: &str) -> Result<serde_json::Value, Vec<String>> {
    serde_json::from_str(text).map_err(|error| vec![format!("it is not JSON: {error}")])
}

/// Parses a JSON plan and checks it by the schema and the rules. Returns every fault as a sentence.
pub fn parse_plan(text: &str, rules: &PlanRules) -> Result<SoundPlan, Vec<String>> {
    if let Some(known) = known_plan::get(text, rules) {
        return Ok(known);
    }
    let words = |faults: Vec<answer::AnswerFault>| {
        faults.iter().map(ToString::to_string).collect::<Vec<String>>()
    };
    let value = parse_json(text)?;
    let given = answer::GivenAnswer { text: "", structured: Some(&value) };
    let plan = Arc::new(answer::read_plan(given, None, rules).map_err(words)?);
    known_plan::put(text, rules, &plan);
    Ok(plan)
}

/// Refuses a supplied plan that breaks a rule, before the run starts.
pub fn check_plan(source: &WorkSource, tasks: &Tasks, config: &Config) -> Result<(), BeginError> {
    let (Some(text), Some(whole)) = (&tasks.plan, &tasks.whole) else { return Ok(()) };
    let WorkSource::Plan { from, .. } = source else { return Ok(()) };
    let refused = |faults: Vec<String>| BeginError::Refused { path: from.clone(), faults };
    let rules = PlanRules::of(config, &whole.spec, BTreeMap::new());
    parse_plan(text, &rules).map(|_| ()).map_err(refused)
}
