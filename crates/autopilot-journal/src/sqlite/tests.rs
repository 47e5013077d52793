//! Tests that need the inside of the journal: its connection, or another list of migrations.

use std::sync::mpsc::{Receiver, channel};

use camino::{Utf8Path, Utf8PathBuf};
use rusqlite::Connection;
use rusqlite_migration::{M, Migrations};
use tempfile::TempDir;

use super::SqliteJournal;
use crate::{
    Blob, Error, Journal, JournalEntry, JournalHistory, JournalRecord, LeaseClaim, NewRun,
    Snapshot, SqliteReader, StorageTrouble, Writer, WriterNotice, check,
};

fn place() -> (TempDir, Utf8PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(directory.path()).unwrap().join("autopilot.db");
    (directory, path)
}

fn journal_with_run(path: &Utf8Path) -> SqliteJournal {
    let mut journal = SqliteJournal::create(path).unwrap();
    let (id, mode, title) = ("r".to_owned(), "task".to_owned(), String::new());
    journal.create_run(&NewRun { id, mode, title, created_at_ms: 0 }).unwrap();
    journal.take_lease("r", "test", LeaseClaim::WhenFree, 0, 1).unwrap();
    journal
}

fn record(seq: u64) -> JournalRecord {
    let body = format!("{{\"record\":{seq}}}").into_bytes();
    JournalRecord { run: "r".into(), seq, epoch: 1, at_ms: 0, body }
}

fn names(directory: &TempDir) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn start(journal: SqliteJournal) -> (Writer, Receiver<WriterNotice>) {
    let (tell, told) = channel();
    let notify = Box::new(move |notice| tell.send(notice).unwrap());
    (Writer::start(Box::new(journal), 64, notify).unwrap(), told)
}

#[test]
fn a_journal_appears_whole_and_leaves_no_temporary_file() {
    let (directory, path) = place();
    drop(SqliteJournal::create(&path).unwrap());
    assert_eq!(names(&directory), ["autopilot.db"]);
    assert!(matches!(SqliteJournal::create(&path), Err(Error::Exists { .. })));
    assert_eq!(names(&directory), ["autopilot.db"]);
}

#[test]
fn every_commit_is_fsynced_in_wal_mode() {
    let (_directory, path) = place();
    let journal = SqliteJournal::create(&path).unwrap();
    let conn = &journal.store.conn;
    let text = |name| conn.pragma_query_value(None, name, |row| row.get::<_, String>(0)).unwrap();
    let number = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(text("journal_mode"), "wal");
    assert_eq!(number("synchronous"), 2);
    assert_eq!(number("wal_autocheckpoint"), 1000);
}

#[test]
fn an_older_journal_is_copied_and_then_migrated() {
    let (directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append(vec![record(1)]).unwrap();
    drop(journal);

    let steps = [super::schema::STEPS[0].clone(), M::up("ALTER TABLE run ADD COLUMN colour TEXT;")];
    let newer = Migrations::from_slice(&steps);
    let journal = SqliteJournal::open_as(&path, &newer).unwrap();
    assert_eq!(journal.read("r", 1, 9).unwrap(), [record(1)]);
    journal.store.conn.query_row("SELECT colour FROM run", [], |_row| Ok(())).unwrap();
    drop(journal);
    assert_eq!(names(&directory), ["autopilot.db", "autopilot.db.v1.bak"]);

    // The backup is a journal of the old version, and this program (which knows 1) reads it.
    let backup = SqliteReader::open(&path.with_file_name("autopilot.db.v1.bak")).unwrap();
    assert_eq!(backup.read("r", 1, 9).unwrap(), [record(1)]);

    // Opened once more, nothing is left to do and no second copy is made.
    drop(SqliteJournal::open_as(&path, &newer).unwrap());
    assert!(!names(&directory).contains(&"autopilot.db.v1.bak.2".to_owned()));
}

#[test]
fn a_backup_never_replaces_an_earlier_one() {
    let (directory, path) = place();
    drop(SqliteJournal::create(&path).unwrap());
    std::fs::write(path.with_file_name("autopilot.db.v1.bak"), "precious").unwrap();
    let steps = [super::schema::STEPS[0].clone(), M::up("CREATE TABLE more (x);")];
    drop(SqliteJournal::open_as(&path, &Migrations::from_slice(&steps)).unwrap());
    assert!(names(&directory).contains(&"autopilot.db.v1.bak.2".to_owned()));
    let kept = std::fs::read(path.with_file_name("autopilot.db.v1.bak")).unwrap();
    assert_eq!(kept, b"precious");
}

#[test]
fn a_failed_migration_leaves_the_old_journal_usable() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append(vec![record(1)]).unwrap();
    drop(journal);
    let steps = [
        super::schema::STEPS[0].clone(),
        M::up("CREATE TABLE more (x); INSERT INTO no_such VALUES (1);"),
    ];
    assert!(SqliteJournal::open_as(&path, &Migrations::from_slice(&steps)).is_err());
    let mut journal = SqliteJournal::open(&path).unwrap();
    journal.append(vec![record(2)]).unwrap();
    assert_eq!(journal.read("r", 1, 9).unwrap().len(), 2);
}

