//! The directory of a slot: where it is, and where the programs in it find it.
//!
//! Where gates have rooms at one path, an agent's slot appears at that path too, as a plain directory
//! that is bound there: what the agent builds has the paths that the gate will have, and a session can
//! be continued in any slot. The agents' package caches appear beside it, where the gate has its own,
//! because build tools write that path too into what they build. Only programs in the jail know that path; everything that the controller
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
    /// The package caches of the programs in it, where these are seen elsewhere too.
    pub caches: Option<SeenCaches>,
}

/// The two paths of the agents' package caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCaches {
    pub real: Utf8PathBuf,
    pub seen: Utf8PathBuf,
}

impl SlotDir {
    /// A directory that programs find where it is.
    pub fn as_it_is(real: Utf8PathBuf) -> SlotDir {
        SlotDir { seen: real.clone(), real, caches: None }
    }

    /// Shows the directory and its caches in the jail of a program, at the paths at which the program
    /// expects them.
    pub fn put_into(&self, plan: &mut JailPlan) {
        let mut bind = |real: &Utf8PathBuf, seen: &Utf8PathBuf| {
            let (from, at) = (real.clone().into(), seen.clone().into());
            plan.mounts.push(JailMount::Bind { from, at });
        };
        if self.real != self.seen {
            bind(&self.real, &self.seen);
        }
        if let Some(caches) = &self.caches {
            bind(&caches.real, &caches.seen);
        }
    }

    /// The path at which programs find a package cache.
    pub fn cache_seen(&self, cache: Utf8PathBuf) -> Utf8PathBuf {
        let seen = |caches: &SeenCaches| {
            cache.strip_prefix(&caches.real).ok().map(|name| caches.seen.join(name))
        };
        self.caches.as_ref().and_then(seen).unwrap_or(cache)
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
        let RoomPaths { tree, cache, .. } = RoomPaths::below(store.place());
        let utf8 =
            |path| Utf8PathBuf::from_path_buf(path).map_err(|path| JobError::NotUtf8 { path });
        let caches = SeenCaches { real: self.agents_caches(), seen: utf8(cache)? };
        Ok(SlotDir { real, seen: utf8(tree)?, caches: Some(caches) })
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
        let caches = SeenCaches { real: "/s/caches/agent".into(), seen: "/s/work/cache".into() };
        let real = "/s/slots/s0".into();
        let shown = SlotDir { real, seen: "/s/work/tree".into(), caches: Some(caches) };
        let bind = |from: &str, at: &str| JailMount::Bind { from: from.into(), at: at.into() };
        let wanted =
            [bind("/s/slots/s0", "/s/work/tree"), bind("/s/caches/agent", "/s/work/cache")];
        assert_eq!(mounts(&shown), wanted);
        assert_eq!(shown.cache_seen("/s/caches/agent/npm".into()), "/s/work/cache/npm");
        let plain = SlotDir::as_it_is("/s/slots/s0".into());
        assert_eq!(plain.cache_seen("/s/caches/agent/npm".into()), "/s/caches/agent/npm");
        assert_eq!(shown.inside("/s/work/tree/a/b").unwrap(), "a/b");
        assert_eq!(shown.inside("/s/slots/s0/a"), None, "no program can see it there");
        assert_eq!(shown.inside("/s/work/trees/a"), None);
    }
}
