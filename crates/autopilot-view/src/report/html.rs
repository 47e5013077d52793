//! The page as HTML. Every text goes through the escaping of `maud`; only the picture of the graph,
//! which escapes its own, is put in as it is.

use super::attempt::{ReportAttempt, ReportCheck, ReportQuestion, ReportVerdict};
use super::iteration::ReportIteration;
use super::timeline::{Bar, BarExtent, BarKind, Row, Timeline};
use super::words::{FactRows, ReportLine};
use super::{Drawn, Limit, ReportPage, ReportTask, Tone};
use crate::{LOOK, count};
use autopilot_core::id::TaskId;
use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

/// The policy under which nothing is loaded and nothing runs, whatever is on the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                      base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("report.css");

/// The page as HTML.
pub fn html(page: &ReportPage) -> String {
    let title = format!("{}: {}", page.outcome.word, page.title.as_str());
    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="referrer" content="no-referrer";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.jump href="#main" { "Skip to the content" }
                (head(page))
                main #main {
                    (outcome(page))
                    @if !page.left_out.is_empty() { (left_out(&page.left_out)) }
                    @for iteration in &page.iterations { (of_iteration(iteration)) }
                    @if let Some(graph) = &page.graph { (section("graph", "Graph", drawn(graph))) }
                    (timeline(&page.timeline))
                    (tasks(&page.tasks))
                    (limits(&page.limits))
                    @if !page.warnings.is_empty() {
                        (section("warnings", "Warnings", list(&page.warnings, "")))
                    }
                    (remarks(&page.remarks))
                }
                footer { p { (page.written) " Everything on this page is in the journal of the run and in its \
                    files; it can be written again with " code { "autopilot report " (page.run) } "." } }
            }
        }
    }
    .into_string()
}

fn section(id: &str, title: &str, body: Markup) -> Markup {
    markup! {
        section id=(id) aria-labelledby={ (id) "-h" } {
            h2 id={ (id) "-h" } { (title) }
            (body)
        }
    }
}

/// A part that may be wider than the page and is then scrolled by itself.
fn wide(label: &str, body: Markup) -> Markup {
    markup! { div.wide tabindex="0" role="region" aria-label=(label) { (body) } }
}

fn table(columns: &[&str], rows: Markup) -> Markup {
    markup! {
        table {
            thead { tr { @for column in columns { th scope="col" { (column) } } } }
            tbody { (rows) }
        }
    }
}

fn head(page: &ReportPage) -> Markup {
    markup! {
        header {
            p.kind { "autopilot run " (page.run) }
            h1 { (page.title) }
            p.state { (badge(page.outcome.tone, page.outcome.word)) " " (page.outcome.sentence) }
            nav aria-label="Parts of this page" {
                a href="#outcome" { "Outcome" }
                @for iteration in &page.iterations {
                    a href={ "#iteration-" (iteration.index) } { "Iteration " (iteration.index) }
                }
                @if page.graph.is_some() { a href="#graph" { "Graph" } }
                a href="#timeline" { "Timeline" }
                a href="#tasks" { "Agents and steps" }
                a href="#limits" { "Limits" }
                @if !page.warnings.is_empty() { a href="#warnings" { "Warnings" } }
                a href="#events" { "Events" }
            }
        }
    }
}

fn outcome(page: &ReportPage) -> Markup {
    let body = markup! {
        @if let Some(goal) = &page.goal {
            h3 { "What was asked" }
            (goal)
        }
        @if !page.outcome.doubts.is_empty() {
            h3 { (LOOK) }
            (list(&page.outcome.doubts, ""))
        }
        div.pair {
            div {
                h3 { "Proven by the controller" }
                (list(&page.outcome.proven, "Nothing was proven."))
            }
            div {
                h3 { "Not proven" }
                (list(&page.outcome.unproven, "Nothing was skipped."))
            }
        }
        (rows(&page.facts))
        h3 { "Commands" }
        dl.commands {
            @for (name, value) in &page.commands {
                dt { (name) } dd { code { (value) } }
            }
        }
    };
    section("outcome", "Outcome", body)
}

