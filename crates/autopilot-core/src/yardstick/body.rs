//! The bodies of tests, by which a renamed or moved test is known again.

use super::rust;
use crate::fingerprint::sha256_hex;
use regex::Regex;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The names of the test functions that a file declares, each with a hash of its body. Spaces and, where
/// they are told apart, comments do not count.
pub fn test_bodies(path: &str, text: &str) -> BTreeMap<String, String> {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending {
        "rs" => rust::bodies(text),
        "py" => python(text),
        "js" | "jsx" | "ts" | "tsx" | "mjs" | "cjs" | "mts" | "cts" => {
            braced(text, &SCRIPT_TEST, BodyForm::Arguments)
        }
        "go" => braced(text, &GO_TEST, BodyForm::Braces),
        "sh" | "bash" | "bats" => shell(text),
        _ => BTreeMap::new(),
    }
}

static SCRIPT_TEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?m)^[ \t]*(?:it|test|Deno\.test)(?:\.(?:only|skip|concurrent|failing|todo|fails))?\s*\(\s*",
        r#"(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`)\s*,?"#
    ))
    .ok()
});
static GO_TEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w*)\s*\([^)]*\)\s*").ok()
});
static PYTHON_TEST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^(\s*)(?:async\s+)?(?:def\s+(test\w*)\s*\(|class\s+(\w+))").ok());
static SHELL_TEST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^(?:@test\s+["'](.+)["']\s*\{|(?:function\s+)?(test\w*)\s*(?:\(\))?\s*\{)\s*$"#)
        .ok()
});

fn hashed(body: &str) -> String {
    let words = body.split_whitespace().collect::<Vec<_>>().join(" ");
    sha256_hex(words.as_bytes())
}

/// Where the body of a test ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyForm {
    /// At the bracket that closes the call whose argument it is.
    Arguments,
    /// At the brace that closes it.
    Braces,
}

fn braced(text: &str, start: &LazyLock<Option<Regex>>, form: BodyForm) -> BTreeMap<String, String> {
    let mut bodies = BTreeMap::new();
    for found in start.iter().flat_map(|start| start.captures_iter(text)) {
        let name = found.iter().skip(1).flatten().next();
        let (Some(name), Some(whole)) = (name, found.get(0)) else { continue };
        let depth = match form {
            BodyForm::Arguments => 1,
            BodyForm::Braces => 0,
        };
        if let Some(end) = closing(text, whole.end(), depth) {
            bodies.insert(name.as_str().to_owned(), hashed(&text[whole.end()..end]));
        }
    }
    bodies
}

/// The byte behind the bracket that closes what is open, with `depth` open already. Strings and comments
/// hide brackets.
fn closing(text: &str, start: usize, mut depth: usize) -> Option<usize> {
    let mut chars = text[start..].char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(start + at + 1);
                }
            }
            '"' | '\'' | '`' => {
                while chars.next_if(|(_, next)| *next != c).is_some_and(|(_, it)| {
                    if it == '\\' {
                        chars.next();
                    }
                    true
                }) {}
            }
            '/' if chars.peek().is_some_and(|(_, next)| *next == '/') => {
                while chars.next_if(|(_, next)| *next != '\n').is_some() {}
                continue;
            }
            _ => {}
        }
        if matches!(c, '"' | '\'' | '`') {
            chars.next();
        }
    }
    None
}

fn python(text: &str) -> BTreeMap<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut bodies = BTreeMap::new();
    let mut class: Option<(usize, &str)> = None;
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = PYTHON_TEST.as_ref().and_then(|it| it.captures(line)) else { continue };
        let indent = found.get(1).map_or(0, |it| it.len());
        class = class.filter(|(outer, _)| *outer < indent);
        if let Some(name) = found.get(3) {
            class = Some((indent, name.as_str()));
        } else if let Some(name) = found.get(2) {
            let is_inside = |line: &&&str| {
                line.trim().is_empty() || line.len() - line.trim_start().len() > indent
            };
            let head = line.split_once(':').map_or("", |(_, rest)| rest);
            let body: Vec<&str> = lines[at + 1..].iter().take_while(is_inside).copied().collect();
            let body = format!("{head}\n{}", body.join("\n"));
            let name = match class {
                Some((_, class)) => format!("{class}::{}", name.as_str()),
                None => name.as_str().to_owned(),
            };
            bodies.insert(name, hashed(&body));
        }
    }
    bodies
}

fn shell(text: &str) -> BTreeMap<String, String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut bodies = BTreeMap::new();
    for (at, line) in lines.iter().enumerate() {
        let found = SHELL_TEST.as_ref().and_then(|it| it.captures(line));
        let Some(name) = found.and_then(|it| it.get(1).or(it.get(2))) else { continue };
        let body: Vec<&str> =
            lines[at + 1..].iter().take_while(|line| !line.starts_with('}')).copied().collect();
        bodies.insert(name.as_str().to_owned(), hashed(&body.join("\n")));
    }
    bodies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_the_same_body_under_another_name() {
        for (path, old, new, other) in [
            (
                "a.py",
                "class TestA:\n    def test_old(self):\n        assert a == ')'\n\n    def helper(self):\n        pass\n",
                "async def test_new():\n  assert a == ')'\n\nx = 1\n",
                "def test_new():\n    assert True\n",
            ),
            (
                "a.test.ts",
                "describe('x', () => {\n  it('old one', async () => {\n    expect(\")\").toBe(1); // )\n  });\n});\n",
                "test(\"new one\", async () => {\n  expect(\")\").toBe(1); // )\n});\n",
                "test(\"new one\", async () => { });\n",
            ),
            (
                "a_test.go",
                "func TestOld(t *testing.T) {\n\tif '}' == x { t.Fatal(`}`) }\n}\nfunc helper() {}\n",
                "func TestNew(t *testing.T) {\n    if '}' == x { t.Fatal(`}`) }\n}\n",
                "func TestNew(t *testing.T) {}\n",
            ),
            (
                "a.bats",
                "@test \"old one\" {\n  run a\n  [ \"$status\" -eq 0 ]\n}\n",
                "test_new() {\n\trun a\n\t[ \"$status\" -eq 0 ]\n}\n",
                "@test \"new\" {\n  true\n}\n",
            ),
        ] {
            let [old, new, other] = [old, new, other].map(|text| test_bodies(path, text));
            assert_eq!((old.len(), new.len(), other.len()), (1, 1, 1), "{path}: {old:?} {new:?}");
            assert_eq!(old.values().next(), new.values().next(), "{path}");
            assert_ne!(new.values().next(), other.values().next(), "{path}");
            assert_ne!(old.keys().next(), new.keys().next(), "{path}");
        }
        assert_eq!(test_bodies("a.txt", "def test_a():\n  pass\n"), BTreeMap::new());
        let python = "class A:\n  def test_a(self): pass\ndef test_b(): pass\n";
        let names = test_bodies("a.py", python);
        assert_eq!(names.keys().collect::<Vec<_>>(), ["A::test_a", "test_b"]);
    }
}
