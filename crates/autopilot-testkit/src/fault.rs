//! What can go wrong in the simulated world, by name. A seed draws a subset of these.

use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The controller dies between two instants.
    Crash,
    /// It dies again while it boots.
    BootCrash,
    /// Its children outlive it until somebody sweeps them.
    Orphan,
    /// The clock is another one after a restart.
    Clock,
    SlowDisk,
    /// The journal can't be written: the shell ends in good order.
    WriteFails,
    LateWord,
    DoubledWord,
    /// A worker dies under its executor.
    WorkerLost,
    Broke,
    Hang,
    Quota,
    /// Tests, reviews and acceptance runs say no.
    Fails,
    /// A reviewer approves what fails, or says nothing to the point.
    Lie,
    /// A round that changes nothing or brings an old change back.
    Circle,
    Conflict,
    PushBreaks,
    /// A push arrived although its answer did not.
    PushUnknown,
    Bills,
    Stop,
    StopNow,
    Pause,
    Retry,
    Skip,
    Limit,
    Waive,
    AskedTwice,
    /// A person says no at a gate.
    Reject,
    /// A person answers at any moment, whether or not anybody asked.
    Answer,
    /// The machine gets short of room, and has enough again.
    Room,
    /// Work that should bring tasks brings none, or such as can't be taken.
    Barren,
    /// An account is not logged in for a time.
    Auth,
    /// A service is down for a time.
    Outage,
    /// A model is not known for a time.
    Model,
    /// A person continues the session of a step.
    Continue,
    /// A person asks for what can never be done.
    Nonsense,
    /// The machine can't do its part for a time: a full disk, a git that fails.
    Machine,
}

impl Fault {
    pub const ALL: [Fault; 37] = [
        Fault::Crash,
        Fault::BootCrash,
        Fault::Orphan,
        Fault::Clock,
        Fault::SlowDisk,
        Fault::WriteFails,
        Fault::LateWord,
        Fault::DoubledWord,
        Fault::WorkerLost,
        Fault::Broke,
        Fault::Hang,
        Fault::Quota,
        Fault::Fails,
        Fault::Lie,
        Fault::Circle,
        Fault::Conflict,
        Fault::PushBreaks,
        Fault::PushUnknown,
        Fault::Bills,
        Fault::Stop,
        Fault::StopNow,
        Fault::Pause,
        Fault::Retry,
        Fault::Skip,
        Fault::Limit,
        Fault::Waive,
        Fault::AskedTwice,
        Fault::Reject,
        Fault::Answer,
        Fault::Room,
        Fault::Barren,
        Fault::Auth,
        Fault::Outage,
        Fault::Model,
        Fault::Continue,
        Fault::Nonsense,
        Fault::Machine,
    ];

    /// Faults that may delay a run and repeat its work, but must not change what it makes.
    pub const HARMLESS: [Fault; 16] = [
        Fault::Crash,
        Fault::BootCrash,
        Fault::Orphan,
        Fault::Clock,
        Fault::SlowDisk,
        Fault::WriteFails,
        Fault::LateWord,
        Fault::DoubledWord,
        Fault::WorkerLost,
        Fault::Quota,
        Fault::Room,
        Fault::Auth,
        Fault::Outage,
        Fault::Model,
        Fault::Nonsense,
        Fault::Machine,
    ];
}

pub type Faults = BTreeSet<Fault>;
