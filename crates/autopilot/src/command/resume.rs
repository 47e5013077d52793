//! `autopilot resume`: continues a run where it stopped, or one session of an agent.

mod session;
mod step;

use super::work;
use crate::cli::{Global, Resume};
use crate::terminal;
use autopilot_engine::run_process::{Intent, RunProcessError, nothing_to_resume};
use autopilot_engine::workspace;
use autopilot_view as view;

/// Resumes the run, or the session that is named.
pub fn resume(global: &Global, args: &Resume) -> super::Done {
    if let (Some(session), Some(prompt)) = (&args.session, &args.prompt) {
        return session::go_on(global, args, session, prompt);
    }
    let (place, known) = super::place_of_runs(global)?;
    if !known {
        return Err(RunProcessError::NothingToResume { retry: None }.into());
    }
    let limits = work::limits(&args.limits)?;
    if args.dry_run {
        let reader = workspace::reader(&place)?;
        let found = workspace::unfinished(&reader)?;
        let (run, state) = found.ok_or_else(|| nothing_to_resume(&reader))?;
        terminal::say(&format!("would resume run {} ({})", run.id, run.title));
        for task in view::leaves(&state) {
            let step = task.step().map_or("–", |step| step.word());
            terminal::say(&format!("  {:<24} {:<8} {step}", task.name(), view::task_word(task)));
        }
        return super::done();
    }
    let opened = work::reopen(global, &place, false)?;
    let model = args.model.clone();
    let intent = Intent::Resume { asks: Vec::new(), limits, model, texts: Vec::new() };
    work::work(global, opened, intent, args.wait)
}
