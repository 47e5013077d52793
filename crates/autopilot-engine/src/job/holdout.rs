//! The tests over the held-out files: laid over a proof room of the controller's, run, and reduced to
//! what may be told before anything else of the job sees the result.

use super::gate_site::GateSite;
use super::own_work::blocking;
use super::reporter::AskedTries;
use super::user_command::CommandCheck;
use super::warm_gate::GateRun;
use super::{Job, JobError};
use crate::holdout::{self, HeldOutSet};
use autopilot_core::fingerprint::{failing_tests, sha256_hex};
use autopilot_core::holdout::{HOLDOUT, HeldOutRun, HeldOutShown, VisibleTests};
use autopilot_core::holdout::{is_judged, with_held_out};
use autopilot_host::fail;
use autopilot_host::git::Oid;
use autopilot_host::held_out;
use autopilot_host::jail::JailPlan;
use autopilot_host::sandbox::SandboxPlan;
use camino::Utf8PathBuf;
use std::path::PathBuf;
use std::time::Instant;

/// A command of a gate: name and command line.
type NamedLine = (&'static str, String);

impl Job {
    /// The commands that prove this task, or the run if `is_whole`, with the held-out tests where they
    /// judge it.
    pub(super) fn with_holdout(&self, commands: Vec<NamedLine>, is_whole: bool) -> Vec<NamedLine> {
        match self.run.holdout.is_some() && is_judged(self.run.flow, is_whole) {
            true => with_held_out(commands),
            false => commands,
        }
    }

    /// Runs the commands that need the held-out files, where the tests as they are allow that.
    pub(super) async fn held_out_checks(
        &self,
        commit: &Oid,
        held: &[NamedLine],
        run: &mut GateRun,
    ) -> Result<(), JobError> {
        let base = self.known_failures()?;
        for (_, line) in held {
            let tests =
                run.checks.iter().find(|check| check.name != HOLDOUT && check.line == *line);
            let Some(tests) = tests.map(CommandCheck::seen) else { continue };
            let visible = VisibleTests::of(&tests, &base);
            if visible == VisibleTests::Failed || self.cancel.is_asked() {
                continue;
            }
            let check = self.held_out_check(commit, line, (visible, &tests.report)).await?;
            run.checks.push(check);
        }
        Ok(())
    }

    async fn held_out_check(
        &self,
        commit: &Oid,
        line: &str,
        (visible, visible_report): (
            VisibleTests,
            &Option<Box<autopilot_core::test_report::TestReport>>,
        ),
    ) -> Result<CommandCheck, JobError> {
        let set = self.held_out()?;
        let mut tries = AskedTries::default();
        let check = loop {
            let since = Instant::now();
            let site = self.cold_site(commit, since).await?;
            let check = self.laid_over(&site, &set, line, since, tries.asking()).await?;
            if let Some(check) = tries.saw(check, self.cancel.is_asked()) {
                break check;
            }
        };
        let shown = HeldOutShown {
            exit_code: check.ran.exit.code,
            was_ended: check.ran.exit.timed_out || check.ran.exit.stuck,
            rewrote: !check.rewrote.is_empty(),
            report: check.report.as_deref(),
            failing: &failing_tests(&check.ran.text),
            visible,
            visible_report: visible_report.as_deref(),
            is_readable: !self.hides_files()?,
            is_edited: holdout::is_edited(
                &self.context.config,
                &self.context.place,
                &set.tests.digest,
            ),
        };
        self.reduced(set.tests.weigh(&shown), check)
    }

    /// Runs the tests where the held-out files lie over the tree.
    async fn laid_over(
        &self,
        site: &GateSite,
        set: &HeldOutSet,
        line: &str,
        since: Instant,
        asking: super::reporter::Asking,
    ) -> Result<CommandCheck, JobError> {
        let tree = site.tree().ok_or(JobError::Internal("a room without a tree"))?;
        let shown = || Utf8PathBuf::from(tree.to_string_lossy().into_owned());
        let lay = || held_out::lay_over(&set.files, &tree);
        blocking(|| lay().map_err(JobError::directory("lay held-out tests over", shown())))?;
        fail::point("holdout.laid");
        let ran = self.command_at((HOLDOUT, line), site, since, asking).await;
        let changed = site.changed().map(|changed| held_out::not_covered(&set.files, changed));
        let edited = held_out::changed(&set.files, &tree);
        // A slot outlives its gate.
        let take = || held_out::take_away(&set.files, &tree);
        blocking(|| take().map_err(JobError::directory("take held-out tests from", shown())))?;
        let mut check = ran?;
        check.rewrote = changed?.into_iter().chain(edited).collect::<Vec<PathBuf>>();
        Ok(check)
    }

    /// The result with nothing in it that the program printed. Its log has the same words.
    fn reduced(&self, run: HeldOutRun, check: CommandCheck) -> Result<CommandCheck, JobError> {
        let text = format!(
            "{}\nThe output of the tests is in {}, where no agent reads.\n",
            run.lines().join("\n"),
            check.log
        );
        let log = self.log_name(&format!("validation_{HOLDOUT}"));
        self.write_clean(&log, &self.clean(&text))?;
        Ok(check.without_output(run, log, sha256_hex(self.clean(&text).as_bytes())))
    }

    /// The held-out files that the run began with.
    pub(super) fn held_out(&self) -> Result<HeldOutSet, JobError> {
        let digest = self.run.holdout.as_deref().unwrap_or_default();
        let known = holdout::pinned(&self.context.place, digest);
        known.ok_or(JobError::NoHoldout)
    }

    /// The file outside of the checkout into which the held-out tests print.
    pub(super) fn private_log(&self, stream: &str) -> Result<String, JobError> {
        let dir = holdout::logs(&self.context.place);
        autopilot_host::dir::create_private(dir.as_std_path())
            .map_err(JobError::directory("create", &dir))?;
        let name = self.log_name(stream).replace("logs/", "");
        let mut names = (1..).map(|time| dir.join(format!("{time}_{name}")));
        Ok(names.find(|path| !path.exists()).unwrap_or_default().into_string())
    }

    /// Whether the sandbox hides files from agents and commands.
    fn hides_files(&self) -> Result<bool, JobError> {
        let plan = self.context.sandbox_for(JailPlan::default())?.plan;
        Ok(matches!(plan, SandboxPlan::Jail(plan) if plan.namespaces))
    }
}
