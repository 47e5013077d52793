//! Files damaged for real: which damage is found, what the message says, and what can be saved.
#![allow(clippy::unwrap_used, reason = "a failed setup is a failed test")]

use std::fs;

use autopilot_journal::{
    Blob, Error, Journal, JournalEntry, JournalHistory, JournalRecord, LeaseClaim, NewRun, SeqSpan,
    Snapshot, SqliteJournal, check, salvage,
};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

const PAGE: usize = 4096;

#[test]
fn an_empty_file_is_damage_not_a_new_journal() {
    let place = Place::new();
    fs::write(&place.db, "").unwrap();
    assert_refused(&place, "the file is empty; none of it can be read");
}

#[test]
fn a_garbage_header_is_refused_and_left_untouched() {
    let place = Place::with_records(200);
    place.edit_db(|bytes| bytes[..64].fill(0x5a));
    assert_refused(&place, "none of it can be read");
    assert!(!check(&place.db).unwrap().is_sound());
    let into = place.db.with_file_name("saved.db");
    assert!(matches!(salvage(&place.db, &into), Err(Error::Damaged { .. })));
    assert!(!into.exists());
}

#[test]
fn a_truncated_file_is_refused_and_left_untouched() {
    let place = Place::with_records(2000);
    place.edit_db(|bytes| bytes.truncate(bytes.len() / 2));
    assert_refused(&place, "is damaged");
    assert!(!check(&place.db).unwrap().is_sound());
}

#[test]
fn a_flipped_byte_in_a_body_is_found_with_run_and_number() {
    let place = Place::with_records(300);
    place.edit_db(|bytes| {
        let at = find(bytes, b"record 150 of r");
        bytes[at] ^= 0x01;
    });
    let journal = SqliteJournal::open(&place.db).unwrap();
    let error = journal.read("r", 1, 1000).unwrap_err();
    assert!(matches!(&error, Error::DamagedRecord { run, seq: 150 } if run == "r"), "{error}");
    drop(journal);
    let health = check(&place.db).unwrap();
    assert_eq!(health.runs[0].lost, [SeqSpan { first: 150, last: 150 }]);
    assert_eq!((health.runs[0].last_good_seq, health.runs[0].last_seen_seq), (149, 300));
}

#[test]
fn a_flipped_byte_in_the_newest_body_is_found_on_opening() {
    let place = Place::with_records(300);
    place.edit_db(|bytes| {
        let at = find(bytes, b"record 300 of r");
        bytes[at] ^= 0x80;
    });
    assert_refused(
        &place,
        "record 300 of run `r` is damaged: its checksum does not match; \
         readable: run `r` up to record 299",
    );
}

#[test]
fn salvage_keeps_what_follows_on_and_sets_the_rest_aside() {
    let place = Place::with_records(3000);
    place.edit_db(|bytes| {
        let page = find(bytes, b"record 1500 of r") / PAGE;
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xa5);
    });
    let health = check(&place.db).unwrap();
    let [gap] = health.runs[0].lost[..] else { panic!("{:?}", health.runs) };
    assert!(gap.first <= 1500 && gap.last >= 1500 && gap.last - gap.first < 200, "{gap:?}");
    assert!(!health.structure.is_empty());

    let before = place.bytes();
    let into = place.db.with_file_name("saved.db");
    let saved = salvage(&place.db, &into).unwrap();
    assert_eq!(place.bytes(), before);
    assert_eq!(saved.records_saved, gap.first - 1);
    assert_eq!(saved.records_stray, 3000 - gap.last);
    assert_eq!((saved.blobs_saved, saved.blobs_lost.len()), (1, 0));
    assert_eq!(saved.runs, health.runs);

    let mut journal = SqliteJournal::open(&into).unwrap();
    assert!(check(&into).unwrap().is_sound());
    let read = journal.read("r", 1, 9999).unwrap();
    assert_eq!(read.len() as u64, gap.first - 1);
    assert!(read.iter().all(|record| *record == self::record(record.seq)));
    assert_eq!(journal.blob(Blob::new(b"kept".to_vec()).hash()).unwrap().unwrap(), b"kept");
    let lease = journal.take_lease("r", "new", LeaseClaim::WhenFree, 10, 20).unwrap();
    assert_eq!(lease.epoch, 2);
    let next = JournalRecord { epoch: 2, ..record(gap.first) };
    journal.append(vec![next]).unwrap();
}

