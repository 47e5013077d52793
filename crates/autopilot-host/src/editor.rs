//! The user's own editor, in the user's own terminal. It is the one program that is started without
//! a supervisor: it is theirs, and they are looking at it.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

/// Opens a file in an editor and waits for it. `editor` may have arguments, as `$EDITOR` often does.
pub fn open(editor: &str, file: &Path) -> io::Result<ExitStatus> {
    Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(file).status()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_editor_with_arguments_gets_the_file_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a b \"$c.json");
        std::fs::write(&file, "one").unwrap();
        assert!(open("sed -i s/one/two/", &file).unwrap().success());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        assert!(!open("false", &file).unwrap().success());
    }
}
