//! The board: the run, its workers, the next tasks, the last failure and the log.

use super::text::{heading, line, right};
use super::{BAD, CARE, FAINT, GOOD, NEWS, STRONG};
use crate::notice::needed;
use crate::screen::{LineKind, Screen, Seat, TAIL_LINES_MAX, Worker};
use crate::word::{doing, some};
use autopilot_core::event::HaltWhy;
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::{LaneState, LiveAttempt, State, Status, Task};
use autopilot_view::width::{column, fit};
use autopilot_view::{self as view, ExitWord};
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Waiting tasks that are listed, each with the tasks it waits for.
const WAITING_SHOWN_MAX: usize = 3;
/// Held accounts that are listed.
const HELD_SHOWN_MAX: usize = 3;
/// Task names in one line.
const NAMES_MAX: usize = 5;
/// The greatest widths of the columns.
const NAME_CELLS_MAX: usize = 24;
const DOING_CELLS_MAX: usize = 36;
const TITLE_CELLS_MAX: usize = 30;
const COST_CELLS_MIN: usize = 8;

/// The lines of the board, as many as the area is high.
pub fn board(screen: &Screen, now: Time, area: Rect) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = header(screen, now, width);
    lines.extend(banner(screen, now).map(|(text, style)| line(&text, width, style)));
    lines.truncate(height);
    let has_keys = lines.len() < height;
    let rest = height - lines.len() - usize::from(has_keys);
    lines.extend(body(screen, now, width, rest));
    if has_keys {
        lines.push(keys(screen, width));
    }
    lines
}

/// The sections between the header and the keys: exactly `height` lines.
fn body(screen: &Screen, now: Time, width: usize, height: usize) -> Vec<Line<'static>> {
    let for_log = (height / 4).clamp(1, 6).min(height);
    let mut lines = workers(screen, now, width, height - for_log);
    let sections =
        [(held(screen, width), 2), (failure(screen, width), 2), (next(screen, width), 1)];
    for (section, least) in sections {
        let left = height.saturating_sub(lines.len() + for_log);
        if left >= least {
            lines.extend(section.into_iter().take(left));
        }
    }
    let left = height - lines.len().min(height);
    lines.extend(log(screen, width, left));
    lines.resize(height, Line::default());
    lines
}

/// The run in three lines, shared by the board and the list of tasks.
pub fn header(screen: &Screen, now: Time, width: usize) -> Vec<Line<'static>> {
    let (state, run) = (&screen.state, &screen.state.run);
    let word = screen.word();
    let title = screen.manner.line(&run.title);
    let id = if width >= 60 { run.id.as_str() } else { "" };
    let title_cells = width.saturating_sub(word.len() + id.len() + 5);
    let first = Line::from(vec![
        Span::styled(format!(" {word} "), word_style(word).add_modifier(Modifier::REVERSED)),
        Span::styled(format!(" {}", column(&title, title_cells)), STRONG),
        Span::styled(format!(" {id}"), FAINT),
    ]);
    let mut facts = vec![
        format!("{} run", run.flow.word()),
        view::duration(worked_ms(screen, now)),
        view::money::cost_of_run(state),
        format!("{} of {} workers", state.slots_live(), run.limits.workers_max),
    ];
    if let Some((iteration, most)) = view::iteration(state) {
        facts.insert(1, format!("iteration {iteration} of {most}"));
    }
    if !run.branch.is_empty() {
        facts.push(run.branch.clone());
    }
    let second = line(&format!(" {}", facts.join(" · ")), width, Style::new());
    vec![first, second, counts(screen, width)]
}

/// The time the run has worked: neither the time it rested nor the time it waited.
fn worked_ms(screen: &Screen, now: Time) -> u64 {
    let state = &screen.state;
    let is_on = state.is_at_work() && screen.banner.is_none();
    state.run.active_ms + if is_on { now.since_ms(state.at) } else { 0 }
}

