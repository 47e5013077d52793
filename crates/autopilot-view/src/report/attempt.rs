//! One attempt on the page: its outcome, the checks of the controller, the calls of agents.

use super::words::{Body, Excerpt, FactRows, PageWords, ReportLine};
use super::{AgentCall, PageSource, Tone};
use crate::history::PastAttempt;
use crate::wording::review_word;
use crate::{duration, failed_word, money, passed_word, state_json};
use autopilot_core::event::{Outcome, Verdict};
use autopilot_core::id::Time;
use autopilot_core::step::Step;
use serde::Deserialize;

/// The most findings of a review or a guard that are listed.
const FINDINGS_MAX: usize = 100;

/// One attempt on the page.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportAttempt {
    pub id: String,
    pub step: &'static str,
    pub round: u32,
    pub tone: Tone,
    pub word: &'static str,
    pub why: Option<ReportLine>,
    pub facts: FactRows,
    pub checks: Vec<ReportCheck>,
    pub verdict: Option<ReportVerdict>,
    pub notes: Vec<ReportLine>,
    /// The end of its output, if nothing else says what happened.
    pub tail: Option<Body>,
    pub calls: Vec<ReportQuestion>,
}

/// A command that the controller ran itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportCheck {
    pub name: ReportLine,
    pub command: ReportLine,
    pub exit: Option<i32>,
    pub output: Body,
}

/// The verdict of a reviewer or of the controller's own checks.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportVerdict {
    pub word: &'static str,
    pub tone: Tone,
    pub summary: Body,
    pub findings: Vec<ReportLine>,
    /// The number of findings that are not listed.
    pub more: usize,
}

/// A call of an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportQuestion {
    pub number: u32,
    pub tone: Tone,
    pub status: ReportLine,
    pub facts: FactRows,
    pub resume: Option<ReportLine>,
    pub prompt: Body,
    pub output: Body,
}

/// The content of the page on one attempt.
pub(super) fn attempt(source: &PageSource<'_>, tried: &PastAttempt) -> ReportAttempt {
    let PageSource { known, words, .. } = source;
    let (tone, word) = tone_and_word(tried, source.is_live);
    let evidence = evidence(source, tried);
    let verdict = verdict(source, tried);
    let id = tried.id.to_string();
    let calls: Vec<&AgentCall> =
        known.calls.iter().filter(|call| call.exec.attempt == id).collect();
    let is_told = !evidence.checks.is_empty() || !calls.is_empty();
    let tail = tried.facts.tail.as_deref().filter(|_| !is_told && tone == Tone::Bad);
    ReportAttempt {
        id,
        step: tried.step.word(),
        round: tried.round,
        tone,
        word,
        why: why(tried).map(|why| words.line(&why)),
        facts: facts(tried, words),
        checks: evidence.checks.iter().map(|seen| check(seen, words)).collect(),
        verdict: verdict.or_else(|| controller_verdict(&evidence, words)),
        notes: words
            .lines(tried.facts.doubts.iter().map(|doubt| &doubt.text).chain(&tried.facts.notes)),
        tail: tail.and_then(known.read).map(|text| words.text(&text)),
        calls: calls.into_iter().map(|call| question(source, call)).collect(),
    }
}

/// The outcome of an attempt as a colour and a word.
pub fn tone_and_word(tried: &PastAttempt, is_live: bool) -> (Tone, &'static str) {
    let Some((_, outcome)) = &tried.ended else {
        return if is_live { (Tone::Busy, "running") } else { (Tone::Worse, "interrupted") };
    };
    match outcome {
        Outcome::Passed => {
            let tone = if tried.facts.excused.is_empty() { Tone::Good } else { Tone::Waits };
            (tone, passed_word(tried.step, &tried.facts))
        }
        Outcome::Failed { .. } => (Tone::Bad, failed_word(&tried.facts)),
        Outcome::Misconfigured { .. } => (Tone::Bad, "not configured"),
        Outcome::Broke { .. } => (Tone::Bad, "broke"),
        Outcome::Lost => (Tone::Worse, "interrupted"),
        Outcome::Quota { .. } => (Tone::Waits, "no quota"),
        Outcome::Away { why, .. } => (Tone::Waits, why.word()),
        Outcome::Revoked => (Tone::Plain, "stopped by the controller"),
        Outcome::Skipped { .. } => (Tone::Plain, "skipped"),
    }
}

fn why(tried: &PastAttempt) -> Option<String> {
    let (_, outcome) = tried.ended.as_ref()?;
    if let Outcome::Quota { until } = outcome {
        return Some(format!("until {}", until.rfc3339()));
    }
    crate::why(outcome).map(str::to_owned)
}

fn facts(tried: &PastAttempt, words: &PageWords<'_>) -> FactRows {
    let (seen, bill) = (&tried.facts, tried.bill);
    let end = tried.ended.as_ref().map(|(at, _)| *at);
    let has_cost = bill.counted().0 > 0 || bill.unpriced;
    let has_tokens = bill.tokens_in + bill.tokens_out > 0;
    words.rows([
        ("started", Some(tried.started.rfc3339())),
        ("ended", end.map(Time::rfc3339)),
        ("took", end.map(|at| duration(at.since_ms(tried.started)))),
        ("cost", has_cost.then(|| money::cost(bill))),
        ("tokens", has_tokens.then(|| tokens(bill.tokens_in, bill.tokens_out))),
        ("exit code", seen.exit.map(|code| code.to_string())),
        ("signal", seen.signal.map(|signal| signal.to_string())),
        ("commit", seen.commit.clone()),
        ("tree", seen.tree.clone()),
        ("log", seen.log.as_deref().map(state_json::in_root)),
        ("artifact", seen.artifact.as_deref().map(state_json::in_root)),
        ("address", seen.url.clone()),
        ("used", seen.used.as_ref().and_then(|used| used.line())),
    ])
}

