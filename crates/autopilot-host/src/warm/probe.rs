//! The question which kinds of layers this machine can make, answered by making them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use super::copying::clone_file;
use super::error::{OnPath, WarmError};
use super::fill::white_out;
use super::layer::LayerKind;
use super::store::claim;
use super::sweep::clear_room;
use crate::dir;
use crate::exec::{self, Supervisor};
use crate::fail;
use crate::jail::{JailMount, JailPlan, NamespaceProbe};

/// The answer of this machine to the question for one kind of layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindProbe {
    /// A layer of this kind was made and used.
    Works,
    /// None could be made, for this reason.
    Refused { why: String },
}

/// The kinds of layers that this machine can make in a state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WarmProbe {
    /// Layers that the kernel merges with the seed.
    pub overlay: KindProbe,
    /// Copies that share blocks with the seed.
    pub reflink: KindProbe,
    /// Whole copies: these need nothing but a jail with mounts of its own.
    pub copy: KindProbe,
}

impl WarmProbe {
    /// Returns the cheapest kind that works; without any, every gate is cold. A whole copy may still
    /// cost more than it saves.
    pub fn kind(&self) -> Option<LayerKind> {
        let kinds = [
            (LayerKind::Overlay, &self.overlay),
            (LayerKind::Reflink, &self.reflink),
            (LayerKind::Copy, &self.copy),
        ];
        let works = |(_, probe): &&(LayerKind, &KindProbe)| **probe == KindProbe::Works;
        kinds.iter().find(works).map(|(kind, _)| *kind)
    }

    /// Returns one sentence for `doctor`.
    pub fn sentence(&self) -> String {
        let refused = |probe: &KindProbe| match probe {
            KindProbe::Works => None,
            KindProbe::Refused { why } => Some(why.clone()),
        };
        let no_overlay = || refused(&self.overlay).unwrap_or_default();
        match self.kind() {
            Some(LayerKind::Overlay) => {
                String::from("warm gates are layers over what the base built (overlay)")
            }
            Some(LayerKind::Reflink) => format!(
                "warm gates are copies that share blocks with what the base built (reflink); no \
                 overlay: {}",
                no_overlay()
            ),
            Some(LayerKind::Copy) => format!(
                "warm gates are whole copies of what the base built, where that is cheap; no \
                 overlay: {}",
                no_overlay()
            ),
            None => format!(
                "every gate starts from nothing: {}",
                refused(&self.copy).unwrap_or_else(no_overlay)
            ),
        }
    }
}

/// Finds out which layers can be made in a state directory. `path` is the PATH on which the shell of
/// the trial is found; `namespaces` is what was found out about jails.
pub fn probe(
    state: &Path,
    path: &OsStr,
    supervisor: &Supervisor,
    namespaces: &NamespaceProbe,
) -> Result<WarmProbe, WarmError> {
    if let NamespaceProbe::Refused { why } = namespaces {
        let refused = KindProbe::Refused { why: why.clone() };
        let [overlay, reflink, copy] = [refused.clone(), refused.clone(), refused];
        return Ok(WarmProbe { overlay, reflink, copy });
    }
    let (dir, lock) = claim(state)?;
    let tried = ProbeTrial::at(&dir).prepare().map(|trial| {
        let overlay = match exec::probe_layer(path, supervisor, &dir) {
            NamespaceProbe::Given => trial.verdict(),
            NamespaceProbe::Refused { why } => KindProbe::Refused { why },
        };
        let or_refused = |kind: LayerKind, found: KindProbe| match fail::lacks_layers(kind.word()) {
            true => KindProbe::Refused { why: "it was left out".to_owned() },
            false => found,
        };
        WarmProbe {
            overlay: or_refused(LayerKind::Overlay, overlay),
            reflink: or_refused(LayerKind::Reflink, trial.reflink()),
            copy: KindProbe::Works,
        }
    });
    clear_room(&dir, lock)?;
    tried
}

