//! Decodes the scripted agent's lines into events, and judges the launch at its end.

use serde_json::Value;

use super::said::{FailKind, ScriptSaid};
use crate::agent::OutputStream;
use crate::command::failure;
use crate::conversation::{Conversation, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts, Odd};
use crate::event::{self, AgentEvent, AgentUsage, Scope, TokenCount};
use crate::jsonl::{JsonLine, json_line};
use crate::tail::LastLines;

#[derive(Debug, Default)]
pub(crate) struct ScriptConversation {
    session: Option<String>,
    answer: String,
    tokens: Option<TokenCount>,
    cost_usd: Option<f64>,
    failed: Option<AgentOutcome>,
    words: LastLines,
    odd: Odd,
}

impl ScriptConversation {
    fn said(&mut self, said: ScriptSaid) -> Vec<AgentEvent> {
        match said {
            ScriptSaid::Text { text } => vec![AgentEvent::Text { text: event::text(&text) }],
            ScriptSaid::Change { path, kind } => vec![AgentEvent::FileChange { path, kind }],
            ScriptSaid::Session { id } => {
                self.session = Some(id.clone());
                vec![AgentEvent::Session { id }]
            }
            ScriptSaid::Tokens { tokens } => {
                self.tokens = Some(tokens);
                self.usage().map(AgentEvent::Usage).into_iter().collect()
            }
            ScriptSaid::Cost { usd } => {
                self.cost_usd = Some(usd);
                self.usage().map(AgentEvent::Usage).into_iter().collect()
            }
            ScriptSaid::Answer { text } => {
                self.answer = text;
                vec![AgentEvent::Result { ok: true, text: event::text(&self.answer) }]
            }
            ScriptSaid::Fail { kind, why, until_unix } => {
                let text = event::text(&why);
                self.failed = Some(match kind {
                    FailKind::Broke => AgentOutcome::broke(Cause::Other, why),
                    FailKind::Quota => AgentOutcome::Quota { until_unix, why },
                    FailKind::Auth => AgentOutcome::Auth { why },
                    FailKind::Outage => AgentOutcome::Outage { why },
                    FailKind::Model => AgentOutcome::broke(Cause::Model, why),
                });
                vec![AgentEvent::Result { ok: false, text }]
            }
        }
    }

    fn usage(&self) -> Option<AgentUsage> {
        (self.tokens.is_some() || self.cost_usd.is_some()).then(|| AgentUsage {
            tokens: self.tokens.unwrap_or_default(),
            tokens_scope: Scope::Run,
            cost_usd: self.cost_usd,
            cost_scope: Scope::Run,
        })
    }
}

impl Conversation for ScriptConversation {
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        let event: Value = match json_line(stream, line, truncated, &mut self.odd, &mut self.words)
        {
            JsonLine::Event(event) => event,
            JsonLine::Words(events) => return events.into(),
        };
        match serde_json::from_value(event) {
            Ok(said) => self.said(said).into(),
            Err(_) => {
                self.odd.unknown += 1;
                HeardLine::default()
            }
        }
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let usage = self.usage();
        let outcome = match (self.failed, exit.forced()) {
            (Some(outcome), _) | (None, Some(outcome)) => outcome,
            (None, None) if exit.is_zero() => AgentOutcome::Success,
            (None, None) => AgentOutcome::broke(
                Cause::Crash,
                format!("the agent {}", failure(&exit, &self.words)),
            ),
        };
        AgentEnding {
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
            ScriptSaid::Text { text: "two\nlines".into() },
            ScriptSaid::Change { path: "a b".into(), kind: ChangeKind::Deleted },
            ScriptSaid::Session { id: "s".into() },
            ScriptSaid::Tokens { tokens: TokenCount { input: 1, output: 2, cached: 3 } },
            ScriptSaid::Cost { usd: 0.5 },
            ScriptSaid::Answer { text: "{}".into() },
            ScriptSaid::Fail { kind: FailKind::Quota, why: "w".into(), until_unix: Some(5) },
        ];
        for word in words {
            let line = word.line();
            assert!(!line.contains('\n'));
            assert_eq!(serde_json::from_str::<ScriptSaid>(&line).unwrap(), word);
        }
    }

    #[test]
    fn a_run_is_judged_by_its_words_and_its_exit() {
        let run = |words: &[ScriptSaid], exit| {
            let mut decoder = Box::new(ScriptConversation::default());
            for word in words {
                decoder.line(OutputStream::Out, &word.line(), false);
            }
            decoder.finish(exit)
        };
        let answer = [ScriptSaid::Answer { text: "yes".into() }, ScriptSaid::Cost { usd: 0.5 }];
        let ending = run(&answer, ExitFacts::code(0));
        assert_eq!((ending.outcome, ending.answer.as_str()), (AgentOutcome::Success, "yes"));
        assert_eq!(ending.usage.unwrap().of_run(None).cost_usd, Some(0.5));
        let ending = run(&answer, ExitFacts::code(3));
        assert_eq!(
            ending.outcome,
            AgentOutcome::broke(Cause::Crash, "the agent exited with code 3")
        );
        assert_eq!(run(&answer, ExitFacts::signal(15)).outcome, AgentOutcome::Interrupted);
        let quota =
            ScriptSaid::Fail { kind: FailKind::Quota, why: "used".into(), until_unix: Some(9) };
        let expected = AgentOutcome::Quota { until_unix: Some(9), why: "used".into() };
        assert_eq!(run(&[quota], ExitFacts::code(1)).outcome, expected);
    }
}
