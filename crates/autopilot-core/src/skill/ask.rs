//! Finds the skills that a text asks for: `use the X skill`, `use skill X`, `using the X and Y
//! skills`, or `skills: [X]` in the front matter, which then is the whole list.

use super::SKILL_NAME_BYTES_MAX;
use crate::task_file::{Fence, TaskSpec};

/// The number of skills that one text may ask for.
const ASKED_MAX: usize = 20;
/// The number of words between `use` and `skill`.
const WORDS_MAX: usize = 12;
/// The number of words of one name, as in “the code review skill”.
const NAME_WORDS_MAX: usize = 4;

/// A skill that a text asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillRequest {
    /// A name, which must exist.
    Name(String),
    /// Several words, in lower case with `-` between them, which are a name only if a skill is
    /// called so.
    Words(String),
}

impl SkillRequest {
    /// The name to look up.
    pub fn text(&self) -> &str {
        match self {
            SkillRequest::Name(name) | SkillRequest::Words(name) => name,
        }
    }
}

impl TaskSpec {
    /// The skills that a task or a plan asks for. Only the parts that tell the builder what to do
    /// can ask: acceptance criteria and notes speak of skills for other reasons. A plan in plain
    /// words has nothing but notes.
    pub fn asked_skills(&self) -> Vec<SkillRequest> {
        if let Some(names) = &self.skills {
            return names.iter().cloned().map(SkillRequest::Name).take(ASKED_MAX).collect();
        }
        let is_plain = self.goal.is_empty() && self.acceptance.is_empty();
        let notes = self.notes.iter().filter(|_| is_plain);
        let parts = self.constraints.iter().chain(notes);
        let texts: Vec<&str> =
            [&self.title, &self.goal].into_iter().chain(parts).map(String::as_str).collect();
        asked(&texts.join("\n\n"))
    }
}

/// Whether a text can be the name of a skill.
pub fn is_name(text: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    text.len() <= SKILL_NAME_BYTES_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_fine)
}

/// The skills that a text asks for, in the order in which they are first mentioned.
pub fn asked(text: &str) -> Vec<SkillRequest> {
    let words = words(text);
    let mut found: Vec<SkillRequest> = Vec::new();
    for at in 0..words.len() {
        let word = &words[at];
        let is_use = matches!(word.plain.as_str(), "use" | "using") && !word.cited;
        if is_use && !is_denied(&words[..at]) {
            for asked in phrase(&words[at + 1..]) {
                if !found.contains(&asked) && found.len() < ASKED_MAX {
                    found.push(asked);
                }
            }
        }
    }
    found
}

struct PromptWord {
    /// The word without the marks around it.
    bare: String,
    /// The word in lower case.
    plain: String,
    quoted: bool,
    /// Whether the word is part of a quotation of several words.
    cited: bool,
    /// Whether a comma follows.
    comma: bool,
    /// Whether a sentence, a clause or a paragraph ends here.
    ends: bool,
}

/// The words outside of code blocks and quoted lines.
fn words(text: &str) -> Vec<PromptWord> {
    let mut words: Vec<PromptWord> = Vec::new();
    let mut fence = Fence::default();
    let mut quote: Option<Quote> = None;
    for line in text.lines() {
        let was_code = fence.open.is_some();
        fence.step(line);
        let trimmed = line.trim_start();
        let is_apart = was_code || fence.open.is_some() || trimmed.starts_with('>');
        let breaks = is_apart || trimmed.is_empty() || trimmed.starts_with(['-', '*', '#', '`']);
        if breaks {
            quote = None;
            if let Some(last) = words.last_mut() {
                last.ends = true;
            }
        }
        if is_apart {
            continue;
        }
        for given in line.split_whitespace() {
            let Some(word) = word(given) else { continue };
            words.push(word);
            quote = Quote::follow(quote, given, &mut words);
        }
    }
    words
}

/// A quotation that has begun; one that never ends was none.
struct Quote {
    close: char,
    /// The index of its first word.
    from: usize,
}

impl Quote {
    /// Follows a quotation over `given`, the last of `words` as it was written.
    fn follow(open: Option<Quote>, given: &str, words: &mut [PromptWord]) -> Option<Quote> {
        const MARKS: [(char, char); 5] =
            [('"', '"'), ('`', '`'), ('“', '”'), ('„', '“'), ('«', '»')];
        let (quote, rest) = match open {
            Some(quote) => (quote, given),
            None => {
                let bare = given.trim_start_matches(['(', '[', '*', '_']);
                let first = bare.chars().next()?;
                let (_, close) = MARKS.into_iter().find(|(mark, _)| *mark == first)?;
                (Quote { close, from: words.len() - 1 }, &bare[first.len_utf8()..])
            }
        };
        if !rest.contains(quote.close) {
            return Some(quote);
        }
        for word in words.iter_mut().skip(quote.from) {
            word.cited = true;
        }
        None
    }
}