/// Returns the jail and the script of a trial that the controller has prepared in a directory.
pub(crate) fn layer_trial(dir: &Path) -> (JailPlan, String) {
    let ProbeTrial { lower, upper, work, place } = ProbeTrial::at(dir);
    let quoted = place.display().to_string().replace('\'', "'\\''");
    let script = format!(
        "cd '{quoted}' && test \"$(cat kept)\" = old && test ! -e hidden && rm gone && \
         echo new > kept && rm -r dir && mkdir dir"
    );
    let mounts = vec![JailMount::Overlay { lower, upper, work, at: place.clone() }];
    (JailPlan { write: vec![place], mounts, ..JailPlan::default() }, script)
}

/// The directories of a trial.
struct ProbeTrial {
    lower: PathBuf,
    upper: PathBuf,
    work: PathBuf,
    place: PathBuf,
}

impl ProbeTrial {
    fn at(dir: &Path) -> ProbeTrial {
        let [lower, upper, work, place] =
            ["lower", "upper", "work", "place"].map(|name| dir.join(name));
        ProbeTrial { lower, upper, work, place }
    }

    fn prepare(self) -> Result<ProbeTrial, WarmError> {
        for path in [&self.lower.join("dir"), &self.upper, &self.work, &self.place] {
            dir::create_private(path).at("create", path)?;
        }
        for name in ["kept", "gone", "hidden", "dir/file"] {
            let path = self.lower.join(name);
            fs::write(&path, "old\n").at("write", &path)?;
        }
        // Where this is refused, the trial finds `hidden`.
        let _refused = white_out(&self.upper.join("hidden"));
        Ok(self)
    }

    /// Looks whether the program's changes are in the upper directory and nowhere else.
    fn verdict(&self) -> KindProbe {
        let is_deleted = |name: &str| {
            let met = self.upper.join(name).symlink_metadata();
            met.is_ok_and(|met| met.file_type().is_char_device())
        };
        let read = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let is_kept = ["kept", "gone", "hidden", "dir/file"]
            .iter()
            .all(|name| read(self.lower.join(name)) == "old\n");
        let is_layer = read(self.upper.join("kept")) == "new\n"
            && is_deleted("gone")
            && super::difference::is_opaque(&self.upper.join("dir")).unwrap_or(false);
        match (is_kept, is_layer) {
            (true, true) => KindProbe::Works,
            (false, _) => refused("the lower directory was changed"),
            (true, false) => refused("the upper directory does not have what was written"),
        }
    }

    fn reflink(&self) -> KindProbe {
        let (from, to) = (self.lower.join("kept"), self.place.join("clone"));
        let cloned = File::open(&from)
            .and_then(|input| File::create(&to).and_then(|output| clone_file(&input, &output)));
        match cloned {
            Ok(()) => KindProbe::Works,
            Err(error) => refused(&error.to_string()),
        }
    }
}

fn refused(why: &str) -> KindProbe {
    KindProbe::Refused { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_kind_that_works_is_taken_and_the_reason_is_told() {
        let no = |why: &str| refused(why);
        let all = WarmProbe {
            overlay: KindProbe::Works,
            reflink: KindProbe::Works,
            copy: KindProbe::Works,
        };
        assert_eq!(all.kind(), Some(LayerKind::Overlay));
        let second = WarmProbe { overlay: no("EPERM"), ..all.clone() };
        assert_eq!(second.kind(), Some(LayerKind::Reflink));
        assert!(second.sentence().contains("reflink") && second.sentence().contains("EPERM"));
        let third = WarmProbe { reflink: no("EOPNOTSUPP"), ..second };
        assert_eq!(third.kind(), Some(LayerKind::Copy));
        let none = WarmProbe { copy: no("no namespaces"), ..third };
        assert_eq!(none.kind(), None);
        assert_eq!(none.sentence(), "every gate starts from nothing: no namespaces");
    }
}
