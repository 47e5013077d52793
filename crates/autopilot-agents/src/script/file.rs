//! The script's file: a list of rules, of which the first that matches is played.

use std::collections::BTreeMap;

use globset::Glob;
use serde::Deserialize;

use super::{ScriptFailure, ScriptSaid};
use crate::event::{ChangeKind, TokenCount};

/// The longest script that is read.
pub const SCRIPT_BYTES_MAX: usize = 1024 * 1024;

/// The rules of a script.
#[derive(Debug, Clone)]
pub struct Script {
    rules: Vec<ScriptRule>,
}

/// The situation of a launch, taken from the environment that every agent gets.
#[derive(Debug, Clone, Copy)]
pub struct ScriptPlace<'a> {
    pub step: &'a str,
    pub task: &'a str,
    pub iteration: u32,
    pub attempt: u32,
    pub prompt: &'a str,
}

/// One action of the scripted agent, as the file has it. Paths are relative to the worktree.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Replace the content of files, and create missing directories.
    Write(BTreeMap<String, String>),
    /// Add to the end of files.
    Append(BTreeMap<String, String>),
    /// Delete a file.
    Delete(String),
    /// Run a shell command; a failure of the command does not end the script.
    Run(String),
    /// Say a text.
    Say(String),
    /// Wait.
    SleepMs(u64),
    /// Do nothing for ever; `false` goes on.
    Hang(bool),
    /// End the process with this exit code.
    Exit(u8),
    /// Send the signal to the process itself.
    Signal(ScriptSignal),
    /// Give the answer.
    Answer(serde_json::Value),
    /// Report the cost so far.
    CostUsd(f64),
    /// Report the tokens used so far.
    Tokens(TokenCount),
    /// Name the session.
    Session(String),
    /// Give up.
    Fail(ScriptFailure),
}

impl Action {
    /// The lines that the agent prints once it has done this.
    pub fn said(&self) -> Vec<ScriptSaid> {
        let changed = |path: &String, kind| ScriptSaid::Change { path: path.clone(), kind };
        let said = match self {
            Action::Write(files) | Action::Append(files) => {
                return files.keys().map(|path| changed(path, ChangeKind::Modified)).collect();
            }
            Action::Delete(path) => changed(path, ChangeKind::Deleted),
            Action::Say(text) => ScriptSaid::Text { text: text.clone() },
            Action::Answer(answer) => ScriptSaid::Answer { text: answer_text(answer) },
            Action::CostUsd(usd) => ScriptSaid::Cost { usd: *usd },
            Action::Tokens(tokens) => ScriptSaid::Tokens { tokens: *tokens },
            Action::Session(id) => ScriptSaid::Session { id: id.clone() },
            Action::Fail(failure) => ScriptSaid::Fail(failure.clone()),
            Action::Run(_)
            | Action::SleepMs(_)
            | Action::Hang(_)
            | Action::Exit(_)
            | Action::Signal(_) => return Vec::new(),
        };
        vec![said]
    }
}

/// The signals that a script can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ScriptSignal {
    Hup = 1,
    Int = 2,
    Abrt = 6,
    Kill = 9,
    Segv = 11,
    Term = 15,
    Stop = 19,
}

impl ScriptSignal {
    /// The signal's number on Linux.
    pub fn number(self) -> i32 {
        self as i32
    }
}

/// A reason why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script: it has {bytes} bytes, more than {SCRIPT_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("cannot read the script: {message}")]
    Syntax { message: String },
    #[error(
        "cannot read the script: rule {rule} has an invalid task pattern `{pattern}`: {reason}"
    )]
    Pattern { rule: usize, pattern: String, reason: String },
    #[error(
        "no rule in the script matches step {step} of task {task}, iteration {iteration}, \
         attempt {attempt}"
    )]
    NoRule { step: String, task: String, iteration: u32, attempt: u32 },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptRule {
    step: Option<OneOrMany<String>>,
    /// A task's id or a glob.
    task: Option<String>,
    iteration: Option<OneOrMany<u32>>,
    attempt: Option<OneOrMany<u32>>,
    /// A text that the prompt must contain.
    prompt: Option<String>,
    #[serde(rename = "do", default)]
    actions: Vec<Action>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    fn any(&self, fits: impl Fn(&T) -> bool) -> bool {
        match self {
            OneOrMany::One(one) => fits(one),
            OneOrMany::Many(many) => many.iter().any(fits),
        }
    }
}

impl Script {
    /// Parses the YAML of a script and checks its patterns.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        if text.len() > SCRIPT_BYTES_MAX {
            return Err(ScriptError::TooLong { bytes: text.len() });
        }
        let rules: Vec<ScriptRule> = serde_saphyr::from_str(text)
            .map_err(|error| ScriptError::Syntax { message: error.to_string() })?;
        for (index, rule) in rules.iter().enumerate() {
            if let Some(pattern) = &rule.task {
                Glob::new(pattern).map_err(|error| ScriptError::Pattern {
                    rule: index + 1,
                    pattern: pattern.clone(),
                    reason: error.kind().to_string(),
                })?;
            }
        }
        Ok(Script { rules })
    }

    /// The actions of the first rule that matches, in their order.
    pub fn play(&self, place: ScriptPlace<'_>) -> Result<&[Action], ScriptError> {
        let rule = self.rules.iter().find(|rule| rule.fits(place));
        let rule = rule.ok_or_else(|| ScriptError::NoRule {
            step: place.step.to_owned(),
            task: place.task.to_owned(),
            iteration: place.iteration,
            attempt: place.attempt,
        })?;
        Ok(&rule.actions)
    }
}

