//! The directory of a slot: where it is, and where the programs in it find it.
//!
//! Where gates have rooms at one path, an agent's slot appears at that path too, as a plain directory
//! that is bound there: what the agent builds has the paths that the gate will have, and a session can
//! be continued in any slot. Only programs in the jail know that path; everything that the controller
//! does itself, and everything that a person reads, uses the real one.

use super::workshop::For;
use super::{Job, JobError};
use autopilot_host::jail::{JailMount, JailPlan};
use autopilot_host::warm::RoomPaths;
use camino::{Utf8Path, Utf8PathBuf};

/// The two paths of a slot's directory. They are the same where programs have no mounts of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotDir {
    /// The directory as it is outside of any jail.
    pub real: Utf8PathBuf,
    /// The path at which programs in the slot find it.
    pub seen: Utf8PathBuf,
}

impl SlotDir {
    /// A directory that programs find where it is.
    pub fn as_it_is(real: Utf8PathBuf) -> SlotDir {
        SlotDir { seen: real.clone(), real }
    }

    /// Shows the directory in the jail of a program, at the path at which the program expects it.
    pub fn put_into(&self, plan: &mut JailPlan) {
        if self.real != self.seen {
            let (from, at) = (self.real.clone().into(), self.seen.clone().into());
            plan.mounts.push(JailMount::Bind { from, at });
        }
    }

    /// The part of a path that is inside the directory, if it begins where programs find that.
    pub fn inside<'a>(&self, path: &'a str) -> Option<&'a Utf8Path> {
        Utf8Path::new(path).strip_prefix(&self.seen).ok()
    }
}

impl Job {
    /// The two paths of a slot.
    pub(super) fn slot_dir(&self, real: Utf8PathBuf, purpose: For) -> Result<SlotDir, JobError> {
        let store = match purpose {
            For::Agent => self.warm_store()?,
            // A gate that could have a room has one, and no slot.
            For::Proof => None,
        };
        let Some(store) = store else { return Ok(SlotDir::as_it_is(real)) };
        let seen = Utf8PathBuf::from_path_buf(RoomPaths::below(store.place()).tree)
            .map_err(|path| JobError::NotUtf8 { path })?;
        Ok(SlotDir { real, seen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_that_is_seen_elsewhere_is_mounted() {
        let mounts = |dir: &SlotDir| {
            let mut plan = JailPlan::default();
            dir.put_into(&mut plan);
            plan.mounts
        };
        assert_eq!(mounts(&SlotDir::as_it_is("/s/slots/s0".into())), []);
        let shown = SlotDir { real: "/s/slots/s0".into(), seen: "/s/work/tree".into() };
        let (from, at) = ("/s/slots/s0".into(), "/s/work/tree".into());
        assert_eq!(mounts(&shown), [JailMount::Bind { from, at }]);
        assert_eq!(shown.inside("/s/work/tree/a/b").unwrap(), "a/b");
        assert_eq!(shown.inside("/s/slots/s0/a"), None, "no program can see it there");
        assert_eq!(shown.inside("/s/work/trees/a"), None);
    }
}
