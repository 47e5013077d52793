//! The behaviour that every journal must have, whatever database is behind it. A new journal runs
//! `conforms` too.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed setup is a failed test")]

use autopilot_journal::{
    Blob, Error, Journal, JournalEntry, JournalRecord, LeaseClaim, NewRun, SNAPSHOTS_KEPT_MAX,
    Snapshot, SqliteJournal,
};
use camino::Utf8Path;

#[test]
fn sqlite_conforms() {
    let stores = tempfile::tempdir().unwrap();
    let root = Utf8Path::from_path(stores.path()).unwrap();
    conforms(|store| SqliteJournal::open_or_create(&root.join(format!("{store}.db"))).unwrap());
}

/// Checks a journal. `open` opens the store of that name as often as it is called, and makes it the
/// first time.
fn conforms<J: Journal>(open: impl Fn(&str) -> J) {
    records_come_back_in_order_after_reopening(&open);
    a_gap_or_a_repeat_is_refused_and_names_both_numbers(&open);
    a_batch_is_all_or_nothing(&open);
    a_stale_epoch_is_refused_and_writes_nothing(&open);
    a_held_lease_is_not_taken_until_it_expires_or_is_forced(&open);
    runs_are_listed_newest_first_with_their_state(&open);
    runs_do_not_disturb_each_other(&open);
    reading_is_paged(&open);
    blobs_are_found_by_their_hash(&open);
    snapshots_count_for_one_core_version_and_only_the_newest_stay(&open);
    a_snapshot_ahead_of_the_records_is_refused(&open);
    unknown_runs_are_named(&open);
    any_bytes_and_the_largest_numbers_survive(&open);
}

fn records_come_back_in_order_after_reopening<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(open("order"), "r");
    journal.append(vec![record("r", 1, 1), record("r", 2, 1)]).unwrap();
    journal.append(vec![record("r", 3, 1)]).unwrap();
    drop(journal);
    let read = open("order").read("r", 1, 100).unwrap();
    assert_eq!(read, [record("r", 1, 1), record("r", 2, 1), record("r", 3, 1)]);
}

fn a_gap_or_a_repeat_is_refused_and_names_both_numbers<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(open("sequence"), "r");
    journal.append(vec![record("r", 1, 1)]).unwrap();
    for (seq, last) in [(3, 1), (1, 1), (0, 1)] {
        match journal.append(vec![record("r", seq, 1)]) {
            Err(Error::OutOfSequence { run, expected, got }) => {
                assert_eq!((run.as_str(), expected, got), ("r", last + 1, seq));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(journal.run("r").unwrap().unwrap().last_seq, 1);
}

fn a_batch_is_all_or_nothing<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(open("batch"), "r");
    let blob = Blob::new(b"named by record 1".to_vec());
    let hash = blob.hash().to_owned();
    let bad = [
        JournalEntry::Blob(blob),
        JournalEntry::Record(record("r", 1, 1)),
        JournalEntry::Record(record("r", 3, 1)),
    ];
    assert!(journal.commit(&bad).is_err());
    assert!(journal.read("r", 1, 10).unwrap().is_empty());
    assert_eq!(journal.blob(&hash).unwrap(), None);
    journal.commit(&bad[..2]).unwrap();
    assert_eq!(journal.blob(&hash).unwrap().unwrap(), b"named by record 1");
}

fn a_stale_epoch_is_refused_and_writes_nothing<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut old = with_run(open("fence"), "r");
    old.append(vec![record("r", 1, 1)]).unwrap();
    let mut new = open("fence");
    assert_eq!(new.take_lease("r", "b", LeaseClaim::Force, 0, 1000).unwrap().epoch, 2);
    let stale = [
        JournalEntry::Record(record("r", 2, 1)),
        JournalEntry::Snapshot(snapshot("r", "v1", 1, 1)),
        JournalEntry::Renew { run: "r".into(), epoch: 1, expires_ms: 9_999 },
        JournalEntry::End { run: "r".into(), epoch: 1, outcome: Some("DONE".into()) },
    ];
    for entry in stale {
        let refused = old.commit(&[entry]).unwrap_err();
        assert!(
            matches!(&refused, Error::LostLease { run, given: 1, current: 2 } if run == "r"),
            "{refused}"
        );
    }
    // An epoch nobody was given yet is as wrong as an old one.
    assert!(matches!(old.append(vec![record("r", 2, 3)]), Err(Error::LostLease { .. })));
    let run = new.run("r").unwrap().unwrap();
    assert_eq!((run.last_seq, run.ended, run.lease.unwrap().expires_ms), (1, None, 1000));
    assert_eq!(new.snapshot("r", "v1").unwrap(), None);
    new.append(vec![record("r", 2, 2)]).unwrap();
}

