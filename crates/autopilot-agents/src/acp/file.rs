//! The files that an agent reads and writes through us, where that is offered.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::permit::is_inside;
use super::rpc;
use crate::conversation::Act;
use crate::launch::{Access, LaunchRequest};

/// The number of reads and writes that may be open at once.
const WAITING_MAX: usize = 64;

/// The open reads and writes: our id of each act, and the request that it answers.
#[derive(Debug, Default)]
pub(super) struct Files {
    waiting: BTreeMap<u64, (Value, FileAccess)>,
    last: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    Read,
    Write,
}

/// The capability that the agent is offered.
pub(super) fn offered(launch: &LaunchRequest) -> Value {
    let writes = launch.fs && launch.access != Access::Read;
    json!({ "readTextFile": launch.fs, "writeTextFile": writes })
}

impl Files {
    /// Takes a request of `fs/…`; returns the act, or the line that refuses it.
    pub(super) fn asked(
        &mut self,
        launch: &LaunchRequest,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Act {
        let refuse = |code, why: &str| Act::Say(rpc::error(id, code, why));
        let kind = match (method, launch.access) {
            ("fs/read_text_file", _) if launch.fs => FileAccess::Read,
            ("fs/write_text_file", Access::Edit | Access::Unsafe) if launch.fs => FileAccess::Write,
            _ => return refuse(rpc::METHOD_NOT_FOUND, "file access is not offered"),
        };
        let Some(path) = params["path"].as_str() else {
            return refuse(rpc::INVALID_PARAMS, "the path is missing");
        };
        if !is_inside(&launch.cwd, path) {
            return refuse(rpc::INVALID_PARAMS, &format!("{path} is outside the worktree"));
        }
        if self.waiting.len() == WAITING_MAX {
            return refuse(rpc::INTERNAL_ERROR, "too many files are being read and written");
        }
        self.last += 1;
        self.waiting.insert(self.last, (id.clone(), kind));
        let path = launch.cwd.join(path).into_string();
        let number = |name: &str| params[name].as_u64().and_then(|n| u32::try_from(n).ok());
        match kind {
            FileAccess::Read => Act::ReadFile {
                id: self.last,
                path,
                first_line: number("line"),
                lines_max: number("limit"),
            },
            FileAccess::Write => {
                let text = params["content"].as_str().unwrap_or("").to_owned();
                Act::WriteFile { id: self.last, path, text }
            }
        }
    }

    /// Returns the line that answers the request; `None` if no request waits for it.
    pub(super) fn done(&mut self, id: u64, done: Result<String, String>) -> Option<String> {
        let (request, kind) = self.waiting.remove(&id)?;
        Some(match (done, kind) {
            (Ok(text), FileAccess::Read) => rpc::result(&request, &json!({ "content": text })),
            (Ok(_), FileAccess::Write) => rpc::result(&request, &Value::Null),
            // Agents that are about to write a new file look for it first, and recognize this
            // wording.
            (Err(why), FileAccess::Read | FileAccess::Write) if why.contains("No such file") => {
                let why = format!("Resource not found: {why}");
                rpc::error(&request, rpc::RESOURCE_NOT_FOUND, &why)
            }
            (Err(why), FileAccess::Read | FileAccess::Write) => {
                rpc::error(&request, rpc::INTERNAL_ERROR, &why)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(access: Access, fs: bool) -> LaunchRequest {
        LaunchRequest { access, fs, ..LaunchRequest::new("", "/slot".into()) }
    }

    fn asked(launch: &LaunchRequest, method: &str, path: &str) -> Act {
        let params = json!({ "path": path, "line": 3, "limit": 2, "content": "x" });
        Files::default().asked(launch, &json!(0), method, &params)
    }

    #[test]
    fn files_are_those_of_the_worktree() {
        let builder = launch(Access::Edit, true);
        let read = asked(&builder, "fs/read_text_file", "/slot/a");
        let whole = Act::ReadFile {
            id: 1,
            path: "/slot/a".into(),
            first_line: Some(3),
            lines_max: Some(2),
        };
        assert_eq!(read, whole);
        let write = asked(&builder, "fs/write_text_file", "b");
        assert_eq!(write, Act::WriteFile { id: 1, path: "/slot/b".into(), text: "x".into() });
        for path in ["/etc/passwd", "/slot/../x", "../x", "/slotted"] {
            let refused = asked(&builder, "fs/read_text_file", path);
            assert!(matches!(&refused, Act::Say(line) if line.contains("outside")), "{refused:?}");
        }
    }

    #[test]
    fn only_what_is_offered_is_done() {
        let not_found = |act: &Act| matches!(act, Act::Say(line) if line.contains("-32601"));
        assert!(not_found(&asked(&launch(Access::Edit, false), "fs/read_text_file", "/slot/a")));
        let reader = launch(Access::Read, true);
        assert!(not_found(&asked(&reader, "fs/write_text_file", "/slot/a")));
        assert!(!not_found(&asked(&reader, "fs/read_text_file", "/slot/a")));
        assert_eq!(offered(&reader), json!({ "readTextFile": true, "writeTextFile": false }));
    }

    #[test]
    fn each_request_is_answered_once_and_a_missing_file_says_so() {
        let builder = launch(Access::Edit, true);
        let mut files = Files::default();
        let path = json!({ "path": "/slot/a" });
        for id in ["a", "b", "c"] {
            files.asked(&builder, &json!(id), "fs/read_text_file", &path);
        }
        let line = files.done(2, Ok("text".into())).unwrap();
        assert_eq!(line, r#"{"jsonrpc":"2.0","id":"b","result":{"content":"text"}}"#);
        assert_eq!(files.done(2, Ok("text".into())), None);
        let line = files.done(1, Err("/slot/a: No such file or directory".into())).unwrap();
        assert!(line.contains("-32002") && line.contains("not found"), "{line}");
        assert!(files.done(3, Err("it is a directory".into())).unwrap().contains("-32603"));
    }

    #[test]
    fn only_so_many_wait() {
        let builder = launch(Access::Edit, true);
        let mut files = Files::default();
        let path = json!({ "path": "/slot/a" });
        for id in 0..WAITING_MAX {
            let act = files.asked(&builder, &json!(id), "fs/read_text_file", &path);
            assert!(matches!(act, Act::ReadFile { .. }));
        }
        let act = files.asked(&builder, &json!("more"), "fs/read_text_file", &path);
        assert!(matches!(act, Act::Say(line) if line.contains("too many")));
    }
}
