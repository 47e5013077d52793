//! The text of a changed file: what kind of file it is, and where on a line a comment begins.

/// The use of a text file, as far as its name tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Code,
    /// Text for people: Markdown, plain text.
    Document,
    /// Values that programs read, and the data of tests.
    Data,
}

const DOCUMENTS: &[&str] =
    &["md", "markdown", "mdx", "txt", "rst", "adoc", "asciidoc", "org", "rtf", "textile"];
const DATA: &[&str] = &[
    "arb",
    "csv",
    "geojson",
    "ipynb",
    "json",
    "jsonl",
    "lock",
    "po",
    "pot",
    "properties",
    "resx",
    "snap",
    "strings",
    "svg",
    "tsv",
    "xlf",
    "xliff",
    "xml",
];
/// Files without an extension that people read.
const DOCUMENT_NAMES: &[&str] = &[
    "authors",
    "changelog",
    "changes",
    "contributing",
    "copying",
    "history",
    "license",
    "licence",
    "news",
    "notice",
    "readme",
];
/// Text files that are programs or settings.
const CODE_IN_TEXT: &[&str] = &["cmakelists.txt", "requirements", "constraints"];
const FIXTURE_DIRECTORIES: &[&str] = &[
    "__fixtures__",
    "__snapshots__",
    "fixture",
    "fixtures",
    "golden",
    "goldens",
    "snapshots",
    "test-data",
    "test_data",
    "testdata",
];

impl TextKind {
    pub(super) fn of(path: &str) -> TextKind {
        let path = path.to_lowercase();
        let name = path.rsplit('/').next().unwrap_or(&path);
        if is_fixture(&path) {
            return TextKind::Data;
        }
        if CODE_IN_TEXT.iter().any(|start| name.starts_with(start)) {
            return TextKind::Code;
        }
        match name.rsplit_once('.') {
            Some((_, extension)) if DOCUMENTS.contains(&extension) => TextKind::Document,
            Some((_, extension)) if DATA.contains(&extension) => TextKind::Data,
            None if DOCUMENT_NAMES.contains(&name) => TextKind::Document,
            Some(_) | None => TextKind::Code,
        }
    }
}

/// Whether a file lies in a directory for the data of tests.
pub(crate) fn is_fixture(path: &str) -> bool {
    let directories = path.rsplit_once('/').map_or("", |(directories, _)| directories);
    directories.split('/').any(|part| FIXTURE_DIRECTORIES.contains(&part.to_lowercase().as_str()))
}

/// Whether a tool writes the file, or somebody else does: minified, built and foreign code.
pub(super) fn is_generated(path: &str) -> bool {
    let path = path.to_lowercase();
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let is_foreign = |part: &str| matches!(part, "dist" | "vendor");
    name.contains(".min.") || directories.split('/').any(is_foreign)
}

/// How a file writes its comments.
#[derive(Clone, Copy, PartialEq)]
struct CommentStyle {
    leaders: &'static [&'static str],
    /// A single quote is a string as long as it likes, not one character or a lifetime.
    long_single_quotes: bool,
}

const SLASHES: &[&str] = &["//", "/*"];

impl CommentStyle {
    fn of(path: &str) -> CommentStyle {
        let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
        let (leaders, long_single_quotes): (&'static [&'static str], bool) =
            match extension.to_lowercase().as_str() {
                "rs" | "c" | "cc" | "cpp" | "cxx" | "h" | "hpp" | "java" | "kt" | "kts"
                | "scala" | "cs" | "fs" | "swift" | "go" | "zig" | "proto" => (SLASHES, false),
                "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" | "dart" | "css"
                | "scss" | "less" | "groovy" | "gradle" => (SLASHES, true),
                "vue" | "svelte" => (&["//", "/*", "<!--"], true),
                "php" => (&["//", "/*", "#"], true),
                "html" | "htm" | "xml" | "svg" => (&["<!--", "//", "/*"], true),
                "sql" => (&["--", "/*", "#"], true),
                "lua" | "hs" | "elm" | "adb" | "ads" | "vhd" => (&["--", "{-"], true),
                "lisp" | "clj" | "cljs" | "el" | "scm" | "asm" | "s" => (&[";"], false),
                "ini" => (&[";", "#"], false),
                "tex" | "erl" | "m" => (&["%"], false),
                "vb" | "bas" => (&["'"], false),
                _ => (&["#", "//", "/*", "<!--"], true),
            };
        CommentStyle { leaders, long_single_quotes }
    }

    fn starts(self, text: &str) -> Option<&'static str> {
        self.leaders.iter().copied().find(|leader| text.starts_with(leader))
    }
}