fn counts(screen: &Screen, width: usize) -> Line<'static> {
    let (tally, all) = (&screen.tally, screen.tally.leaves.len());
    if all == 0 {
        return line(" no tasks yet", width, FAINT);
    }
    let mut spans = vec![Span::raw(" ")];
    for (word, style) in [
        ("DONE", GOOD),
        ("RUNNING", NEWS),
        ("BLOCKED", CARE),
        ("PENDING", Style::new()),
        ("FAILED", BAD),
        ("SKIPPED", CARE),
    ] {
        let count = tally.count(word);
        if word == "SKIPPED" && count == 0 {
            continue;
        }
        let style = if count == 0 { FAINT } else { style };
        spans.push(Span::styled(format!("{word} {count}  "), style));
    }
    spans.push(Span::styled(format!("of {}", view::count(all, "task")), FAINT));
    let used: usize = spans.iter().map(Span::width).sum();
    let bar = width.saturating_sub(used + 4).min(30);
    if bar >= 8 {
        let full = tally.count("DONE") * bar / all;
        spans.push(Span::styled(format!("  {}", "█".repeat(full)), GOOD));
        spans.push(Span::styled("░".repeat(bar - full), FAINT));
    }
    Line::from(spans)
}

fn word_style(word: &str) -> Style {
    match word {
        "DONE" => GOOD,
        "FAILED" | "INTERRUPTED" => BAD,
        "PAUSED" | "WAITING" => CARE,
        _ => NEWS,
    }
}

/// The one line about the run that a person should read first.
fn banner(screen: &Screen, now: Time) -> Option<(String, Style)> {
    if let Some(text) = &screen.banner {
        return Some((format!(" {text}"), CARE.add_modifier(Modifier::BOLD)));
    }
    let state = &screen.state;
    if state.end().is_some() {
        return Some(match ExitWord::of(state) {
            ExitWord::Done => (" everything is done".to_owned(), GOOD),
            ExitWord::Paused
            | ExitWord::Failed
            | ExitWord::NotConverged
            | ExitWord::PushFailed
            | ExitWord::Misconfigured => {
                let why = state.root().and_then(view::failure).map(ToString::to_string);
                (format!(" failed: {}", screen.manner.line(&why.unwrap_or_default())), BAD)
            }
        });
    }
    if let Some(halt) = &state.run.halt {
        let why = screen.manner.line(&halt.why.to_string());
        let is_pause = halt.why == HaltWhy::Pause;
        let text = match (state.is_at_rest(), is_pause) {
            (true, true) => " paused: press p to resume".to_owned(),
            (true, false) => format!(" stopped: {why}"),
            (false, true) => " pausing after the current step; p to cancel".to_owned(),
            (false, false) => format!(" stopping after the current step ({why}); S to stop now"),
        };
        return Some((text, CARE));
    }
    if let Some(gate) = state.gate().and_then(|(_, live)| live.step.row().gate) {
        let text = format!(
            " WAITING FOR YOU to approve the {}: `autopilot approve` or `reject \"why\"`",
            gate.what
        );
        return Some((text, CARE.add_modifier(Modifier::BOLD)));
    }
    if let Some(task) = view::all_wait(state) {
        return Some((waits(screen, task, now), CARE));
    }
    let short = state.run.short.as_ref()?;
    let text = format!(" not starting more workers: {}", screen.manner.line(short));
    Some((text, CARE))
}

/// What everything waits for. The time comes first, because a narrow screen cuts the end.
fn waits(screen: &Screen, task: &Task, now: Time) -> String {
    let Status::Waiting { step, until } = task.status else { return String::new() };
    let whom = match screen.state.door(step, task.by(step)) {
        LaneState::Held { account, why, .. } => format!(" for {account} ({})", why.word()),
        LaneState::Open { .. } | LaneState::Probed => String::new(),
    };
    let text = format!(
        "nothing runs until {} (in {}): all tasks wait{whom}",
        (screen.manner.clock)(until),
        view::duration(until.since_ms(now)),
    );
    format!(" {}", screen.manner.line(&text))
}

/// The accounts on which no agent is started for now.
fn held(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    let holds = view::holds(&screen.state);
    if holds.is_empty() || screen.state.end().is_some() {
        return Vec::new();
    }
    let mut lines = vec![heading("Held accounts", width)];
    for hold in holds.iter().take(HELD_SHOWN_MAX) {
        lines.push(line(&format!("  {}", screen.manner.line(hold)), width, CARE));
    }
    let more = holds.len().saturating_sub(HELD_SHOWN_MAX);
    if more > 0 {
        lines.push(line(&format!("  … {more} more; `autopilot status` lists all"), width, FAINT));
    }
    lines
}

