//! Draws the screen on a frame of any size, down to one cell. Pure but for the frame it fills; the
//! cost of a frame depends on what is visible, not on the number of tasks.

mod board;
mod list;
#[cfg(test)]
mod tests;
mod text;

use crate::page::{PageKind, TextPage};
use crate::screen::{Screen, Seat, View};
use autopilot_core::id::Time;
use autopilot_view::width::fit;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use text::{heading, line};

const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red);
const CARE: Style = Style::new().fg(Color::Yellow);
const NEWS: Style = Style::new().fg(Color::Cyan);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws what the screen shows at this time.
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

/// The number of rows that scroll on a screen of this height.
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
    let end = if page.follows { ", following" } else { "" };
    lines.push(line(&format!(" {place}{end}   ↑↓ scroll  q back"), width, FAINT));
    lines
}

fn page_line(text: &str, kind: PageKind, width: usize) -> Line<'static> {
    let style = match (kind, text.chars().next()) {
        (PageKind::Diff, Some('+')) => GOOD,
        (PageKind::Diff, Some('-')) => BAD,
        (PageKind::Diff, Some('@')) => NEWS,
        (PageKind::Diff, Some('d')) if text.starts_with("diff ") => STRONG,
        (PageKind::Diff | PageKind::Log, _) => Style::new(),
    };
    line(text, width, style)
}

fn help(screen: &Screen, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let leave = match screen.seat {
        Seat::Controller => ("Ctrl-C", "stop after the current step; press again to stop now"),
        Seat::Onlooker => ("q, Ctrl-C", "leave; the run continues"),
    };
    let keys = [
        ("p", "pause before the next step, or resume (`autopilot pause`, `unpause`)"),
        ("s", "stop after the current step (`autopilot stop`)"),
        ("S", "stop now; no work is lost (`autopilot stop --now`)"),
        leave,
        ("↑ ↓ j k", "select a task; PgUp, PgDn, g, G: page up, page down, first, last"),
        ("t", "show all tasks, or go back"),
        ("l", "show the newest log of the selected task"),
        ("d", "show what the selected task has changed"),
        ("?", "show this help; q or Esc goes back"),
    ];
    let mut lines = vec![heading("Help", width)];
    for (key, what) in keys {
        let key = Span::styled(format!("  {key:<10}"), STRONG);
        lines.push(Line::from(vec![key, Span::raw(fit(what, width.saturating_sub(12)))]));
    }
    lines.push(Line::default());
    for text in [
        "Workers are started by autopilot: each does one step of one task in its own",
        "worktree, in parallel with the others. Sub-agents are started by an agent",
        "itself: they are shown below its task and don't count as workers.",
    ] {
        lines.push(line(&format!("  {text}"), width, FAINT));
    }
    lines.push(Line::default());
    lines.push(line(" q back", width, FAINT));
    lines
}
