//! The transient items that wait for one subscriber: bounded, and what does not fit is counted.

use super::{FeedItem, SightLevel};
use std::collections::VecDeque;

/// Lines of output that wait.
pub const SIGHTS_MAX: usize = 1024;
/// Room beyond it for what a person must see.
const NOTICES_MAX: usize = 256;

/// One subscriber's transient items.
pub struct SubscriberSeat {
    pub level: SightLevel,
    /// Each with the number of the newest record when it was shown.
    waiting: VecDeque<(u64, FeedItem)>,
    /// Left out since the newest of those that wait, after this record.
    missed: u64,
    missed_after: u64,
}

impl SubscriberSeat {
    pub fn new(level: SightLevel) -> SubscriberSeat {
        SubscriberSeat { level, waiting: VecDeque::new(), missed: 0, missed_after: 0 }
    }

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

    /// The next item that was shown before the record `next`.
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

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}
