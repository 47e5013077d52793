//! The list of all tasks of the run, as many of them as fit.

use super::board::{cost_of, header, keys, name};
use super::text::{heading, right};
use super::{BAD, CARE, FAINT, GOOD, NEWS};
use crate::notice::needed;
use crate::screen::Screen;
use crate::word::some;
use autopilot_core::event::{Skip, TaskEnd};
use autopilot_core::id::{TaskId, Time};
use autopilot_core::state::Status;
use autopilot_view::width::{column, fit};
use autopilot_view::{self as view, task_word};
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

const NAME_CELLS_MAX: usize = 28;
const COST_CELLS_MIN: usize = 9;

/// The lines of the task list, as many as the area is high.
pub fn tasks(screen: &Screen, now: Time, area: Rect) -> Vec<Line<'static>> {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let mut lines = header(screen, now, width);
    lines.push(heading("Tasks", width));
    lines.truncate(height);
    let has_keys = lines.len() < height;
    let rows = height - lines.len() - usize::from(has_keys);
    let all = &screen.tally.leaves;
    // The ids are sorted, so the selected task is found without looking at every one.
    let selected = screen.selected.and_then(|id| all.binary_search(&id).ok()).unwrap_or(0);
    let first = selected.saturating_sub(rows / 2).min(all.len().saturating_sub(rows));
    let shown = all.iter().skip(first).take(rows);
    let costs = shown.clone().map(|id| cost_of(&screen.state, screen.state.task(*id)).len());
    let cost = costs.max().unwrap_or(0).max(COST_CELLS_MIN);
    lines.extend(shown.map(|id| row(screen, *id, width, cost)));
    lines.resize(height - usize::from(has_keys), Line::default());
    if has_keys {
        lines.push(keys(screen, width));
    }
    lines
}

fn row(screen: &Screen, id: TaskId, width: usize, cost: usize) -> Line<'static> {
    let task = screen.state.task(id);
    let word = task_word(task);
    let style = match word {
        "DONE" => GOOD,
        "RUNNING" => NEWS,
        "FAILED" => BAD,
        "BLOCKED" | "SKIPPED" => CARE,
        _ => Style::new(),
    };
    let name_cells = NAME_CELLS_MAX.min(width / 3);
    let rest = width.saturating_sub(2 + name_cells + 2 + 8 + 9 + cost + 2);
    let mut spans = name(screen, id, name_cells);
    spans.extend([
        Span::styled(column(word, 8), style),
        Span::raw(right(&view::duration(task.spent.work_ms), 9)),
        Span::raw(right(&cost_of(&screen.state, task), cost)),
        Span::raw("  "),
        Span::styled(fit(&detail(screen, id), rest), FAINT),
    ]);
    Line::from(spans)
}

fn detail(screen: &Screen, id: TaskId) -> String {
    let task = screen.state.task(id);
    if let Some(why) = view::failure(task) {
        return screen.manner.line(&why.to_string());
    }
    match &task.status {
        Status::Running { step, .. } => format!("{} (iteration {})", step.row().doing, task.round),
        Status::At { step } => format!("next: {}", step.row().doing),
        Status::Waiting { .. } => {
            screen.manner.line(&view::waits(&screen.state, task).unwrap_or_default())
        }
        Status::Open if task.needs > 0 => {
            format!("waits for {}", some(&needed(&screen.state, id), 4))
        }
        Status::Settled(TaskEnd::Skipped { why: Skip::Blocked { by } }) => {
            format!("blocked by {}", screen.name(*by))
        }
        Status::Open | Status::Settled(_) => screen.manner.line(&task.spec.title),
    }
}
