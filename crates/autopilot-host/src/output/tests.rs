//! Tests of the output through real pipes.

use super::*;
use std::io::Write;

struct Bench {
    stdout: io::PipeWriter,
    stderr: io::PipeWriter,
    gone: io::PipeWriter,
    pipes: Pipes,
}

fn bench() -> Bench {
    let (out_reader, stdout) = io::pipe().unwrap();
    let (err_reader, stderr) = io::pipe().unwrap();
    let (gone_reader, gone) = io::pipe().unwrap();
    let pipes = Pipes {
        stdout: crate::exec::nonblocking(out_reader.into()).unwrap(),
        stderr: crate::exec::nonblocking(err_reader.into()).unwrap(),
        gone: gone_reader.into(),
    };
    Bench { stdout, stderr, gone, pipes }
}

fn run(
    pipes: Pipes,
    settings: &OutputSettings,
    redactor: &Redactor,
) -> (Captured, Vec<OutputLine>) {
    let (sender, mut receiver) = mpsc::channel(BATCHES_MAX);
    let progress = Arc::new(Progress::default());
    std::thread::scope(|scope| {
        let pump = scope.spawn(|| pump(pipes, settings, redactor, &progress, sender));
        let mut lines = Vec::new();
        while let Some(batch) = receiver.blocking_recv() {
            lines.extend(batch);
        }
        (pump.join().unwrap(), lines)
    })
}

fn printed(
    out: &[u8],
    settings: &OutputSettings,
    redactor: &Redactor,
) -> (Captured, Vec<OutputLine>) {
    let Bench { mut stdout, stderr, gone, pipes } = bench();
    stdout.write_all(out).unwrap();
    drop((stdout, stderr));
    let result = run(pipes, settings, redactor);
    drop(gone);
    result
}

#[test]
fn what_is_kept_is_redacted_and_the_parser_gets_what_was_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let settings = OutputSettings { stdout_log: Some(log.clone()), ..OutputSettings::default() };
    let redactor = Redactor::new([""; 0], ["hunter2hunter2"]).unwrap();
    let (kept, lines) = printed(b"a hunter2hunter2 b\nend", &settings, &redactor);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "a [redacted] b\nend");
    assert_eq!(kept.stdout.text, "a [redacted] b\nend");
    assert_eq!((kept.stdout.bytes, kept.stdout.log), (22, LogEnd::Whole));
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["a hunter2hunter2 b", "end"]);
}

#[test]
fn the_log_ends_at_its_cap_with_a_mark() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let settings = OutputSettings {
        stdout_log: Some(log.clone()),
        log_bytes_max: 5,
        ..OutputSettings::default()
    };
    let (kept, lines) = printed(b"0123456789\nend\n", &settings, &Redactor::none());
    let text = std::fs::read_to_string(log).unwrap();
    assert_eq!(text, "01234\n[log ends here: its size limit is reached]\n");
    assert_eq!(kept.stdout.log, LogEnd::Capped);
    assert_eq!(lines.len(), 2);
}

#[test]
fn d02_a_full_disk_only_ends_the_log() {
    let settings =
        OutputSettings { stdout_log: Some("/dev/full".into()), ..OutputSettings::default() };
    let (kept, lines) = printed(b"one\ntwo\n", &settings, &Redactor::none());
    assert!(matches!(&kept.stdout.log, LogEnd::Failed(why) if why.contains("No space left")));
    assert_eq!((kept.stdout.text.as_str(), lines.len()), ("one\ntwo\n", 2));
}

#[test]
fn d09_a_log_directory_that_became_a_link_is_refused_and_the_run_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/tmp", dir.path().join("logs")).unwrap();
    let log = Some(dir.path().join("logs/never-written"));
    let settings = OutputSettings { stdout_log: log, ..OutputSettings::default() };
    let (kept, lines) = printed(b"one\n", &settings, &Redactor::none());
    assert!(matches!(&kept.stdout.log, LogEnd::Failed(why) if why.contains("symbolic link")));
    assert_eq!(lines.len(), 1);
}

#[test]
fn p07_a_pipe_held_open_does_not_hold_the_end() {
    let Bench { mut stdout, stderr, gone, pipes } = bench();
    stdout.write_all(b"last words").unwrap();
    drop(gone);
    let (kept, lines) = run(pipes, &OutputSettings::default(), &Redactor::none());
    assert_eq!((kept.stdout.text.as_str(), lines.len()), ("last words", 1));
    drop((stdout, stderr));
}

#[test]
fn a_parser_that_left_does_not_stop_the_log() {
    let Bench { mut stdout, stderr, gone, pipes } = bench();
    let (sender, receiver) = mpsc::channel(BATCHES_MAX);
    drop(receiver);
    let writer = std::thread::spawn(move || {
        stdout.write_all(&b"line\n".repeat(100_000)).unwrap();
        drop((stdout, stderr));
    });
    let progress = Arc::new(Progress::default());
    let kept = pump(pipes, &OutputSettings::default(), &Redactor::none(), &progress, sender);
    writer.join().unwrap();
    assert_eq!((kept.stdout.bytes, progress.bytes()), (500_000, 500_000));
    drop(gone);
}

#[test]
fn the_tail_is_bounded_and_harmless() {
    let text = "one\n\u{1b}[31mtwo\u{1b}[0m\nthree\u{202e}\n\n";
    assert_eq!(tail(text, 2, 1000), "two\nthree\\u{202e}");
    assert_eq!(tail("äöü", 1, 3), "ü");
    assert_eq!(tail("a\nb", 0, 10), "");
    assert_eq!(tail("", 5, 10), "");
    assert!(tail(&"x\n".repeat(10_000), 100, 50).len() <= 50);
}
