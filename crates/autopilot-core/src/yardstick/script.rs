//! The files that the commands of the configuration run, and those that these run or read in turn, as
//! far as their texts tell.
//!
//! A script of tests calls the product as well. So a file that is only called counts where its place or
//! name says that it judges, and a command of acceptance may run the product itself.

mod words;

use super::place::is_document;
use super::{TreeView, YardstickReason};
use crate::command_line::commands;
use crate::guard::is_test_path;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;
use words::{
    EXPECTATION_WORDS, INTERPRETERS, JUDGE_WORDS, LOOKERS, PRODUCT_NAMES, RUNNERS,
    SCRIPT_DIRECTORIES, SETTING_OPTIONS, SHELLS, SHORT_OPTIONS, SOURCE_ROOTS,
};

/// The scripts of a repository's commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandScripts {
    pub files: BTreeMap<String, YardstickReason>,
    /// Directories whose files a command runs as tests.
    pub directories: BTreeMap<String, YardstickReason>,
    /// The scripts of `package.json` that the commands come to.
    pub package_scripts: BTreeSet<String>,
}

/// The number of files that are read on the way.
pub(super) const SCRIPTS_MAX: usize = 256;
/// The number of calls from a command to a file.
pub(super) const CALLS_MAX: usize = 8;
/// The bytes of a script that are read.
const SCRIPT_BYTES_MAX: usize = 256 * 1024;

/// The name of the command whose program may be the product.
const ACCEPTANCE: &str = "uat";

/// Finds the scripts of commands, given by their names and lines.
pub(super) fn command_scripts(
    lines: &[(String, String)],
    trees: &[TreeView<'_>],
) -> CommandScripts {
    let mut finder =
        ScriptFinder { trees, found: CommandScripts::default(), queue: VecDeque::new() };
    for (name, line) in lines {
        finder.line(name, line, "", 0);
    }
    let mut read = 0;
    while let Some((path, depth)) = finder.queue.pop_front() {
        read += 1;
        if read > SCRIPTS_MAX || depth >= CALLS_MAX {
            break;
        }
        finder.script(&path, depth);
    }
    finder.needs_of_tests();
    finder.found
}

struct ScriptFinder<'a> {
    trees: &'a [TreeView<'a>],
    found: CommandScripts,
    queue: VecDeque<(String, usize)>,
}