fn workers(screen: &Screen, now: Time, width: usize, height: usize) -> Vec<Line<'static>> {
    let live: Vec<&LiveAttempt> =
        screen.state.live.values().filter(|live| !screen.state.is_gate(live)).collect();
    if height == 0 {
        return Vec::new();
    }
    let title = match live.len() {
        0 => "Workers: none running".to_owned(),
        1 => "Workers: 1 running".to_owned(),
        many => format!("Workers: {many} in parallel, each on its own task"),
    };
    let mut lines = vec![heading(&title, width)];
    let columns = Columns::of(screen, &live, width);
    // The selected worker stays in sight.
    let rows = height - 1;
    let selected = live.iter().position(|live| Some(live.task) == screen.selected).unwrap_or(0);
    let first = selected.saturating_sub(rows.saturating_sub(1));
    for (place, one) in live.iter().enumerate().skip(first) {
        let worker = screen.workers.get(&one.task);
        let mut shown = vec![columns.line(screen, one, worker, now)];
        shown.extend(worker.and_then(|worker| subagents(worker, width)));
        let is_last = place + 1 == live.len();
        let needed = lines.len() + shown.len() + usize::from(!is_last);
        if needed > height {
            // The line that counts the others takes the place of the next worker.
            let text = format!("  … {} more running; t lists all tasks", live.len() - place);
            lines.push(line(&text, width, FAINT));
            break;
        }
        lines.extend(shown);
    }
    lines.truncate(height);
    lines
}

/// The widths of the columns of a worker's line.
struct Columns {
    name: usize,
    doing: usize,
    cost: usize,
    title: usize,
    rest: usize,
}

impl Columns {
    fn of(screen: &Screen, live: &[&LiveAttempt], width: usize) -> Columns {
        let widest = |of: &dyn Fn(&LiveAttempt) -> usize| {
            live.iter().map(|live| of(live)).max().unwrap_or(0)
        };
        let name = widest(&|live| screen.name(live.task).chars().count());
        let name = name.clamp(4, NAME_CELLS_MAX).min(width / 3);
        let doing = widest(&|live| doing(live.step).len()).min(DOING_CELLS_MAX).min(width / 2);
        let cost = widest(&|live| cost_of(&screen.state, screen.state.task(live.task)).len());
        let cost = if width >= 70 { cost.max(COST_CELLS_MIN) } else { 0 };
        let title = if width >= 110 { TITLE_CELLS_MAX } else { 0 };
        let used = 2 + name + 2 + doing + 9 + cost + 2 + title + usize::from(title > 0) * 2;
        Columns { name, doing, cost, title, rest: width.saturating_sub(used) }
    }

    fn line(
        &self,
        screen: &Screen,
        live: &LiveAttempt,
        worker: Option<&Worker>,
        now: Time,
    ) -> Line<'static> {
        let task = screen.state.task(live.task);
        let mut spans = name(screen, live.task, self.name);
        let title = if task.parent.is_some() { task.spec.title.as_str() } else { "" };
        let title = screen.manner.line(title);
        if self.title > 0 {
            spans.push(Span::raw(format!("{}  ", column(&title, self.title))));
        }
        spans.push(Span::styled(column(&doing(live.step), self.doing), NEWS));
        spans.push(Span::raw(right(&view::duration(now.since_ms(live.since)), 9)));
        if self.cost > 0 {
            spans.push(Span::raw(right(&cost_of(&screen.state, task), self.cost)));
        }
        spans.push(Span::raw("  "));
        let silent = worker.and_then(|worker| worker.silent);
        let last = worker.map(|worker| worker.last.as_str()).unwrap_or_default();
        let (text, style) = match silent {
            Some(silent) => {
                let seconds = silent.as_secs();
                (format!("silent for {seconds} s; will be stopped if it stays silent"), CARE)
            }
            None if last.is_empty() && self.title == 0 => (title, FAINT),
            None => (last.to_owned(), FAINT),
        };
        spans.push(Span::styled(fit(&text, self.rest), style));
        Line::from(spans)
    }
}

/// The name of a task in a column of its own, with a mark if the task is selected.
pub fn name(screen: &Screen, task: TaskId, cells: usize) -> Vec<Span<'static>> {
    let is_selected = screen.selected == Some(task);
    let mark = if is_selected { "▸ " } else { "  " };
    let style = if is_selected { STRONG.add_modifier(Modifier::REVERSED) } else { STRONG };
    let name = column(&screen.name(task), cells);
    vec![Span::raw(mark), Span::styled(name, style), Span::raw("  ")]
}

