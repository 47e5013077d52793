//! The programs that a shell command line starts, as far as its text alone tells.
//!
//! A name that the text leaves open (a variable, a sourced file, an alternative after `||`) is left
//! out: whoever asks wants to say that a program is missing, and must not be wrong about it.

/// A program that a command line starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedProgram {
    /// A name that the shell looks up in PATH.
    InPath(String),
    /// A path, relative to the directory in which the line runs unless it is absolute.
    At(String),
}

impl NamedProgram {
    /// The word as it was written.
    pub fn word(&self) -> &str {
        match self {
            NamedProgram::InPath(word) | NamedProgram::At(word) => word,
        }
    }
}

/// The commands that a POSIX shell has itself.
const BUILTINS: &[&str] = &[
    ":", "[", "alias", "bg", "cd", "echo", "exit", "export", "false", "fg", "getopts", "hash",
    "jobs", "kill", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test",
    "times", "trap", "true", "type", "ulimit", "umask", "unalias", "unset", "wait",
];
/// The commands after which a name may mean another program than the user's PATH says.
const CHANGERS: &[&str] = &[".", "source", "eval", "alias", "hash"];
/// The words in front of a command.
const BEFORE: &[&str] =
    &["!", "{", "command", "do", "elif", "else", "exec", "if", "then", "time", "until", "while"];
/// The words after which the text is no plain list of commands.
const COMPOUND: &[&str] = &["case", "for", "function", "select"];
/// The words that end a compound command.
const CLOSING: &[&str] = &["}", "done", "esac", "fi"];

/// Returns whether a command line has this path as one of its words.
pub fn has_word(line: &str, path: &str) -> bool {
    let is_word_end = |c: char| c.is_whitespace() || "'\"`;&|()<>=".contains(c);
    line.split(is_word_end).any(|word| word.trim_start_matches("./") == path)
}

/// The programs that a line certainly starts, in the order of their first use.
pub fn programs(line: &str) -> Vec<NamedProgram> {
    let mut found: Vec<NamedProgram> = Vec::new();
    let Some(tokens) = tokens(line) else { return found };
    let mut is_moved = false;
    for (place, command) in
        tokens.split(|token| matches!(token, ShellToken::Operator(_))).enumerate()
    {
        let words = command_words(command);
        let Some(word) = words.first() else { continue };
        if COMPOUND.contains(&word.text.as_str()) || changes_names(&words) {
            break;
        }
        let is_path = word.text.contains('/');
        let is_known = word.is_plain && !BUILTINS.contains(&word.text.as_str());
        let is_open = is_path && is_moved || is_alternative(&tokens, place);
        is_moved |= word.text == "cd";
        if !is_known || is_open {
            continue;
        }
        let program = match is_path {
            true => NamedProgram::At(word.text.clone()),
            false => NamedProgram::InPath(word.text.clone()),
        };
        if !found.contains(&program) {
            found.push(program);
        }
    }
    found
}

/// The commands of a line, each with the words from its program on, and whether its output goes to the
/// next one. Words that the shell expands are left out.
pub(crate) fn commands(line: &str) -> Vec<(Vec<String>, bool)> {
    let Some(tokens) = tokens(line) else {
        // What can't be read as the shell would is read as words.
        return vec![(line.split_whitespace().map(str::to_owned).collect(), false)];
    };
    let is_pipe = |token: Option<&ShellToken>| matches!(token, Some(ShellToken::Operator(text)) if text == "|");
    let mut found = Vec::new();
    let mut start = 0;
    for end in 0..=tokens.len() {
        if matches!(tokens.get(end), Some(ShellToken::Word(_))) {
            continue;
        }
        let words = command_words(&tokens[start..end]);
        let plain = words.iter().filter(|word| word.is_plain).map(|word| word.text.clone());
        let plain: Vec<String> = plain.collect();
        if !plain.is_empty() {
            found.push((plain, is_pipe(tokens.get(end))));
        }
        start = end + 1;
    }
    found
}

/// The words of a command from the name of its program on.
fn command_words(command: &[ShellToken]) -> Vec<&Word> {
    let words = command.iter().filter_map(|token| match token {
        ShellToken::Word(word) => Some(word),
        ShellToken::Operator(_) => None,
    });
    let is_lead = |word: &&Word| {
        let text = word.text.as_str();
        (BEFORE.contains(&text) || CLOSING.contains(&text) || is_assignment(text)) && word.is_plain
    };
    words.skip_while(is_lead).collect()
}

fn changes_names(words: &[&Word]) -> bool {
    let first = words.first().map(|word| word.text.as_str()).unwrap_or_default();
    let sets_path = || words.iter().any(|word| word.text.starts_with("PATH="));
    CHANGERS.contains(&first) || matches!(first, "export" | "set" | "readonly") && sets_path()
}

/// Whether the command before or after `||` at this place decides nothing when it is missing.
fn is_alternative(tokens: &[ShellToken], place: usize) -> bool {
    let operators: Vec<&str> = tokens
        .iter()
        .filter_map(|token| match token {
            ShellToken::Operator(text) => Some(text.as_str()),
            ShellToken::Word(_) => None,
        })
        .collect();
    let at = |place: Option<usize>| place.and_then(|place| operators.get(place)) == Some(&"||");
    at(Some(place)) || at(place.checked_sub(1))
}