impl ScriptRule {
    fn fits(&self, place: ScriptPlace<'_>) -> bool {
        self.step.as_ref().is_none_or(|step| step.any(|step| step == place.step))
            && self.task.as_ref().is_none_or(|task| matches_task(task, place.task))
            && self.iteration.as_ref().is_none_or(|n| n.any(|n| *n == place.iteration))
            && self.attempt.as_ref().is_none_or(|n| n.any(|n| *n == place.attempt))
            && self.prompt.as_ref().is_none_or(|text| place.prompt.contains(text.as_str()))
    }
}

fn matches_task(pattern: &str, task: &str) -> bool {
    pattern == task || Glob::new(pattern).is_ok_and(|glob| glob.compile_matcher().is_match(task))
}

/// A text is the answer as it is; any other value is printed as JSON.
fn answer_text(answer: &serde_json::Value) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r#"
- step: build
  task: "add-*"
  iteration: 1
  do:
    - say: working
    - write: { src/a.txt: "one\n" }
    - append: { log: more }
    - delete: old.txt
    - run: "touch x && echo y"
    - sleep_ms: 5
    - session: s-1
    - tokens: { input: 10, output: 2 }
    - cost_usd: 0.25
    - answer: { changed_files: [src/a.txt], notes: done }
- step: [build, fix]
  attempt: [2, 3]
  do: [{ signal: KILL }]
- step: fix
  prompt: return JSON only
  do: [{ answer: plain text }, { hang: true }]
- step: review
  do:
    - fail: { kind: quota, until_unix: 99, why: used up }
    - exit: 3
"#;

    fn place<'a>(step: &'a str, task: &'a str, iteration: u32, attempt: u32) -> ScriptPlace<'a> {
        ScriptPlace { step, task, iteration, attempt, prompt: "please return JSON only" }
    }

    #[test]
    fn the_first_fitting_rule_is_played_in_its_order() {
        let script = Script::parse(SCRIPT).unwrap();
        let played = script.play(place("build", "add-login", 1, 1)).unwrap();
        let done_and_said = |action: &Action| {
            let said = action.said().into_iter().map(|said| format!("  {}", said.line()));
            std::iter::once(format!("{action:?}")).chain(said).collect::<Vec<_>>()
        };
        let lines: Vec<String> = played.iter().flat_map(done_and_said).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
    Say("working")
      {"said":"text","text":"working"}
    Write({"src/a.txt": "one\n"})
      {"said":"change","path":"src/a.txt","kind":"modified"}
    Append({"log": "more"})
      {"said":"change","path":"log","kind":"modified"}
    Delete("old.txt")
      {"said":"change","path":"old.txt","kind":"deleted"}
    Run("touch x && echo y")
    SleepMs(5)
    Session("s-1")
      {"said":"session","id":"s-1"}
    Tokens(TokenCount { input: 10, output: 2, cached: 0 })
      {"said":"tokens","tokens":{"input":10,"output":2,"cached":0}}
    CostUsd(0.25)
      {"said":"cost","usd":0.25}
    Answer(Object {"changed_files": Array [String("src/a.txt")], "notes": String("done")})
      {"said":"answer","text":"{\"changed_files\":[\"src/a.txt\"],\"notes\":\"done\"}"}
    "#);
    }

    #[test]
    fn rules_are_told_apart_by_step_task_iteration_attempt_and_prompt() {
        let script = Script::parse(SCRIPT).unwrap();
        let kill = [Action::Signal(ScriptSignal::Kill)];
        assert_eq!(script.play(place("build", "other", 1, 2)).unwrap(), kill);
        assert_eq!(script.play(place("fix", "other", 1, 3)).unwrap(), kill);
        assert!(script.play(place("build", "other", 1, 4)).is_err());
        assert!(script.play(place("build", "add-login", 2, 1)).is_err());
        let fixed = script.play(place("fix", "x", 2, 1)).unwrap();
        assert_eq!(fixed[0].said(), [ScriptSaid::Answer { text: "plain text".into() }]);
        assert_eq!(fixed[1], Action::Hang(true));
        let other_prompt = ScriptPlace { prompt: "fix it", ..place("fix", "x", 2, 1) };
        assert!(script.play(other_prompt).is_err());
        assert_eq!(script.play(place("review", "x", 1, 1)).unwrap()[1], Action::Exit(3));
    }

    #[test]
    fn a_place_without_a_rule_is_an_error_that_names_it() {
        let script = Script::parse(SCRIPT).unwrap();
        let error = script.play(place("plan", "run", 1, 4)).unwrap_err().to_string();
        assert_eq!(
            error,
            "no rule in the script matches step plan of task run, iteration 1, attempt 4"
        );
    }

    #[test]
    fn a_faulty_script_is_refused_with_the_place_of_the_fault() {
        let unknown = Script::parse("- step: build\n  tsk: x\n").unwrap_err().to_string();
        assert!(unknown.contains("tsk") && unknown.contains("line 2"), "{unknown}");
        let action = Script::parse("- do:\n    - wriet: x\n").unwrap_err().to_string();
        assert!(action.contains("wriet"), "{action}");
        let glob = Script::parse("- task: 'a['\n").unwrap_err().to_string();
        assert!(glob.contains("rule 1") && glob.contains("a["), "{glob}");
        let long = Script::parse(&" ".repeat(SCRIPT_BYTES_MAX + 1)).unwrap_err().to_string();
        assert!(long.contains("more than"), "{long}");
    }
}
