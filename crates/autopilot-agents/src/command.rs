//! Any program as an agent: the prompt goes to its stdin, the answer comes from its stdout.

use crate::agent::OutputStream;
use crate::conversation::{Conversation, HeardLine};
use crate::ending::{AgentEnding, AgentOutcome, Cause, ExitFacts, OddLines};
use crate::event::AgentEvent;
use crate::launch::{LaunchPlan, LaunchProgram, LaunchRequest, LaunchStdin};
use crate::tail::LastLines;

/// The longest answer that is kept: the end of stdout, since the answer is the last thing said.
pub const ANSWER_BYTES_MAX: usize = 1024 * 1024;

pub(crate) fn launch(words: &[String], ask: &LaunchRequest) -> LaunchPlan {
    let (program, own_args) = words.split_first().map_or(("", words), |(p, rest)| (p, rest));
    let args = own_args.iter().chain(&ask.args).cloned().collect();
    let stdin = LaunchStdin::Whole(ask.whole_prompt().into_bytes());
    LaunchPlan::new(LaunchProgram::Named(program.to_owned()), args, stdin)
}

#[derive(Debug, Default)]
pub(crate) struct CommandConversation {
    answer: LastBytes,
    stderr: LastLines,
    odd: OddLines,
}

impl Conversation for CommandConversation {
    fn line(&mut self, stream: OutputStream, line: &str, truncated: bool) -> HeardLine {
        if truncated {
            self.odd.cut += 1;
        }
        let event = match stream {
            OutputStream::Out => {
                self.answer.push_line(line);
                AgentEvent::text(line)
            }
            OutputStream::Err => {
                self.stderr.push(line);
                AgentEvent::notice(line)
            }
        };
        vec![event].into()
    }

    fn finish(self: Box<Self>, exit: ExitFacts) -> AgentEnding {
        let outcome = by_exit(&exit, &self.stderr);
        AgentEnding { answer: self.answer.text, odd: self.odd, ..AgentEnding::new(outcome) }
    }
}

/// The outcome of a program that reports its success by its exit alone.
pub(crate) fn by_exit(exit: &ExitFacts, stderr: &LastLines) -> AgentOutcome {
    exit.forced().unwrap_or_else(|| match exit.is_zero() {
        true => AgentOutcome::Success,
        false => AgentOutcome::broke(Cause::Crash, format!("the agent {}", failure(exit, stderr))),
    })
}

/// Describes a failed launch by its exit and, if there are any, the last lines of stderr; the rest
/// of a sentence about the agent.
pub(crate) fn failure(exit: &ExitFacts, stderr: &LastLines) -> String {
    const LAST_WORDS_LINES_MAX: usize = 5;
    if stderr.is_empty() {
        return exit.describe();
    }
    format!("{}: {}", exit.describe(), stderr.last(LAST_WORDS_LINES_MAX))
}

/// The last bytes of a text that grows; older text is cut off at a line end where there is one.
#[derive(Debug, Default)]
pub(crate) struct LastBytes {
    pub(crate) text: String,
}

impl LastBytes {
    pub(crate) fn push_line(&mut self, line: &str) {
        self.text.push_str(line);
        self.push("\n");
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // The text may grow to twice the limit, so that each byte is moved once and not for every line.
        if self.text.len() > 2 * ANSWER_BYTES_MAX {
            let start = self.text.ceil_char_boundary(self.text.len() - ANSWER_BYTES_MAX);
            let start = self.text[start..].find('\n').map_or(start, |at| start + at + 1);
            let start = if start < self.text.len() { start } else { 0 };
            let kept = self.text.split_off(start);
            let hard = kept.ceil_char_boundary(kept.len().saturating_sub(ANSWER_BYTES_MAX));
            self.text = kept[hard..].to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_goes_to_stdin_and_no_shell_is_involved() {
        let args = ["--more".to_owned()];
        let ask = LaunchRequest {
            args: args.to_vec(),
            ..LaunchRequest::new("do it; rm -rf", ".".into())
        };
        let words = ["./agent.sh".to_owned(), "a b".to_owned()];
        let plan = launch(&words, &ask);
        assert_eq!(plan.program, LaunchProgram::Named("./agent.sh".into()));
        assert_eq!(plan.args, ["a b", "--more"]);
        assert_eq!(plan.stdin, LaunchStdin::Whole(b"do it; rm -rf".to_vec()));
    }

    #[test]
    fn what_is_added_to_every_prompt_comes_before_it() {
        let ask = LaunchRequest {
            system_prompt: Some("Be brief.\n".into()),
            ..LaunchRequest::new("do it", ".".into())
        };
        let said = LaunchStdin::Whole(b"Be brief.\n\ndo it".to_vec());
        assert_eq!(launch(&["./a".to_owned()], &ask).stdin, said);
        assert_eq!(crate::script::launch("s.yml".into(), &ask).stdin, said);
    }

    #[test]
    fn a_non_zero_exit_breaks_the_try_with_its_last_words() {
        let mut decoder = Box::new(CommandConversation::default());
        decoder.line(OutputStream::Out, "half an answer", false);
        decoder.line(OutputStream::Err, "429 Too Many Requests", false);
        let ending = decoder.finish(ExitFacts::code(3));
        // The stderr of an unknown program may hold anything: it is shown, not believed.
        assert_eq!(
            ending.outcome,
            AgentOutcome::broke(
                Cause::Crash,
                "the agent exited with code 3: 429 Too Many Requests"
            )
        );
        assert_eq!(ending.answer, "half an answer\n");
    }

    #[test]
    fn the_answer_keeps_the_last_bytes_whatever_the_lines() {
        for line in ["x".repeat(1000), "é".repeat(3 * ANSWER_BYTES_MAX), String::new()] {
            let mut answer = LastBytes::default();
            for _ in 0..(3 * ANSWER_BYTES_MAX / (line.len() + 1)).max(2) {
                answer.push_line(&line);
                assert!(answer.text.len() <= 2 * ANSWER_BYTES_MAX);
            }
            answer.push_line("{\"last\":1}");
            assert!(answer.text.ends_with("{\"last\":1}\n"));
        }
    }
}
