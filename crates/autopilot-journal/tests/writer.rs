//! The writer thread: its groups, order and limits, and its behaviour when a commit fails.
#![allow(clippy::unwrap_used, reason = "a failed setup is a failed test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};

use autopilot_journal::{
    Appender, Blob, Error, Journal, JournalEntry, JournalHistory, JournalRecord, JournalRun,
    LeaseClaim, NewRun, RunLease, Snapshot, SqliteJournal, SqliteReader, Writer, WriterNotice,
};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

#[test]
fn what_queues_up_behind_a_slow_commit_becomes_one_transaction() {
    let store = Store::new(&["r"]);
    let (journal, gate) = Gated::new(store.open());
    let commits = Arc::clone(&journal.commits);
    let (writer, told) = start(journal, 1000);
    let appender = writer.appender();
    appender.submit(record("r", 1)).unwrap();
    gate.entered.recv().unwrap();
    for seq in 2..=500 {
        appender.submit(record("r", seq)).unwrap();
    }
    gate.open();
    writer.close().unwrap();
    assert_eq!(commits.load(Ordering::SeqCst), 2);
    assert_eq!(durable(&told), [("r".into(), 1), ("r".into(), 500)]);
    assert_eq!(store.reader().read("r", 1, 1000).unwrap().len(), 500);
}

#[test]
fn a_slow_listener_makes_larger_groups_not_more_commits() {
    let store = Store::new(&["r"]);
    let (journal, gate) = Gated::new(store.open());
    gate.open();
    let commits = Arc::clone(&journal.commits);
    let (release, released) = channel::<()>();
    let (heard, hears) = channel();
    let notify = Box::new(move |notice| {
        heard.send(notice).unwrap();
        let _gone_when_released = released.recv();
    });
    let writer = Writer::start(Box::new(journal), 1000, notify).unwrap();
    let appender = writer.appender();
    appender.submit(record("r", 1)).unwrap();
    hears.recv().unwrap();
    for seq in 2..=300 {
        appender.submit(record("r", seq)).unwrap();
    }
    drop(release);
    writer.close().unwrap();
    assert_eq!(commits.load(Ordering::SeqCst), 2);
}

#[test]
fn one_transaction_holds_no_more_than_queue_max_messages() {
    let store = Store::new(&["r"]);
    let (journal, gate) = Gated::new(store.open());
    let sizes = Arc::clone(&journal.sizes);
    let (writer, _told) = start(journal, 8);
    let appender = writer.appender();
    let producer = std::thread::spawn(move || {
        (1..=100).for_each(|seq| appender.submit(record("r", seq)).unwrap());
    });
    gate.open();
    producer.join().unwrap();
    writer.close().unwrap();
    let sizes = sizes.lock().unwrap();
    assert_eq!(sizes.iter().sum::<usize>(), 100);
    assert!(sizes.iter().all(|size| *size <= 8), "{sizes:?}");
}

#[test]
fn a_full_queue_makes_its_producer_wait() {
    let store = Store::new(&["r"]);
    let (journal, gate) = Gated::new(store.open());
    let (writer, _told) = start(journal, 2);
    let appender = writer.appender();
    appender.submit(record("r", 1)).unwrap();
    gate.entered.recv().unwrap();
    let (tell, queued) = channel();
    let producer = std::thread::spawn(move || {
        (2..=4).for_each(|seq| tell.send(appender.submit(record("r", seq)).map(|()| seq)).unwrap());
    });
    assert_eq!([queued.recv().unwrap().unwrap(), queued.recv().unwrap().unwrap()], [2, 3]);
    let fourth = queued.recv_timeout(std::time::Duration::from_millis(100));
    assert!(fourth.is_err(), "a queue of two took a third entry: {fourth:?}");
    gate.open();
    assert_eq!(queued.recv().unwrap().unwrap(), 4);
    producer.join().unwrap();
    writer.close().unwrap();
    assert_eq!(store.reader().run("r").unwrap().unwrap().last_seq, 4);
}

#[test]
fn a_blob_is_there_whenever_the_record_that_names_it_is() {
    let store = Store::new(&["r"]);
    let reader = store.reader();
    let (tell, told) = channel();
    let notify = Box::new(move |notice| {
        let WriterNotice::Durable { run, seq } = notice else { panic!("failed") };
        let hash = String::from_utf8(reader.read(&run, seq, 1).unwrap().remove(0).body).unwrap();
        tell.send(reader.blob(&hash).unwrap().is_some()).unwrap();
    });
    let writer = Writer::start(Box::new(store.open()), 4, notify).unwrap();
    let appender = writer.appender();
    for seq in 1..=50 {
        let blob = Blob::new(format!("output {seq}").into_bytes());
        let body = blob.hash().as_bytes().to_vec();
        appender.submit(JournalEntry::Blob(blob)).unwrap();
        let run = "r".to_owned();
        let names_it = JournalRecord { run, seq, epoch: 1, at_ms: 0, body };
        appender.submit(JournalEntry::Record(names_it)).unwrap();
    }
    writer.close().unwrap();
    let found: Vec<bool> = told.iter().collect();
    assert!(!found.is_empty() && found.iter().all(|found| *found), "{found:?}");
}

