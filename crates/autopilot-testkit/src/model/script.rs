//! What the model says: rules that choose by the prompt, one turn after the other.
//!
//! The answer depends on what the request shows and on nothing kept here, so that a resumed session
//! or a restarted server goes on where the conversation is. Only faults are counted.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;

#[derive(Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
}

impl Script {
    pub fn new() -> Self {
        Script::default()
    }

    /// The first rule that fits a prompt answers it.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Short for a rule without faults.
    #[must_use]
    pub fn when(self, words: &str, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.rule(Rule::when(words).turns(turns))
    }

    /// The rule for the newest prompt that has one, and its place in `prompts`.
    pub(super) fn choose(&self, prompts: &[String], model: &str) -> Option<(usize, &Rule)> {
        let newest_first = prompts.iter().enumerate().rev();
        newest_first
            .filter_map(|(place, prompt)| {
                let rule = self.rules.iter().find(|rule| rule.fits(prompt, model))?;
                Some((place, rule))
            })
            .next()
    }
}

/// What happens to a prompt that contains certain words.
#[derive(Debug, Default)]
pub struct Rule {
    words: Vec<String>,
    unless: Vec<String>,
    model: Option<String>,
    turns: Vec<Turn>,
    faults: Vec<(Times, Fault)>,
    asked: AtomicU32,
}

impl Rule {
    /// Fits prompts that contain `words` literally; the empty text fits all.
    pub fn when(words: &str) -> Self {
        Rule { words: vec![words.to_owned()], ..Rule::default() }
    }

    #[must_use]
    pub fn and(mut self, words: &str) -> Self {
        self.words.push(words.to_owned());
        self
    }

    #[must_use]
    pub fn unless(mut self, words: &str) -> Self {
        self.unless.push(words.to_owned());
        self
    }

    /// Fits requests for this model only.
    #[must_use]
    pub fn model(mut self, name: &str) -> Self {
        self.model = Some(name.to_owned());
        self
    }

    /// The n-th turn answers a prompt that n assistant turns have followed; the last one repeats.
    #[must_use]
    pub fn turns(mut self, turns: impl IntoIterator<Item = Turn>) -> Self {
        self.turns.extend(turns);
        self
    }

    /// Faults come instead of turns, in the order given.
    #[must_use]
    pub fn fails(mut self, times: Times, fault: Fault) -> Self {
        self.faults.push((times, fault));
        self
    }

    fn fits(&self, prompt: &str, model: &str) -> bool {
        self.words.iter().all(|words| prompt.contains(words))
            && !self.unless.iter().any(|words| prompt.contains(words))
            && self.model.as_deref().is_none_or(|name| name == model)
    }

    /// Counts the request, and says whether it goes wrong.
    pub(super) fn fault(&self) -> Option<&Fault> {
        let mut before = self.asked.fetch_add(1, Ordering::SeqCst);
        for (times, fault) in &self.faults {
            match times {
                Times::Always => return Some(fault),
                Times::First(count) if before < *count => return Some(fault),
                Times::First(count) => before -= count,
            }
        }
        None
    }

    pub(super) fn turn(&self, number: usize) -> Turn {
        let last = self.turns.len().saturating_sub(1);
        self.turns.get(number.min(last)).cloned().unwrap_or_else(|| Turn::say("Done."))
    }

    /// The words of the rule's end, for requests that can't call anything: titles, summaries.
    pub(super) fn last_words(&self) -> Turn {
        let said = self.turns.iter().rev().find(|turn| turn.calls.is_empty());
        said.cloned().unwrap_or_else(|| Turn::say("Done."))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    Always,
    First(u32),
}

/// One answer of the model.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub thought: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<Call>,
    /// The vendor's word for why it stopped, where it is not the usual one.
    pub stop: Option<String>,
    pub tokens: Tokens,
    /// Waited before the first byte.
    pub delay: Option<Duration>,
    /// Comes instead of all the above but the delay, every time.
    pub fault: Option<Fault>,
}

impl Turn {
    pub fn say(text: &str) -> Self {
        Turn { text: Some(text.to_owned()), ..Turn::default() }
    }

    pub fn call(call: Call) -> Self {
        Turn { calls: vec![call], ..Turn::default() }
    }

    pub fn fail(fault: Fault) -> Self {
        Turn { fault: Some(fault), ..Turn::default() }
    }

    /// The answer to a schema: by the tool for it where the request has one, else as text.
    pub fn answer(json: Value) -> Self {
        Turn::call(Call::Answer(json))
    }

