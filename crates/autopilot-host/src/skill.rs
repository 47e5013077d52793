//! Skill files of a person's home: files of one name in the directories of a folder on disk.

use crate::file::{self, FileError};
use std::io::ErrorKind;
use std::path::Path;

/// Reads `dir/*/file`. Returns the names of the directories, in order, each with the file's content
/// or the reason why it can't be read.
pub fn files_below(
    dir: &Path,
    file: &str,
    dirs_max: usize,
    bytes_max: u64,
) -> Vec<(String, Result<Vec<u8>, String>)> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names
        .filter(|name| !name.starts_with('.') && !name.chars().any(char::is_control))
        .collect();
    names.sort();
    let mut found = Vec::new();
    for name in names {
        let path = dir.join(&name).join(file);
        let text = match file::read_capped(&path, bytes_max) {
            Ok(bytes) => Ok(bytes),
            Err(FileError::Failed { source, .. }) if is_absent(&source) => continue,
            Err(FileError::TooLarge { bytes_max, .. }) => {
                Err(format!("it is larger than {bytes_max} bytes"))
            }
            Err(error) => Err(error.to_string()),
        };
        found.push((name, text));
        if found.len() == dirs_max {
            break;
        }
    }
    found
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn directories_without_the_file_are_passed_over_and_bad_files_say_why() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", ".hidden", "empty"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("a/S"), "one").unwrap();
        fs::write(dir.path().join("b/S"), "much too long").unwrap();
        fs::create_dir(dir.path().join("c/S")).unwrap();
        fs::write(dir.path().join(".hidden/S"), "x").unwrap();
        fs::write(dir.path().join("file"), "x").unwrap();
        let found = files_below(dir.path(), "S", 10, 5);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(found[0].1.as_deref(), Ok(&b"one"[..]));
        assert_eq!(found[1].1.as_ref().unwrap_err(), "it is larger than 5 bytes");
        assert!(found[2].1.is_err());
        assert_eq!(files_below(dir.path(), "S", 1, 5).len(), 1);
        assert!(files_below(&dir.path().join("gone"), "S", 1, 5).is_empty());
    }
}
