//! The feed from any cursor, under concurrent records, with subscribers that lag or stall.

use super::seat::SIGHTS_MAX;
use super::*;
use autopilot_core::event::Event;
use autopilot_core::id::Time;
use autopilot_journal::{Error, JournalRun, Snapshot};

const SOON: Duration = Duration::from_secs(20);

/// A journal in memory.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<autopilot_journal::JournalRecord>>>);

impl Kept {
    fn write(&self, record: &Record) {
        let body = serde_json::to_vec(record).unwrap();
        let (run, at_ms) = ("r".to_owned(), record.at.0);
        let written =
            autopilot_journal::JournalRecord { run, seq: record.seq, epoch: 1, at_ms, body };
        self.0.lock().unwrap().push(written);
    }
}

impl JournalHistory for Kept {
    fn runs(&self, _: usize) -> Result<Vec<JournalRun>, Error> {
        Ok(Vec::new())
    }

    fn run(&self, _: &str) -> Result<Option<JournalRun>, Error> {
        Ok(None)
    }

    fn read(
        &self,
        _: &str,
        from: u64,
        max: usize,
    ) -> Result<Vec<autopilot_journal::JournalRecord>, Error> {
        let all = self.0.lock().unwrap();
        Ok(all.iter().filter(|record| record.seq >= from).take(max).cloned().collect())
    }

    fn snapshot(&self, _: &str, _: &str) -> Result<Option<Snapshot>, Error> {
        Ok(None)
    }

    fn blob(&self, _: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }
}

/// A feed with its journal; records are durable before they are published.
struct TestDesk {
    kept: Kept,
    feed: RunFeed,
}

impl TestDesk {
    fn new() -> TestDesk {
        let kept = Kept::default();
        let journal = kept.clone();
        let feed = RunFeed::new("r", 0, Arc::new(move || Ok(Box::new(journal.clone()))));
        TestDesk { kept, feed }
    }

    fn publish(&self, seqs: std::ops::RangeInclusive<u64>) {
        for seq in seqs {
            let record = Record { seq, at: Time(0), events: vec![Event::TimePassed] };
            self.kept.write(&record);
            self.feed.publish(record);
        }
    }

    fn output(&self, lines: usize) {
        for _ in 0..lines {
            self.feed.show(TaskId(1), Step::Build, Sight::Output { text: "a line".to_owned() });
        }
    }
}

/// The delivered items until the feed is quiet or over: records by number, the rest in a word.
fn told(subscription: &mut Subscription) -> Vec<String> {
    let mut told = Vec::new();
    while let FeedNews::Item(item) = subscription.take(Duration::ZERO).unwrap() {
        told.push(match item {
            FeedItem::Record(record) => record.seq.to_string(),
            FeedItem::Sight { .. } => "sight".to_owned(),
            FeedItem::Notice(text) => text.to_string(),
            FeedItem::Missed(count) => format!("missed {count}"),
        });
    }
    told
}

fn until_end(mut subscription: Subscription) -> Vec<u64> {
    let mut seqs = Vec::new();
    loop {
        match subscription.take(SOON).unwrap() {
            FeedNews::Item(FeedItem::Record(record)) => seqs.push(record.seq),
            FeedNews::Item(_) => {}
            FeedNews::Quiet => panic!("nothing came after {seqs:?}"),
            FeedNews::Ended => return seqs,
        }
    }
}

#[test]
fn a_subscriber_gets_every_record_from_its_cursor_on_and_then_live_ones() {
    let desk = TestDesk::new();
    desk.publish(1..=3);
    let mut from_two = desk.feed.subscribe(2, SightLevel::Nothing);
    let mut ahead = desk.feed.subscribe(5, SightLevel::Nothing);
    assert_eq!(told(&mut from_two), ["2", "3"]);
    desk.publish(4..=6);
    assert_eq!(told(&mut from_two), ["4", "5", "6"]);
    assert_eq!(told(&mut ahead), ["5", "6"]);
    desk.feed.end();
    assert!(matches!(from_two.take(SOON), Ok(FeedNews::Ended)));
}

#[test]
fn whoever_lags_behind_memory_goes_on_from_the_journal_without_gap_or_repeat() {
    let desk = TestDesk::new();
    let ring = RING_RECORDS_MAX as u64;
    let slow = desk.feed.subscribe(1, SightLevel::Nothing);
    desk.publish(1..=3 * ring);
    assert_eq!(desk.feed.shared.lock().ring.len(), RING_RECORDS_MAX);
    let late = desk.feed.subscribe(ring / 2, SightLevel::Nothing);
    desk.feed.end();
    assert_eq!(until_end(slow), (1..=3 * ring).collect::<Vec<_>>());
    assert_eq!(until_end(late), (ring / 2..=3 * ring).collect::<Vec<_>>());
}

