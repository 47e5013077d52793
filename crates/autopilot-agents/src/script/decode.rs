//! Decodes the scripted agent's lines into events, and judges the launch at its end.

use super::said::{FailKind, ScriptFailure, ScriptSaid};
use crate::agent::OutputStream;
use crate::command::by_exit;
use crate::conversation::{Conversation, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts};
use crate::event::{AgentEvent, AgentUsage, Scope, TokenCount};
use crate::jsonl::JsonLines;

#[derive(Debug, Default)]
pub(crate) struct ScriptConversation {
    session: Option<String>,
    answer: String,
    usage: Option<AgentUsage>,
    failed: Option<AgentOutcome>,
    lines: JsonLines,
}

impl ScriptConversation {
    fn said(&mut self, said: ScriptSaid) -> Vec<AgentEvent> {
        match said {
            ScriptSaid::Text { text } => vec![AgentEvent::text(&text)],
            ScriptSaid::Change { path, kind } => vec![AgentEvent::FileChange { path, kind }],
            ScriptSaid::Session { id } => {
                self.session = Some(id.clone());
                vec![AgentEvent::Session { id }]
            }
            ScriptSaid::Tokens { tokens } => {
                let usage = self.usage();
                usage.tokens = tokens;
                vec![AgentEvent::Usage(usage.clone())]
            }
            ScriptSaid::Cost { usd } => {
                let usage = self.usage();
                usage.cost_usd = Some(usd);
                vec![AgentEvent::Usage(usage.clone())]
            }
            ScriptSaid::Answer { text } => {
                self.answer = text;
                vec![AgentEvent::result(true, &self.answer)]
            }
            ScriptSaid::Fail(ScriptFailure { kind, why, until_unix }) => {
                let event = AgentEvent::result(false, &why);
                self.failed = Some(match kind {
                    FailKind::Broke => AgentOutcome::broke(Cause::Other, why),
                    FailKind::Quota => AgentOutcome::Quota { until_unix, why },
                    FailKind::Auth => AgentOutcome::Auth { why },
                    FailKind::Outage => AgentOutcome::Outage { why },
                    FailKind::Model => AgentOutcome::broke(Cause::Model, why),
                });
                vec![event]
            }
        }
    }

    fn usage(&mut self) -> &mut AgentUsage {
        self.usage.get_or_insert(AgentUsage::new(Scope::Run, TokenCount::default(), None))
    }
}

impl Conversation for ScriptConversation {
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        let said = self.lines.read(stream, line, truncated);
        said.map_or_else(|shown| shown, |said| self.said(said)).into()
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let outcome = self.failed.unwrap_or_else(|| by_exit(&exit, &self.lines.words));
        AgentEnding {
            answer: self.answer,
            session: self.session,
            usage: self.usage,
            odd: self.lines.odd,
            ..AgentEnding::new(outcome)
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
            ScriptSaid::Fail(ScriptFailure {
                kind: FailKind::Quota,
                why: "w".into(),
                until_unix: Some(5),
            }),
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
        let quota = ScriptSaid::Fail(ScriptFailure {
            kind: FailKind::Quota,
            why: "used".into(),
            until_unix: Some(9),
        });
        let expected = AgentOutcome::Quota { until_unix: Some(9), why: "used".into() };
        assert_eq!(run(&[quota], ExitFacts::code(1)).outcome, expected);
    }
}