fn is_assignment(text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else { return false };
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    text: String,
    /// Nothing in it is expanded by the shell.
    is_plain: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ShellToken {
    Word(Word),
    Operator(String),
}

/// The words and operators of a line; none for one that can't be read without a shell: an open
/// quote, a here-document, a PATH of its own in front of a command.
fn tokens(line: &str) -> Option<Vec<ShellToken>> {
    let mut read = LineReader::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '#' if read.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ' ' | '\t' => read.end_word()?,
            // `2>&1` is a redirection.
            '&' if read.is_target && read.word.is_none() => read.push(c),
            '\n' | ';' | '&' | '|' | '(' | ')' => {
                let is_double = matches!(c, '&' | '|' | ';') && chars.next_if_eq(&c).is_some();
                read.operator(c, is_double)?;
            }
            '<' | '>' => {
                let is_double = chars.next_if_eq(&c).is_some();
                if is_double && c == '<' {
                    return None;
                }
                read.redirect()?;
            }
            '\'' | '"' => {
                read.open_word();
                loop {
                    match chars.next()? {
                        quote if quote == c => break,
                        '\\' if c == '"' => read.push(chars.next()?),
                        inside => {
                            read.expand(c == '"' && matches!(inside, '$' | '`'));
                            read.push(inside);
                        }
                    }
                }
            }
            '\\' => match chars.next()? {
                '\n' => {}
                escaped => read.push(escaped),
            },
            other => {
                read.expand(matches!(other, '$' | '`' | '*' | '?' | '~'));
                read.push(other);
            }
        }
    }
    read.end_word()?;
    Some(read.tokens)
}

#[derive(Default)]
struct LineReader {
    tokens: Vec<ShellToken>,
    word: Option<Word>,
    /// The next word is the target of a redirection.
    is_target: bool,
}

impl LineReader {
    fn open_word(&mut self) -> &mut Word {
        self.word.get_or_insert_with(|| Word { text: String::new(), is_plain: true })
    }

    fn push(&mut self, c: char) {
        self.open_word().text.push(c);
    }

    fn expand(&mut self, is_expanded: bool) {
        self.open_word().is_plain &= !is_expanded;
    }

    fn end_word(&mut self) -> Option<()> {
        let Some(word) = self.word.take() else { return Some(()) };
        if self.is_target {
            self.is_target = false;
            return Some(());
        }
        if word.text.starts_with("PATH=") {
            return None;
        }
        self.tokens.push(ShellToken::Word(word));
        Some(())
    }

    fn operator(&mut self, c: char, is_double: bool) -> Option<()> {
        self.end_word()?;
        let text = String::from(c).repeat(1 + usize::from(is_double));
        self.tokens.push(ShellToken::Operator(text));
        Some(())
    }

    /// A number right before a redirection is a part of it.
    fn redirect(&mut self) -> Option<()> {
        self.word.take_if(|word| word.text.bytes().all(|b| b.is_ascii_digit()));
        self.end_word()?;
        self.is_target = true;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        programs(line).iter().map(NamedProgram::word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_command_names_a_file_by_a_whole_word() {
        for line in ["sh test.sh", "./test.sh -q", "(cd x; sh 'test.sh')", "A=1 sh test.sh>log"] {
            assert!(has_word(line, "test.sh"), "{line}");
        }
        for line in ["sh mytest.sh", "sh test.sh.bak", "sh dir/test.sh", "cargo test"] {
            assert!(!has_word(line, "test.sh"), "{line}");
        }
    }

    #[test]
    fn the_programs_of_a_line_are_found_as_a_shell_would_find_them() {
        for (line, wanted) in [
            ("cargo test --workspace", "cargo"),
            ("RUST_LOG=debug CI=1 cargo test", "cargo"),
            ("ruff check . && pytest -q | tee 'out && log' 2>&1; echo ok", "ruff pytest tee"),
            ("cd web && npm test && ./run.sh", "npm"),
            ("./run.sh >log 2>/dev/null <in", "./run.sh"),
            ("> log make check", "make"),
            ("if make -s check; then true; else exit 1; fi", "make"),
            ("! grep -r TODO src", "grep"),
            ("(cd a; 'my tool' x)", "my tool"),
            ("exec python3 -m pytest", "python3"),
            ("npm ci\nnpm test  # and tee\n", "npm"),
            ("true", ""),
            ("[ -f x ] && test -d y", ""),
            ("", ""),
        ] {
            assert_eq!(of(line), wanted, "{line}");
        }
    }

    #[test]
    fn a_name_that_the_text_leaves_open_is_left_out() {
        for (line, wanted) in [
            ("pytest || python -m pytest", ""),
            ("ruff check . && pytest || true", "ruff"),
            (". .venv/bin/activate && pytest", ""),
            ("make env; source env.sh; pytest", "make"),
            ("PATH=$PWD/bin:$PATH tool", ""),
            ("export PATH=\"$PWD/bin\"; tool", ""),
            ("$TOOL test && cargo test", "cargo"),
            ("for f in *; do check $f; done", ""),
            ("cat <<END\nx\nEND\n", ""),
            ("echo 'open", ""),
            ("~/bin/tool", ""),
        ] {
            assert_eq!(of(line), wanted, "{line}");
        }
    }

    #[test]
    fn a_path_is_told_from_a_name() {
        assert_eq!(programs("bin/t"), [NamedProgram::At("bin/t".into())]);
        assert_eq!(programs("t"), [NamedProgram::InPath("t".into())]);
    }
}