/// The cost of a task, with a space before it because it stands to the right of a time.
pub fn cost_of(state: &State, task: &Task) -> String {
    format!(" {}", view::money::cost_of_task(state, task))
}

fn subagents(worker: &Worker, width: usize) -> Option<Line<'static>> {
    if worker.subagents_started == 0 {
        return None;
    }
    let at_work = worker.subagents.len();
    let what: Vec<&str> = worker.subagents.values().map(String::as_str).collect();
    let mut text = format!("    └ sub-agents: {at_work} of {} running", worker.subagents_started);
    if !what.is_empty() {
        text.push_str(&format!(": {}", some(&what, 3)));
    }
    Some(line(&text, width, FAINT))
}

fn next(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    let (state, tally) = (&screen.state, &screen.tally);
    let between = || state.ready().filter(|id| *id != TaskId::ROOT);
    let free = between().count() + tally.ready.len();
    if (free == 0 && tally.waiting.is_empty()) || state.end().is_some() {
        return Vec::new();
    }
    let mut lines = vec![heading("Next", width)];
    if free > 0 {
        let first = between().chain(tally.ready.iter().copied());
        let names: Vec<String> = first.take(NAMES_MAX).map(|id| screen.name(id)).collect();
        let more = free - names.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!("  ready, waiting for a worker: {}{more}", names.join(", "));
        lines.push(line(&text, width, Style::new()));
    }
    for id in tally.waiting.iter().take(WAITING_SHOWN_MAX) {
        let needs = needed(&screen.state, *id);
        let text = format!("  {} waits for {}", screen.name(*id), some(&needs, NAMES_MAX));
        lines.push(line(&text, width, Style::new()));
    }
    let more = tally.waiting.len().saturating_sub(WAITING_SHOWN_MAX);
    if more > 0 {
        lines.push(line(&format!("  … {more} more wait for other tasks"), width, FAINT));
    }
    lines
}

fn failure(screen: &Screen, width: usize) -> Vec<Line<'static>> {
    let Some(failure) = &screen.failure else { return Vec::new() };
    let name = screen.name(failure.task);
    // An agent that says no ends well.
    let exit = failure.exit.filter(|code| *code != 0);
    let exit = exit.map(|code| format!(", exit {code}")).unwrap_or_default();
    let mut lines = vec![heading("Last failure", width)];
    let text =
        format!("  {name}: {} in iteration {}{exit}: {}", failure.step, failure.round, failure.why);
    lines.push(line(&text, width, BAD));
    let tail = failure.tail.as_deref().unwrap_or_default();
    let from = tail.len().saturating_sub(TAIL_LINES_MAX);
    for output in tail.iter().skip(from) {
        lines.push(line(&format!("  │ {output}"), width, FAINT));
    }
    if let Some(log) = &failure.log {
        lines.push(line(&format!("  log: .autopilot/{log}"), width, Style::new()));
    }
    lines
}

fn log(screen: &Screen, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if height > 1 {
        lines.push(heading("Log", width));
    }
    let rows = height - lines.len();
    let from = screen.log.len().saturating_sub(rows);
    for entry in screen.log.iter().skip(from) {
        let style = match entry.kind {
            LineKind::Plain => Style::new(),
            LineKind::Graph => NEWS,
            LineKind::Good => GOOD,
            LineKind::Bad => BAD,
            LineKind::Output => FAINT,
        };
        let clock = (screen.manner.clock)(entry.at);
        let cells = width.saturating_sub(clock.len() + 3);
        lines.push(Line::from(vec![
            Span::styled(format!("  {clock} "), FAINT),
            Span::styled(fit(&entry.text, cells), style),
        ]));
    }
    lines
}

/// The answer to the last key, or the keys that can be pressed.
pub fn keys(screen: &Screen, width: usize) -> Line<'static> {
    if let Some(answer) = &screen.answer {
        return line(&format!(" {answer}"), width, CARE);
    }
    let leave = match screen.seat {
        Seat::Controller => "",
        Seat::Onlooker => "q leave  ",
    };
    let pause = match &screen.state.run.halt {
        Some(halt) if halt.why == HaltWhy::Pause => "p resume",
        Some(_) | None => "p pause",
    };
    let text =
        format!(" {leave}{pause}  s stop  S stop now  ↑↓ select  l log  d diff  t tasks  ? help");
    line(&text, width, FAINT)
}
