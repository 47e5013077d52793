//! Paths: the user's checkout, its `.autopilot` directory, and the state directory outside of it.

use autopilot_host::register::ProcessRegister;
use autopilot_host::warm::{PLACE, TREE};
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

    /// A text with paths inside of worktrees and of the checkout relative to them.
    pub fn relative(&self, text: &str) -> String {
        let mut text = self.without_place(text);
        if !self.state.as_str().is_empty() {
            for pool in ["slots", "proof"] {
                let pool = format!("{}/{pool}/", self.state);
                text = without_worktrees(&text, &pool, |_| true);
            }
        }
        text.replace(&format!("{}/", self.root), "")
    }

    /// A text with paths inside of a worktree relative to it where they begin at the path at which
    /// programs in a jail see theirs. Outside of a jail there is nothing at that path.
    pub fn without_place(&self, text: &str) -> String {
        if self.state.as_str().is_empty() {
            return text.to_owned();
        }
        without_worktrees(text, &format!("{}/{PLACE}/", self.state), |name| name == TREE)
    }

    /// The package caches that agents and commands share.
    pub fn caches(&self) -> Utf8PathBuf {
        self.state.join("cache")
    }
}

/// A text without the paths of the directories below `pool` that are worktrees by their names.
fn without_worktrees(text: &str, pool: &str, is_worktree: impl Fn(&str) -> bool) -> String {
    let mut parts = text.split(pool);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let name = part.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(part.len());
        let (name, rest) = part.split_at(name);
        if !is_worktree(name) {
            out.push_str(pool);
            out.push_str(part);
            continue;
        }
        match rest.strip_prefix('/') {
            Some(inside) => out.push_str(inside),
            None => {
                out.push('.');
                out.push_str(rest);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_worktrees_are_told_as_the_user_knows_them() {
        let place = StatePaths { root: "/home/me/shop".into(), state: "/state/1f".into() };
        for (text, wanted) in [
            ("changed /state/1f/slots/s0/src/tax.js", "changed src/tax.js"),
            ("cd /state/1f/slots/s12 && ls /state/1f/proof/p0/a", "cd . && ls a"),
            ("in /state/1f/slots/s0: 2", "in .: 2"),
            ("/state/1f/work/tree/src/a.rs:3, in /state/1f/work/tree", "src/a.rs:3, in ."),
            ("/state/1f/work/home/a", "/state/1f/work/home/a"),
            ("/home/me/shop/a /home/me/shopping/b", "a /home/me/shopping/b"),
            ("/state/2e/slots/s0/a", "/state/2e/slots/s0/a"),
        ] {
            assert_eq!(place.relative(text), wanted);
        }
        let none = StatePaths { root: "/r".into(), state: "".into() };
        assert_eq!(none.relative("/slots/s0/a"), "/slots/s0/a");
    }
}
