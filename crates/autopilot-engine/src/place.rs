//! Where things are: the user's checkout, its `.autopilot` directory, and our state outside of it.

use camino::{Utf8Path, Utf8PathBuf};

#[derive(Clone, Debug)]
pub struct StatePaths {
    /// Top level of the user's checkout.
    pub root: Utf8PathBuf,
    /// Outside the checkout: journal, hub, slots. `git clean` can't reach it.
    pub state: Utf8PathBuf,
}

impl StatePaths {
    pub fn views(&self) -> Utf8PathBuf {
        self.root.join(".autopilot")
    }

    pub fn config(&self) -> Utf8PathBuf {
        self.views().join("config.yml")
    }

    pub fn journal(&self) -> Utf8PathBuf {
        crate::store::journal_path(&self.state)
    }

    pub fn inbox(&self) -> Utf8PathBuf {
        self.state.join("inbox")
    }

    /// Directory for what one attempt may scribble in.
    pub fn scratch(&self, name: &str) -> Utf8PathBuf {
        self.state.join("tmp").join(name)
    }

    pub fn caches(&self) -> Utf8PathBuf {
        self.state.join("cache")
    }

    /// A path as the views name it: relative to `.autopilot`.
    pub fn in_views(&self, path: &Utf8Path) -> String {
        path.strip_prefix(self.views()).unwrap_or(path).to_string()
    }
}