impl ScriptFinder<'_> {
    fn is_file(&self, path: &str) -> bool {
        self.trees.iter().any(|tree| tree.paths.contains(path))
    }

    fn is_directory(&self, path: &str) -> bool {
        let start = format!("{path}/");
        self.trees.iter().any(|tree| {
            tree.paths.range(start.clone()..).next().is_some_and(|first| first.starts_with(&start))
        })
    }

    fn texts(&self, path: &str) -> Vec<String> {
        let read = |tree: &TreeView<'_>| tree.paths.contains(path).then(|| (tree.read)(path))?;
        let texts = self.trees.iter().filter_map(read);
        texts.filter(|text| text.len() <= SCRIPT_BYTES_MAX).collect()
    }

    /// Takes a file in, and reads it later.
    fn add(&mut self, path: String, reason: YardstickReason, depth: usize) {
        if !is_document(&path) && !self.found.files.contains_key(&path) {
            self.found.files.insert(path.clone(), reason);
            self.queue.push_back((path, depth));
        }
    }

    /// A line that the command of this name runs in a directory.
    fn line(&mut self, name: &str, line: &str, directory: &str, depth: usize) {
        let mut directory = directory.to_owned();
        let all = commands(line);
        let in_path = path_directories(line);
        for (at, (words, is_piped)) in all.iter().enumerate() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let ["cd", to] = words.as_slice() {
                directory = resolved(&directory, to).unwrap_or(directory);
                continue;
            }
            self.shadowing(&words, &in_path, name, depth);
            let looker = all.get(at + 1).and_then(|(next, _)| next.first());
            let is_looked_at =
                *is_piped && looker.is_some_and(|next| LOOKERS.contains(&next.as_str()));
            let by = CommandCall { name, directory: &directory, is_looked_at, depth };
            self.command(&words, &by);
        }
    }

    /// The files of the tree that a line's own PATH puts in the place of a program. Such a line is read as
    /// words, so any of them may be the program.
    fn shadowing(&mut self, words: &[&str], in_path: &[String], name: &str, depth: usize) {
        let all =
            in_path.iter().flat_map(|directory| words.iter().map(move |word| (directory, word)));
        for (directory, program) in all.filter(|(_, word)| !word.contains('/')) {
            let path = resolved(directory, program).filter(|path| self.is_file(path));
            if let Some(path) = path {
                let reason = YardstickReason::CommandScript { command: name.to_owned() };
                self.add(path, reason, depth);
            }
        }
    }

    fn command(&mut self, words: &[&str], by: &CommandCall<'_>) {
        let reason = || YardstickReason::CommandScript { command: by.name.to_owned() };
        let program = words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word));
        self.starters(words, program, by);
        let mut is_script_next = true;
        let mut is_runner = false;
        let mut option = "";
        for word in words {
            let (key, value) = word.split_once('=').unwrap_or(("", word));
            let is_short = SHORT_OPTIONS.contains(&option);
            let is_setting = SETTING_OPTIONS.contains(&option)
                || SETTING_OPTIONS.contains(&key)
                || is_short && (is_runner || ["make", "gmake"].contains(&program));
            let path = resolved(by.directory, if key.starts_with('-') { value } else { word });
            let base = word.rsplit('/').next().unwrap_or(word);
            let is_shell_text = SHELLS.contains(&program)
                && option.starts_with('-')
                && option.ends_with('c')
                && word.contains(' ');
            if is_shell_text && by.depth < CALLS_MAX {
                self.line(by.name, word, by.directory, by.depth + 1);
                return;
            }
            if let Some(path) = path.filter(|path| self.is_file(path)) {
                let is_judge = is_script_next && self.is_judge(&path, by);
                if is_judge || is_setting && !is_source_root(&path) || is_runner {
                    self.add(path, reason(), by.depth);
                }
                is_script_next = false;
            } else if option == "-m" && is_script_next {
                is_runner = RUNNERS.contains(word);
                self.module(word, by, reason());
                is_script_next = false;
            } else if RUNNERS.contains(&base) || *word == "--test" && program == "node" {
                is_runner = true;
            } else if is_runner && !word.starts_with('-') {
                let plain = word.split("::").next().unwrap_or(word).trim_end_matches('/');
                let path = resolved(by.directory, plain).unwrap_or_default();
                if !path.is_empty() && !is_source_root(&path) && self.is_directory(&path) {
                    self.found.directories.insert(path, reason());
                }
            } else if !word.starts_with('-') && !INTERPRETERS.contains(&base) && !is_value(word) {
                is_script_next = false;
            }
            option = word;
        }
    }

    /// A module that Python runs: its file or its package.
    fn module(&mut self, module: &str, by: &CommandCall<'_>, reason: YardstickReason) {
        let path = module.replace('.', "/");
        for candidate in [format!("{path}.py"), format!("{path}/__main__.py")] {
            let candidate = resolved(by.directory, &candidate).unwrap_or_default();
            if self.is_file(&candidate) && self.is_judge(&candidate, by) {
                self.add(candidate, reason.clone(), by.depth);
            }
        }
    }

    /// The files that programs take their commands from.
    fn starters(&mut self, words: &[&str], program: &str, by: &CommandCall<'_>) {
        let reason = || YardstickReason::CommandScript { command: by.name.to_owned() };
        let here = |name: &str| resolved(by.directory, name).unwrap_or_default();
        let files: &[&str] = match program {
            "make" | "gmake" => &["GNUmakefile", "makefile", "Makefile"],
            "just" => &["justfile", "Justfile", ".justfile"],
            "task" => &["Taskfile.yml", "Taskfile.yaml"],
            "tox" => &["tox.ini"],
            "nox" => &["noxfile.py"],
            "inv" | "invoke" => &["tasks.py"],
            "rake" => &["Rakefile"],
            "pre-commit" => &[".pre-commit-config.yaml"],
            _ => &[],
        };
        for file in files {
            if self.is_file(&here(file)) {
                self.add(here(file), reason(), by.depth);
            }
        }
        if ["npm", "yarn", "pnpm", "bun"].contains(&program) {
            let mut rest = words.iter().skip(1).filter(|word| !word.starts_with('-'));
            let script = rest.find(|word| !["run", "run-script"].contains(*word));
            let script = script.map(|word| if *word == "t" { "test" } else { *word });
            if let Some(script) = script {
                self.package_script(script, by);
            }
        }
        let is_xtask = program == "cargo" && words.get(1).is_some_and(|word| *word == "xtask");
        if is_xtask && self.is_directory("xtask") {
            self.found.directories.insert("xtask".to_owned(), reason());
        }
    }

    /// A script of `package.json`, with those that run before and after it.
    fn package_script(&mut self, script: &str, by: &CommandCall<'_>) {
        let manifest = resolved(by.directory, "package.json").unwrap_or_default();
        for name in [format!("pre{script}"), script.to_owned(), format!("post{script}")] {
            let mut lines = BTreeSet::new();
            for text in self.texts(&manifest) {
                let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                lines.extend(value["scripts"][&name].as_str().map(str::to_owned));
            }
            if !lines.is_empty() && self.found.package_scripts.insert(name) && by.depth < CALLS_MAX
            {
                for line in lines {
                    self.line(by.name, &line, by.directory, by.depth + 1);
                }
            }
        }
    }

    /// Whether a file that a command starts judges, and is not what is judged.
    fn is_judge(&self, path: &str, by: &CommandCall<'_>) -> bool {
        let is_neutral = !by.is_looked_at && by.name != ACCEPTANCE && !is_product_name(path);
        judges(path) || is_neutral
    }

    /// The files that a script runs or reads.
    fn script(&mut self, path: &str, depth: usize) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
        let mut words: BTreeSet<String> = BTreeSet::new();
        for text in self.texts(path) {
            let lines = text.lines().map(str::trim).filter(|line| !is_comment(line));
            for line in lines {
                words.extend(mentioned(line));
            }
        }
        for word in words {
            for from in [directory.as_str(), ""] {
                let Some(called) = resolved(from, &word) else { continue };
                let is_beside = !directory.is_empty()
                    && is_script_directory(&directory)
                    && called.starts_with(&format!("{directory}/"));
                if called != path && self.is_file(&called) && (judges(&called) || is_beside) {
                    let reason = YardstickReason::CalledScript { by: path.to_owned() };
                    self.add(called, reason, depth + 1);
                }
            }
        }
        // A script runs where it lies or, more often, in the root.
        let mut places = vec![directory.as_str(), ""];
        places.dedup();
        for place in places {
            if self.is_file(&resolved(place, "package.json").unwrap_or_default()) {
                self.scripts_in(path, place, depth);
            }
        }
    }

    /// The files that tests of the shell source or read, by their names. Whatever loop starts such a test,
    /// its text names what it needs; of what it calls, only what can't be the product counts.
    fn needs_of_tests(&mut self) {
        let all = self.trees.iter().flat_map(|tree| tree.paths.iter());
        let tests: BTreeSet<String> =
            all.filter(|path| is_shell_test(path)).take(SCRIPTS_MAX).cloned().collect();
        for test in tests {
            let directory = test.rsplit_once('/').map_or("", |(directory, _)| directory);
            let mut words: BTreeSet<String> = BTreeSet::new();
            for text in self.texts(&test) {
                let lines = text.lines().map(str::trim).filter(|line| !is_comment(line));
                words.extend(lines.flat_map(mentioned));
            }
            let places = words.iter().flat_map(|word| [directory, ""].map(|from| (from, word)));
            for needed in places.filter_map(|(from, word)| resolved(from, word)) {
                if needed != test && is_expectation(&needed) && self.is_file(&needed) {
                    let reason = YardstickReason::CalledScript { by: test.clone() };
                    self.found.files.entry(needed).or_insert(reason);
                }
            }
        }
    }

    /// The scripts of `package.json` that another script runs.
    fn scripts_in(&mut self, path: &str, directory: &str, depth: usize) {
        static RUN: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(r"\b(?:npm|yarn|pnpm|bun)(?: run| run-script)? ([A-Za-z][\w:.-]*)").ok()
        });
        let mut names = BTreeSet::new();
        for text in self.texts(path) {
            let all = RUN.iter().flat_map(|run| run.captures_iter(&text));
            names.extend(all.filter_map(|found| Some(found.get(1)?.as_str().to_owned())));
        }
        let by = CommandCall { name: path, directory, is_looked_at: false, depth: depth + 1 };
        for name in names {
            self.package_script(&name, &by);
        }
    }
}

