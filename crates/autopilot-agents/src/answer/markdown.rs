//! Answers that are Markdown are taken as they are, except for a code fence around the whole.

/// Returns the text without the code fence that some agents put around a document.
pub fn markdown(text: &str) -> String {
    let trimmed = text.trim();
    unfenced(trimmed).unwrap_or(trimmed).trim().to_owned() + "\n"
}

fn unfenced(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let (inside, last) = rest.rsplit_once('\n').unwrap_or(("", rest));
    let ticks = first.chars().take_while(|c| *c == '`').count();
    let fence = "`".repeat(ticks);
    if ticks < 3 || last.trim() != fence {
        return None;
    }
    let inner_fences = inside.lines().filter(|line| line.trim_start().starts_with(&fence)).count();
    match first[ticks..].trim().to_lowercase().as_str() {
        "markdown" | "md" => Some(inside),
        // A fence without a language may be two blocks, one at each end.
        "" if inner_fences == 0 => Some(inside),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fence_around_the_whole_is_taken_off() {
        let table = [
            ("# Cases\n- a", "# Cases\n- a\n"),
            (
                "\n```markdown\n# Cases\n```sh\nls\n```\n- a\n```\n",
                "# Cases\n```sh\nls\n```\n- a\n",
            ),
            ("```\n# Cases\n```", "# Cases\n"),
            ("````md\n```\nx\n```\n````", "```\nx\n```\n"),
            ("```sh\nls\n```", "```sh\nls\n```\n"),
            ("```\na\n```\ntext\n```\nb\n```", "```\na\n```\ntext\n```\nb\n```\n"),
            ("```md\n```", "\n"),
            ("```", "```\n"),
            ("", "\n"),
        ];
        for (given, taken) in table {
            assert_eq!(markdown(given), taken, "{given:?}");
        }
    }
}