    #[must_use]
    pub fn and_call(mut self, call: Call) -> Self {
        self.calls.push(call);
        self
    }

    #[must_use]
    pub fn thinking(mut self, thought: &str) -> Self {
        self.thought = Some(thought.to_owned());
        self
    }

    #[must_use]
    pub fn stopping(mut self, word: &str) -> Self {
        self.stop = Some(word.to_owned());
        self
    }

    #[must_use]
    pub fn using(mut self, input: u64, cached: u64, output: u64) -> Self {
        self.tokens = Tokens { input, cached, output };
        self
    }

    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }
}

/// What a turn is said to have cost. `input` is what was not cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tokens {
    pub input: u64,
    pub cached: u64,
    pub output: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Tokens { input: 100, cached: 0, output: 20 }
    }
}

/// Something the model wants done, in the words of whichever agent asks.
#[derive(Debug, Clone, PartialEq)]
pub enum Call {
    Write {
        path: String,
        text: String,
    },
    Edit {
        path: String,
        old: String,
        new: String,
    },
    Read {
        path: String,
    },
    Shell {
        command: String,
    },
    Mcp {
        server: String,
        tool: String,
        input: Value,
    },
    /// Any tool by its own name.
    Tool {
        name: String,
        input: Value,
    },
    /// See [`Turn::answer`].
    Answer(Value),
}

impl Call {
    pub fn write(path: &str, text: &str) -> Self {
        Call::Write { path: path.to_owned(), text: text.to_owned() }
    }

    pub fn edit(path: &str, old: &str, new: &str) -> Self {
        Call::Edit { path: path.to_owned(), old: old.to_owned(), new: new.to_owned() }
    }

    pub fn read(path: &str) -> Self {
        Call::Read { path: path.to_owned() }
    }

    pub fn shell(command: &str) -> Self {
        Call::Shell { command: command.to_owned() }
    }

    pub fn tool(name: &str, input: Value) -> Self {
        Call::Tool { name: name.to_owned(), input }
    }
}

/// How a request goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The stream begins well and then says that it failed; a plain request gets a 500.
    ErrorEvent {
        kind: String,
        message: String,
    },
    /// The connection ends in the middle of the answer.
    Cut,
    /// 200 and not one byte.
    Empty,
    /// No answer, for as long as the client waits.
    Silence,
}

impl Fault {
    pub fn status(status: u16, body: impl ToString) -> Self {
        Fault::Status { status, headers: Vec::new(), body: body.to_string() }
    }

    /// Of a status; other faults have no headers. The value `now+3` is the time in seconds since
    /// 1970, three seconds after the reply.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Fault::Status { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    pub fn error_event(kind: &str, message: &str) -> Self {
        Fault::ErrorEvent { kind: kind.to_owned(), message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_newest_prompt_with_a_rule_is_answered() {
        let script = Script::new()
            .rule(Rule::when("build").and("a.txt").unless("review"))
            .rule(Rule::when("build").model("big"));
        let place = |texts: &[&str], model| Some(script.choose(&prompts(texts), model)?.0);
        assert_eq!(place(&["build a.txt", "build a.txt", "reminder"], "m"), Some(1));
        assert_eq!(place(&["build a.txt review"], "m"), None);
        assert_eq!(place(&["build b.txt"], "m"), None);
        assert_eq!(place(&["build b.txt"], "big"), Some(0));
    }

    #[test]
    fn faults_come_in_order_and_are_counted_per_rule() {
        let rule =
            Rule::when("").fails(Times::First(2), Fault::Empty).fails(Times::First(1), Fault::Cut);
        let seen: Vec<Option<Fault>> = (0..4).map(|_| rule.fault().cloned()).collect();
        assert_eq!(seen, [Some(Fault::Empty), Some(Fault::Empty), Some(Fault::Cut), None]);
        let rule = Rule::when("").fails(Times::Always, Fault::Silence);
        assert!((0..3).all(|_| rule.fault() == Some(&Fault::Silence)));
    }

    #[test]
    fn the_last_turn_repeats() {
        let rule = Rule::when("").turns([Turn::call(Call::shell("true")), Turn::say("end")]);
        assert_eq!(rule.turn(0).calls.len(), 1);
        assert_eq!(rule.turn(9).text.as_deref(), Some("end"));
        assert_eq!(rule.last_words().text.as_deref(), Some("end"));
    }
}
