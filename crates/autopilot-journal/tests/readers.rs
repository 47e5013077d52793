//! Readers: beside a writer, without one, and where nothing may be written.
#![allow(clippy::unwrap_used, reason = "a failed setup is a failed test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use autopilot_journal::{
    Error, Journal, JournalEntry, JournalHistory, JournalRecord, LeaseClaim, NewRun, SqliteJournal,
    SqliteReader, Writer, WriterNotice,
};
use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

const JOURNAL: &str = "AUTOPILOT_TEST_JOURNAL";
const READERS: usize = 100;

#[test]
fn a_hundred_readers_beside_a_writer_see_whole_prefixes() {
    let (_directory, path) = place();
    let journal = journal_with_run(&path);
    let durable = Arc::new(AtomicU64::new(0));
    let done = Arc::new(AtomicBool::new(false));
    let barrier = Arc::new(Barrier::new(READERS + 1));
    let notify = {
        let durable = Arc::clone(&durable);
        Box::new(move |notice| match notice {
            WriterNotice::Durable { seq, .. } => durable.store(seq, Ordering::SeqCst),
            WriterNotice::Failed { error } => panic!("{error}"),
        })
    };
    let writer = Writer::start(Box::new(journal), 32, notify).unwrap();
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (path, barrier) = (path.clone(), Arc::clone(&barrier));
            let (durable, done) = (Arc::clone(&durable), Arc::clone(&done));
            std::thread::spawn(move || {
                barrier.wait();
                let mut looks = 0;
                while looks == 0 || !done.load(Ordering::SeqCst) {
                    let known = durable.load(Ordering::SeqCst);
                    let reader = SqliteReader::open(&path).unwrap();
                    let seen = reader.run("r").unwrap().unwrap().last_seq;
                    assert!(seen >= known, "saw {seen} when {known} were durable");
                    let tail = reader.read("r", seen.saturating_sub(20), 1000).unwrap();
                    assert!(tail.iter().all(|record| *record == self::record(record.seq)));
                    looks += 1;
                }
            })
        })
        .collect();
    barrier.wait();
    let appender = writer.appender();
    (1..=600).for_each(|seq| appender.submit(JournalEntry::Record(record(seq))).unwrap());
    writer.close().unwrap();
    done.store(true, Ordering::SeqCst);
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert_eq!(SqliteReader::open(&path).unwrap().run("r").unwrap().unwrap().last_seq, 600);
}

#[test]
fn a_reader_that_stays_open_follows_the_writer_and_does_not_hold_it_up() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    let reader = SqliteReader::open(&path).unwrap();
    // Far more than one checkpoint's worth of pages.
    for seq in 1..=40 {
        journal.append(vec![JournalRecord { body: vec![7; 200_000], ..record(seq) }]).unwrap();
        assert_eq!(reader.run("r").unwrap().unwrap().last_seq, seq);
    }
    let log = fs::metadata(format!("{path}-wal")).unwrap().len();
    assert!(log < 7_000_000, "a reader between reads keeps the log of {log} bytes from shrinking");
}

#[test]
fn opening_beside_a_live_writer_never_takes_its_log_for_damaged() {
    let (_directory, path) = place();
    let writer =
        Writer::start(Box::new(journal_with_run(&path)), 4, Box::new(|_notice| ())).unwrap();
    let appender = writer.appender();
    let done = Arc::new(AtomicBool::new(false));
    let opener = {
        let (path, done) = (path.clone(), Arc::clone(&done));
        std::thread::spawn(move || {
            while !done.load(Ordering::SeqCst) {
                SqliteJournal::open(&path).unwrap().run("r").unwrap().unwrap();
            }
        })
    };
    // Enough for the log to start over several times.
    for seq in 1..=150 {
        let large = JournalRecord { body: vec![7; 200_000], ..record(seq) };
        appender.submit(JournalEntry::Record(large)).unwrap();
    }
    writer.close().unwrap();
    done.store(true, Ordering::SeqCst);
    opener.join().unwrap();
}

#[test]
fn a_journal_without_a_writer_is_read_and_left_as_it_is() {
    let (_directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append((1..=3).map(record).collect()).unwrap();
    drop(journal);
    assert!(!Utf8Path::new(&format!("{path}-wal")).exists());
    let before = fs::read(&path).unwrap();
    let reader = SqliteReader::open(&path).unwrap();
    assert_eq!(reader.read("r", 1, 9).unwrap().len(), 3);
    assert_eq!(reader.runs(9).unwrap().len(), 1);
    drop(reader);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_reader_makes_no_journal_where_there_is_none() {
    let (directory, path) = place();
    assert!(matches!(SqliteReader::open(&path), Err(Error::Missing { .. })));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn in_a_directory_that_cannot_be_written_a_closed_journal_is_read() {
    let (directory, path) = place();
    let mut journal = journal_with_run(&path);
    journal.append((1..=3).map(record).collect()).unwrap();
    drop(journal);
    run_unprivileged(&directory, &path, "child_reads_three_records");
}

#[test]
fn in_a_directory_that_cannot_be_written_an_unclosed_journal_says_what_to_do() {
    let (directory, path) = place();
    let live = place();
    let mut journal = journal_with_run(&live.1);
    journal.append((1..=3).map(record).collect()).unwrap();
    fs::copy(&live.1, &path).unwrap();
    fs::copy(format!("{}-wal", live.1), format!("{path}-wal")).unwrap();
    run_unprivileged(&directory, &path, "child_is_told_to_copy_the_directory");
}

#[test]
fn child_reads_three_records() {
    // Only a child process of a test above is given a journal; for anyone else there is nothing here.
    let Ok(path) = std::env::var(JOURNAL).map(Utf8PathBuf::from) else { return };
    assert!(fs::write(path.with_file_name("x"), "").is_err(), "the directory must be read-only");
    let reader = SqliteReader::open(&path).unwrap();
    assert_eq!(reader.read("r", 1, 9).unwrap(), (1..=3).map(record).collect::<Vec<_>>());
    let mut journal = match SqliteJournal::open(&path) {
        Ok(journal) => journal,
        Err(error) => return assert!(error.to_string().contains(path.as_str()), "{error}"),
    };
    assert!(journal.append(vec![record(4)]).is_err());
}

#[test]
fn child_is_told_to_copy_the_directory() {
    // Only a child process of a test above is given a journal; for anyone else there is nothing here.
    let Ok(path) = std::env::var(JOURNAL).map(Utf8PathBuf::from) else { return };
    let error = SqliteReader::open(&path).err().unwrap();
    assert!(matches!(error, Error::LogUnreadable { .. }), "{error:?}");
}

/// Runs one of the children above where `directory` is read-only; as another user if we are root,
/// whom permissions do not bind.
fn run_unprivileged(directory: &TempDir, path: &Utf8Path, child: &str) {
    const NOBODY: u32 = 65_534;
    let program_directory = tempfile::tempdir().unwrap();
    fs::set_permissions(program_directory.path(), Permissions::from_mode(0o755)).unwrap();
    let program = program_directory.path().join("readers");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", child]).env(JOURNAL, path.as_str());
    if fs::metadata(directory.path()).unwrap().uid() == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

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
    let body = format!("record {seq}").into_bytes();
    JournalRecord { run: "r".into(), seq, epoch: 1, at_ms: 0, body }
}
