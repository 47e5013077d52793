//! What the text of a task asks to be done to its tests. The text is written by a person or a
//! planner, never by the builder, so it may allow what would otherwise look like a cheat.

use std::sync::LazyLock;

use regex::Regex;

/// How clearly a task asks for a test to be deleted, moved, merged or renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AskedRemoval {
    No,
    /// The task speaks of tests, and not of this one.
    InGeneral,
    /// The task names this test.
    ByName,
}

struct RemovalPatterns {
    verb: Regex,
    /// The tests, as the object of a verb.
    tests: Regex,
    /// What makes the words after it no object of the verb before it.
    other_object: Regex,
    /// The tests inside of something: that is still the tests.
    tests_of: Regex,
    /// What ties the tests to another verb than the one before it.
    joined: Regex,
    negation: Regex,
    /// What follows a name that is to be gone.
    gone: Regex,
}

fn patterns() -> Option<&'static RemovalPatterns> {
    static ALL: LazyLock<Option<RemovalPatterns>> = LazyLock::new(|| {
        let of = |pattern: &str| Regex::new(pattern).ok();
        Some(RemovalPatterns {
            verb: of(
                r"\b(?:combin|consolidat|convert|delet|drop|fold|merg|migrat|mov(?:e|es|ed|ing)\b|port\b|relocat|remov|renam|reorgani[sz]|replac|restructur|retir|rewrit|split|get rid|clean up)\w*",
            )?,
            tests: of(r"\b(?:tests?|specs?|test (?:files?|suites?|cases?|modules?))\b")?,
            other_object: of(
                r"\b(?:add|adds|against|as|by|for|from|in|inside|into|keep|of|onto|pass|run|so|that|then|to|under|until|using|when|while|with|within|write)\b",
            )?,
            tests_of: of(r"\b(?:tests?|specs?|cases?) (?:of|in|from|under|for)\b")?,
            joined: of(r"\band\b(?: (?:the|its|all|their|old|obsolete))?\s*$")?,
            negation: of(
                r"\b(?:avoid|don't|keep|leave|never|no|nor|not|preserve|without)\b|n't\b",
            )?,
            gone: of(
                r"^\S{0,2}[^.;]{0,40}?\b(?:is|are|be|been|gets?)\s+(?:\w+ly\s+)?(?:deleted|dropped|gone|merged|moved|removed|renamed|replaced|split)\b|^\S{0,2}[^.;]{0,20}?\b(?:no longer exists?|does not exist|doesn't exist|goes away)\b",
            )?,
        })
    });
    ALL.as_ref()
}

/// How clearly the text asks for this test file to be deleted, moved, merged or renamed.
pub(super) fn asked_removal(task: &str, path: &str) -> AskedRemoval {
    let Some(patterns) = patterns() else { return AskedRemoval::No };
    let text = task.to_lowercase().replace("no longer needed", "unneeded");
    let path = path.to_lowercase();
    let of_sentence = |sentence: &str| patterns.asked_in(sentence, &path);
    sentences(&text).map(of_sentence).max().unwrap_or(AskedRemoval::No)
}

/// Whether the text asks for this test file to be deleted, moved, merged or renamed, by its name.
pub fn asks_to_remove(task: &str, path: &str) -> bool {
    asked_removal(task, path) == AskedRemoval::ByName
}

struct ChangePatterns {
    verb: Regex,
    /// What makes a sentence one about tests that stay as they are.
    staying: Regex,
}

/// Whether the text asks for a test, or for the file of one, to be changed, by its name.
pub fn asks_to_change(task: &str, name: &str) -> bool {
    static ALL: LazyLock<Option<ChangePatterns>> = LazyLock::new(|| {
        let of = |pattern: &str| Regex::new(pattern).ok();
        Some(ChangePatterns {
            verb: of(
                r"\b(?:adapt|adjust|alter|amend|chang|correct|delet|disabl|drop|edit|fix|modif|reduc|remov|renam|replac|rewrit|skip|updat)\w*",
            )?,
            staying: of(
                r"\b(?:as before|as it is|as they are|avoid|don't|keep|leave|never|no|nor|not|pass|passes|preserve|still|unchanged|without)\b|n't\b",
            )?,
        })
    });
    let Some(patterns) = ALL.as_ref() else { return false };
    let (text, path) = (task.to_lowercase(), name.to_lowercase());
    // A test may be meant by the name of its file alone.
    let file = path.rsplit_once('/').map(|(_, file)| file);
    let is_asked = |sentence: &str| {
        let mut names = [Some(path.as_str()), file].into_iter().flatten();
        names.any(|name| !places(sentence, name).is_empty())
            && patterns.verb.is_match(sentence)
            && !patterns.staying.is_match(sentence)
    };
    sentences(&text).any(is_asked)
}

/// The sentences of a text. A dot inside of a file name ends none.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| line.split(". ")).flat_map(|part| part.split([';', '!', '?']))
}

