//! Turns bytes into text whose lines can be trusted.

use super::{ConfigFault, TASK_BYTES_MAX, TextPlace};

pub(super) fn text_of(bytes: &[u8]) -> Result<String, Vec<ConfigFault>> {
    let fault =
        |line: usize, message: String| vec![ConfigFault::new(TextPlace::at(line, 1), message)];
    if bytes.len() > TASK_BYTES_MAX {
        let message = format!(
            "the file has {} bytes, more than the {TASK_BYTES_MAX} a task may have; keep the goal \
             and the criteria, name other files by their path",
            bytes.len()
        );
        return Err(fault(1, message));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        fault(line, "the text is not UTF-8; save the file in that encoding".to_owned())
    })?;
    Ok(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Reports characters that make a screen show something else than agents read; once per line.
pub(super) fn odd_characters(text: &str, faults: &mut Vec<ConfigFault>) {
    const FAULTS_MAX: usize = 20;
    let odd = |c: char| (c.is_control() && c != '\t') || is_bidi(c);
    let found = text.lines().enumerate().filter_map(|(index, line)| {
        let (column, c) = line.chars().enumerate().find(|(_, c)| odd(*c))?;
        let place = TextPlace::at(index + 1, column + 1);
        let code = u32::from(c);
        Some(ConfigFault::new(
            place,
            format!("the line has an invisible character (U+{code:04X}); remove it"),
        ))
    });
    faults.extend(found.take(FAULTS_MAX));
}

/// Whether a character overrides the writing direction.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