fn word(given: &str) -> Option<PromptWord> {
    let quotes = ['`', '"', '\'', '“', '”', '*', '«', '»', '‘', '’'];
    let inner = given.trim_start_matches('(').trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let after = &given[given.len() - (given.trim_start_matches('(').len() - inner.len())..];
    let bare =
        inner.trim_matches(quotes).trim_start_matches(['/', '$']).trim_end_matches(['.', ',']);
    if bare.is_empty() {
        return None;
    }
    let quoted = inner.starts_with(quotes) || inner.starts_with(['/', '$']);
    Some(PromptWord {
        bare: bare.to_owned(),
        plain: bare.to_lowercase(),
        quoted,
        cited: false,
        comma: after.contains(',') || inner.ends_with(','),
        ends: after.contains(['.', ';', ':', '!', '?', ')']),
    })
}

/// Whether the words before forbid the use: `do not use`, `never use`, `without using`.
fn is_denied(before: &[PromptWord]) -> bool {
    let near = before.iter().rev().take(2).take_while(|word| !word.ends);
    near.into_iter().any(|word| {
        let plain = word.plain.replace('’', "'");
        matches!(plain.as_str(), "not" | "never" | "without" | "no" | "cannot")
            || plain.ends_with("n't")
    })
}

/// The skills named in the words after `use`.
fn phrase(after: &[PromptWord]) -> Vec<SkillRequest> {
    let after = match after.first() {
        Some(word) if word.plain == "the" && !word.ends => &after[1..],
        _ => after,
    };
    match after.first() {
        Some(word) if is_skill(word) && !word.ends => {
            let count_max = if word.plain == "skill" { 1 } else { WORDS_MAX };
            named_after(&after[1..], count_max)
        }
        Some(_) => named_before(after),
        None => Vec::new(),
    }
}

/// Reads `skill X` or `skills X, Y and Z`: the words that are names, as far as the list goes.
fn named_after(words: &[PromptWord], count_max: usize) -> Vec<SkillRequest> {
    let mut names = Vec::new();
    let mut is_next = true;
    for word in words.iter().take(WORDS_MAX) {
        if matches!(word.plain.as_str(), "and" | "&") {
            is_next = true;
            continue;
        }
        if !is_next {
            break;
        }
        match name(word) {
            Some(name) => names.push(name),
            None => break,
        }
        is_next = word.comma;
        if word.ends || names.len() == count_max {
            break;
        }
    }
    names
}

/// Reads `X skill`, `X and Y skills`, `X, Y and Z skills` or `code review skill`.
fn named_before(words: &[PromptWord]) -> Vec<SkillRequest> {
    let Some(end) = words.iter().take(WORDS_MAX + 1).position(is_skill) else { return Vec::new() };
    let before = &words[..end];
    if before.is_empty() || before.iter().any(|word| word.ends) {
        return Vec::new();
    }
    let mut items: Vec<Vec<&PromptWord>> = vec![Vec::new()];
    for word in before {
        let joins = matches!(word.plain.as_str(), "and" | "&");
        if !joins && let Some(item) = items.last_mut() {
            item.push(word);
        }
        if joins || word.comma {
            items.push(Vec::new());
        }
    }
    items.retain(|item| !item.is_empty());
    for item in &mut items {
        if item.len() == 2 && item[0].plain == "the" {
            item.remove(0);
        }
    }
    match items.as_slice() {
        [one] if one.len() > 1 => several_words(one).into_iter().collect(),
        [one] => one.iter().filter_map(|word| name(word)).collect(),
        // A list before the singular `skill` does not name several skills.
        many if words[end].plain == "skills" && many.iter().all(|item| item.len() == 1) => {
            many.iter().flatten().filter_map(|word| name(word)).collect()
        }
        _ => Vec::new(),
    }
}

fn several_words(words: &[&PromptWord]) -> Option<SkillRequest> {
    if words.len() > NAME_WORDS_MAX {
        return None;
    }
    let joined = words.iter().map(|word| word.plain.as_str()).collect::<Vec<_>>().join("-");
    is_name(&joined).then_some(SkillRequest::Words(joined))
}

fn name(word: &PromptWord) -> Option<SkillRequest> {
    let is_usual = !word.quoted && NOT_NAMES.split(' ').any(|usual| usual == word.plain);
    (is_name(&word.bare) && !is_usual).then(|| SkillRequest::Name(word.bare.clone()))
}

fn is_skill(word: &PromptWord) -> bool {
    !word.quoted && matches!(word.plain.as_str(), "skill" | "skills")
}