/// Where a command stands.
struct CommandCall<'a> {
    name: &'a str,
    directory: &'a str,
    /// Its output is looked at by the next command.
    is_looked_at: bool,
    depth: usize,
}

/// The directories of the tree that a line puts into its PATH.
fn path_directories(line: &str) -> Vec<String> {
    static PATH: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(?:^|[\s;&(])PATH=["']?([^\s"';&]+)"#).ok());
    let all = PATH.iter().flat_map(|path| path.captures_iter(line));
    let values = all.filter_map(|found| Some(found.get(1)?.as_str()));
    let words = values.flat_map(|value| value.split(':'));
    let here = |word: &str| {
        let word = ["$PWD/", "${PWD}/", "./"]
            .iter()
            .find_map(|start| word.strip_prefix(start))
            .unwrap_or(word);
        resolved("", word).filter(|path| !path.contains('$') && !path.is_empty())
    };
    words.filter_map(here).collect()
}

/// A path from a directory, without dots; none outside of the repository or for what is no path.
fn resolved(directory: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in directory.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn is_comment(line: &str) -> bool {
    line.starts_with('#') && !line.starts_with("#!") || line.starts_with("//")
}

/// What can be paths in a line of a script, also behind a variable for its own directory, and the
/// modules that it imports.
fn mentioned(line: &str) -> Vec<String> {
    static IMPORT: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(?:from|import)\s+([\w.]+)").ok());
    let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@');
    let mut found: Vec<String> = Vec::new();
    for word in line.split(|c: char| !is_path(c)).filter(|word| word.contains(['.', '/'])) {
        let plain = word.trim_start_matches('/');
        found.push(plain.to_owned());
        // A variable may stand for the directory: `$DIR/lib.sh`.
        if let Some((_, rest)) = plain.split_once('/') {
            found.push(rest.to_owned());
        }
        if word.starts_with('.') {
            found.extend(["js", "mjs", "cjs", "ts"].map(|ending| format!("{plain}.{ending}")));
        }
    }
    if let Some(module) = IMPORT.as_ref().and_then(|it| it.captures(line)?.get(1)) {
        found.push(format!("{}.py", module.as_str().trim_matches('.').replace('.', "/")));
    }
    found
}

fn is_value(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 's' | 'm'))
}

fn is_script_directory(directory: &str) -> bool {
    let is_one = |part: &str| {
        let part = part.to_lowercase();
        SCRIPT_DIRECTORIES.contains(&part.as_str()) || JUDGE_WORDS.contains(&part.as_str())
    };
    directory.split('/').any(is_one)
}

/// Whether the place or the name of a file says that it judges.
fn judges(path: &str) -> bool {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let lower = name.to_lowercase();
    let stem = lower.strip_prefix('.').unwrap_or(&lower);
    is_script_directory(directory)
        || stem.split(|c: char| !c.is_alphanumeric()).any(|word| JUDGE_WORDS.contains(&word))
}

fn is_expectation(path: &str) -> bool {
    let lower = path.to_lowercase();
    !is_source_root(path)
        && lower.split(|c: char| !c.is_alphanumeric()).any(|word| EXPECTATION_WORDS.contains(&word))
}

fn is_shell_test(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    (SHELLS.contains(&ending) || ending == "bats") && is_test_path(path)
}

fn is_product_name(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let stem = name.split('.').next().unwrap_or(&name);
    PRODUCT_NAMES.contains(&stem) || is_source_root(path)
}

/// Whether a path is a directory of sources or lies in one.
fn is_source_root(path: &str) -> bool {
    SOURCE_ROOTS.contains(&path.split('/').next().unwrap_or(path))
}
