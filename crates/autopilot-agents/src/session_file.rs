//! The usage in the session files that agents keep on disk, for turns that ended before the agent
//! told its usage. Formats of Claude Code 2.1.325 and Codex 0.166.0, told apart by their lines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::claude::{session_count, tokens_of};
use crate::codex;
use crate::event::{AgentUsage, ModelTokens, Scope, TokenCount};

/// Returns the usage that session files tell for a turn that started at `since`, in RFC 3339 with a
/// `Z`; `None` if they tell none. `texts` are the files of one session, those of its sub-agents
/// included.
pub fn session_usage<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    since: &str,
) -> Option<AgentUsage> {
    // Claude Code repeats a message for each of its parts, with the same usage.
    let mut messages: BTreeMap<String, ModelTokens> = BTreeMap::new();
    let mut thread: Option<TokenCount> = None;
    for text in texts {
        // The last line may be cut off.
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if let Some((id, message)) = message_of(&line, since) {
                messages.insert(id, message);
            } else if let Some(total) = codex::thread_total(&line) {
                thread = Some(thread.map_or(total, |before| before.with(total, u64::max)));
            }
        }
    }
    match thread {
        Some(total) => Some(AgentUsage::new(Scope::Session, total, None)),
        None => of_messages(messages),
    }
}

/// Returns the count from which Claude Code goes on in a session that it resumed at `since`; `None` if
/// the files are not those of a session of Claude Code.
///
/// Claude Code notes its count in the session's file when it ends, and not when it is killed: what it
/// has told us since the last note is in none of its later counts.
pub fn count_resumed<'a>(
    texts: impl IntoIterator<Item = &'a str>,
    since: &str,
) -> Option<AgentUsage> {
    let mut count = None;
    for text in texts {
        for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if line["timestamp"].as_str().is_some_and(|at| is_since(at, since)) {
                break;
            }
            if line["type"] == "cost-state" {
                count = Some(session_count(&line));
            } else if line["sessionId"].is_string() && count.is_none() {
                count = Some(AgentUsage::new(Scope::Session, TokenCount::default(), Some(0.0)));
            }
        }
    }
    count
}

/// The figures that opencode 1.18.33 keeps of a session in its database, with those of the sessions
/// that its helpers had: cost, input, output, reasoning, read from the cache, written to it.
pub const OPENCODE_TOTALS: &str = "
    WITH RECURSIVE tree(id, depth) AS (
        SELECT id, 0 FROM session WHERE id = ?1
        UNION
        SELECT session.id, depth + 1 FROM session JOIN tree ON parent_id = tree.id WHERE depth < 8
    )
    SELECT sum(cost), sum(tokens_input), sum(tokens_output), sum(tokens_reasoning),
        sum(tokens_cache_read), sum(tokens_cache_write)
    FROM session WHERE id IN (SELECT id FROM tree)";
/// The table of [`OPENCODE_TOTALS`].
pub const OPENCODE_TABLE: &str = "session";

/// The usage of a session by the figures of [`OPENCODE_TOTALS`]: all calls of all its turns.
pub fn opencode_usage(figures: [f64; 6]) -> Option<AgentUsage> {
    let [cost, input, output, reasoning, cached, stored] = figures;
    let count = |figure: f64| if figure > 0.0 { figure as u64 } else { 0 };
    let tokens = TokenCount {
        input: count(input).saturating_add(count(cached)).saturating_add(count(stored)),
        output: count(output).saturating_add(count(reasoning)),
        cached: count(cached),
    };
    // A cost of nothing means that it knows no price.
    let cost_usd = Some(cost).filter(|cost| *cost > 0.0);
    (tokens != TokenCount::default()).then(|| AgentUsage::new(Scope::Session, tokens, cost_usd))
}

fn message_of(line: &Value, since: &str) -> Option<(String, ModelTokens)> {
    let message = &line["message"];
    let is_of_turn = line["timestamp"].as_str().is_some_and(|at| is_since(at, since));
    if line["type"] != "assistant" || !is_of_turn {
        return None;
    }
    let tokens = tokens_of(message.get("usage")?);
    let model = message["model"].as_str()?.to_owned();
    let id = message["id"].as_str()?.to_owned();
    (tokens != TokenCount::default()).then_some((id, ModelTokens { model, tokens }))
}

/// Whether a time is not before `since`. Some programs leave out the fractions of a second.
fn is_since(at: &str, since: &str) -> bool {
    let seconds = |at: &'_ str| at.get(..19).unwrap_or(at).to_owned();
    if at.contains('.') && since.contains('.') {
        at.trim_end_matches('Z') >= since.trim_end_matches('Z')
    } else {
        seconds(at) >= seconds(since)
    }
}

