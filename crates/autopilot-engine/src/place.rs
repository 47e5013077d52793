//! Paths: the user's checkout, its `.autopilot` directory, and the state directory outside of it.

use autopilot_host::register::ProcessRegister;
use camino::Utf8PathBuf;

/// The directories of one repository.
#[derive(Clone, Debug)]
pub struct StatePaths {
    /// Top level of the user's checkout.
    pub root: Utf8PathBuf,
    /// The state directory outside the checkout, with journal, hub and slots: `git clean` can't
    /// reach it.
    pub state: Utf8PathBuf,
}

impl StatePaths {
    /// The `.autopilot` directory of the checkout.
    pub fn views(&self) -> Utf8PathBuf {
        self.root.join(".autopilot")
    }

    /// The configuration file.
    pub fn config(&self) -> Utf8PathBuf {
        self.views().join("config.yml")
    }

    /// The journal's database.
    pub fn journal(&self) -> Utf8PathBuf {
        crate::store::journal_path(&self.state)
    }

    /// The directory for messages to the running process.
    pub fn inbox(&self) -> Utf8PathBuf {
        self.state.join("inbox")
    }

    /// The register of the process trees that run.
    pub fn processes(&self) -> ProcessRegister {
        ProcessRegister::at(self.state.join("processes"))
    }

    /// The state directories of this repository and, as far as they can be seen, of others.
    pub fn all_states(&self) -> Vec<Utf8PathBuf> {
        let others = self.state.parent().and_then(|root| root.read_dir_utf8().ok());
        let others = others.into_iter().flatten().flatten().map(|entry| entry.into_path());
        let is_state = |path: &Utf8PathBuf| crate::store::journal_path(path).exists();
        let others = others.filter(|path| *path != self.state).filter(is_state);
        std::iter::once(self.state.clone()).chain(others).collect()
    }

    /// The temporary directory of one attempt.
    pub fn scratch(&self, name: &str) -> Utf8PathBuf {
        self.state.join("tmp").join(name)
    }

    /// The package caches that agents and commands share.
    pub fn caches(&self) -> Utf8PathBuf {
        self.state.join("cache")
    }
}
