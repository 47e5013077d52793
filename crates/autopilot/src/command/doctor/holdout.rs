//! The held-out tests: whether a run could take them, and whether agents could read them.

use super::finding::DoctorFinding;
use autopilot_core::config::{Config, SandboxMode, SandboxNetwork};
use autopilot_core::number::count;
use autopilot_engine::holdout;
use autopilot_engine::place::StatePaths;
use autopilot_host::exec::Supervisor;
use autopilot_host::git::UserRepo;
use autopilot_host::jail::NamespaceProbe;
use autopilot_host::sandbox;

const NAME: &str = "holdout";

/// Checks the directory of held-out tests, if one is configured.
pub fn look(repo: &UserRepo, config: &Config, place: &StatePaths) -> Option<DoctorFinding> {
    let set = match holdout::look(config, place, &repo.common_dir) {
        Ok(set) => set?,
        Err(fault) => return Some(DoctorFinding::missing(NAME, fault.to_string())),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let probe = sandbox::probe(&path, &Supervisor::default());
    let is_jail = matches!(config.sandbox.mode, SandboxMode::Auto | SandboxMode::Landlock);
    let is_hidden =
        is_jail && probe.landlock_abi.is_some() && probe.namespaces == NamespaceProbe::Given;
    Some(told(set.files.len(), is_hidden, config.sandbox.network))
}

fn told(files: usize, is_hidden: bool, network: SandboxNetwork) -> DoctorFinding {
    let files = count(files, "file");
    match (is_hidden, network) {
        (false, _) => DoctorFinding::warning(
            NAME,
            format!(
                "{files}; agents can read the held-out tests here: only the sandbox modes `auto` and \
                 `landlock` hide them, on a machine with user namespaces"
            ),
        ),
        (true, SandboxNetwork::Open) => DoctorFinding::ok(
            NAME,
            format!(
                "{files} that agents can't read; the code of a change runs beside them and could send \
                 them over the network, which `sandbox.network: off` prevents"
            ),
        ),
        (true, SandboxNetwork::Off) => {
            DoctorFinding::ok(NAME, format!("{files} that agents can't read"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_hidden_is_a_warning() {
        let text = |is_hidden, network| told(2, is_hidden, network).text();
        let open = text(false, SandboxNetwork::Off);
        assert!(open.contains("2 files") && open.contains("agents can read"), "{open}");
        assert!(text(true, SandboxNetwork::Open).contains("`sandbox.network: off`"));
        let closed = text(true, SandboxNetwork::Off);
        assert!(closed.starts_with("ok") && closed.ends_with("can't read"), "{closed}");
    }
}
