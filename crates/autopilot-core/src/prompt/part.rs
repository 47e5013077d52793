//! The parts of a prompt: cut to size, fenced, with a heading.

use super::Caps;
use crate::evidence::SeenCommand;
use crate::flaky::flaky_note;
use crate::number::count;

/// Cuts a text to `bytes_max` bytes: 70 % from the head, 30 % from the tail and a mark between
/// them. The head says what it is about, the tail how it ended.
pub fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let room = bytes_max.saturating_sub(MARK_BYTES_MAX);
    let head_end = text.floor_char_boundary(room * 7 / 10);
    let tail_start = text.ceil_char_boundary(text.len() - (room - room * 7 / 10));
    let left_out = tail_start - head_end;
    let mark = format!("\n[… {left_out} bytes left out …]\n");
    format!("{}{mark}{}", &text[..head_end], &text[tail_start..])
}

/// The length of the mark with the longest possible number.
const MARK_BYTES_MAX: usize = 52;

/// Returns the last lines, and says how many were left out.
pub fn tail(text: &str, lines_max: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(lines_max);
    let kept = lines[left_out..].join("\n");
    if left_out == 0 {
        kept
    } else {
        format!("[… {} left out …]\n{kept}", count(left_out, "line"))
    }
}

/// Puts a text between fences longer than any run of backticks inside, so that no content can end
/// its own block.
pub fn fenced(kind: &str, content: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in content.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat((longest + 1).max(3));
    let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{kind}\n{content}{end}{fence}\n")
}

/// A block of material with a heading.
pub(crate) fn block(title: &str, kind: &str, content: &str, caps: Caps) -> String {
    format!("\n## {title}\n\n{}", fenced(kind, &cut(content, caps.prompt_bytes_max)))
}

pub(crate) fn bullets(items: &[String], caps: Caps) -> String {
    list(items, caps, |_| "-".to_owned())
}

/// A list whose items can be cited by number.
pub(crate) fn numbered(items: &[String], caps: Caps) -> String {
    list(items, caps, |place| format!("{}.", place + 1))
}

fn list(items: &[String], caps: Caps, mark: impl Fn(usize) -> String) -> String {
    let item = |(place, item): (usize, &String)| {
        let mark = mark(place);
        let indent = " ".repeat(mark.len() + 1);
        format!("{mark} {}\n", item.replace('\n', &format!("\n{indent}")))
    };
    let text: String = items.iter().enumerate().map(item).collect();
    let mut text = cut(&text, caps.prompt_bytes_max);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A command, its exit code and the end of its output.
pub(crate) fn ran(ran: &SeenCommand, caps: Caps) -> String {
    let ended = match ran.exit_code {
        Some(0) => "exit code 0 (passed)".to_owned(),
        Some(code) => format!("exit code {code} (failed)"),
        None => "killed (failed)".to_owned(),
    };
    let flaky = flaky_note(ran).map(|note| format!("{}\n", note.replace('\n', " ")));
    let output = tail(ran.output.trim_end(), caps.tail_lines_max);
    let shown = if output.is_empty() { "(no output)".to_owned() } else { output };
    format!(
        "\n{}: {}\n{}\n{}{}",
        ran.name,
        inline(&ran.command),
        ended,
        flaky.unwrap_or_default(),
        fenced("text", &cut(&shown, caps.prompt_bytes_max))
    )
}

/// A line of code that can't leave its backticks.
pub(crate) fn inline(text: &str) -> String {
    format!("`{}`", text.replace(['\n', '\r'], " ").replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flaky::FirstTry;

    #[test]
    fn a_command_that_failed_before_is_told_as_flaky() {
        let seen = SeenCommand { exit_code: Some(0), ended: true, ..SeenCommand::default() };
        let caps = Caps { prompt_bytes_max: 1000, tail_lines_max: 10 };
        assert!(!ran(&seen, caps).contains("flaky"));
        let first = FirstTry { failing: ["a\nb".to_owned()].into(), log: "a.log".to_owned() };
        let told = ran(&SeenCommand { first_try: Some(first), ..seen }, caps);
        assert!(told.contains("exit code 0 (passed)\n`` is flaky: it failed (a b) and"), "{told}");
    }
}