/// Tokens for people: `120 in, 30 out`.
pub fn tokens(input: u64, output: u64) -> String {
    if input + output == 0 {
        return "not reported".to_owned();
    }
    format!("{input} in, {output} out")
}

/// The part of an evidence file that the page shows.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportEvidence {
    checks: Vec<ReportCommand>,
    findings: Vec<ReportFinding>,
    conflict: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportCommand {
    name: String,
    command: String,
    exit_code: Option<i32>,
    output: String,
    log: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportFinding {
    severity: String,
    message: String,
    fix: String,
    file: Option<String>,
    line: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ReportReview {
    summary: String,
    issues: Vec<ReportFinding>,
    /// The reason of a reviewer who judges a goal.
    reason: String,
}

fn evidence(source: &PageSource<'_>, tried: &PastAttempt) -> ReportEvidence {
    let runs_commands = tried.step.role().is_none() && tried.step.row().limits.is_some();
    if !runs_commands {
        return ReportEvidence::default();
    }
    let text = tried.facts.answer.as_deref().and_then(source.known.read);
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn check(seen: &ReportCommand, words: &PageWords<'_>) -> ReportCheck {
    let log = (!seen.log.is_empty()).then(|| state_json::in_root(&seen.log));
    ReportCheck {
        name: words.line(&seen.name),
        command: words.line(&seen.command),
        exit: seen.exit_code,
        output: words.body(&Excerpt::whole(seen.output.clone(), log)),
    }
}

fn verdict(source: &PageSource<'_>, tried: &PastAttempt) -> Option<ReportVerdict> {
    if !matches!(tried.step, Step::Review | Step::Completion | Step::WholeReview) {
        return None;
    }
    let text = tried.facts.answer.as_deref().and_then(source.known.read)?;
    let review: ReportReview = serde_json::from_str(&text).ok()?;
    let (word, tone) = match (tried.step, tried.facts.verdict()?) {
        (Step::Completion, Verdict::Approve) => ("done", Tone::Good),
        (Step::Completion, Verdict::RequestChanges) => ("not done", Tone::Bad),
        (_, said @ Verdict::Approve) => (review_word(said), Tone::Good),
        (_, said @ Verdict::RequestChanges) => (review_word(said), Tone::Bad),
    };
    let summary = [review.summary.trim(), review.reason.trim()].join("\n");
    Some(found(word, tone, summary.trim(), &review.issues, &source.words))
}

/// The findings of the controller itself in a change.
fn controller_verdict(evidence: &ReportEvidence, words: &PageWords<'_>) -> Option<ReportVerdict> {
    if evidence.findings.is_empty() && evidence.conflict.is_none() {
        return None;
    }
    let conflict = evidence.conflict.as_deref().unwrap_or_default();
    Some(found("found by the controller", Tone::Bad, conflict, &evidence.findings, words))
}

fn found(
    word: &'static str,
    tone: Tone,
    summary: &str,
    findings: &[ReportFinding],
    words: &PageWords<'_>,
) -> ReportVerdict {
    ReportVerdict {
        word,
        tone,
        summary: words.text(summary),
        findings: findings.iter().take(FINDINGS_MAX).map(|it| finding(it, words)).collect(),
        more: findings.len().saturating_sub(FINDINGS_MAX),
    }
}

fn finding(it: &ReportFinding, words: &PageWords<'_>) -> ReportLine {
    let place = match (&it.file, it.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        (None, _) => String::new(),
    };
    let fix = if it.fix.is_empty() { String::new() } else { format!(" Fix: {}", it.fix) };
    words.line(&format!("{}: {place}{}{fix}", it.severity, it.message))
}

fn question(source: &PageSource<'_>, call: &AgentCall) -> ReportQuestion {
    let (exec, words) = (&call.exec, &source.words);
    let (tone, status) = match exec.status.as_deref() {
        Some("succeeded") => (Tone::Good, "succeeded"),
        Some(other) => (Tone::Bad, other),
        None if source.is_live => (Tone::Busy, "running"),
        None => (Tone::Worse, "interrupted"),
    };
    let way = source.known.ways.get(&call.session);
    let used = exec.usage.map(|usage| tokens(usage.input_tokens, usage.output_tokens));
    ReportQuestion {
        number: exec.number,
        tone,
        status: words.line(status),
        facts: words.rows([
            ("agent", Some(exec.agent.clone())),
            ("model", exec.model.clone()),
            ("took", call.duration_ms.map(duration)),
            ("cost", exec.cost_usd.map(|usd| format!("${usd:.2}"))),
            ("tokens", used),
            ("files", Some(exec.path.clone())),
            ("session", Some(call.session.clone())),
            ("not resumable", way.and_then(|way| way.hindrance.clone())),
        ]),
        resume: way.and_then(|way| way.command.as_deref()).map(|command| words.line(command)),
        prompt: words.body(&call.prompt),
        output: words.body(&call.output),
    }
}