/// The comment on a line of code, without its mark; none if the line has no comment.
pub(super) fn comment_of<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let style = CommentStyle::of(path);
    let trimmed = line.trim_start();
    // The middle of a comment of several lines, and a text that Python keeps as documentation.
    for mark in ["* ", "\"\"\"", "'''"] {
        if let Some(rest) = trimmed.strip_prefix(mark) {
            return Some(rest);
        }
    }
    match scan(style, line, 0) {
        Scanned::Comment(at) => Some(&line[at..]),
        Scanned::Nothing => None,
        // A quote without its end is an apostrophe, or the string began on another line.
        Scanned::OpenQuote(at) => match scan(style, line, at) {
            Scanned::Comment(at) => Some(&line[at..]),
            Scanned::Nothing | Scanned::OpenQuote(_) => None,
        },
    }
}

enum Scanned {
    /// A comment whose text begins at this byte.
    Comment(usize),
    /// A string that does not end on this line; its text begins at this byte.
    OpenQuote(usize),
    Nothing,
}

fn scan(style: CommentStyle, line: &str, from: usize) -> Scanned {
    let mut quote: Option<(char, usize)> = None;
    let mut before = ' ';
    let mut chars = line[from..].char_indices();
    while let Some((at, c)) = chars.next() {
        let at = from + at;
        match quote {
            Some(_) if c == '\\' => {
                chars.next();
            }
            Some((mark, _)) if c == mark => quote = None,
            Some(_) => {}
            None => {
                let is_inside_word = before.is_alphanumeric() || "$&{\\".contains(before);
                if let Some(leader) = style.starts(&line[at..])
                    && !(is_inside_word && leader.len() == 1)
                {
                    return Scanned::Comment(at + leader.len());
                }
                if opens_string(style, c, &line[at..]) {
                    quote = Some((c, at + c.len_utf8()));
                }
            }
        }
        before = c;
    }
    quote.map_or(Scanned::Nothing, |(_, at)| Scanned::OpenQuote(at))
}

fn opens_string(style: CommentStyle, c: char, rest: &str) -> bool {
    match c {
        '"' | '`' => true,
        '\'' if style.long_single_quotes => true,
        // A character such as `'"'` or `'\''`; a lifetime has no second quote so near.
        '\'' => rest.chars().skip(2).take(2).any(|next| next == '\''),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_told_from_code_and_strings() {
        for (path, line, comment) in [
            ("a.rs", "let a = 1; // x", Some(" x")),
            ("a.rs", "let a = \"// x\";", None),
            ("a.rs", "fn f<'a>(b: &'a str) // x", Some(" x")),
            ("a.rs", "let c = '\"'; // x", Some(" x")),
            ("a.rs", "/// x", Some("/ x")),
            ("a.rs", " * x", Some("x")),
            ("a.rs", "*todo = 1;", None),
            ("a.py", "a = '# x'", None),
            ("a.py", "a = 1  # x", Some(" x")),
            ("a.py", "    \"\"\"x\"\"\"", Some("x\"\"\"")),
            ("a.sh", "echo $#", None),
            ("a.sh", "echo don't # x", Some(" x")),
            ("a.css", "#todo { color: red }", None),
            ("a.js", "run('--todo');", None),
            ("a.sql", "select 1 -- x", Some(" x")),
            ("a.html", "<!-- x -->", Some(" x -->")),
            ("Makefile", "all: # x", Some(" x")),
        ] {
            assert_eq!(comment_of(path, line), comment, "{path}: {line}");
        }
    }

    #[test]
    fn generated_and_foreign_code_is_told_by_its_path() {
        for (path, is) in [
            ("web/app.min.js", true),
            ("Vendor/x/a.js", true),
            ("web/dist/a.js", true),
            ("dist.js", false),
            ("src/vendors.rs", false),
            ("src/admin.js", false),
        ] {
            assert_eq!(is_generated(path), is, "{path}");
        }
    }

    #[test]
    fn the_kind_of_a_file_is_told_by_its_name() {
        for (path, kind) in [
            ("src/a.rs", TextKind::Code),
            ("Makefile", TextKind::Code),
            ("requirements-dev.txt", TextKind::Code),
            ("CMakeLists.txt", TextKind::Code),
            ("docs/A.MD", TextKind::Document),
            ("README", TextKind::Document),
            ("notes.txt", TextKind::Document),
            ("de.json", TextKind::Data),
            ("tests/fixtures/a.rs", TextKind::Data),
            ("fixtures.rs", TextKind::Code),
        ] {
            assert_eq!(TextKind::of(path), kind, "{path}");
        }
    }
}
