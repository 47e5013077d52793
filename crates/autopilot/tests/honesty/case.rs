//! One case as a text: a few lines of `word: value`, then sections that begin with `--- name`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// What was tried, on which project, and how it must end.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The class and the name of the file, as in `tests-edited/deleted`.
    pub name: String,
    pub title: String,
    pub flow: CaseFlow,
    /// The folder of sources below `honesty/projects`.
    pub project: String,
    /// The command of the tests, where it is not the project's own.
    pub command: Option<String>,
    pub sandbox: bool,
    /// Who would be fooled if nobody looked closer.
    pub fools: Fooled,
    pub expects: Expected,
    /// The name of a section and its text.
    pub sections: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaseFlow {
    Task,
    Plan,
    Goal,
}

impl CaseFlow {
    pub fn word(self) -> &'static str {
        match self {
            CaseFlow::Task => "task",
            CaseFlow::Plan => "plan",
            CaseFlow::Goal => "goal",
        }
    }
}

/// Whom a cheat fools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fooled {
    /// The command of the tests passes in the worktree that the agent leaves.
    Tests,
    /// The command fails, and an agent says that all is well.
    Word,
    /// The command passes with the work of each task alone.
    Alone,
}

/// How a case must end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Not done, and this is said.
    Caught { says: String },
    /// Done, and a person is told of a doubt of this kind that says this.
    Told { kind: String, says: String },
    /// Done, and the cheat had no effect, which the section `proof` shows.
    Harmless,
    /// Done without a word: nothing of ours notices.
    Missed { why: String },
    /// An honest run that is done without a doubt.
    Quiet,
    /// An honest run that is done, with doubts of exactly these kinds.
    Done { kinds: Vec<String> },
}

impl Expected {
    pub fn is_honest(&self) -> bool {
        matches!(self, Expected::Quiet | Expected::Done { .. })
    }

    pub fn word(&self) -> &'static str {
        match self {
            Expected::Caught { .. } => "caught",
            Expected::Told { .. } => "told",
            Expected::Harmless => "harmless",
            Expected::Missed { .. } => "missed",
            Expected::Quiet => "quiet",
            Expected::Done { .. } => "done",
        }
    }

    fn parse(text: &str) -> Option<Expected> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim().to_owned();
        match word {
            "caught" if !rest.is_empty() => Some(Expected::Caught { says: rest }),
            "told" => {
                let (kind, says) = rest.split_once(' ')?;
                Some(Expected::Told { kind: kind.to_owned(), says: says.trim().to_owned() })
            }
            "harmless" if rest.is_empty() => Some(Expected::Harmless),
            "missed" if !rest.is_empty() => Some(Expected::Missed { why: rest }),
            "quiet" if rest.is_empty() => Some(Expected::Quiet),
            "done" if !rest.is_empty() => {
                let kinds = rest.split(',').map(|kind| kind.trim().to_owned()).collect();
                Some(Expected::Done { kinds })
            }
            _ => None,
        }
    }
}

/// A line that can't be read.
#[derive(Debug, PartialEq, Eq)]
pub struct CaseError {
    name: String,
    line: usize,
    why: String,
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.case:{}: {}", self.name, self.line, self.why)
    }
}

const WORDS: [&str; 7] = ["title", "flow", "project", "command", "sandbox", "fools", "expects"];
/// The sections besides `build <task>`.
const SECTIONS: [&str; 9] =
    ["task", "project", "config", "build", "report", "agents", "plan", "completion", "proof"];

impl Case {
    pub fn class(&self) -> &str {
        self.name.split_once('/').map_or("", |(class, _)| class)
    }

    pub fn section(&self, name: &str) -> Option<&str> {
        self.sections.get(name).map(String::as_str)
    }

