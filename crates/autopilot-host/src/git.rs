//! Git for an unattended controller: the user's repository is read, work happens in a hub and in
//! slots of our own, and nothing that an agent can write is ever executed.

pub mod artifact;
mod border;
mod capture;
mod change;
pub(crate) mod command;
mod commit;
mod commit_text;
mod digest;
mod disposable;
mod document;
mod edited;
mod error;
mod fresh;
mod hub;
mod identity;
mod index_file;
mod listing;
mod loose;
mod merge;
mod name;
mod notes;
mod object;
mod overlaid;
mod pack_index;
mod patch;
mod publish;
mod pump;
pub mod push;
pub mod rebase;
mod ref_file;
mod rehearsal;
mod repo;
pub(crate) mod running;
pub mod salvage;
pub mod skill;
mod slot;
pub mod state;
mod submodule;
mod sweep;
mod train;
mod transfer;
mod tree_edit;
pub(crate) mod tree_file;
mod tree_text;

pub use border::{Border, BorderRule, FoundLeak, FoundPlace};
pub use capture::{
    AttemptName, Capture, CaptureCaps, CaptureRequest, OVERSIZE, Oversize, Violation,
};
pub use change::{ChangeLimits, ChangedPath, GitChange, LineFact, PathStatus};
pub use command::{CommandError, CommandStatus, GitCommand};
pub use commit::{CommitRequest, CommittedTask, commit_task};
pub use commit_text::{ChangedPathSides, CommitTexts, changed_sides, text_of};
pub use document::{DocumentRequest, commit_document};
pub use edited::{EditRequest, TreeEdit, edited};
pub use error::{FailureOutlook, GitError};
pub use fresh::fresh_checkout;
pub use hub::{BranchMend, BranchRecord, ExpectedRef, Hub, HubDamage, ObjectMend};
pub use identity::CommitIdentity;
pub use listing::{LinkListing, Listing, has_path, links_of, list_paths};
pub use merge::{Conflict, ConflictSide, Conflicts};
pub use name::{ref_component, run_branch, session_branch, task_branch};
pub use notes::{
    NOTES_REF, NoteText, NotedBlob, NotesRequest, find_notes, publish_notes, read_blob, read_note,
};
pub use object::Oid;
pub use overlaid::{Overlaid, overlaid};
pub use publish::{
    PublishOutcome, PublishRefusal, Reachable, publish, publish_all, publish_reachable,
};
pub use push::{PushClass, PushFailure, PushOutcome, PushRequest, Pushed, push};
pub use rehearsal::{apply_change, make_rehearsal};
pub use repo::{Filter, RepoHead, RepoRefusal, UserRepo};
pub use salvage::Salvaged;
pub use skill::{FolderFile, SkillFile, SkillLimits, folder_files, skill_files};
pub(crate) use slot::is_lock_of;
pub use slot::{KeepFiles, Prepare, PreparedSlot, Slot, Slots};
pub use state::{StateEnv, state_root};
pub use train::{Advanced, Candidate, Coupled, MergedTask, Sought, Tip, Track, Wagon};
pub use tree_text::{TextLimits, TreeTexts, tree_texts};