fn a_held_lease_is_not_taken_until_it_expires_or_is_forced<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = open("lease");
    journal.create_run(&new_run("r", 0)).unwrap();
    assert_eq!(journal.run("r").unwrap().unwrap().lease, None);
    let lease = journal.take_lease("r", "a", LeaseClaim::WhenFree, 100, 200).unwrap();
    assert_eq!((lease.holder.as_str(), lease.epoch, lease.expires_ms), ("a", 1, 200));
    match journal.take_lease("r", "b", LeaseClaim::WhenFree, 199, 300) {
        Err(Error::LeaseHeld { holder, expires_ms, .. }) => {
            assert_eq!((holder.as_str(), expires_ms), ("a", 200));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(journal.take_lease("r", "a", LeaseClaim::WhenFree, 199, 300).unwrap().epoch, 2);
    assert_eq!(journal.take_lease("r", "b", LeaseClaim::Force, 200, 400).unwrap().epoch, 3);
    let renew = JournalEntry::Renew { run: "r".into(), epoch: 3, expires_ms: 500 };
    journal.commit(&[renew]).unwrap();
    assert!(journal.take_lease("r", "c", LeaseClaim::WhenFree, 450, 600).is_err());
    let release = JournalEntry::Renew { run: "r".into(), epoch: 3, expires_ms: 0 };
    journal.commit(&[release]).unwrap();
    let lease = journal.take_lease("r", "c", LeaseClaim::WhenFree, 450, 600).unwrap();
    assert_eq!(journal.run("r").unwrap().unwrap().lease, Some(lease));
}

fn runs_are_listed_newest_first_with_their_state<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = open("list");
    for (id, at) in [("old", 10), ("newest", 30), ("middle", 20)] {
        journal.create_run(&new_run(id, at)).unwrap();
    }
    assert!(matches!(journal.create_run(&new_run("old", 99)), Err(Error::RunExists { .. })));
    journal.take_lease("old", "a", LeaseClaim::WhenFree, 0, 1).unwrap();
    let end = |outcome: Option<&str>| JournalEntry::End {
        run: "old".into(),
        epoch: 1,
        outcome: outcome.map(str::to_owned),
    };
    journal.commit(&[JournalEntry::Record(record("old", 1, 1)), end(Some("DONE"))]).unwrap();
    let ids = |max| journal.runs(max).unwrap().into_iter().map(|run| run.id).collect::<Vec<_>>();
    assert_eq!(ids(10), ["newest", "middle", "old"]);
    assert_eq!(ids(2), ["newest", "middle"]);
    let old = journal.runs(10).unwrap().pop().unwrap();
    assert_eq!((old.mode.as_str(), old.title.as_str(), old.created_at_ms), ("plan", "of old", 10));
    assert_eq!((old.ended.as_deref(), old.last_seq), (Some("DONE"), 1));
    journal.commit(&[end(None)]).unwrap();
    assert_eq!(journal.run("old").unwrap().unwrap().ended, None);
}

fn runs_do_not_disturb_each_other<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(with_run(open("two"), "a"), "b");
    journal
        .append(vec![record("a", 1, 1), record("b", 1, 1), record("a", 2, 1), record("b", 2, 1)])
        .unwrap();
    assert_eq!(journal.read("a", 1, 9).unwrap(), [record("a", 1, 1), record("a", 2, 1)]);
    assert_eq!(journal.read("b", 2, 9).unwrap(), [record("b", 2, 1)]);
}

fn reading_is_paged<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(open("page"), "r");
    journal.append((1..=5).map(|seq| record("r", seq, 1)).collect()).unwrap();
    let seqs = |from, max| {
        let read = journal.read("r", from, max).unwrap();
        read.into_iter().map(|record| record.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(1, 2), [1, 2]);
    assert_eq!(seqs(0, 2), [1, 2]);
    assert_eq!(seqs(4, 10), [4, 5]);
    assert!(seqs(6, 10).is_empty());
    assert!(seqs(u64::MAX, 10).is_empty());
}

fn blobs_are_found_by_their_hash<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = open("blob");
    let large = Blob::new((0..300_000_u32).flat_map(u32::to_le_bytes).collect());
    let empty = Blob::new(Vec::new());
    let entries = [JournalEntry::Blob(large.clone()), JournalEntry::Blob(empty.clone())];
    journal.commit(&entries).unwrap();
    journal.commit(&entries).unwrap();
    drop(journal);
    let journal = open("blob");
    assert_eq!(journal.blob(large.hash()).unwrap().unwrap(), large.body());
    assert_eq!(journal.blob(empty.hash()).unwrap().unwrap(), empty.body());
    assert_eq!(journal.blob("00").unwrap(), None);
}

