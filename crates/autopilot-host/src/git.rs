//! Git for an unattended controller: the user's repository is read, work happens in a hub and in
//! slots of our own, and nothing an agent can write is ever executed.

pub mod artifact;
pub mod capture;
pub mod change;
pub mod command;
pub mod commit;
pub mod digest;
mod disposable;
mod error;
pub mod gc;
pub mod hub;
mod identity;
pub mod merge;
mod name;
mod object;
mod patch;
pub mod publish;
mod pump;
pub mod push;
pub mod replay;
pub mod repo;
pub mod salvage;
pub mod slot;
pub mod state;
mod sweep;
pub mod train;
mod transfer;

pub use capture::{Attempt, Capture, CaptureRequest, Violation};
pub use change::{Change, ChangeLimits, ChangedPath, LineFact, Status};
pub use command::{CommandError, Git};
pub use commit::{CommitRequest, Committed, commit_task};
pub use digest::user_digest;
pub use error::GitError;
pub use hub::{Expected, Hub};
pub use identity::Identity;
pub use merge::{Conflict, ConflictSide, Conflicts};
pub use name::{free_branch, ref_component, run_branch, task_branch};
pub use object::Oid;
pub use publish::{PublishOutcome, PublishRefusal, Reachable, publish, publish_reachable};
pub use push::{PushClass, PushFailure, PushOutcome, PushRequest, Pushed, push};
pub use repo::{Filter, Head, Refusal, UserRepo};
pub use salvage::Salvaged;
pub use slot::{Keep, Prepare, Prepared, Slot, Slots};
pub use state::{StateEnv, state_root};
pub use train::{Advanced, Candidate, Coupled, Sought, Tip, Track, Wagon};
