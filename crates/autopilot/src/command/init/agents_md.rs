//! The `AGENTS.md` that `init` writes if there is none: what done means, and the commands.

use autopilot_core::detect::Detected;

/// The text of the file for a detected project.
pub fn text(detected: &Detected) -> String {
    let mut text = String::from(
        "# Working in this repository\n\n\
         ## Definition of done\n\n\
         - Every acceptance criterion of the task holds and is covered by a test.\n\
         - All checks below pass.\n\
         - The change is as small as the task allows; unrelated code stays as it is.\n\
         - No leftover debugging output, no commented-out code, no unfinished parts.\n\n\
         ## Commands\n\n",
    );
    let commands = [
        ("Set up", &detected.setup),
        ("Tests", &detected.tests),
        ("Lint", &detected.lint),
        ("Format", &detected.format),
    ];
    let known: Vec<String> = commands
        .into_iter()
        .filter_map(|(name, proposal)| Some(format!("- {name}: `{}`\n", proposal.as_ref()?.value)))
        .collect();
    if known.is_empty() {
        text.push_str("- Tests: see `commands.tests` in `.autopilot/config.yml`\n");
    }
    text.push_str(&known.concat());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::detect::Proposal;

    #[test]
    fn commands_that_were_found_are_named() {
        let tests = Some(Proposal { value: "cargo test".into(), why: "Cargo.toml".into() });
        let text = text(&Detected { tests, ..Detected::default() });
        assert!(text.ends_with("## Commands\n\n- Tests: `cargo test`\n"), "{text}");
    }
}
