//! Bare text is a goal: `autopilot "Fix the login"` is `autopilot goal "Fix the login"`.
//!
//! Only text with white space is a goal: a single word is more likely a mistyped command, and a
//! goal costs money.

use crate::cli::{Cli, Command};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::{OsStr, OsString};

const GOAL: &str = "goal";

/// Parses the command line of this process, the name of the program first.
pub fn parse(args: Vec<OsString>) -> Result<Cli, clap::Error> {
    if let Some(place) = first_word(&args).filter(|place| is_goal(&args[*place])) {
        // A `--` right before the text belongs to it.
        let place = if args[place - 1] == "--" { place - 1 } else { place };
        return match Cli::try_parse_from(as_goal(&args, place)) {
            Err(error) if error.kind() == ErrorKind::UnknownArgument => goal_at_once(&args, error),
            parsed => parsed,
        };
    }
    let error = match Cli::try_parse_from(&args) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    let kind = error.kind();
    if kind == ErrorKind::UnknownArgument && first_command(&args).is_none() {
        return goal_at_once(&args, error);
    }
    Err(if kind == ErrorKind::InvalidSubcommand { told_nearest(error) } else { error })
}

/// Parses the arguments as those of `goal`, whose options may stand before the text.
fn goal_at_once(args: &[OsString], error: clap::Error) -> Result<Cli, clap::Error> {
    let tried = Cli::try_parse_from(as_goal(args, 1));
    tried.ok().filter(has_bare_text).ok_or(error)
}

/// The index of the first argument that is neither an option nor the value of one.
fn first_word(args: &[OsString]) -> Option<usize> {
    let mut place = 1;
    while let Some(arg) = args.get(place) {
        match arg.to_str() {
            Some("--") => return (place + 1 < args.len()).then_some(place + 1),
            // -C is the only option before a command that has a value.
            Some("-C" | "--repo") => place += 2,
            Some(flags)
                if !flags.starts_with("--") && flags.starts_with('-') && flags.ends_with('C') =>
            {
                place += 2;
            }
            Some(option) if option.starts_with('-') && option.len() > 1 => place += 1,
            Some(_) | None => return Some(place),
        }
    }
    None
}

fn first_command(args: &[OsString]) -> Option<usize> {
    let command = Cli::command();
    let is_command = |arg: &OsStr| {
        arg.to_str()
            .is_some_and(|arg| command.get_subcommands().any(|known| known.get_name() == arg))
    };
    first_word(args).filter(|place| is_command(&args[*place]))
}

/// Whether there is white space inside the text; `"status "` is a slip and not a goal.
fn is_goal(arg: &OsStr) -> bool {
    arg.to_string_lossy().trim().contains(char::is_whitespace)
}

fn as_goal(args: &[OsString], place: usize) -> Vec<OsString> {
    let mut args = args.to_vec();
    args.insert(place, GOAL.into());
    args
}

fn has_bare_text(cli: &Cli) -> bool {
    let Command::Goal(goal) = &cli.command else { return false };
    is_goal(OsStr::new(&goal.text))
}

/// Adds the nearest command to the error about an unknown one, and how to give a one-word goal.
fn told_nearest(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let word = word.clone();
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let nearest = autopilot_core::config::nearest::nearest(&word, names).map(str::to_owned);
    let guess =
        |name: String| (ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name]));
    if let Some((kind, value)) = nearest.map(guess) {
        error.insert(kind, value);
    }
    let hint = "for a goal of one word, use `autopilot goal <TEXT>`".to_owned();
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Cli, clap::Error> {
        parse(
            std::iter::once("autopilot").chain(args.iter().copied()).map(OsString::from).collect(),
        )
    }

    #[track_caller]
    fn goal(args: &[&str]) -> (Cli, String) {
        let cli = read(args).unwrap();
        let Command::Goal(goal) = &cli.command else { panic!("{:?}", cli.command) };
        let text = goal.text.clone();
        (cli, text)
    }

    #[test]
    fn text_with_white_space_is_a_goal_wherever_options_stand() {
        for args in [
            &["Fix the login"][..],
            &["Fix the login", "--adapter", "codex"],
            &["--adapter", "codex", "Fix the login"],
            &["--max-iterations=2", "--fail-fast", "Fix the login"],
            &["-C", "some dir", "--json", "Fix the login"],
            &["--repo=some dir", "-q", "Fix the login", "--unsafe"],
            &["-qC", "some dir", "Fix the login"],
            &["--", "Fix the login"],
        ] {
            assert_eq!(goal(args).1, "Fix the login", "{args:?}");
        }
        assert_eq!(goal(&["Fix\tit"]).1, "Fix\tit");
        assert_eq!(goal(&["--", "- first this\n- then that"]).1, "- first this\n- then that");
        let (cli, _) = goal(&["-C", "some dir", "--json", "Fix the login"]);
        assert_eq!((cli.global.repo.as_str(), cli.global.json), ("some dir", true));
    }

    #[test]
    fn options_of_goals_are_checked_with_bare_text_too() {
        let error = read(&["Fix the login", "--adaptr", "codex"]).unwrap_err().to_string();
        assert!(error.contains("--adapter"), "{error}");
        let error = read(&["Fix the login", "--max-iterations", "0"]).unwrap_err().to_string();
        assert!(error.contains("max-iterations"), "{error}");
    }

    #[test]
    fn a_word_is_no_goal_and_the_nearest_command_is_named() {
        let cases = [("stauts", "status"), ("rnu", "run"), ("resum", "resume"), ("gaol", "goal")];
        for (word, meant) in cases {
            let error = read(&[word]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidSubcommand, "{word}");
            let text = error.to_string();
            assert!(text.contains(&format!("'{meant}'")), "{word}: {text}");
        }
        for word in ["Fix", "3-7", "24", "status ", "  ", "", "-"] {
            let error = read(&[word]).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::DisplayHelp, "`{word}`");
        }
        let text = read(&["Fix"]).unwrap_err().to_string();
        assert!(text.contains("autopilot goal <TEXT>"), "{text}");
    }

    #[test]
    fn commands_are_commands_whatever_follows_them() {
        let cli = read(&["reject", "not like this"]).unwrap();
        assert!(matches!(cli.command, Command::Reject(_)), "{:?}", cli.command);
        let cli = read(&["-C", "a dir", "task", "new", "A new task"]).unwrap();
        assert!(matches!(cli.command, Command::Task { .. }), "{:?}", cli.command);
        // A mistyped option of a command is its own matter.
        let error = read(&["run", "--queu", "some dir"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnknownArgument);
        assert!(!error.to_string().contains("goal"), "{error}");
        let error = read(&[]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    }
}
