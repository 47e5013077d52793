//! The transient items that wait for one subscriber: bounded, and counted beyond the limit.

use super::{FeedItem, SightLevel};
use std::collections::VecDeque;

/// Maximum number of waiting lines of output.
pub const SIGHTS_MAX: usize = 1024;
/// Additional room for items that a person must see.
const NOTICES_MAX: usize = 256;

/// One subscriber's transient items.
pub struct SubscriberSeat {
    pub level: SightLevel,
    /// The waiting items, each with the number of the newest record when it was shown.
    waiting: VecDeque<(u64, FeedItem)>,
    /// The number of items left out after the newest waiting one.
    missed: u64,
    missed_after: u64,
}

impl SubscriberSeat {
    /// An empty seat.
    pub fn new(level: SightLevel) -> SubscriberSeat {
        SubscriberSeat { level, waiting: VecDeque::new(), missed: 0, missed_after: 0 }
    }

    /// Adds an item if the subscriber wants it and has room for it, or else counts it as missed.
    pub fn offer(&mut self, level: SightLevel, after: u64, item: &FeedItem) {
        if level > self.level {
            return;
        }
        let room = match level {
            SightLevel::Output => SIGHTS_MAX,
            SightLevel::Notices | SightLevel::Nothing => SIGHTS_MAX + NOTICES_MAX,
        };
        if self.waiting.len() >= room {
            self.missed += 1;
            self.missed_after = after;
            return;
        }
        if self.missed > 0 {
            self.waiting.push_back((self.missed_after, FeedItem::Missed(self.missed)));
            self.missed = 0;
        }
        self.waiting.push_back((after, item.clone()));
    }

    /// Takes the next item that was shown before the record `next`.
    pub fn due(&mut self, next: u64) -> Option<FeedItem> {
        match self.waiting.front() {
            Some((after, _)) if *after < next => self.waiting.pop_front().map(|(_, item)| item),
            Some(_) => None,
            None if self.missed > 0 && self.missed_after < next => {
                Some(FeedItem::Missed(std::mem::take(&mut self.missed)))
            }
            None => None,
        }
    }

    /// The number of waiting items.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
