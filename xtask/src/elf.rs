//! As much of the ELF format (System V ABI, chapters 4 and 5) as tells a static program from one
//! that needs a loader.

const PROGRAM_INTERPRETER: u32 = 3;

/// Whether a 64-bit little-endian program names a loader; `None` when the file is something else.
pub fn needs_loader(file: &[u8]) -> Option<bool> {
    if file.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = usize::try_from(u64::from_le_bytes(file.get(32..40)?.try_into().ok()?)).ok()?;
    let size = usize::from(u16::from_le_bytes(file.get(54..56)?.try_into().ok()?));
    let count = usize::from(u16::from_le_bytes(file.get(56..58)?.try_into().ok()?));
    for index in 0..count {
        let at = table.checked_add(index * size)?;
        let kind = u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?);
        if kind == PROGRAM_INTERPRETER {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_program_needs_a_loader_unless_its_entry_is_gone() {
        let mut file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(needs_loader(&file), Some(true));
        // The count of program headers is at 56; without entries nothing asks for a loader.
        file[56..58].fill(0);
        assert_eq!(needs_loader(&file), Some(false));
    }

    #[test]
    fn other_files_are_not_judged() {
        assert_eq!(needs_loader(b"#!/bin/sh\n"), None);
        assert_eq!(needs_loader(b"\x7fELF\x02\x01"), None);
    }
}