fn left_out(lines: &[String]) -> Markup {
    markup! {
        section.notice role="note" aria-label="Left out" {
            h2 { "Left out of this page" }
            ul { @for line in lines { li { (line) } } }
        }
    }
}

fn list(lines: &[ReportLine], none: &str) -> Markup {
    markup! {
        @if lines.is_empty() { p.none { (none) } }
        @else { ul { @for line in lines { li { (line) } } } }
    }
}

fn rows(rows: &FactRows) -> Markup {
    markup! {
        dl.facts { @for (name, value) in rows { div { dt { (name) } dd { (value) } } } }
    }
}

fn badge(tone: Tone, word: &str) -> Markup {
    markup! { span class={ "badge " (tone.class()) } { (word) } }
}

fn drawn(graph: &Drawn) -> Markup {
    markup! {
        p.tally { (graph.tally) }
        @if graph.more > 0 {
            p.cut { (graph.more) " of them are not in this picture; " code { "autopilot graph --out graph.svg" }
                " draws all." }
        }
        (wide("Graph of the tasks", markup! { (PreEscaped(&graph.svg)) }))
    }
}

fn of_iteration(iteration: &ReportIteration) -> Markup {
    let index = iteration.index;
    let columns = ["step", "status", "goal", "time", "cost", "session"];
    let steps = markup! {
        @for step in &iteration.steps {
            tr {
                th scope="row" { a href={ "#" (anchor(step.task)) } { (step.id) } }
                td { (badge(step.tone, step.word)) }
                td.text { (step.goal) }
                td { (step.took) } td { (step.cost) }
                td { code { (step.session) } }
            }
        }
    };
    let body = markup! {
        @match &iteration.workflow {
            Some(workflow) => p { "Workflow " code { (workflow) } },
            None => p.none { "No workflow could be used in this iteration." },
        }
        @if let Some(graph) = &iteration.graph { (drawn(graph)) }
        @if !iteration.steps.is_empty() {
            (wide(&format!("Steps of iteration {index}"), table(&columns, steps)))
        }
        @if let Some((tone, word, text)) = &iteration.verdict {
            div class={ "said " (tone.class()) } { h3 { (word) } (text) }
        }
    };
    section(&format!("iteration-{index}"), &format!("Iteration {index}"), body)
}

fn timeline(timeline: &Timeline) -> Markup {
    let body = markup! {
        p { "From " (timeline.begin.rfc3339()) " to " (timeline.end.rfc3339())
            ". A thin line is a task that nothing works on; a hatched bar is a wait." }
        ol.time {
            li.axis aria-hidden="true" {
                span.name {} span.track { @for tick in &timeline.ticks { span { (tick) } } }
            }
            @for row in &timeline.rows { (time_row(row)) }
        }
    };
    section("timeline", "Timeline", body)
}

fn time_row(row: &Row) -> Markup {
    markup! {
        li {
            a.name href={ "#" (anchor(row.task)) } { (row.name) }
            span.track {
                span.life style=(place(row.life)) {}
                @for bar in &row.bars { (of_bar(bar)) }
            }
            @if row.before > 0 { span.cut { (row.before) " earlier bars are not shown" } }
        }
    }
}

fn of_bar(bar: &Bar) -> Markup {
    let class = match bar.kind {
        BarKind::Work(tone) => tone.class(),
        BarKind::Wait => "wait",
    };
    let words = bar.words.as_str();
    markup! {
        @match &bar.attempt {
            Some(attempt) => a class={ "bar " (class) } style=(place(bar.extent)) title=(words)
                aria-label=(words) href={ "#attempt-" (attempt) } {},
            None => span class={ "bar " (class) } style=(place(bar.extent)) title=(words)
                role="img" aria-label=(words) {},
        }
    }
}

fn place(extent: BarExtent) -> String {
    let percent = |part: u64| format!("{}.{:03}%", part / 1000, part % 1000);
    format!("left:{};width:{}", percent(extent.left), percent(extent.width))
}

fn anchor(task: TaskId) -> String {
    format!("task-{}", task.0)
}

