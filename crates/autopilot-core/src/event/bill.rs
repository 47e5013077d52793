//! The cost of attempts and sessions.

use super::is_default;
use crate::id::Micros;
use serde::{Deserialize, Serialize};

/// The cost of an attempt so far. Of two bills of one attempt, the larger of each figure counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bill {
    /// The cost as the agent told it, or its tokens at the configured price.
    pub usd: Micros,
    /// The cost that nobody told and that is estimated. It counts against limits as `usd` does, and
    /// is shown apart from it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub estimated: Micros,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// The part of `tokens_in` that came from the vendor's cache.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cached: u64,
    /// Part of the cost is not known, and no figure stands for it. In journals of before 0.4, `usd`
    /// may include what was reserved for that part.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unpriced: bool,
}

impl Bill {
    /// The amount that counts against limits.
    pub fn counted(self) -> Micros {
        self.usd.plus(self.estimated)
    }

    /// Whether an agent told all of the cost.
    pub fn is_complete(self) -> bool {
        !self.unpriced && self.estimated == Micros(0)
    }

    /// The larger figures of two bills of one attempt.
    #[must_use]
    pub fn max(self, other: Bill) -> Bill {
        Bill {
            usd: self.usd.max(other.usd),
            estimated: self.estimated.max(other.estimated),
            tokens_in: self.tokens_in.max(other.tokens_in),
            tokens_out: self.tokens_out.max(other.tokens_out),
            cached: self.cached.max(other.cached),
            unpriced: self.unpriced || other.unpriced,
        }
    }

    /// The sum of the bills of two attempts, or of two turns of one.
    #[must_use]
    pub fn plus(self, other: Bill) -> Bill {
        Bill {
            usd: self.usd.plus(other.usd),
            estimated: self.estimated.plus(other.estimated),
            tokens_in: self.tokens_in.saturating_add(other.tokens_in),
            tokens_out: self.tokens_out.saturating_add(other.tokens_out),
            cached: self.cached.saturating_add(other.cached),
            unpriced: self.unpriced || other.unpriced,
        }
    }

    /// The increase since `before`, an earlier bill of the same attempt.
    #[must_use]
    pub fn since(self, before: Bill) -> Bill {
        Bill {
            usd: self.usd.minus(before.usd),
            estimated: self.estimated.minus(before.estimated),
            tokens_in: self.tokens_in.saturating_sub(before.tokens_in),
            tokens_out: self.tokens_out.saturating_sub(before.tokens_out),
            cached: self.cached.saturating_sub(before.cached),
            unpriced: self.unpriced,
        }
    }
}

/// A vendor's own count over all turns of a session. An attempt that resumes the session owes only
/// the increase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTotal {
    pub session: String,
    /// None if the vendor reports no cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Micros>,
    /// None if the vendor counts each turn by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCount>,
}

/// Counts of tokens: `input` is everything the model read, `cached` the part of it that came from
/// the vendor's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TokenCount {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

impl TokenCount {
    /// The sum of both counts; stops at the largest number.
    #[must_use]
    pub fn plus(self, other: TokenCount) -> TokenCount {
        self.with(other, u64::saturating_add)
    }

    /// Combines each figure with the same figure of `other`.
    #[must_use]
    pub fn with(self, other: TokenCount, both: fn(u64, u64) -> u64) -> TokenCount {
        TokenCount {
            input: both(self.input, other.input),
            output: both(self.output, other.output),
            cached: both(self.cached, other.cached),
        }
    }
}
