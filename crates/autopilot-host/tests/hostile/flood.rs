//! Output without end: its cost, and that none of it is lost below the caps.

use std::time::Instant;

use autopilot_host::exec::{self, ChildWord};

use crate::world::*;

const FLOOD_BYTES: u64 = 300_000_000;
const COST_BYTES_MAX: u64 = 30 << 20;

pub fn one_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut launch = shell(&format!("head -c {FLOOD_BYTES} /dev/zero | tr '\\0' x"));
    launch.output.stdout_log = Some(log.clone());
    launch.output.log_bytes_max = FLOOD_BYTES;
    block_on(async {
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let before = memory("VmHWM:");
        let started = Instant::now();
        let (_, mut child) = exec::spawn(launch).await.unwrap();
        let mut lines = Vec::new();
        let exit = loop {
            match child.next().await {
                ChildWord::Line(line) => lines.push((line.text.len(), line.cut)),
                ChildWord::Stopped { .. } => panic!("nobody stopped it"),
                ChildWord::Ended(exit) => break exit,
            }
        };
        let cost = memory("VmHWM:").saturating_sub(before);
        let rate = FLOOD_BYTES as f64 / 1e6 / started.elapsed().as_secs_f64();
        println!("  {rate:.0} MB/s, {} MiB more resident at the peak", cost >> 20);
        assert!(cost < COST_BYTES_MAX, "{cost} bytes");
        assert_eq!(exit.output.stdout.bytes, FLOOD_BYTES);
        assert_eq!(lines, [(4 << 20, true)]);
        assert_eq!(exit.output.stdout.text.len(), 4 << 20);
    });
    assert_eq!(std::fs::metadata(log).unwrap().len(), FLOOD_BYTES);
}

pub fn many_lines() {
    const LINES: usize = 300_000;
    let mut launch = shell(&format!("seq {LINES}; printf end"));
    launch.output.text_bytes_max = 1000;
    block_on(async {
        let (_, mut child) = exec::spawn(launch).await.unwrap();
        let mut count = 0;
        let exit = loop {
            match child.next().await {
                ChildWord::Line(line) => {
                    count += 1;
                    let expected = if count > LINES { "end".to_owned() } else { count.to_string() };
                    assert_eq!((line.text, line.cut), (expected, false));
                }
                ChildWord::Stopped { .. } => panic!("nobody stopped it"),
                ChildWord::Ended(exit) => break exit,
            }
        };
        assert_eq!(count, LINES + 1);
        assert_eq!(exit.output.stdout.tail(2, 100), "300000\nend");
    });
}

fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