#[test]
fn subscribers_that_come_at_any_time_miss_nothing_while_records_come() {
    let desk = TestDesk::new();
    let last = 6_000;
    std::thread::scope(|scope| {
        let mut clients = Vec::new();
        let publisher = scope.spawn(|| {
            desk.publish(1..=last);
            desk.feed.end();
        });
        for from in [1, 17, 900, 2_500, 5_999, last] {
            let subscription = desk.feed.subscribe(from, SightLevel::Output);
            clients.push((from, scope.spawn(move || until_end(subscription))));
        }
        publisher.join().unwrap();
        for (from, client) in clients {
            assert_eq!(client.join().unwrap(), (from..=last).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_stalled_subscriber_holds_up_nobody_and_costs_no_more_than_its_limit() {
    let desk = TestDesk::new();
    let mut stalled = desk.feed.subscribe(1, SightLevel::Output);
    let mut other = desk.feed.subscribe(1, SightLevel::Nothing);
    for seq in 1..=2_000 {
        desk.publish(seq..=seq);
        desk.output(3);
        assert_eq!(told(&mut other), [seq.to_string()]);
    }
    let waiting: usize = desk.feed.shared.lock().seats.values().map(SubscriberSeat::len).sum();
    assert_eq!(waiting, SIGHTS_MAX);
    desk.feed.notice("a person must see this");
    let said = told(&mut stalled);
    assert_eq!(said.iter().filter(|item| *item == "sight").count(), SIGHTS_MAX);
    assert_eq!(said.iter().filter(|item| item.starts_with("missed")).count(), 1);
    let missed = format!("missed {}", 6_000 - SIGHTS_MAX);
    assert_eq!(said[said.len() - 2..], [missed, "a person must see this".to_owned()]);
    let records: Vec<&String> = said.iter().filter(|item| item.parse::<u64>().is_ok()).collect();
    assert_eq!(records.len(), 2_000);
}

#[test]
fn what_is_shown_comes_between_the_records_it_was_shown_between() {
    let desk = TestDesk::new();
    let mut subscription = desk.feed.subscribe(1, SightLevel::Output);
    desk.feed.notice("before");
    desk.publish(1..=1);
    desk.output(1);
    desk.publish(2..=2);
    desk.output(SIGHTS_MAX + 2);
    desk.publish(3..=3);
    let said = told(&mut subscription);
    assert_eq!(said[..4], ["before", "1", "sight", "2"]);
    assert_eq!(said[said.len() - 2..], ["missed 4", "3"]);
}

#[test]
fn output_nobody_wants_is_not_even_offered() {
    let desk = TestDesk::new();
    let mut quiet = desk.feed.subscribe(1, SightLevel::Notices);
    desk.output(2);
    let suspect = Sight::Suspect { silent: Duration::from_secs(9) };
    desk.feed.show(TaskId(1), Step::Build, suspect);
    assert_eq!(told(&mut quiet), ["sight"]);
    let loud = desk.feed.subscribe(1, SightLevel::Output);
    assert!(desk.feed.shared.wants_output.load(Ordering::Relaxed));
    drop(loud);
    assert!(!desk.feed.shared.wants_output.load(Ordering::Relaxed));
    assert_eq!(desk.feed.shared.lock().seats.len(), 1);
}

#[tokio::test]
async fn whoever_awaits_the_next_item_is_woken_by_it() {
    let desk = TestDesk::new();
    let mut subscription = desk.feed.subscribe(1, SightLevel::Nothing);
    let feed = desk.feed.clone();
    let waiting = tokio::spawn(async move { subscription.next().await });
    tokio::task::yield_now().await;
    desk.publish(1..=1);
    let news = waiting.await.unwrap().unwrap();
    assert!(matches!(news, FeedNews::Item(FeedItem::Record(record)) if record.seq == 1));
    let mut ended = feed.subscribe(2, SightLevel::Nothing);
    feed.end();
    assert!(matches!(ended.next().await, Ok(FeedNews::Ended)));
}

#[test]
fn another_process_is_followed_by_the_journal_until_nobody_is_at_work() {
    let desk = TestDesk::new();
    desk.publish(1..=700);
    let is_live = Arc::new(AtomicBool::new(true));
    let alive = Arc::clone(&is_live);
    let at_work: AtWork = Box::new(move || Ok(alive.load(Ordering::SeqCst)));
    let history = Box::new(desk.kept.clone());
    let mut follower = Subscription::of_journal(history, "r", 3, at_work, GrowthWatch::of([]));
    let said = told(&mut follower);
    assert_eq!((said.len(), said[0].as_str(), said[697].as_str()), (698, "3", "700"));
    assert!(matches!(follower.take(Duration::ZERO), Ok(FeedNews::Quiet)));
    desk.publish(701..=702);
    is_live.store(false, Ordering::SeqCst);
    assert_eq!(until_end(follower), [701, 702]);
}
