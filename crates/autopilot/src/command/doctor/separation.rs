//! What keeps agents and gates apart here, and what does not.

use super::finding::DoctorFinding;
use autopilot_core::config::SandboxMode;
use autopilot_host::exec::Supervisor;
use autopilot_host::jail::NamespaceProbe;
use autopilot_host::sandbox::{self, Probe};

const NAME: &str = "separation";

/// Checks what agents and gates can see of each other with the configured sandbox.
pub fn look(mode: SandboxMode) -> DoctorFinding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    told(mode, &sandbox::probe(&path, &Supervisor::default()))
}

fn told(mode: SandboxMode, probe: &Probe) -> DoctorFinding {
    let has_landlock = probe.landlock_abi.is_some();
    let in_jail = match mode {
        SandboxMode::Auto | SandboxMode::Landlock => has_landlock,
        SandboxMode::Bwrap | SandboxMode::Off => false,
    };
    let in_bwrap = match mode {
        SandboxMode::Auto => !has_landlock && probe.bwrap.is_some(),
        SandboxMode::Bwrap => true,
        SandboxMode::Landlock | SandboxMode::Off => false,
    };
    match &probe.namespaces {
        NamespaceProbe::Given if in_jail => DoctorFinding::ok(
            NAME,
            "agents and gates have files, memory, sockets and processes of their own; \
             TCP ports on loopback are the machine's",
        ),
        NamespaceProbe::Refused { why } if in_jail => DoctorFinding::warning(
            NAME,
            format!(
                "this machine gives no user namespaces ({why}): agents and gates can read each \
                 other's worktrees, homes and temporary files, and the journal; they can't write them"
            ),
        ),
        NamespaceProbe::Given | NamespaceProbe::Refused { .. } if in_bwrap => {
            DoctorFinding::warning(
                NAME,
                "bubblewrap does not keep agents and gates apart: they can read each other's \
                 worktrees and homes, and /dev/shm and System V memory that one leaves reach the next",
            )
        }
        NamespaceProbe::Given | NamespaceProbe::Refused { .. } => DoctorFinding::warning(
            NAME,
            "without a sandbox agents and gates can read and write each other's files, and a process \
             that hides on purpose is not found again if Autopilot and its supervisors are killed at once",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(mode: SandboxMode, landlock_abi: Option<i32>, namespaces: NamespaceProbe) -> String {
        told(mode, &Probe { landlock_abi, namespaces, bwrap: Some("/usr/bin/bwrap".into()) }).text()
    }

    #[test]
    fn what_is_not_kept_is_a_warning_that_says_what() {
        let refused = || NamespaceProbe::Refused { why: "no more".to_owned() };
        let whole = says(SandboxMode::Auto, Some(7), NamespaceProbe::Given);
        assert!(whole.starts_with("ok") && whole.contains("loopback"), "{whole}");
        let table = [
            (SandboxMode::Landlock, Some(7), refused(), "user namespaces (no more)"),
            (SandboxMode::Auto, None, NamespaceProbe::Given, "bubblewrap does not keep"),
            (SandboxMode::Bwrap, Some(7), NamespaceProbe::Given, "/dev/shm"),
            (SandboxMode::Off, Some(7), NamespaceProbe::Given, "hides on purpose"),
        ];
        for (mode, landlock, namespaces, expected) in table {
            let text = says(mode, landlock, namespaces);
            assert!(text.starts_with("warning") && text.contains(expected), "{text}");
        }
    }
}