fn tasks(tasks: &[ReportTask]) -> Markup {
    let body = markup! {
        p { "Every attempt with the checks of the controller and the prompts and answers of agents." }
        p.paper { "Prompts and outputs are printed if they were open on the screen." }
        @for told in tasks { (of_task(told)) }
    };
    section("tasks", "Agents and steps", body)
}

fn of_task(told: &ReportTask) -> Markup {
    let is_open = told.tone == Tone::Bad;
    markup! {
        details.task id=(anchor(told.id)) open[is_open] {
            summary {
                h3 { (badge(told.tone, told.word)) " " strong { (told.name) } " " (told.title) }
            }
            @if let Some(why) = &told.why { p.why { (why) } }
            (rows(&told.facts))
            @if !told.notes.is_empty() { h4 { "Notes" } (list(&told.notes, "")) }
            @if told.before > 0 { p.cut { "Not shown: " (count(told.before, "earlier attempt")) "." } }
            @for attempt in &told.attempts { (of_attempt(attempt)) }
        }
    }
}

fn of_attempt(attempt: &ReportAttempt) -> Markup {
    markup! {
        article id={ "attempt-" (attempt.id) } {
            h4 {
                (badge(attempt.tone, attempt.word)) " " (attempt.step)
                small { " iteration " (attempt.round) ", attempt " (attempt.id) }
            }
            @if let Some(why) = &attempt.why { p.why { (why) } }
            (rows(&attempt.facts))
            @if !attempt.notes.is_empty() { (list(&attempt.notes, "")) }
            @for check in &attempt.checks { (of_check(check)) }
            @if let Some(verdict) = &attempt.verdict { (of_verdict(verdict)) }
            @if let Some(tail) = &attempt.tail {
                details { summary { "End of its output" } (tail) }
            }
            @for question in &attempt.calls { (of_question(question)) }
        }
    }
}

fn of_check(check: &ReportCheck) -> Markup {
    let (tone, word) = match check.exit {
        Some(0) => (Tone::Good, "exit 0".to_owned()),
        Some(code) => (Tone::Bad, format!("exit {code}")),
        None => (Tone::Bad, "no exit code".to_owned()),
    };
    markup! {
        details.check {
            summary { (badge(tone, &word)) " " (check.name) ": " code { (check.command) } }
            (check.output)
        }
    }
}

fn of_verdict(verdict: &ReportVerdict) -> Markup {
    markup! {
        div class={ "said " (verdict.tone.class()) } {
            h5 { (verdict.word) }
            @if !verdict.summary.is_empty() { (verdict.summary) }
            @if !verdict.findings.is_empty() { (list(&verdict.findings, "")) }
            @if verdict.more > 0 { p.cut { (verdict.more) " more are not shown." } }
        }
    }
}

fn of_question(question: &ReportQuestion) -> Markup {
    markup! {
        div.call {
            h5 { (badge(question.tone, question.status.as_str())) " Call " (question.number) }
            (rows(&question.facts))
            @if let Some(resume) = &question.resume {
                p { "Continue this session: " code { (resume) } }
            }
            details.prompt { summary { "Prompt" } (question.prompt) }
            details.output { summary { "Output" } (question.output) }
        }
    }
}

fn limits(limits: &[Limit]) -> Markup {
    let rows = markup! {
        @for limit in limits {
            tr {
                th scope="row" { (limit.what) }
                td { (limit.used) } td { (limit.max) }
                td { @if limit.is_hit { (badge(Tone::Waits, "used up")) } }
            }
        }
    };
    section("limits", "Limits", wide("Limits", table(&["limit", "used", "of", "state"], rows)))
}

fn remarks(remarks: &[(String, ReportLine, ReportLine)]) -> Markup {
    let body = markup! {
        @if remarks.is_empty() { p.none { "Nothing out of the ordinary." } }
        @else {
            ol.events { @for (at, whose, text) in remarks {
                li { time datetime=(at) { (at) } " " b { (whose) } " " (text) }
            } }
        }
    };
    section("events", "Events", body)
}
