//! Decodes the scripted agent's lines into events, and judges the launch at its end.

use serde_json::Value;

use super::said::{FailKind, Said};
use crate::agent::Stream;
use crate::command::failure;
use crate::conversation::{Conversation, Heard};
use crate::ending::{Cause, Ending, ExitFacts, Odd, Outcome};
use crate::event::{self, AgentEvent, Scope, Tokens, Usage};
use crate::jsonl::{Line, json_line};
use crate::tail::Tail;

#[derive(Debug, Default)]
pub(crate) struct ScriptConversation {
    session: Option<String>,
    answer: String,
    tokens: Option<Tokens>,
    cost_usd: Option<f64>,
    failed: Option<Outcome>,
    words: Tail,
    odd: Odd,
}

impl ScriptConversation {
    fn said(&mut self, said: Said) -> Vec<AgentEvent> {
        match said {
            Said::Text { text } => vec![AgentEvent::Text { text: event::text(&text) }],
            Said::Change { path, kind } => vec![AgentEvent::FileChange { path, kind }],
            Said::Session { id } => {
                self.session = Some(id.clone());
                vec![AgentEvent::Session { id }]
            }
            Said::Tokens { tokens } => {
                self.tokens = Some(tokens);
                self.usage().map(AgentEvent::Usage).into_iter().collect()
            }
            Said::Cost { usd } => {
                self.cost_usd = Some(usd);
                self.usage().map(AgentEvent::Usage).into_iter().collect()
            }
            Said::Answer { text } => {
                self.answer = text;
                vec![AgentEvent::Result { ok: true, text: event::text(&self.answer) }]
            }
            Said::Fail { kind, why, until_unix } => {
                let text = event::text(&why);
                self.failed = Some(match kind {
                    FailKind::Broke => Outcome::broke(Cause::Other, why),
                    FailKind::Quota => Outcome::Quota { until_unix, why },
                    FailKind::Auth => Outcome::Auth { why },
                    FailKind::Outage => Outcome::Outage { why },
                    FailKind::Model => Outcome::broke(Cause::Model, why),
                });
                vec![AgentEvent::Result { ok: false, text }]
            }
        }
    }

    fn usage(&self) -> Option<Usage> {
        (self.tokens.is_some() || self.cost_usd.is_some()).then(|| Usage {
            tokens: self.tokens.unwrap_or_default(),
            tokens_scope: Scope::Run,
            cost_usd: self.cost_usd,
            cost_scope: Scope::Run,
        })
    }
}

impl Conversation for ScriptConversation {
    fn line(&mut self, stream: Stream, line: &str, truncated: bool) -> Heard {
        let event: Value = match json_line(stream, line, truncated, &mut self.odd, &mut self.words)
        {
            Line::Event(event) => event,
            Line::Words(events) => return events.into(),
        };
        match serde_json::from_value(event) {
            Ok(said) => self.said(said).into(),
            Err(_) => {
                self.odd.unknown += 1;
                Heard::default()
            }
        }
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> Ending {
        let usage = self.usage();
        let outcome = match (self.failed, exit.forced()) {
            (Some(outcome), _) | (None, Some(outcome)) => outcome,
            (None, None) if exit.is_zero() => Outcome::Success,
            (None, None) => {
                Outcome::broke(Cause::Crash, format!("the agent {}", failure(&exit, &self.words)))
            }
        };
        Ending {
            outcome,
            answer: self.answer,
            structured: None,
            session: self.session,
            usage,
            odd: self.odd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::ChangeKind;

    #[test]
    fn every_word_survives_its_line() {
        let words = [
            Said::Text { text: "two\nlines".into() },
            Said::Change { path: "a b".into(), kind: ChangeKind::Deleted },
            Said::Session { id: "s".into() },
            Said::Tokens { tokens: Tokens { input: 1, output: 2, cached: 3 } },
            Said::Cost { usd: 0.5 },
            Said::Answer { text: "{}".into() },
            Said::Fail { kind: FailKind::Quota, why: "w".into(), until_unix: Some(5) },
        ];
        for word in words {
            let line = word.line();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<Said>(&line).unwrap(), word);
        }
    }

    #[test]
    fn a_run_is_judged_by_its_words_and_its_exit() {
        let run = |words: &[Said], exit| {
            let mut decoder = Box::new(ScriptConversation::default());
            for word in words {
                decoder.line(Stream::Out, &word.line(), false);
            }
            decoder.finish(exit)
        };
        let answer = [Said::Answer { text: "yes".into() }, Said::Cost { usd: 0.5 }];
        let ending = run(&answer, ExitFacts::code(0));
        assert_eq!((ending.outcome, ending.answer.as_str()), (Outcome::Success, "yes"));
        assert_eq!(ending.usage.unwrap().of_run(None).cost_usd, Some(0.5));
        let ending = run(&answer, ExitFacts::code(3));
        assert_eq!(ending.outcome, Outcome::broke(Cause::Crash, "the agent exited with code 3"));
        assert_eq!(run(&answer, ExitFacts::signal(15)).outcome, Outcome::Interrupted);
        let quota = Said::Fail { kind: FailKind::Quota, why: "used".into(), until_unix: Some(9) };
        let expected = Outcome::Quota { until_unix: Some(9), why: "used".into() };
        assert_eq!(run(&[quota], ExitFacts::code(1)).outcome, expected);
    }
}