#[test]
fn a_newer_journal_is_refused_with_both_versions_and_left_alone() {
    let (_directory, path) = place();
    drop(SqliteJournal::create(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    conn.pragma_update(Some("main"), "user_version", 7).unwrap();
    conn.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    let said = SqliteJournal::open(&path).err().unwrap().to_string();
    assert!(
        said.contains(
            "has format version 7, but this version of autopilot supports only versions up to 1"
        ),
        "{said}"
    );
    assert!(matches!(SqliteReader::open(&path), Err(Error::Newer { found: 7, known: 1, .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn a_refused_journal_keeps_its_log_as_a_crash_left_it() {
    let (_live_directory, live) = place();
    let mut journal = journal_with_run(&live);
    journal.append(vec![record(1)]).unwrap();
    journal.store.conn.pragma_update(Some("main"), "user_version", 7).unwrap();
    let (_directory, path) = place();
    let log = |path: &Utf8Path| format!("{path}-wal");
    std::fs::copy(&live, &path).unwrap();
    std::fs::copy(log(&live), log(&path)).unwrap();
    let bytes = || (std::fs::read(&path).unwrap(), std::fs::read(log(&path)).unwrap());
    let before = bytes();
    assert!(matches!(SqliteJournal::open(&path), Err(Error::Newer { found: 7, .. })));
    assert!(matches!(SqliteReader::open(&path), Err(Error::Newer { found: 7, .. })));
    assert!(check(&path).is_err());
    assert!(bytes() == before);
}

#[test]
fn a_full_disk_is_reported_once_and_nothing_more_is_taken() {
    let (_directory, path) = place();
    let journal = journal_with_run(&path);
    let pages: i64 =
        journal.store.conn.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let ignore = |_row: &rusqlite::Row<'_>| Ok(());
    let limit = pages + 4;
    journal.store.conn.pragma_update_and_check(None, "max_page_count", limit, ignore).unwrap();
    let (writer, told) = start(journal);
    let appender = writer.appender();
    let mut acknowledged = 0;
    let error = (1..1000)
        .find_map(|seq| {
            let record = JournalRecord { body: vec![b'x'; 900], ..record(seq) };
            let answer = appender.append_now(vec![JournalEntry::Record(record)]).err();
            acknowledged = if answer.is_none() { seq } else { acknowledged };
            answer
        })
        .unwrap();
    assert_eq!(error.trouble(), Some(StorageTrouble::Full));
    assert!(acknowledged > 0);

    // Even an entry that would still fit is refused now.
    let refused = appender.submit(JournalEntry::Record(record(acknowledged + 1))).unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }));
    assert!(appender.append_now(vec![JournalEntry::Record(record(acknowledged + 1))]).is_err());
    assert!(matches!(writer.close(), Err(Error::Refused { .. })));
    let failures =
        told.iter().filter(|notice| matches!(notice, WriterNotice::Failed { .. })).count();
    assert_eq!(failures, 1);

    // Opened again, with space, the journal continues where the acknowledgements ended.
    let mut journal = SqliteJournal::open(&path).unwrap();
    assert_eq!(journal.run("r").unwrap().unwrap().last_seq, acknowledged);
    journal.append(vec![record(acknowledged + 1)]).unwrap();
}

#[test]
fn a_read_only_connection_fails_the_writer_with_that_reason() {
    let (_directory, path) = place();
    let journal = journal_with_run(&path);
    journal.store.conn.pragma_update(None, "query_only", true).unwrap();
    let (writer, told) = start(journal);
    let error = writer.appender().append_now(vec![JournalEntry::Record(record(1))]).unwrap_err();
    assert_eq!(error.trouble(), Some(StorageTrouble::ReadOnly));
    match told.recv().unwrap() {
        WriterNotice::Failed { error } => {
            assert_eq!(error.trouble(), Some(StorageTrouble::ReadOnly))
        }
        WriterNotice::Durable { .. } => panic!("nothing can be durable"),
    }
}

#[test]
fn a_changed_body_is_reported_with_run_and_number() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append((1..=5).map(record).collect()).unwrap();
    let change = "UPDATE record SET body = CAST('{\"record\":8}' AS BLOB) WHERE seq = 3";
    assert_eq!(journal.store.conn.execute(change, []).unwrap(), 1);
    assert_eq!(journal.read("r", 1, 2).unwrap().len(), 2);
    let error = journal.read("r", 1, 9).unwrap_err();
    assert_eq!(error.to_string(), "record 3 of run `r` is damaged: its checksum does not match");
    assert_eq!(journal.read("r", 4, 9).unwrap().len(), 2);
    let health = check(&path).unwrap();
    assert_eq!((health.runs[0].last_good_seq, health.runs[0].last_seen_seq), (2, 5));
    assert!(health.structure.is_empty() && !health.is_sound());
}

#[test]
fn a_changed_number_or_time_is_found_too() {
    for change in ["epoch = 2", "at = 1", "seq = 6"] {
        let (_directory, path) = place();
        let mut journal = journal_with_run(&path);
        journal.append((1..=5).map(record).collect()).unwrap();
        let sql = format!("UPDATE record SET {change} WHERE seq = 5");
        assert_eq!(journal.store.conn.execute(&sql, []).unwrap(), 1);
        assert!(matches!(journal.read("r", 1, 9), Err(Error::DamagedRecord { .. })), "{change}");
        // The newest record is looked at by every opening.
        drop(journal);
        assert!(matches!(SqliteJournal::open(&path), Err(Error::Damaged { .. })), "{change}");
    }
}

#[test]
fn a_missing_record_is_reported_with_both_numbers() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append((1..=5).map(record).collect()).unwrap();
    journal.store.conn.execute("DELETE FROM record WHERE seq = 3", []).unwrap();
    let gap = journal.read("r", 1, 9).unwrap_err();
    assert!(matches!(gap, Error::OutOfSequence { expected: 3, got: 4, .. }), "{gap}");
    assert!(journal.read("r", 3, 9).is_err());
}

#[test]
fn a_damaged_snapshot_gives_way_to_the_one_before() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append((1..=5).map(record).collect()).unwrap();
    for seq in [2, 4] {
        let (run, core_version) = ("r".to_owned(), "v".to_owned());
        let body = b"state".to_vec();
        let snapshot = Snapshot { run, core_version, epoch: 1, seq, body };
        journal.commit(&[JournalEntry::Snapshot(snapshot)]).unwrap();
    }
    let newest = |journal: &SqliteJournal| journal.snapshot("r", "v").unwrap().map(|s| s.seq);
    assert_eq!(newest(&journal), Some(4));
    let spoil = |seq: u64| format!("UPDATE snapshot SET body = x'00' WHERE seq = {seq}");
    journal.store.conn.execute(&spoil(4), []).unwrap();
    assert_eq!(newest(&journal), Some(2));
    journal.store.conn.execute(&spoil(2), []).unwrap();
    assert_eq!(newest(&journal), None);
}

#[test]
fn a_snapshot_newer_than_the_records_is_passed_over() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    let (run, core_version) = ("r".to_owned(), "v".to_owned());
    let snapshot = Snapshot { run, core_version, epoch: 1, seq: 3, body: Vec::new() };
    let mut entries: Vec<JournalEntry> =
        (1..=3).map(|seq| JournalEntry::Record(record(seq))).collect();
    entries.push(JournalEntry::Snapshot(snapshot));
    journal.commit(&entries).unwrap();
    journal.store.conn.execute("DELETE FROM record WHERE seq = 3", []).unwrap();
    assert_eq!(journal.snapshot("r", "v").unwrap(), None);
}