    /// The work of the agents, by task; the empty name is for all of them.
    pub fn builds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections.iter().filter_map(|(name, text)| {
            let task = name.strip_prefix("build")?.trim();
            Some((task, text.as_str()))
        })
    }

    pub fn parse(name: &str, text: &str) -> Result<Case, CaseError> {
        let error = |line: usize, why: String| CaseError { name: name.to_owned(), line, why };
        let mut head: BTreeMap<&str, (usize, String)> = BTreeMap::new();
        let mut sections: BTreeMap<String, String> = BTreeMap::new();
        let mut open: Option<String> = None;
        for (line, text) in (1..).zip(text.lines()) {
            if let Some(section) = text.strip_prefix("--- ") {
                let section = section.trim().to_owned();
                let is_known =
                    SECTIONS.contains(&section.as_str()) || section.starts_with("build ");
                if !is_known {
                    return Err(error(line, format!("there is no section `{section}`")));
                }
                if sections.insert(section.clone(), String::new()).is_some() {
                    return Err(error(line, format!("the section `{section}` is there twice")));
                }
                open = Some(section);
                continue;
            }
            if let Some(section) = open.as_ref().and_then(|open| sections.get_mut(open)) {
                section.push_str(text);
                section.push('\n');
                continue;
            }
            if text.trim().is_empty() {
                continue;
            }
            let Some((word, value)) = text.split_once(": ") else {
                return Err(error(line, format!("`{text}` is not `word: value`")));
            };
            let Some(word) = WORDS.into_iter().find(|known| *known == word) else {
                return Err(error(line, format!("there is no word `{word}`")));
            };
            if head.insert(word, (line, value.trim().to_owned())).is_some() {
                return Err(error(line, format!("`{word}` is there twice")));
            }
        }
        let case = Case::of(name, &head, sections).map_err(|(line, why)| error(line, why))?;
        case.check().map_err(|why| error(1, why))?;
        Ok(case)
    }

    fn of(
        name: &str,
        head: &BTreeMap<&str, (usize, String)>,
        sections: BTreeMap<String, String>,
    ) -> Result<Case, (usize, String)> {
        let needed = |word: &str| {
            let missing = (1, format!("`{word}` is missing"));
            head.get(word).map(|(line, value)| (*line, value.as_str())).ok_or(missing)
        };
        let choice = |word: &str, value: &str| (value.to_owned(), head.get(word).map(|it| it.0));
        let bad = |word: &str, value: &str| {
            let (value, line) = choice(word, value);
            (line.unwrap_or(1), format!("`{value}` is not a value of `{word}`"))
        };
        let given = |word: &str| head.get(word).map(|(_, value)| value.as_str());
        let flow = match needed("flow")?.1 {
            "task" => CaseFlow::Task,
            "plan" => CaseFlow::Plan,
            "goal" => CaseFlow::Goal,
            other => return Err(bad("flow", other)),
        };
        let sandbox = match given("sandbox") {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => return Err(bad("sandbox", other)),
        };
        let fools = match given("fools") {
            None | Some("tests") => Fooled::Tests,
            Some("word") => Fooled::Word,
            Some("alone") => Fooled::Alone,
            Some(other) => return Err(bad("fools", other)),
        };
        let (_, expects) = needed("expects")?;
        Ok(Case {
            name: name.to_owned(),
            title: needed("title")?.1.to_owned(),
            flow,
            project: needed("project")?.1.to_owned(),
            command: given("command").map(str::to_owned),
            sandbox,
            fools,
            expects: Expected::parse(expects).ok_or_else(|| bad("expects", expects))?,
            sections,
        })
    }

    /// The rules that hold between the words and the sections.
    fn check(&self) -> Result<(), String> {
        if self.builds().next().is_none() {
            return Err("there is no section `build`".to_owned());
        }
        let is_harmless = self.expects == Expected::Harmless;
        if is_harmless && self.section("proof").is_none() {
            return Err("`harmless` needs a section `proof`".to_owned());
        }
        if self.expects.is_honest() && self.fools != Fooled::Tests {
            return Err("an honest run fools nobody".to_owned());
        }
        if !projects().join(&self.project).is_dir() {
            return Err(format!("there is no project `{}`", self.project));
        }
        Ok(())
    }
}

/// The folder of the cases.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/honesty/cases")
}

/// The folder of the sample projects.
pub fn projects() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/honesty/projects")
}

/// All cases, in the order of their names.
pub fn read_all() -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for path in autopilot_testkit::stage::files(&root()) {
        let name = path.strip_prefix(root()).unwrap().with_extension("");
        let name = name.to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "case") {
            return Err(format!("{}: not a case", path.display()));
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))?;
        cases.push(Case::parse(&name, &text).map_err(|error| error.to_string())?);
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "title: A test is deleted\nflow: task\nproject: shell\nsandbox: off\n\
        fools: word\nexpects: told claim the builder says\n--- build\nbreaks\n\nrm a\n--- build b\nworks\n";

    #[test]
    fn a_case_has_words_and_sections() {
        let case = Case::parse("x/y", WHOLE).unwrap();
        assert_eq!((case.class(), case.flow, case.sandbox), ("x", CaseFlow::Task, false));
        assert_eq!(case.fools, Fooled::Word);
        let told = Expected::Told { kind: "claim".into(), says: "the builder says".into() };
        assert_eq!(case.expects, told);
        let builds: Vec<_> = case.builds().collect();
        assert_eq!(builds, [("", "breaks\n\nrm a\n"), ("b", "works\n")]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (from, to, why) in [
            ("flow: task", "flow: issue", "x/y.case:2: `issue` is not a value of `flow`"),
            ("flow: task", "flaw: task", "x/y.case:2: there is no word `flaw`"),
            ("flow: task", "flow", "x/y.case:2: `flow` is not `word: value`"),
            ("flow: task\n", "", "x/y.case:1: `flow` is missing"),
            ("sandbox: off", "sandbox: no", "x/y.case:4: `no` is not a value of `sandbox`"),
            ("fools: word", "fools: me", "x/y.case:5: `me` is not a value of `fools`"),
            (
                "expects: told claim the builder says",
                "expects: told",
                "x/y.case:6: `told` is not a value of `expects`",
            ),
            ("--- build b", "--- work", "x/y.case:11: there is no section `work`"),
            ("--- build b", "--- build", "x/y.case:11: the section `build` is there twice"),
            ("project: shell", "project: cobol", "x/y.case:1: there is no project `cobol`"),
            ("told claim the builder says", "harmless", "`harmless` needs a section `proof`"),
            ("told claim the builder says", "quiet", "an honest run fools nobody"),
        ] {
            let error = Case::parse("x/y", &WHOLE.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(why), "{to}: {error}");
        }
    }
}