#[test]
fn a_snapshot_that_reaches_across_the_gap_saves_what_follows() {
    let place = Place::with_records(3000);
    let mut journal = SqliteJournal::open(&place.db).unwrap();
    let snapshot = Snapshot {
        run: "r".into(),
        core_version: "v".into(),
        epoch: 1,
        seq: 2500,
        body: b"state".to_vec(),
    };
    journal.commit(&[JournalEntry::Snapshot(snapshot.clone())]).unwrap();
    drop(journal);
    place.edit_db(|bytes| {
        let page = find(bytes, b"record 1500 of r") / PAGE;
        bytes[page * PAGE..(page + 1) * PAGE].fill(0xa5);
    });
    let into = place.db.with_file_name("saved.db");
    let saved = salvage(&place.db, &into).unwrap();
    assert_eq!(saved.records_stray, 0);
    let journal = SqliteJournal::open(&into).unwrap();
    assert_eq!(journal.snapshot("r", "v").unwrap(), Some(snapshot));
    let rest = journal.read("r", 2501, 9999).unwrap();
    assert!(rest.iter().map(|record| record.seq).eq(2501..=3000));
}

#[test]
fn a_truncated_log_keeps_the_prefix() {
    let place = Place::new();
    let log = place.crashed_with_log(40);
    let whole = fs::read(&log).unwrap();
    let mut reached = Vec::new();
    for keep in (0..=whole.len()).rev().step_by(PAGE / 2 + 7) {
        let copy = place.copy();
        fs::write(copy.log(), &whole[..keep]).unwrap();
        let mut journal = SqliteJournal::open(&copy.db).unwrap();
        let last = journal.run("r").unwrap().unwrap().last_seq;
        let read = journal.read("r", 1, 1000).unwrap();
        assert_eq!(read, (1..=last).map(record).collect::<Vec<_>>());
        journal.append(vec![record(last + 1)]).unwrap();
        reached.push(last);
    }
    assert!(reached.is_sorted_by(|a, b| a >= b), "{reached:?}");
    assert_eq!((reached.first(), reached.last()), (Some(&40), Some(&1)));
}

#[test]
fn garbage_after_the_log_is_a_torn_tail() {
    let place = Place::new();
    let log = place.crashed_with_log(10);
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend(std::iter::repeat_n(0xee, 3 * PAGE));
    fs::write(&log, bytes).unwrap();
    let journal = SqliteJournal::open(&place.db).unwrap();
    assert_eq!(journal.run("r").unwrap().unwrap().last_seq, 10);
}

#[test]
fn a_torn_last_commit_is_dropped_and_the_rest_is_there() {
    let place = Place::new();
    let log = place.crashed_with_log(10);
    let mut bytes = fs::read(&log).unwrap();
    let last = bytes.len() - 100;
    bytes[last] ^= 0xff;
    fs::write(&log, bytes).unwrap();
    let journal = SqliteJournal::open(&place.db).unwrap();
    assert_eq!(journal.run("r").unwrap().unwrap().last_seq, 9);
}

#[test]
fn a_torn_commit_of_many_pages_is_dropped_though_its_end_reached_the_disk() {
    let place = Place::new();
    place.crashed_with_log(10);
    let small = fs::metadata(place.log()).unwrap().len();
    let copy = place.copy();
    fs::copy(place.log(), copy.log()).unwrap();
    let mut journal = SqliteJournal::open(&copy.db).unwrap();
    let large = JournalRecord { body: vec![b'x'; 20 * PAGE], ..record(11) };
    journal.append(vec![large]).unwrap();
    let mut bytes = fs::read(copy.log()).unwrap();
    drop(journal);
    let first_frame_of_it = usize::try_from(small).unwrap() + 500;
    assert!(bytes.len() > first_frame_of_it + 20 * PAGE, "the log was not continued");
    bytes[first_frame_of_it] ^= 0xff;
    fs::write(place.log(), bytes).unwrap();
    let journal = SqliteJournal::open(&place.db).unwrap();
    assert_eq!(journal.run("r").unwrap().unwrap().last_seq, 10);
}

#[test]
fn damage_in_the_middle_of_the_log_is_not_taken_for_its_end() {
    let place = Place::new();
    let log = place.crashed_with_log(40);
    let whole = fs::read(&log).unwrap();
    let frame = PAGE + 24;
    let frames = (whole.len() - 32) / frame;
    // The header, then in a frame: its page number, its salt, its checksum, its page.
    let mut places = vec![9, 20, 30];
    for nth in [0, frames / 2, frames - 3] {
        places.extend([0, 10, 18, 24, 2000].map(|at| 32 + nth * frame + at));
    }
    for at in places {
        let copy = place.copy();
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        fs::write(copy.log(), bytes).unwrap();
        assert_refused(&copy, "write-ahead log is damaged; the commits after it would be lost");
        let error = SqliteJournal::open(&copy.db).err().unwrap();
        let Error::Damaged { readable, .. } = error else { panic!("{error}") };
        assert!(readable[0].last_good_seq < 40);
        let saved = salvage(&copy.db, &copy.db.with_file_name("saved.db")).unwrap();
        assert!(saved.log_lost.is_some());
        assert_eq!(saved.records_saved, readable[0].last_good_seq);
    }
}