/// The words that stand before `skill` in plain English and are not names.
const NOT_NAMES: &str = "\
    a all an and another any appropriate at available best both but different each every \
    existing extra few following for from good great if in is it its level levels listed \
    many more most my named necessary needed new no of on one only or other our own point \
    points proper relevant right same several some special specific such suitable that the \
    their then these this those to two up useful various when where which whose with your";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is(text: &str, names: &[&str]) {
        let found: Vec<String> = asked(text).iter().map(|asked| asked.text().to_owned()).collect();
        assert_eq!(found, names, "{text}");
    }

    #[test]
    fn the_forms_that_ask_for_a_skill() {
        is("Use the pdf skill.", &["pdf"]);
        is("When done, use the `Pdf-Forms` skill to fill it", &["Pdf-Forms"]);
        is("Write it using the tdd skill, and use skill changelog.", &["tdd", "changelog"]);
        is("use the skill /deploy, then stop", &["deploy"]);
        is("Use skills a1, b1 and c1. Then rest", &["a1", "b1", "c1"]);
        is("use the tdd and `review` skills", &["tdd", "review"]);
        is("use the tdd, the docs and the pdf skills", &["tdd", "docs", "pdf"]);
        is("use the\nwrapped skill", &["wrapped"]);
        is("use the plugin:thing skill twice: use the plugin:thing skill", &["plugin:thing"]);
        is("Use the \"pdf\" skill", &["pdf"]);
        is("A 5\" disk: use the pdf skill", &["pdf"]);
        is("Say \"hello and use the pdf skill", &["pdf"]);
        is("```\ncode\n```\nUse the pdf skill", &["pdf"]);
        is("Use ```x``` first. Use the pdf skill", &["pdf"]);
        is("> a quotation\n\nUse the pdf skill", &["pdf"]);
        assert_eq!(asked("Use the code review skill"), [SkillRequest::Words("code-review".into())]);
    }

    #[test]
    fn what_does_not_ask() {
        for text in [
            "use a skill",
            "use the right skills",
            "use your skills",
            "skill up",
            "use skill points",
            "Do not use the pdf skill",
            "don't use the pdf skill",
            "work without using the pdf skill",
            "never use the pdf skill",
            "use the database and improve the skill of players",
            "use the cache, the database and whatever improves your skills",
            "use the table to show which players have which kind of skill",
            "Use it. The pdf skill is bad",
            "```\nuse the pdf skill\n```",
            "use the pdf\n\n- skill",
            "the user's fishing skill",
            "> Use the pdf skill.",
            "The page says:\n> Please use the pdf skill\n> twice.",
            "Print \"Use the pdf skill.\" at the end",
            "The text “when in doubt, use the pdf skill” stays",
            "Rename the button (`use the pdf skill`) to help",
            "````\n```\nuse the pdf skill\n```\nuse the pdf skill\n````",
            "```\nuse the pdf skill",
        ] {
            is(text, &[]);
        }
    }

    #[test]
    fn the_front_matter_is_the_whole_of_it() {
        let mut spec = TaskSpec {
            goal: "Use the pdf skill.".into(),
            constraints: vec!["use skill tdd".into()],
            ..TaskSpec::default()
        };
        let names = |spec: &TaskSpec| -> Vec<String> {
            spec.asked_skills().iter().map(|asked| asked.text().to_owned()).collect()
        };
        assert_eq!(names(&spec), ["pdf", "tdd"]);
        spec.skills = Some(vec!["other".into()]);
        assert_eq!(names(&spec), ["other"]);
        spec.skills = Some(Vec::new());
        assert_eq!(names(&spec), [""; 0]);
    }

    #[test]
    fn only_what_a_task_says_to_do_asks() {
        let file = "# Task: Help texts\n\nGoal:\n- Write them. Use the pdf skill.\n\n  ```\n  \
            use the fenced skill\n  ```\n\nAcceptance Criteria:\n- The page says to use the shown \
            skill.\n\nConstraints:\n- Use the tdd skill.\n\n## Example\n\nUse the example skill.\n\n\
            Notes:\n- People use the noted skill.\n";
        let names = |path: &str, text: &str| -> Vec<String> {
            let spec = crate::task_file::parse(path.into(), text.as_bytes()).unwrap().spec;
            spec.asked_skills().iter().map(|asked| asked.text().to_owned()).collect()
        };
        assert_eq!(names("help.md", file), ["pdf", "tdd"]);
        let plain = "# Plan: All of it\n\nUse the tdd skill for everything.\n";
        assert_eq!(names("plan.md", plain), ["tdd"]);
    }

    #[test]
    fn a_text_asks_for_so_many_and_no_more() {
        let text: String = (0..ASKED_MAX + 5).map(|n| format!("Use the s{n} skill.\n")).collect();
        assert_eq!(asked(&text).len(), ASKED_MAX);
    }
}
