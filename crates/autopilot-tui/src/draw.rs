//! The screen on a frame. Pure but for the frame it fills; at any size, down to one cell. Costs what
//! is visible, not what there is.

mod board;
mod list;
#[cfg(test)]
mod tests;
mod text;

use crate::page::{PageKind, TextPage};
use crate::screen::{Screen, Seat, View};
use autopilot_core::id::Time;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use text::{fit, heading};

const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red);
const CARE: Style = Style::new().fg(Color::Yellow);
const NEWS: Style = Style::new().fg(Color::Cyan);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

pub fn draw(frame: &mut Frame<'_>, screen: &Screen, now: Time) {
    let area = frame.area();
    let lines = match &screen.view {
        View::Board => board::board(screen, now, area),
        View::Tasks => list::tasks(screen, now, area),
        View::Help => help(screen, area),
        View::Page(page) => self::page(page, area),
    };
    frame.render_widget(Paragraph::new(lines), area);
    if !screen.has_color {
        for cell in &mut frame.buffer_mut().content {
            cell.fg = Color::Reset;
            cell.bg = Color::Reset;
        }
    }
}

/// Rows of what scrolls, on a screen of this height.
pub fn rows(screen: &Screen, height: u16) -> usize {
    let around = match &screen.view {
        View::Page(_) | View::Help => 2,
        View::Tasks | View::Board => 5,
    };
    usize::from(height).saturating_sub(around)
}

fn page(page: &TextPage, area: Rect) -> Vec<Line<'static>> {
    let rows = usize::from(area.height).saturating_sub(2);
    let width = usize::from(area.width);
    let from = page.first_shown(rows);
    let mut lines = vec![heading(&page.title, width)];
    lines.extend(page.shown(rows).iter().map(|line| page_line(line, page.kind, width)));
    lines.resize(rows + 1, Line::default());
    let to = (from + rows).min(page.lines.len());
    let place = format!("{}–{to} of {}", (from + 1).min(to), page.lines.len());
    let end = if page.follows { ", follows its end" } else { "" };
    lines.push(Line::styled(fit(&format!(" {place}{end}   ↑↓ scroll  q back"), width), FAINT));
    lines
}

fn page_line(line: &str, kind: PageKind, width: usize) -> Line<'static> {
    let style = match (kind, line.chars().next()) {
        (PageKind::Diff, Some('+')) => GOOD,
        (PageKind::Diff, Some('-')) => BAD,
        (PageKind::Diff, Some('@')) => NEWS,
        (PageKind::Diff, Some('d')) if line.starts_with("diff ") => STRONG,
        (PageKind::Diff | PageKind::Log, _) => Style::new(),
    };
    Line::styled(fit(line, width), style)
}

fn help(screen: &Screen, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let leave = match screen.seat {
        Seat::Controller => ("Ctrl-C", "stop at the step boundary; again: end everything now"),
        Seat::Onlooker => ("q, Ctrl-C", "leave; the run goes on"),
    };
    let keys = [
        ("p", "pause before the next step, or go on (as `autopilot pause`)"),
        ("s", "stop at the next step boundary (as `autopilot stop`)"),
        ("S", "end what runs now; nothing is lost (as `autopilot stop --now`)"),
        leave,
        ("↑ ↓ j k", "select a task; PgUp, PgDn, g, G by pages and to the ends"),
        ("t", "all tasks, or back"),
        ("l", "newest log of the selected task"),
        ("d", "what the selected task has changed"),
        ("?", "this help; q or Esc goes back"),
    ];
    let mut lines = vec![heading("Help", width)];
    for (key, what) in keys {
        let key = Span::styled(format!("  {key:<10}"), STRONG);
        lines.push(Line::from(vec![key, Span::raw(fit(what, width.saturating_sub(12)))]));
    }
    lines.push(Line::default());
    for text in [
        "Workers are autopilot's own: each does a step of one task, side by side with",
        "the others, in a worktree of its own. Sub-agents are started by the agent of",
        "one task, inside its builder: they are shown below it and take no worker.",
    ] {
        lines.push(Line::styled(fit(&format!("  {text}"), width), FAINT));
    }
    lines.push(Line::default());
    lines.push(Line::styled(fit(" q back", width), FAINT));
    lines
}