impl RemovalPatterns {
    fn asked_in(&self, sentence: &str, path: &str) -> AskedRemoval {
        let named = names_of(path)
            .flat_map(|name| places(sentence, &name))
            .any(|(from, to)| self.is_object(sentence, from) || self.is_gone(sentence, from, to));
        if named {
            return AskedRemoval::ByName;
        }
        let mut tests = self.tests.find_iter(sentence).filter(|found| {
            // The word may be a part of some path or name.
            let is_whole = is_whole_word(sentence, found.start(), found.end());
            let is_joined = self.joined.is_match(&sentence[..found.start()]);
            is_whole && !is_joined && self.is_object(sentence, found.start())
        });
        if tests.next().is_none() {
            return AskedRemoval::No;
        }
        let words = own_words(path);
        let has =
            |word: &String| sentence.split(|c: char| !c.is_alphanumeric()).any(|said| said == word);
        match !words.is_empty() && words.iter().all(has) {
            true => AskedRemoval::ByName,
            false => AskedRemoval::InGeneral,
        }
    }

    /// Whether a verb before this place has it as its object, and nothing forbids it.
    fn is_object(&self, sentence: &str, at: usize) -> bool {
        let before = &sentence[..at];
        let Some(verb) = self.verb.find_iter(before).last() else { return false };
        let between = self.tests_of.replace_all(&before[verb.end()..], "");
        !self.negation.is_match(before) && !self.other_object.is_match(&between)
    }

    fn is_gone(&self, sentence: &str, from: usize, to: usize) -> bool {
        let found = self.gone.find(&sentence[to..]);
        found.is_some_and(|found| {
            let said = found.as_str().replace("does not exist", "").replace("doesn't exist", "");
            let said = said.replace("no longer exist", "");
            !self.negation.is_match(&said) && !self.negation.is_match(&sentence[..from])
        })
    }
}

/// The names by which a text may mean a file: its path, its directories from the second on, a first
/// directory with a slash, and its own name.
fn names_of(path: &str) -> impl Iterator<Item = String> {
    let mut names = vec![path.to_owned()];
    if let Some((directories, name)) = path.rsplit_once('/') {
        names.push(name.to_owned());
        for (at, _) in directories.match_indices('/') {
            names.push(path[..=at].to_owned());
        }
        names.push(format!("{directories}/"));
        if directories.contains('/') {
            names.push(directories.to_owned());
        }
    }
    names.into_iter()
}

fn places(text: &str, name: &str) -> Vec<(usize, usize)> {
    text.match_indices(name)
        .map(|(at, _)| (at, at + name.len()))
        .filter(|(from, to)| is_whole_word(text, *from, *to))
        .collect()
}

fn is_whole_word(text: &str, from: usize, to: usize) -> bool {
    let joins = |c: char| c.is_alphanumeric() || "_-/".contains(c);
    let before = text[..from].trim_end_matches("./").chars().next_back().is_some_and(joins);
    let mut after = text[to..].chars();
    let next = after.next();
    let is_directory = text[..to].ends_with('/');
    let goes_on = next.is_some_and(|c| joins(c) && !(is_directory && c == '-'))
        || (next == Some('.') && after.next().is_some_and(char::is_alphanumeric));
    !before && !goes_on
}

/// The words of a test file's name that say what it tests.
fn own_words(path: &str) -> Vec<String> {
    const NO_TOPIC: &[&str] = &["test", "tests", "spec", "specs", "it", "e2e"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    stem.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 2 && !NO_TOPIC.contains(word))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_asks_for_a_test_to_go_only_in_plain_words() {
        use AskedRemoval::{ByName, InGeneral, No};
        for (task, asked) in [
            ("Delete tests/old_test.sh.", ByName),
            ("Remove the flag. Delete `tests/old_test.sh`, it tests nothing", ByName),
            ("Rename old_test.sh to new_test.sh", ByName),
            ("Merge tests/a_test.sh and tests/old_test.sh into tests/all_test.sh", ByName),
            ("Move the tests of old_test.sh to tests/new_test.sh", ByName),
            ("Remove the old tests", ByName),
            ("tests/old_test.sh is deleted", ByName),
            ("- tests/old_test.sh no longer exists", ByName),
            ("./tests/old_test.sh should be removed", ByName),
            ("Delete tests/", ByName),
            ("Delete tests/old_test.sh, which is no longer needed", ByName),
            ("Consolidate the tests", InGeneral),
            ("Merge the test files into one", InGeneral),
            ("Say done", No),
            ("Do not delete tests/old_test.sh", No),
            ("tests/old_test.sh must not be deleted", No),
            ("Remove the flag, keep tests/old_test.sh", No),
            ("Remove the sleep from tests/old_test.sh", No),
            ("Move the helper into tests/old_test.sh", No),
            ("Remove the old flag and add tests", No),
            ("Remove the flag so that the tests pass", No),
            ("Delete tests/other/old_test.sh", No),
            ("Delete very_old_test.sh", No),
            ("Rename test.sh", No),
            ("Fix tests/old_test.sh", No),
        ] {
            assert_eq!(asked_removal(task, "tests/old_test.sh"), asked, "{task}");
        }
        let path = "tests/legacy/old_test.sh";
        assert_eq!(asked_removal("Drop the tests under tests/legacy/", path), ByName);
        assert_eq!(asked_removal("Remove tests/legacy", path), ByName);
    }
}