#[test]
fn a_damaged_blob_is_reported_and_replaced_by_the_same_bytes() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    let blob = Blob::new(b"proof".to_vec());
    journal.commit(&[JournalEntry::Blob(blob.clone())]).unwrap();
    journal.store.conn.execute("UPDATE blob SET body = x'00'", []).unwrap();
    assert!(matches!(journal.blob(blob.hash()), Err(Error::DamagedBlob { .. })));
    assert_eq!(check(&path).unwrap().blobs_lost, [blob.hash()]);
    journal.commit(&[JournalEntry::Blob(blob.clone())]).unwrap();
    assert_eq!(journal.blob(blob.hash()).unwrap().unwrap(), b"proof");
}

#[test]
fn another_programs_database_is_not_taken_for_a_journal() {
    let (_directory, path) = place();
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("CREATE TABLE record (x); PRAGMA user_version = 1;").unwrap();
    conn.close().unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(SqliteJournal::open(&path), Err(Error::NotAJournal { .. })));
    assert!(matches!(SqliteJournal::open_or_create(&path), Err(Error::NotAJournal { .. })));
    assert!(matches!(SqliteReader::open(&path), Err(Error::NotAJournal { .. })));
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[test]
fn the_backup_is_made_while_a_reader_holds_the_file() {
    let (_directory, path) = place();
    drop(journal_with_run(&path));
    let reader = SqliteReader::open(&path).unwrap();
    let steps = [super::schema::STEPS[0].clone(), M::up("CREATE TABLE more (x);")];
    let journal = SqliteJournal::open_as(&path, &Migrations::from_slice(&steps)).unwrap();
    assert!(reader.run("r").unwrap().is_some());
    assert!(journal.run("r").unwrap().is_some());
}