fn of_messages(messages: BTreeMap<String, ModelTokens>) -> Option<AgentUsage> {
    let mut models: BTreeMap<String, TokenCount> = BTreeMap::new();
    for ModelTokens { model, tokens } in messages.into_values() {
        let sum = models.entry(model).or_default();
        *sum = sum.plus(tokens);
    }
    let all = models.values().fold(TokenCount::default(), |sum, tokens| sum.plus(*tokens));
    let unpriced =
        models.into_iter().map(|(model, tokens)| ModelTokens { model, tokens }).collect();
    let usage = AgentUsage { unpriced, ..AgentUsage::new(Scope::Run, all, None) };
    (!usage.unpriced.is_empty()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: &str = include_str!("../tests/transcripts/session-claude-killed.jsonl");
    const HELPER: &str = include_str!("../tests/transcripts/session-claude-subagent.jsonl");
    const CODEX: &str = include_str!("../tests/transcripts/session-codex-killed.jsonl");

    #[test]
    fn what_claude_used_before_it_was_killed_is_counted_once_for_each_message() {
        let usage = session_usage([CLAUDE], "2026-11-18T00:00:00Z").unwrap();
        // Two calls of 1,000 fresh and 700 cached tokens in, 50 out.
        assert_eq!(usage.tokens, TokenCount { input: 3400, output: 100, cached: 1400 });
        assert_eq!((usage.tokens_scope, usage.cost_usd), (Scope::Run, None));
        assert_eq!(usage.unpriced.len(), 1);
        assert_eq!(usage.unpriced[0].model, "claude-opus-5-5");
        let later = session_usage([CLAUDE], "2026-11-18T12:00:00Z");
        assert_eq!(later, None, "what an earlier turn used is not of this one");
    }

    #[test]
    fn a_turn_in_the_same_second_as_the_one_before_is_told_apart() {
        let at = "2026-11-18T00:00:05";
        assert!(is_since(&format!("{at}.2Z"), &format!("{at}.13Z")));
        assert!(!is_since(&format!("{at}.099Z"), &format!("{at}.1Z")));
        assert!(is_since(&format!("{at}Z"), &format!("{at}.9Z")), "one has no fractions");
        assert!(is_since(&format!("{at}.1Z"), &format!("{at}Z")));
        assert!(!is_since("2026-11-18T00:00:04Z", &format!("{at}.1Z")));
    }

    #[test]
    fn claude_goes_on_from_the_count_that_it_noted_before_the_turn() {
        let line = |at: &str| format!(r#"{{"type":"user","sessionId":"s","timestamp":"{at}"}}"#);
        let count = |usd: f64, tokens: u64| {
            format!(
                r#"{{"type":"cost-state","sessionId":"s","totalCostUSD":{usd},"modelUsage":{{"m":{{"inputTokens":{tokens},"outputTokens":7,"costUSD":{usd}}}}}}}"#
            )
        };
        let (first, second, third) =
            ("2026-11-18T01:00:00.5Z", "2026-11-18T02:00:00.5Z", "2026-11-18T03:00:00.5Z");
        let text = [line(first), count(0.5, 10), line(second), line(third), count(0.75, 15)];
        let text = text.join("\n");
        let read = |since| {
            let usage = count_resumed([text.as_str()], since)?;
            Some((usage.cost_usd, usage.tokens.input, usage.tokens_scope, usage.cost_scope))
        };
        let both = Scope::Session;
        // The second turn was killed: it noted nothing.
        assert_eq!(read("2026-11-18T02:00:00Z"), Some((Some(0.5), 10, both, both)));
        assert_eq!(read("2026-11-18T03:00:00Z"), Some((Some(0.5), 10, both, both)));
        assert_eq!(read("2026-11-18T04:00:00Z"), Some((Some(0.75), 15, both, both)));
        let killed = line(first);
        let usage = count_resumed([killed.as_str()], "2026-11-18T02:00:00Z").unwrap();
        assert_eq!((usage.cost_usd, usage.tokens), (Some(0.0), TokenCount::default()));
        assert_eq!(count_resumed([CODEX], "2027-01-01T00:00:00Z"), None, "Codex counts otherwise");
        let later = "2027-01-01T00:00:00Z";
        assert_eq!(count_resumed([CLAUDE], later).unwrap().cost_usd, Some(0.0), "a real one");
    }

    #[test]
    fn what_opencode_used_is_the_sum_of_all_calls() {
        let usage = opencode_usage([0.0122, 8000.0, 400.0, 0.0, 2000.0, 0.0]).unwrap();
        assert_eq!(usage.tokens, TokenCount { input: 10_000, output: 400, cached: 2000 });
        assert_eq!((usage.cost_usd, usage.tokens_scope), (Some(0.0122), Scope::Session));
        let free = opencode_usage([0.0, 8000.0, 400.0, 10.0, 2000.0, -5.0]).unwrap();
        assert_eq!((free.cost_usd, free.tokens.output), (None, 410));
        assert_eq!(opencode_usage([0.0; 6]), None);
    }

    #[test]
    fn what_its_subagents_used_is_counted_too() {
        let both = session_usage([CLAUDE, HELPER], "2026-11-18T00:00:00Z").unwrap();
        let alone = session_usage([HELPER], "2026-11-18T00:00:00Z").unwrap();
        assert!(alone.tokens.input > 10_000, "{alone:?}");
        assert_eq!(both.tokens.input, 3400 + alone.tokens.input);
    }

    #[test]
    fn what_codex_used_before_it_was_killed_is_the_last_total_of_its_thread() {
        let usage = session_usage([CODEX], "2026-11-18T00:00:00Z").unwrap();
        assert_eq!(usage.tokens, TokenCount { input: 3000, output: 200, cached: 1000 });
        assert_eq!(usage.tokens_scope, Scope::Session);
        assert_eq!(session_usage(["", "no JSON\n{}"], ""), None);
        assert_eq!(session_usage([&CODEX[..CODEX.len() / 3]], ""), None, "nothing was used yet");
    }
}
