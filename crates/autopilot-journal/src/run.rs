//! The row of a run: the facts that a list of runs shows, and the lease that leaves one writer of
//! many.

/// The facts given when a run is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    /// The id, which no other run of the journal has.
    pub id: String,
    /// The word for the flow, in the words of the caller.
    pub mode: String,
    /// The title shown in a list of runs.
    pub title: String,
    /// When the run was created, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
}

/// The row of a run as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRun {
    /// The id, which no other run of the journal has.
    pub id: String,
    /// The word for the flow, in the words of whoever created the run.
    pub mode: String,
    /// The title shown in a list of runs.
    pub title: String,
    /// When the run was created, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// The outcome in words, once the run has ended.
    pub ended: Option<String>,
    /// The newest lease, which may have expired; `None` until somebody first takes it.
    pub lease: Option<RunLease>,
    /// The number of the last record; 0 while the run has none.
    pub last_seq: u64,
}

/// The right to append to a run. The epoch grows each time the lease is taken and never repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLease {
    /// The name by which the holder takes its own lease again.
    pub holder: String,
    /// The number of this taking of the lease; an entry must carry the current one.
    pub epoch: u64,
    /// When others may take the lease, in milliseconds since the Unix epoch.
    pub expires_ms: i64,
}

/// How to take a lease that another holder may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseClaim {
    /// The lease is refused while another holder's has not expired.
    WhenFree,
    /// The lease is taken in any case, by a caller that knows the other holder is dead. The other
    /// holder's epoch is fenced off even if it is not.
    Force,
}
