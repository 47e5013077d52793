//! A page in the real Chromium: without a network of any kind but the loopback, as a person opens it.

use super::dom::Dom;
use autopilot_testkit::stage::text;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The page after everything in it that runs has run.
pub fn dom(page: &Path) -> String {
    let shown = chromium(page, &["--dump-dom", "--virtual-time-budget=2000"]);
    String::from_utf8_lossy(&shown.stdout).into_owned()
}

pub fn screenshot(page: &Path, to: &Path, size: &str, more: &[&str]) {
    let (to, size) = (format!("--screenshot={}", text(to)), format!("--window-size={size}"));
    let mut args = vec![to.as_str(), size.as_str(), "--hide-scrollbars"];
    args.extend(more);
    chromium(page, &args);
}

/// What a script finds on the page. The page itself lets none run, so it is a copy without its policy
/// that is looked at, and on paper one whose rules for paper hold for the screen.
pub fn found(page: &Path, medium: Medium, script: &str, more: &[&str]) -> serde_json::Value {
    let whole = std::fs::read_to_string(page).unwrap().replace("Content-Security-Policy", "X-None");
    let whole = match medium {
        Medium::Screen => whole,
        Medium::Paper => {
            let paper = whole.replace("@media screen", "@media print").replacen(
                "@media print{@page",
                "@media screen{@page",
                1,
            );
            assert_ne!(paper, whole, "there are rules for paper");
            paper
        }
    };
    let script = format!(
        "<script>document.title = JSON.stringify((() => {{ {script} }})())</script></body>"
    );
    let copy = page.with_extension("copy.html");
    std::fs::write(&copy, whole.replacen("</body>", &script, 1)).unwrap();
    let mut args = vec!["--dump-dom", "--window-size=700,900"];
    args.extend(more);
    let shown = chromium(&copy, &args);
    let shown = Dom::parse(&String::from_utf8_lossy(&shown.stdout));
    let title = shown.tags("title")[0].text();
    serde_json::from_str(&title).unwrap_or_else(|error| panic!("{error}: {title}"))
}

#[derive(Clone, Copy)]
pub enum Medium {
    Screen,
    Paper,
}

/// Printed to a file; its pages are counted.
pub fn printed(page: &Path, to: &Path) -> usize {
    let pdf = format!("--print-to-pdf={}", text(to));
    chromium(page, &[&pdf, "--no-pdf-header-footer"]);
    let bytes = std::fs::read(to).unwrap();
    assert!(bytes.starts_with(b"%PDF"));
    bytes.windows(12).filter(|part| part.starts_with(b"/Type /Page") && part[11] != b's').count()
}

fn chromium(page: &Path, args: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    let shown = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-dev-shm-usage", "--disable-background-networking"])
        .arg(format!("--user-data-dir={}", text(home.path())))
        .args(args)
        .arg(format!("file://{}", text(page)))
        .env("HOME", home.path())
        .output()
        .unwrap_or_else(|error| {
            panic!("chromium can't be started ({error}); `cargo xtask test` installs it")
        });
    assert!(shown.status.success(), "chromium: {}", String::from_utf8_lossy(&shown.stderr));
    shown
}

/// Counts who connects.
pub struct Door {
    pub port: u16,
    seen: Arc<AtomicUsize>,
}

impl Door {
    pub fn open() -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                counted.fetch_add(1, Ordering::SeqCst);
                let Ok(mut stream) = stream else { continue };
                let _ = stream.set_read_timeout(Some(Duration::from_millis(100)));
                let _ = stream.read(&mut [0; 1024]);
            }
        });
        Door { port, seen }
    }

    pub fn knocks(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}
