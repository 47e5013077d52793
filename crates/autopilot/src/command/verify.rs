//! `autopilot verify`: checks the evidence of merged commits.

use super::{Done, past, place, work};
use crate::cli::{Global, VerifyArgs};
use crate::exit::{CommandFailure, OrFailed};
use crate::terminal;
use autopilot_engine::place::StatePaths;
use autopilot_engine::query::QueryError;
use autopilot_engine::query::verify::rerun::{RerunError, RerunGround, rerun};
use autopilot_engine::query::verify::{
    self as query, Verification, VerifiedCommit, VerifiedTarget, VerifyGround,
};
use autopilot_engine::workspace;
use autopilot_host::checkout;
use autopilot_host::escape::one_line;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

/// The commits without faults that are listed.
const LISTED_MAX: usize = 20;

/// Checks a commit or a run, and says what holds.
pub fn verify(global: &Global, args: &VerifyArgs) -> Done {
    let (place, has_journal) = place(global)?;
    let archive = has_journal.then(|| past::at(&place)).transpose()?;
    let checkout = checkout::find(place.root.as_std_path());
    let not_there = || QueryError::NotARepository { path: place.root.to_string() };
    let git_dir = checkout.ok_or_else(not_there)?.common_dir;
    let dir = global.repo.as_std_path();
    let verified = query::verify(dir, &git_dir, archive.as_ref(), args.id.as_deref())
        .map_err(|error| hinted(error, has_journal))?;
    // The commands of a note that does not hold are nobody's tests.
    let verified = match args.rerun && verified.verdict != Verification::DoesNotHold {
        true => proven_again(verified, &place, &git_dir)?,
        false => verified,
    };
    if global.json {
        terminal::json(&verified);
    } else {
        terminal::say(text(&verified).trim_end());
    }
    Ok(ExitCode::from(verified.verdict.code()))
}

/// Runs the commands of the note again.
fn proven_again(
    verified: VerifiedTarget,
    place: &StatePaths,
    git_dir: &Path,
) -> Result<VerifiedTarget, CommandFailure> {
    let Some(told) = verified.statement().cloned() else {
        return Ok(verified.with_rerun(Err(RerunError::NoCommands)));
    };
    let (_removed_at_the_end, root) = work::temporary_folder("autopilot-verify-")?;
    let config = workspace::read_config(place).ok().map(|(config, _)| config);
    let (variables, own) = (work::variables(), work::own()?);
    let ground = RerunGround {
        place,
        git_dir,
        root: &root,
        config: config.as_ref(),
        variables: &variables,
        own: &own,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_failed("cannot start the runtime")?;
    Ok(verified.with_rerun(runtime.block_on(rerun(&told, &ground))))
}

fn hinted(error: QueryError, has_journal: bool) -> CommandFailure {
    let is_unknown = matches!(error, QueryError::Unknown { .. });
    let failure = CommandFailure::from(error);
    if is_unknown && !has_journal {
        return failure.hint("runs are known only where they ran; name a commit or a branch here");
    }
    failure
}

fn text(verified: &VerifiedTarget) -> String {
    let mut text = String::new();
    let faulty = |commit: &&VerifiedCommit| !commit.findings.is_empty();
    for commit in verified.commits.iter().filter(faulty) {
        let _ = writeln!(text, "{}", told(commit));
        for finding in &commit.findings {
            let _ = writeln!(text, "    {}", one_line(finding));
        }
    }
    let good: Vec<&VerifiedCommit> =
        verified.commits.iter().filter(|commit| !faulty(commit)).collect();
    for commit in good.iter().take(LISTED_MAX) {
        let _ = writeln!(text, "{}", told(commit));
    }
    let more = good.len().saturating_sub(LISTED_MAX);
    if more > 0 {
        let _ = writeln!(text, "and {more} more");
    }
    for again in verified.rerun.iter().flatten() {
        let code = again.exit_code.map_or("no exit code".to_owned(), |code| format!("exit {code}"));
        let _ = writeln!(text, "again   {} ({code}): {}", again.name, one_line(&again.command));
        for line in &again.tail {
            let _ = writeln!(text, "    {}", one_line(line));
        }
    }
    if let Some(digest) = &verified.held_out {
        let _ = writeln!(
            text,
            "the held-out tests can't be run again: they are not in the repository (SHA-256 {})",
            one_line(digest)
        );
    }
    for finding in &verified.findings {
        let _ = writeln!(text, "{}", one_line(finding));
    }
    let of = verified.run.as_deref().map(|run| format!(" of run {run}")).unwrap_or_default();
    let _ =
        writeln!(text, "{} at {}{}", headline(verified), short(&verified.commit), one_line(&of));
    text
}

fn headline(verified: &VerifiedTarget) -> &'static str {
    match (verified.verdict, verified.against) {
        (Verification::Holds, VerifyGround::Journal) => "the evidence holds, also by the journal,",
        (Verification::Holds, VerifyGround::Objects) => {
            "the evidence is consistent (there is no journal of the run here to compare it with)"
        }
        (Verification::CannotBeChecked, _) => "the evidence can't be checked",
        (Verification::DoesNotHold, _) => "the evidence does not hold",
    }
}

fn told(commit: &VerifiedCommit) -> String {
    let word = match (commit.verdict, commit.has_note) {
        (Verification::Holds, true) => "ok",
        (Verification::Holds, false) => "no note",
        (Verification::CannotBeChecked, _) => "unknown",
        (Verification::DoesNotHold, _) => "wrong",
    };
    let task = commit.task.as_deref().map(|task| format!("  task {task}")).unwrap_or_default();
    format!("{word:<8}{}{}", short(&commit.commit), one_line(&task))
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