#[test]
fn a_whole_bad_block_in_the_log_is_found_too() {
    let place = Place::new();
    let log = place.crashed_with_log(40);
    let mut bytes = fs::read(&log).unwrap();
    bytes[10 * PAGE..11 * PAGE].fill(0);
    fs::write(&log, bytes).unwrap();
    assert_refused(&place, "write-ahead log is damaged; the commits after it would be lost");
}

#[test]
fn a_sound_journal_passes_the_thorough_check() {
    let place = Place::with_records(500);
    let health = check(&place.db).unwrap();
    assert!(health.is_sound(), "{health:?}");
    assert_eq!((health.runs[0].last_good_seq, health.runs[0].last_seen_seq), (500, 500));
}

#[test]
fn a_missing_file_is_named() {
    let place = Place::new();
    for error in [SqliteJournal::open(&place.db).err(), check(&place.db).err()] {
        assert!(matches!(error, Some(Error::Missing { .. })), "{error:?}");
    }
    assert!(!place.db.exists());
}

/// Opening says `words`, and neither the file nor its log changes.
fn assert_refused(place: &Place, words: &str) {
    let before = place.bytes();
    let error = SqliteJournal::open(&place.db).err().unwrap();
    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains(words), "{error}");
    assert!(SqliteJournal::open_or_create(&place.db).is_err());
    assert!(place.bytes() == before, "the damaged file was changed");
}

struct Place {
    db: Utf8PathBuf,
    _directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let db = Utf8Path::from_path(directory.path()).unwrap().join("autopilot.db");
        Self { db, _directory: directory }
    }

    fn with_records(count: u64) -> Self {
        let place = Self::new();
        let mut journal = place.journal();
        journal.commit(&[JournalEntry::Blob(Blob::new(b"kept".to_vec()))]).unwrap();
        journal.append((1..=count).map(record).collect()).unwrap();
        place
    }

    fn journal(&self) -> SqliteJournal {
        let mut journal = SqliteJournal::create(&self.db).unwrap();
        let (id, mode, title) = ("r".to_owned(), "task".to_owned(), String::new());
        journal.create_run(&NewRun { id, mode, title, created_at_ms: 0 }).unwrap();
        journal.take_lease("r", "test", LeaseClaim::WhenFree, 0, 1).unwrap();
        journal
    }

    /// One record in the file, the others in the log, one commit each, as a crash leaves them.
    fn crashed_with_log(&self, count: u64) -> Utf8PathBuf {
        let mut journal = self.journal();
        journal.append(vec![record(1)]).unwrap();
        drop(journal);
        let mut journal = SqliteJournal::open(&self.db).unwrap();
        (2..=count).for_each(|seq| journal.append(vec![record(seq)]).unwrap());
        let live = Place::new();
        fs::copy(&self.db, &live.db).unwrap();
        fs::copy(self.log(), live.log()).unwrap();
        drop(journal);
        fs::copy(&live.db, &self.db).unwrap();
        fs::copy(live.log(), self.log()).unwrap();
        self.log()
    }

    fn copy(&self) -> Self {
        let copy = Self::new();
        fs::copy(&self.db, &copy.db).unwrap();
        copy
    }

    fn log(&self) -> Utf8PathBuf {
        Utf8PathBuf::from(format!("{}-wal", self.db))
    }

    fn bytes(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        // An empty log is what a reader leaves where there was none.
        let log = fs::read(self.log()).ok().filter(|log| !log.is_empty());
        (fs::read(&self.db).unwrap(), log)
    }

    fn edit_db(&self, edit: impl FnOnce(&mut Vec<u8>)) {
        assert!(!self.log().exists(), "all of it must be in the file");
        let mut bytes = fs::read(&self.db).unwrap();
        edit(&mut bytes);
        fs::write(&self.db, bytes).unwrap();
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).position(|window| window == wanted).unwrap()
}

fn record(seq: u64) -> JournalRecord {
    let body = format!("record {seq} of r, padded: {}", "x".repeat(100)).into_bytes();
    JournalRecord { run: "r".into(), seq, epoch: 1, at_ms: 0, body }
}
