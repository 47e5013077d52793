//! Reads git's description of a change: `diff --raw -z` for the files, a unified diff for the
//! lines.

use super::{ChangedFile, ChangedLine, FileMode, FileStatus};

/// Returns the added and the removed lines of a unified diff with any number of context lines.
pub fn lines_of(diff: &str) -> (Vec<ChangedLine>, Vec<ChangedLine>) {
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    let (mut old_path, mut new_path) = (String::new(), String::new());
    let (mut old_line, mut new_line) = (0_u64, 0_u64);
    // The lines still to come in the hunk: `---` and `+++` are headers only outside of one.
    let (mut old_left, mut new_left) = (0_u64, 0_u64);
    for text in diff.split('\n') {
        let in_hunk = old_left > 0 || new_left > 0;
        match text.as_bytes().first() {
            Some(b'+') if in_hunk => {
                let text = text[1..].trim_end_matches('\r').to_owned();
                added.push(ChangedLine { path: new_path.clone(), line: new_line, text });
                new_line += 1;
                new_left = new_left.saturating_sub(1);
            }
            Some(b'-') if in_hunk => {
                let text = text[1..].trim_end_matches('\r').to_owned();
                removed.push(ChangedLine { path: old_path.clone(), line: old_line, text });
                old_line += 1;
                old_left = old_left.saturating_sub(1);
            }
            Some(b'\\') => {}
            _ if in_hunk => {
                (old_line, new_line) = (old_line + 1, new_line + 1);
                (old_left, new_left) = (old_left.saturating_sub(1), new_left.saturating_sub(1));
            }
            _ => {
                if let Some(path) = text.strip_prefix("--- ") {
                    old_path = header_path(path);
                } else if let Some(path) = text.strip_prefix("+++ ") {
                    new_path = header_path(path);
                } else if let Some(hunk) = text.strip_prefix("@@ -") {
                    ((old_line, old_left), (new_line, new_left)) = ranges(hunk);
                }
            }
        }
    }
    (added, removed)
}

/// Reads `12,3 +14 @@ …`: the start and the length of both sides.
fn ranges(hunk: &str) -> ((u64, u64), (u64, u64)) {
    let range = |text: &str| {
        let (start, length) = text.split_once(',').unwrap_or((text, "1"));
        (start.parse().unwrap_or(0), length.parse().unwrap_or(0))
    };
    let mut words = hunk.split(' ');
    let old = range(words.next().unwrap_or_default());
    let new = range(words.next().unwrap_or_default().trim_start_matches('+'));
    (old, new)
}

/// Reads `a/src/x.rs`, `"b/t\303\251st"` or `/dev/null`; a tab may follow names with spaces.
fn header_path(text: &str) -> String {
    let text = text.trim_end_matches('\r').trim_end_matches('\t');
    let path = match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(quoted) => unquoted(quoted),
        None => text.to_owned(),
    };
    let bare = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
    bare.map(str::to_owned).unwrap_or(path)
}

/// Undoes git's C-style quoting.
fn unquoted(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'3') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    value = value * 8 + u32::from(rest.next().unwrap_or(b'0').saturating_sub(b'0'));
                }
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the output of `git diff --raw -z [-M]`, which has no link targets and does not tell binary
/// files.
pub fn files_of(raw: &[u8]) -> Vec<ChangedFile> {
    let mut fields = raw.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut files = Vec::new();
    while let Some(head) = fields.next() {
        let Some(head) = head.strip_prefix(':') else { continue };
        let words: Vec<&str> = head.split(' ').collect();
        let [old_mode, new_mode, _, _, status] = words[..] else { continue };
        let first = fields.next().unwrap_or_default().into_owned();
        let status = status_of(status);
        let two_sided = matches!(status, FileStatus::Renamed | FileStatus::Copied);
        let second = if two_sided { fields.next().map(|path| path.into_owned()) } else { None };
        let mode = mode_of(if status == FileStatus::Deleted { old_mode } else { new_mode });
        let (path, old_path) = match second {
            Some(path) => (path, Some(first)),
            None => (first, None),
        };
        files.push(ChangedFile { path, status, old_path, link_target: None, mode, binary: false });
    }
    files
}

fn status_of(text: &str) -> FileStatus {
    match text.bytes().next() {
        Some(b'A') => FileStatus::Added,
        Some(b'D') => FileStatus::Deleted,
        Some(b'R') => FileStatus::Renamed,
        Some(b'C') => FileStatus::Copied,
        Some(b'T') => FileStatus::TypeChanged,
        Some(b'U') => FileStatus::Unmerged,
        _ => FileStatus::Modified,
    }
}

fn mode_of(text: &str) -> FileMode {
    match text {
        "120000" => FileMode::Symlink,
        "160000" => FileMode::Gitlink,
        "100755" => FileMode::Executable,
        _ => FileMode::Regular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_have_their_path_and_number() {
        let diff = "\
diff --git a/src/a.rs b/src/b c.rs
--- a/src/a.rs
+++ b/src/b c.rs\t
@@ -10,2 +10,3 @@ fn x() {
 same
--- looks like a header
+++ so does this
+last
\\ No newline at end of file
diff --git \"a/t\\303\\251.py\" \"b/t\\303\\251.py\"
--- /dev/null
+++ \"b/t\\303\\251.py\"
@@ -0,0 +1 @@
+x = 1
";
        let (added, removed) = lines_of(diff);
        let shown = |lines: &[ChangedLine]| {
            lines.iter().map(|l| format!("{}:{}:{}", l.path, l.line, l.text)).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(&added),
            ["src/b c.rs:11:++ so does this", "src/b c.rs:12:last", "té.py:1:x = 1"]
        );
        assert_eq!(shown(&removed), ["src/a.rs:11:-- looks like a header"]);
    }

    #[test]
    fn raw_output_gives_status_mode_and_both_paths() {
        let raw = b":100644 100644 a b M\0src/a.rs\0:100644 100644 a b R090\0old\0new\0:000000 120000 0 b A\0link\0:160000 000000 a 0 D\0sub\0";
        let files = files_of(raw);
        let shown: Vec<String> = files
            .iter()
            .map(|f| format!("{:?} {} {:?} {:?}", f.status, f.path, f.old_path, f.mode))
            .collect();
        assert_eq!(
            shown,
            [
                "Modified src/a.rs None Regular",
                "Renamed new Some(\"old\") Regular",
                "Added link None Symlink",
                "Deleted sub None Gitlink",
            ]
        );
    }

    proptest! {
        #[test]
        fn no_input_panics(text in "[-+@\\\\ a-z0-9,\"\n]{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            lines_of(&text);
            files_of(&bytes);
        }
    }
}
