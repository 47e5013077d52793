//! The controller's notes about slots, kept beside the hub.

use std::fs;

use super::{Slot, Slots};
use crate::git::error::GitError;
use crate::git::object::Oid;
use crate::git::state::write_atomic;

/// The controller's record about a slot.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct SlotNote {
    pub task: String,
    pub attempt: String,
    pub base: Oid,
    /// The last tree of this slot that a commit or a salvage ref holds.
    pub safe_tree: Oid,
}

impl Slot {
    pub(crate) fn note(&self) -> Option<SlotNote> {
        serde_json::from_slice(&fs::read(self.own.join("note.json")).ok()?).ok()
    }

    pub(crate) fn write_note(&self, note: &SlotNote) -> Result<(), GitError> {
        let path = self.own.join("note.json");
        let text = serde_json::to_vec(note).map_err(|error| GitError::Unreadable {
            what: "note".into(),
            text: error.to_string(),
        })?;
        write_atomic(&path, &text)
    }
}

impl Slots {
    /// Renews the notes that name a commit or a tree which the hub has lost: from then on the files of
    /// such a slot are measured against `base`, so that they can still be rescued.
    pub fn renew_lost_notes(&self, base: &Oid) -> Result<(), GitError> {
        let slots = self.existing()?.into_iter();
        let noted: Vec<(Slot, SlotNote)> =
            slots.filter_map(|slot| slot.note().map(|note| (slot, note))).collect();
        let named = noted.iter().flat_map(|(_, note)| [note.base.clone(), note.safe_tree.clone()]);
        let lost = self.hub.lacking(&named.collect::<Vec<_>>())?;
        for (slot, note) in noted {
            if lost.contains(&note.safe_tree) {
                let safe_tree = self.hub.tree_of(base)?;
                slot.write_note(&SlotNote { base: base.clone(), safe_tree, ..note })?;
            } else if lost.contains(&note.base) {
                slot.write_note(&SlotNote { base: base.clone(), ..note })?;
            }
        }
        Ok(())
    }
}
