//! The script's file: a list of rules, of which the first that matches is played.

use std::collections::BTreeMap;

use globset::Glob;
use serde::Deserialize;

use super::ScriptSaid;
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

/// One action of the scripted agent. Paths are relative to the worktree.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Replace the file's content, and create missing directories.
    Write {
        path: String,
        content: String,
    },
    /// Add to the end of a file.
    Append {
        path: String,
        content: String,
    },
    Delete {
        path: String,
    },
    /// Run a shell command; a failure of the command does not end the script.
    Run {
        command: String,
    },
    /// Print a line.
    Print(ScriptSaid),
    /// Wait.
    SleepMs(u64),
    /// Do nothing for ever.
    Hang,
    /// End the process with this exit code.
    Exit {
        code: u8,
    },
    /// Send the signal to the process itself.
    Kill(ScriptSignal),
}

/// The signals that a script can send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ScriptSignal {
    Hup,
    Int,
    Abrt,
    Kill,
    Segv,
    Term,
    Stop,
}

impl ScriptSignal {
    /// The signal's number on Linux.
    pub fn number(self) -> i32 {
        match self {
            ScriptSignal::Hup => 1,
            ScriptSignal::Int => 2,
            ScriptSignal::Abrt => 6,
            ScriptSignal::Kill => 9,
            ScriptSignal::Segv => 11,
            ScriptSignal::Term => 15,
            ScriptSignal::Stop => 19,
        }
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
    doing: Vec<Doing>,
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

/// An action as the file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Doing {
    Write(BTreeMap<String, String>),
    Append(BTreeMap<String, String>),
    Delete(String),
    Run(String),
    Say(String),
    SleepMs(u64),
    Hang(bool),
    Exit(u8),
    Signal(ScriptSignal),
    Answer(serde_json::Value),
    CostUsd(f64),
    Tokens(TokenCount),
    Session(String),
    Fail(Fail),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fail {
    kind: super::said::FailKind,
    #[serde(default = "no_reason")]
    why: String,
    until_unix: Option<i64>,
}

fn no_reason() -> String {
    "the script says so".to_owned()
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
    pub fn play(&self, place: ScriptPlace<'_>) -> Result<Vec<Action>, ScriptError> {
        let rule = self.rules.iter().find(|rule| rule.fits(place));
        let rule = rule.ok_or_else(|| ScriptError::NoRule {
            step: place.step.to_owned(),
            task: place.task.to_owned(),
            iteration: place.iteration,
            attempt: place.attempt,
        })?;
        Ok(rule.doing.iter().flat_map(actions).collect())
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

fn actions(doing: &Doing) -> Vec<Action> {
    match doing {
        Doing::Write(files) => files.iter().flat_map(write).collect(),
        Doing::Append(files) => files.iter().flat_map(append).collect(),
        Doing::Delete(path) => {
            vec![Action::Delete { path: path.clone() }, changed(path, ChangeKind::Deleted)]
        }
        Doing::Run(command) => vec![Action::Run { command: command.clone() }],
        Doing::Say(text) => vec![Action::Print(ScriptSaid::Text { text: text.clone() })],
        Doing::SleepMs(ms) => vec![Action::SleepMs(*ms)],
        Doing::Hang(true) => vec![Action::Hang],
        Doing::Hang(false) => Vec::new(),
        Doing::Exit(code) => vec![Action::Exit { code: *code }],
        Doing::Signal(signal) => vec![Action::Kill(*signal)],
        Doing::Answer(answer) => {
            vec![Action::Print(ScriptSaid::Answer { text: answer_text(answer) })]
        }
        Doing::CostUsd(usd) => vec![Action::Print(ScriptSaid::Cost { usd: *usd })],
        Doing::Tokens(tokens) => vec![Action::Print(ScriptSaid::Tokens { tokens: *tokens })],
        Doing::Session(id) => vec![Action::Print(ScriptSaid::Session { id: id.clone() })],
        Doing::Fail(fail) => vec![Action::Print(ScriptSaid::Fail {
            kind: fail.kind,
            why: fail.why.clone(),
            until_unix: fail.until_unix,
        })],
    }
}

fn write((path, content): (&String, &String)) -> [Action; 2] {
    let (path, content) = (path.clone(), content.clone());
    [Action::Write { path: path.clone(), content }, changed(&path, ChangeKind::Modified)]
}

fn append((path, content): (&String, &String)) -> [Action; 2] {
    let (path, content) = (path.clone(), content.clone());
    [Action::Append { path: path.clone(), content }, changed(&path, ChangeKind::Modified)]
}

fn changed(path: &str, kind: ChangeKind) -> Action {
    Action::Print(ScriptSaid::Change { path: path.to_owned(), kind })
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
        let lines: Vec<String> = played.iter().map(|action| format!("{action:?}")).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
    Print(Text { text: "working" })
    Write { path: "src/a.txt", content: "one\n" }
    Print(Change { path: "src/a.txt", kind: Modified })
    Append { path: "log", content: "more" }
    Print(Change { path: "log", kind: Modified })
    Delete { path: "old.txt" }
    Print(Change { path: "old.txt", kind: Deleted })
    Run { command: "touch x && echo y" }
    SleepMs(5)
    Print(Session { id: "s-1" })
    Print(Tokens { tokens: TokenCount { input: 10, output: 2, cached: 0 } })
    Print(Cost { usd: 0.25 })
    Print(Answer { text: "{\"changed_files\":[\"src/a.txt\"],\"notes\":\"done\"}" })
    "#);
    }

    #[test]
    fn rules_are_told_apart_by_step_task_iteration_attempt_and_prompt() {
        let script = Script::parse(SCRIPT).unwrap();
        let kill = vec![Action::Kill(ScriptSignal::Kill)];
        assert_eq!(script.play(place("build", "other", 1, 2)).unwrap(), kill);
        assert_eq!(script.play(place("fix", "other", 1, 3)).unwrap(), kill);
        assert!(script.play(place("build", "other", 1, 4)).is_err());
        assert!(script.play(place("build", "add-login", 2, 1)).is_err());
        let fixed = script.play(place("fix", "x", 2, 1)).unwrap();
        assert_eq!(fixed[0], Action::Print(ScriptSaid::Answer { text: "plain text".into() }));
        assert_eq!(fixed[1], Action::Hang);
        let other_prompt = ScriptPlace { prompt: "fix it", ..place("fix", "x", 2, 1) };
        assert!(script.play(other_prompt).is_err());
        assert_eq!(script.play(place("review", "x", 1, 1)).unwrap()[1], Action::Exit { code: 3 });
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
