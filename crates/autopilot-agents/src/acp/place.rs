//! The files that a tool call names in its input. Every agent has its own keys for them; the list
//! of places that an agent gives besides may leave some out.

use serde_json::Value;

/// The number of files of one call that are kept.
pub(super) const FILES_MAX: usize = 100;
/// The deepest nesting of an input that is judged.
const DEPTH_MAX: u32 = 16;

/// The keys of files, in lower case and without punctuation.
const FILES: &[&str] = &[
    "file",
    "files",
    "filename",
    "filepath",
    "filepaths",
    "notebookpath",
    "targetfile",
    "targetpath",
    "absolutepath",
    "abspath",
    "oldpath",
    "newpath",
    "oldfilepath",
    "newfilepath",
    "sourcepath",
    "destinationpath",
    "destpath",
    "movepath",
];
/// The keys of files in an edit; elsewhere they may mean anything.
const PLACES: &[&str] = &[
    "path",
    "paths",
    "uri",
    "source",
    "src",
    "destination",
    "dest",
    "dst",
    "target",
    "from",
    "to",
    "dir",
    "directory",
];
/// The keys of objects whose own keys are files.
const BY_FILE: &[&str] = &["changes", "filechanges", "files", "edits"];
/// The keys of the text that is written, which names no place.
const CONTENTS: &[&str] = &["content", "contents", "newtext", "oldtext", "newstring", "oldstring"];
const FILE_URL: &str = "file:";
const PATCH: &str = "*** Begin Patch";
const PATCHED: &[&str] =
    &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];

/// The paths that the input of a call names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NamedPlaces {
    /// The paths that are files whatever the call does.
    pub(super) files: Vec<String>,
    /// The paths that are files if the call changes any.
    pub(super) perhaps: Vec<String>,
    /// Whether the call names more files than are kept.
    pub(super) is_cut: bool,
}

impl NamedPlaces {
    pub(super) fn learn(&mut self, input: &Value) {
        self.walk(input, 0);
    }

    fn file(&mut self, path: &str) {
        self.is_cut |= !add(&mut self.files, path);
    }

    fn walk(&mut self, value: &Value, depth: u32) {
        if depth == DEPTH_MAX {
            self.is_cut = true;
            return;
        }
        for (key, value) in value.as_object().into_iter().flatten() {
            let key: String =
                key.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
            self.named(&key, value, depth);
        }
        for value in value.as_array().into_iter().flatten() {
            self.walk(value, depth + 1);
        }
    }

    fn named(&mut self, key: &str, value: &Value, depth: u32) {
        if CONTENTS.contains(&key) {
            return;
        }
        let one = std::slice::from_ref(value);
        let values = value.as_array().map_or(one, Vec::as_slice);
        for text in values.iter().filter_map(Value::as_str) {
            if text.trim_start().starts_with(PATCH) {
                self.patched(text);
            } else if FILES.contains(&key) {
                self.file(text);
            } else if PLACES.contains(&key) {
                self.is_cut |= !add(&mut self.perhaps, text);
            }
        }
        if let Some(by_file) = value.as_object().filter(|_| BY_FILE.contains(&key)) {
            by_file.keys().for_each(|path| self.file(path));
        }
        self.walk(value, depth + 1);
    }

    fn patched(&mut self, patch: &str) {
        for line in patch.lines() {
            if let Some(path) = PATCHED.iter().find_map(|mark| line.trim_start().strip_prefix(mark))
            {
                self.file(path.trim());
            }
        }
    }
}

/// Adds a path; returns whether there was room for it.
fn add(paths: &mut Vec<String>, path: &str) -> bool {
    let path = local(path);
    if path.is_empty() || paths.contains(&path) {
        return true;
    }
    if paths.len() == FILES_MAX {
        return false;
    }
    paths.push(path);
    true
}

/// The path of a file that may be given as a URL, in which any character can be escaped.
pub(super) fn local(path: &str) -> String {
    let is_url =
        path.get(..FILE_URL.len()).is_some_and(|start| start.eq_ignore_ascii_case(FILE_URL));
    if !is_url {
        return path.to_owned();
    }
    let path = &path[FILE_URL.len()..];
    // After two slashes comes a host, which is nearly always empty.
    let path = match path.strip_prefix("//") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => path,
    };
    percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn places(input: &Value) -> NamedPlaces {
        let mut places = NamedPlaces::default();
        places.learn(input);
        places
    }

    #[test]
    fn files_are_found_under_the_keys_of_many_agents() {
        for key in ["file_path", "filePath", "filepath", "notebook_path", "target_file"] {
            assert_eq!(places(&json!({ key: "/x/a" })).files, ["/x/a"], "{key}");
        }
        for key in ["path", "paths", "uri", "destination", "to"] {
            assert_eq!(places(&json!({ key: "/x/a" })).perhaps, ["/x/a"], "{key}");
        }
        let changes = json!({ "changes": { "/x/a": { "type": "add", "content": "c" },
            "/x/b": { "type": "update", "move_path": "/y/b" } } });
        assert_eq!(places(&changes).files, ["/x/a", "/x/b", "/y/b"]);
        let edits = json!({ "edits": [{ "path": "/x/a" }, { "filePath": "file:///x/%2e%2E/b" }] });
        assert_eq!(places(&edits).perhaps, ["/x/a"]);
        assert_eq!(places(&edits).files, ["/x/../b"]);
        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: /y/a\n@@\n-x\n+y\n";
        assert_eq!(places(&json!({ "patchText": patch })).files, ["a", "/y/a"]);
    }

    #[test]
    fn a_url_of_a_file_is_a_path_from_the_root() {
        for url in ["file:///x/a b", "file:///x/a%20b", "FILE:///x/%61%20b", "file:/x/a b"] {
            assert_eq!(local(url), "/x/a b", "{url}");
        }
        assert_eq!(local("file://localhost/x/%2E%2e/a"), "/x/../a");
        assert_eq!(local("file://etc"), "/");
        assert_eq!(local("src/file:a"), "src/file:a");
    }

    #[test]
    fn what_is_written_names_no_file() {
        let input = json!({ "filePath": "/x/a", "content": "path: /etc/passwd", "limit": 3,
            "newString": { "file": "/etc/passwd" } });
        assert_eq!(
            places(&input),
            NamedPlaces { files: vec!["/x/a".into()], ..NamedPlaces::default() }
        );
    }

    #[test]
    fn what_is_too_much_to_be_kept_is_said_to_be() {
        let many: Vec<String> = (0..=FILES_MAX).map(|n| n.to_string()).collect();
        let all = places(&json!({ "files": many }));
        assert!(all.is_cut && all.files.len() == FILES_MAX);
        assert!(!places(&json!({ "files": many[1..] })).is_cut);
        let mut deep = json!({ "file": "/etc/passwd" });
        for _ in 0..DEPTH_MAX {
            deep = json!({ "x": deep });
        }
        assert!(places(&deep).is_cut);
    }
}
