//! The dashboard as a subscriber of a run: it puts the items of the feed onto the screen.

use crate::screen::Screen;
use crate::show::News;
use autopilot_engine::clock::now;
use autopilot_engine::feed::{FeedItem, FeedNews, Subscription};
use autopilot_engine::store::StoreError;
use std::time::Duration;

/// Items taken between two frames.
const ITEMS_MAX: usize = 1024;

/// The feed of a run, read for the screen.
pub struct ScreenFeed {
    pub subscription: Subscription,
    /// Asked before each look at the feed: a signal may have told an onlooker to leave.
    pub is_over: Box<dyn FnMut() -> bool + Send>,
    /// Why the feed ended, if the journal could not be read.
    pub failed: Option<StoreError>,
}

impl ScreenFeed {
    /// A feed that continues until the run has ended.
    pub fn of(subscription: Subscription) -> ScreenFeed {
        ScreenFeed { subscription, is_over: Box::new(|| false), failed: None }
    }

    /// Puts the items that came since the last look onto the screen. Never waits.
    pub fn take(&mut self, screen: &mut Screen) -> News {
        if (self.is_over)() {
            return News::End;
        }
        let mut news = News::None;
        for _ in 0..ITEMS_MAX {
            match self.subscription.take(Duration::ZERO) {
                Ok(FeedNews::Item(item)) => tell(screen, &item),
                Ok(FeedNews::Quiet) => return news,
                // The last items are shown before the screen closes.
                Ok(FeedNews::Ended) if news == News::Some => return news,
                Ok(FeedNews::Ended) => return News::End,
                Err(error) => {
                    self.failed = Some(error);
                    return News::End;
                }
            }
            news = News::Some;
        }
        news
    }
}

/// Puts one item onto the screen.
pub fn tell(screen: &mut Screen, item: &FeedItem) {
    match item {
        FeedItem::Record(record) => screen.record(record),
        FeedItem::Sight { task, step, sight } => screen.sight(*task, *step, sight, now()),
        FeedItem::Notice(text) => screen.notice(text, now()),
        // The log files have the items that were left out here.
        FeedItem::Missed(_) => {}
    }
}
