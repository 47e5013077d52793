//! The row of a run: what a list of runs shows, and the lease that makes one writer of many.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRun {
    pub id: String,
    /// The flow, in the words of the one who creates it.
    pub mode: String,
    pub title: String,
    pub created_at_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub mode: String,
    pub title: String,
    pub created_at_ms: i64,
    /// The outcome in words, once the run has ended.
    pub ended: Option<String>,
    /// `None` until somebody first takes it.
    pub lease: Option<Lease>,
    /// 0 while the run has no record.
    pub last_seq: u64,
}

/// The right to append to a run. The epoch grows each time the lease is taken and never repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub holder: String,
    pub epoch: u64,
    pub expires_ms: i64,
}

/// How to take a lease that another holder may still have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Refused while another holder's lease has not expired.
    WhenFree,
    /// For a caller that knows the other holder is dead. Its epoch is fenced off in any case.
    Force,
}
