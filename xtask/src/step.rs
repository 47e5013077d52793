//! One step of a check: a command that is shown, timed, and named when it fails.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Why xtask ends with a non-zero exit code.
#[derive(Debug)]
pub enum Failure {
    /// The command line makes no sense.
    Usage(String),
    /// A command ended badly; `again` runs it alone.
    Step { name: String, why: String, again: String },
    /// Work of xtask itself went wrong; operation and object are in the sentence.
    Task(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(what) | Failure::Task(what) => f.write_str(what),
            Failure::Step { name, why, again } => {
                write!(f, "step `{name}` failed ({why})\n  to run it alone: {again}")
            }
        }
    }
}

/// Turns an error of the system into a `Failure` that says what was being done.
pub fn failed_to<E: fmt::Display>(operation: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Task(format!("cannot {operation}: {error}"))
}

/// Runs `command` to its end with the terminal as its output.
pub fn run(name: &str, command: &mut Command) -> Result<(), Failure> {
    run_for_output(name, command.stdout(Stdio::inherit())).map(drop)
}

/// Runs `command` to its end with the terminal for its complaints, and returns what it printed.
pub fn run_for_output(name: &str, command: &mut Command) -> Result<String, Failure> {
    let again = shown(command);
    println!("xtask: $ {again}");
    let started = Instant::now();
    command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    let output = command.output().map_err(failed_to(format!("start `{again}`")))?;
    let seconds = started.elapsed().as_secs_f32();
    if !output.status.success() {
        println!("xtask: {name} FAILED after {seconds:.1} s");
        return Err(Failure::Step { name: name.to_owned(), why: output.status.to_string(), again });
    }
    println!("xtask: {name} passed in {seconds:.1} s");
    String::from_utf8(output.stdout).map_err(failed_to(format!("read the output of `{again}`")))
}

/// Runs `command`, shows none of it, and returns what it printed.
pub fn output_of(command: &mut Command) -> Result<String, Failure> {
    let line = shown(command);
    let output = command.output().map_err(failed_to(format!("start `{line}`")))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Failure::Step {
            name: line.clone(),
            why: format!("{}: {complaint}", output.status),
            again: line,
        });
    }
    String::from_utf8(output.stdout).map_err(failed_to(format!("read the output of `{line}`")))
}

/// The command as a person would type it: changed variables first, words quoted where needed.
pub fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = quoted(&value?.to_string_lossy());
        Some(format!("{}={value}", name.to_string_lossy()))
    });
    let program = quoted(&command.get_program().to_string_lossy());
    let arguments = command.get_args().map(|word| quoted(&word.to_string_lossy()));
    variables.chain([program]).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_command_can_be_pasted_into_a_shell() {
        let mut command = Command::new("echo");
        command.args(["two words", "it's", ""]).env("A", "b c");
        assert_eq!(shown(&command), r"A='b c' echo 'two words' 'it'\''s' ''");
    }

    #[test]
    fn a_failing_step_names_itself_and_how_to_run_it_alone() {
        let failure = run("nope", Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        let text = failure.to_string();
        assert!(text.contains("step `nope` failed (exit status: 3)"), "{text}");
        assert!(text.contains("to run it alone: sh -c 'exit 3'"), "{text}");
    }

    #[test]
    fn the_output_of_a_step_is_returned_when_it_is_asked_for() {
        let said = run_for_output("says", Command::new("sh").args(["-c", "echo here"])).unwrap();
        assert_eq!(said, "here\n");
    }

    #[test]
    fn a_missing_program_is_a_failure_that_names_it() {
        let failure = run("nope", &mut Command::new("no-such-program")).unwrap_err();
        assert!(failure.to_string().contains("cannot start `no-such-program`"), "{failure}");
    }
}
