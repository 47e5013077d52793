//! Killing the writer at many moments: every acknowledged record is there, and nothing is half
//! there.
#![allow(clippy::unwrap_used, reason = "a failed setup is a failed test")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use autopilot_journal::{
    Blob, Journal, JournalEntry, JournalHistory, JournalRecord, LeaseClaim, NewRun, SqliteJournal,
    SqliteReader, Writer, WriterNotice, check,
};
use camino::Utf8Path;

const ROUNDS: u64 = 12;
const JOURNAL: &str = "AUTOPILOT_TEST_JOURNAL";

#[test]
fn nothing_acknowledged_is_lost_by_kill_9() {
    let directory = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(directory.path()).unwrap().join("autopilot.db");
    let (id, mode, title) = ("r".to_owned(), "task".to_owned(), String::new());
    let mut journal = SqliteJournal::create(&path).unwrap();
    journal.create_run(&NewRun { id, mode, title, created_at_ms: 0 }).unwrap();
    drop(journal);

    let mut before = 0;
    for round in 1..=ROUNDS {
        let acknowledged = kill_after(&path, 1 + round * 5);
        assert!(acknowledged > before, "round {round} acknowledged nothing");
        let journal = SqliteJournal::open(&path).unwrap();
        let records = journal.read("r", 1, usize::MAX).unwrap();
        let last = records.last().unwrap().seq;
        assert!(last >= acknowledged, "round {round}: {last} of {acknowledged} acknowledged");
        for record in &records[usize::try_from(before).unwrap()..] {
            let hash = std::str::from_utf8(&record.body).unwrap();
            assert_eq!(journal.blob(hash).unwrap().unwrap(), output(record.seq), "{}", record.seq);
        }
        before = last;
    }
    assert!(check(&path).unwrap().is_sound());
}

/// Lets a child append until it has acknowledged `notices` times, and returns the highest number
/// acknowledged.
fn kill_after(path: &Utf8Path, notices: u64) -> u64 {
    let mut child = start(path);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = (&mut lines).map_while(|line| durable(&line.unwrap()));
    let mut highest = told.nth(usize::try_from(notices).unwrap()).unwrap();
    // Another process sees the records at once, without disturbing the writer.
    let reader = SqliteReader::open(path).unwrap();
    assert!(reader.run("r").unwrap().unwrap().last_seq >= highest);
    child.kill().unwrap();
    // The numbers still in the pipe had been acknowledged as well.
    for seq in told {
        highest = seq;
    }
    child.wait().unwrap();
    highest
}

fn start(path: &Utf8Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "child_appends_until_killed"])
        .env(JOURNAL, path.as_str())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads a number, past the lines of the test harness; `None` at a line cut short by the kill.
fn durable(line: &str) -> Option<u64> {
    match line.split_once("durable ") {
        Some((_harness, seq)) => seq.strip_suffix('.')?.parse().ok(),
        None => Some(0),
    }
}

#[test]
fn child_appends_until_killed() {
    // Only a child process of the test above is given a journal; for anyone else there is nothing here.
    let Ok(path) = std::env::var(JOURNAL) else { return };
    let mut journal = SqliteJournal::open(Utf8Path::new(&path)).unwrap();
    let epoch = journal.take_lease("r", "child", LeaseClaim::Force, 0, 1).unwrap().epoch;
    let next = journal.run("r").unwrap().unwrap().last_seq + 1;
    let notify = Box::new(|notice| {
        let WriterNotice::Durable { seq, .. } = notice else { panic!("{notice:?}") };
        let mut out = std::io::stdout().lock();
        writeln!(out, "durable {seq}.").unwrap();
        out.flush().unwrap();
    });
    let writer = Writer::start(Box::new(journal), 16, notify).unwrap();
    let appender = writer.appender();
    for seq in next.. {
        let blob = Blob::new(output(seq));
        let (run, body) = ("r".to_owned(), blob.hash().as_bytes().to_vec());
        appender.submit(JournalEntry::Blob(blob)).unwrap();
        appender
            .submit(JournalEntry::Record(JournalRecord { run, seq, epoch, at_ms: 0, body }))
            .unwrap();
    }
}

/// Large enough that checkpoints fall into the time in which the child is killed.
fn output(seq: u64) -> Vec<u8> {
    format!("output {seq} ").repeat(500).into_bytes()
}