#[test]
fn eight_producers_keep_each_runs_order() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let store = Store::new(&names);
    let (writer, told) = start(store.open(), 64);
    let producers = names.map(|name| {
        let appender = writer.appender();
        std::thread::spawn(move || {
            (1..=500).for_each(|seq| appender.submit(record(name, seq)).unwrap());
        })
    });
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    writer.close().unwrap();
    let durable = durable(&told);
    assert!(durable.len() < 8 * 500, "no commit held more than one record");
    for name in names {
        let said: Vec<u64> =
            durable.iter().filter(|(run, _)| run == name).map(|(_, seq)| *seq).collect();
        assert!(said.is_sorted() && said.last() == Some(&500), "{name}: {said:?}");
        let read = store.reader().read(name, 1, 1000).unwrap();
        assert!(read.iter().map(|record| record.seq).eq(1..=500));
    }
}

#[test]
fn append_now_returns_only_when_durable_and_after_all_before_it() {
    let store = Store::new(&["r"]);
    let (writer, told) = start(store.open(), 64);
    let appender = writer.appender();
    appender.submit(record("r", 1)).unwrap();
    appender.append_now(vec![record("r", 2)]).unwrap();
    assert_eq!(store.reader().run("r").unwrap().unwrap().last_seq, 2);
    writer.close().unwrap();
    assert_eq!(durable(&told).last(), Some(&("r".into(), 2)));
}

#[test]
fn a_lost_lease_fails_the_writer_once_and_for_good() {
    let store = Store::new(&["r"]);
    let (writer, told) = start(store.open(), 64);
    let appender = writer.appender();
    appender.append_now(vec![record("r", 1)]).unwrap();
    store.open().take_lease("r", "other", LeaseClaim::Force, 0, 1).unwrap();
    let lost = appender.append_now(vec![record("r", 2)]).unwrap_err();
    let Error::Refused { source } = &lost else { panic!("{lost}") };
    assert!(matches!(**source, Error::LostLease { given: 1, current: 2, .. }), "{source}");
    assert!(matches!(appender.submit(record("r", 2)), Err(Error::Refused { .. })));
    let current = JournalRecord { epoch: 2, ..bare("r", 2) };
    assert!(
        appender.append_now(vec![JournalEntry::Record(current)]).is_err(),
        "must be opened again"
    );
    assert!(matches!(writer.close(), Err(Error::Refused { .. })));
    let told: Vec<WriterNotice> = told.iter().collect();
    assert!(
        matches!(told[..], [WriterNotice::Durable { seq: 1, .. }, WriterNotice::Failed { .. }]),
        "{told:?}"
    );
    assert_eq!(store.reader().run("r").unwrap().unwrap().last_seq, 1);
}

#[test]
fn entries_queued_behind_a_failure_are_not_written() {
    let store = Store::new(&["r", "s"]);
    let (journal, gate) = Gated::new(store.open());
    let (writer, told) = start(journal, 64);
    let appender = writer.appender();
    appender.submit(record("r", 2)).unwrap();
    gate.entered.recv().unwrap();
    appender.submit(record("s", 1)).unwrap();
    gate.open();
    assert!(writer.close().is_err());
    assert!(durable(&told).is_empty());
    assert_eq!(store.reader().run("s").unwrap().unwrap().last_seq, 0);
}