fn snapshots_count_for_one_core_version_and_only_the_newest_stay<J: Journal>(
    open: &impl Fn(&str) -> J,
) {
    let mut journal = with_run(open("snapshot"), "r");
    journal.append((1..=9).map(|seq| record("r", seq, 1)).collect()).unwrap();
    assert_eq!(journal.snapshot("r", "v1").unwrap(), None);
    for seq in [2, 4, 6] {
        journal.commit(&[JournalEntry::Snapshot(snapshot("r", "v1", seq, 1))]).unwrap();
    }
    assert_eq!(journal.snapshot("r", "v1").unwrap(), Some(snapshot("r", "v1", 6, 1)));
    assert_eq!(journal.snapshot("r", "v2").unwrap(), None);
    const { assert!(SNAPSHOTS_KEPT_MAX == 2) };
    journal.commit(&[JournalEntry::Snapshot(snapshot("r", "v2", 5, 1))]).unwrap();
    assert_eq!(journal.snapshot("r", "v2").unwrap(), Some(snapshot("r", "v2", 5, 1)));
    assert_eq!(journal.snapshot("r", "v1").unwrap(), None);
}

fn a_snapshot_ahead_of_the_records_is_refused<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(open("ahead"), "r");
    journal.append(vec![record("r", 1, 1)]).unwrap();
    let ahead = journal.commit(&[JournalEntry::Snapshot(snapshot("r", "v", 2, 1))]);
    assert!(matches!(ahead, Err(Error::SnapshotAhead { seq: 2, last: 1, .. })), "{ahead:?}");
    let with_its_record =
        [JournalEntry::Record(record("r", 2, 1)), JournalEntry::Snapshot(snapshot("r", "v", 2, 1))];
    journal.commit(&with_its_record).unwrap();
}

fn unknown_runs_are_named<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = open("unknown");
    let names_it = |error: Error| matches!(error, Error::NoRun { run } if run == "x");
    assert!(names_it(journal.append(vec![record("x", 1, 1)]).unwrap_err()));
    assert!(names_it(journal.read("x", 1, 1).unwrap_err()));
    assert!(names_it(journal.snapshot("x", "v").unwrap_err()));
    assert!(names_it(journal.take_lease("x", "a", LeaseClaim::Force, 0, 0).unwrap_err()));
    assert_eq!(journal.run("x").unwrap(), None);
}

fn any_bytes_and_the_largest_numbers_survive<J: Journal>(open: &impl Fn(&str) -> J) {
    let mut journal = with_run(open("bytes"), "ru'n \"ü\" ☃");
    let bodies = [Vec::new(), vec![0; 3], (0..=255).collect(), vec![0xff; 200_000]];
    let times = [i64::MIN, -1, 0, i64::MAX];
    let records: Vec<JournalRecord> = bodies
        .into_iter()
        .zip(times)
        .zip(1..)
        .map(|((body, at_ms), seq)| JournalRecord {
            at_ms, body, ..record("ru'n \"ü\" ☃", seq, 1)
        })
        .collect();
    journal.append(records.clone()).unwrap();
    assert_eq!(journal.read("ru'n \"ü\" ☃", 1, 9).unwrap(), records);
    assert!(journal.append(vec![record("ru'n \"ü\" ☃", 5, u64::MAX)]).is_err());
}

fn with_run<J: Journal>(mut journal: J, run: &str) -> J {
    journal.create_run(&new_run(run, 0)).unwrap();
    assert_eq!(journal.take_lease(run, "a", LeaseClaim::WhenFree, 0, 1000).unwrap().epoch, 1);
    journal
}

fn new_run(id: &str, created_at_ms: i64) -> NewRun {
    NewRun { id: id.into(), mode: "plan".into(), title: format!("of {id}"), created_at_ms }
}

fn record(run: &str, seq: u64, epoch: u64) -> JournalRecord {
    let body = format!("record {seq} of {run}").into_bytes();
    JournalRecord { run: run.into(), seq, epoch, at_ms: 1_700_000_000_000, body }
}

fn snapshot(run: &str, core_version: &str, seq: u64, epoch: u64) -> Snapshot {
    let body = format!("state at {seq}").into_bytes();
    Snapshot { run: run.into(), core_version: core_version.into(), epoch, seq, body }
}