#[test]
fn too_large_an_entry_is_refused_before_it_can_fail_the_writer() {
    let store = Store::new(&["r"]);
    let (writer, _told) = start(store.open(), 64);
    let body = vec![0; autopilot_journal::RECORD_BYTES_MAX + 1];
    let large = JournalEntry::Record(JournalRecord { body, ..bare("r", 1) });
    assert!(matches!(writer.appender().submit(large), Err(Error::TooLarge { .. })));
    writer.appender().append_now(vec![record("r", 1)]).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_closed_writer_says_so() {
    let store = Store::new(&["r"]);
    let (writer, _told) = start(store.open(), 64);
    let appender = writer.appender();
    writer.close().unwrap();
    assert!(matches!(appender.submit(record("r", 1)), Err(Error::Closed)));
    assert!(matches!(appender.append_now(vec![record("r", 1)]), Err(Error::Closed)));
}

#[test]
fn a_writer_whose_listener_panics_is_reported_as_dead() {
    let store = Store::new(&["r"]);
    let notify = Box::new(|_notice| panic!("on purpose"));
    let writer = Writer::start(Box::new(store.open()), 4, notify).unwrap();
    assert!(writer.appender().append_now(vec![record("r", 1)]).is_err());
    assert!(matches!(writer.close(), Err(Error::WriterDied)));
}

#[test]
fn dropping_the_writer_commits_what_was_submitted() {
    let store = Store::new(&["r"]);
    let (writer, _told) = start(store.open(), 64);
    let appender: Appender = writer.appender();
    (1..=20).for_each(|seq| appender.submit(record("r", seq)).unwrap());
    drop(writer);
    assert_eq!(store.reader().run("r").unwrap().unwrap().last_seq, 20);
}

struct Store {
    path: Utf8PathBuf,
    _directory: TempDir,
}

impl Store {
    fn new(runs: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(directory.path()).unwrap().join("autopilot.db");
        let mut journal = SqliteJournal::create(&path).unwrap();
        for id in runs {
            let (id, mode, title) = ((*id).to_owned(), "task".to_owned(), String::new());
            journal.create_run(&NewRun { id: id.clone(), mode, title, created_at_ms: 0 }).unwrap();
            journal.take_lease(&id, "test", LeaseClaim::WhenFree, 0, 1).unwrap();
        }
        Self { path, _directory: directory }
    }

    fn open(&self) -> SqliteJournal {
        SqliteJournal::open(&self.path).unwrap()
    }

    fn reader(&self) -> SqliteReader {
        SqliteReader::open(&self.path).unwrap()
    }
}

fn start(
    journal: impl Journal + Send + 'static,
    queue_max: usize,
) -> (Writer, Receiver<WriterNotice>) {
    let (tell, told) = channel();
    let notify = Box::new(move |notice| {
        // A test that looks at nothing may already have dropped its end.
        let _nobody = tell.send(notice);
    });
    (Writer::start(Box::new(journal), queue_max, notify).unwrap(), told)
}

fn durable(told: &Receiver<WriterNotice>) -> Vec<(String, u64)> {
    let durable = told.iter().filter_map(|notice| match notice {
        WriterNotice::Durable { run, seq } => Some((run, seq)),
        WriterNotice::Failed { .. } => None,
    });
    durable.collect()
}

fn bare(run: &str, seq: u64) -> JournalRecord {
    let body = format!("record {seq} of {run}").into_bytes();
    JournalRecord { run: run.into(), seq, epoch: 1, at_ms: 0, body }
}

fn record(run: &str, seq: u64) -> JournalEntry {
    JournalEntry::Record(bare(run, seq))
}

/// A journal whose commits wait at a gate and are counted.
struct Gated {
    inner: SqliteJournal,
    enter: SyncSender<()>,
    may_pass: Receiver<()>,
    commits: Arc<AtomicUsize>,
    sizes: Arc<Mutex<Vec<usize>>>,
}

struct Gate {
    entered: Receiver<()>,
    _let_pass: Sender<()>,
}

impl Gated {
    fn new(inner: SqliteJournal) -> (Self, Gate) {
        let (enter, entered) = sync_channel(1);
        let (let_pass, may_pass) = channel();
        let (commits, sizes) = (Arc::default(), Arc::default());
        (Self { inner, enter, may_pass, commits, sizes }, Gate { entered, _let_pass: let_pass })
    }
}

impl Gate {
    /// From now on every commit passes at once.
    fn open(self) {
        drop(self);
    }
}

impl Journal for Gated {
    fn create_run(&mut self, run: &NewRun) -> Result<(), Error> {
        self.inner.create_run(run)
    }

    fn take_lease(
        &mut self,
        run: &str,
        holder: &str,
        claim: LeaseClaim,
        now_ms: i64,
        expires_ms: i64,
    ) -> Result<RunLease, Error> {
        self.inner.take_lease(run, holder, claim, now_ms, expires_ms)
    }

    fn commit(&mut self, entries: &[JournalEntry]) -> Result<(), Error> {
        let _opened = self.enter.send(());
        let _opened = self.may_pass.recv();
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.sizes.lock().unwrap().push(entries.len());
        self.inner.commit(entries)
    }
}

impl JournalHistory for Gated {
    fn runs(&self, runs_max: usize) -> Result<Vec<JournalRun>, Error> {
        self.inner.runs(runs_max)
    }

    fn run(&self, id: &str) -> Result<Option<JournalRun>, Error> {
        self.inner.run(id)
    }

    fn read(
        &self,
        run: &str,
        from_seq: u64,
        records_max: usize,
    ) -> Result<Vec<JournalRecord>, Error> {
        self.inner.read(run, from_seq, records_max)
    }

    fn snapshot(&self, run: &str, core_version: &str) -> Result<Option<Snapshot>, Error> {
        self.inner.snapshot(run, core_version)
    }

    fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, Error> {
        self.inner.blob(hash)
    }
}
