//! The look of tests in common programming languages.

use std::sync::LazyLock;

use regex::Regex;

/// Whether a file is a test, by its directory or name; directories match as a whole, so `contest/`
/// is not a test directory.
pub fn is_test_path(path: &str) -> bool {
    static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(TEST_NAMES).ok());
    const DIRECTORIES: &[&str] = &[
        "tests",
        "test",
        "__tests__",
        "spec",
        "specs",
        "e2e",
        "cypress",
        "androidtest",
        "testing",
        "integration_tests",
        "uat",
    ];
    let mut parts: Vec<&str> = path.split('/').collect();
    let Some(name) = parts.pop() else { return false };
    let by_place = parts.iter().any(|part| DIRECTORIES.contains(&part.to_lowercase().as_str()));
    by_place || NAME.as_ref().is_some_and(|names| names.is_match(name))
}

const TEST_NAMES: &str = concat!(
    r"^(?:",
    r"test_.*\.(?:py|c|cc|cpp|rb|sh|jl)|.*_test\.(?:py|go|rs|rb|exs|dart|c|cc|cpp|sh|lua|ml|zig)",
    r"|.*[._-](?:test|spec|e2e|cy)\.[cm]?[jt]sx?|.*_spec\.(?:rb|lua)|.*_tests?\.rs|tests?\.rs",
    r"|(?:Tests?(?:[A-Z0-9_].*)?|.*Tests?|.*TestCase|.*IT|.*Spec)\.(?:java|kt|kts|scala|groovy|cs|fs|vb|php|swift|m)",
    r"|conftest\.py|.*\.(?:bats|feature|snap)|.*\.t",
    r")$"
);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// The start of a test.
    Test,
    /// A mark that keeps a test from running.
    Skip,
    /// An assertion.
    Check,
    /// An assertion that can't fail.
    Empty,
}

pub(super) struct Language {
    extensions: &'static [&'static str],
    test: &'static str,
    skip: &'static str,
    check: &'static str,
    empty: &'static str,
}

const LANGUAGES: &[Language] = &[
    Language {
        extensions: &["rs"],
        test: r"^\s*#\[(?:\w+::)*(?:test|rstest|test_case|proptest)\b",
        skip: r"#\[ignore\b|#\[cfg_attr\(.*\bignore\b",
        check: r"\b(?:debug_)?(?:prop_)?assert(?:_\w+)?!|\bpanic!\(",
        empty: r"\bassert!\(\s*true\s*[,)]|\bassert_eq!\(\s*(?:1\s*,\s*1|true\s*,\s*true)\s*[,)]",
    },
    Language {
        extensions: &["py"],
        test: r"^\s*(?:async\s+)?def test\w*\s*\(",
        skip: r"@(?:pytest\.mark\.(?:skip|xfail)|unittest\.(?:skip|expectedFailure))|\bpytest\.(?:skip|xfail)\(|\.skipTest\(",
        check: r"^\s*assert\b|\bself\.assert\w+\(|\bpytest\.raises\(",
        empty: r"^\s*assert (?:True|1)\s*(?:#.*)?$|\.assertTrue\(True\)",
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "svelte", "vue"],
        test: r"^\s*(?:it|test)(?:\.each\b.*)?\s*\(|\bDeno\.test\(",
        skip: r"\b(?:it|test|describe|context|suite)\.(?:skip|todo|only|fails)\b|^\s*(?:xit|xtest|xdescribe|fit|fdescribe)\s*\(|\bthis\.skip\(\)",
        check: r"\bexpect\s*\(|\bassert(?:\.\w+|\w*)\s*\(",
        empty: r"\bexpect\(\s*true\s*\)\.to(?:Be|Equal)\(\s*true|\bexpect\(\s*true\s*\)\.toBeTruthy|\bassert(?:\.ok)?\(\s*true\s*\)",
    },
    Language {
        extensions: &["go"],
        test: r"^func (?:Test|Fuzz|Example)\w*\s*\(|\bt\.Run\(",
        skip: r"\bt\.Skip(?:f|Now)?\(",
        check: r"\bt\.(?:Error|Fatal|Fail)\w*\(|\b(?:assert|require)\.\w+\(",
        empty: r"\b(?:assert|require)\.True\(t,\s*true\s*[,)]",
    },
    Language {
        extensions: &["java", "kt", "kts", "scala", "groovy"],
        test: r"^\s*@(?:Test|ParameterizedTest|RepeatedTest|Property)\b",
        skip: r"@(?:Disabled|Ignore)\b|\bassumeTrue\(\s*false",
        check: r"\bassert\w*\s*\(|\bverify\s*\(|\bshould\w*\b",
        empty: r"\bassertTrue\(\s*true\s*\)",
    },
    Language {
        extensions: &["cs", "fs", "vb"],
        test: r"^\s*\[(?:Fact|Theory|Test|TestCase|TestMethod)\b",
        skip: r"\[Ignore\b|\bSkip\s*=|\bAssert\.(?:Ignore|Inconclusive)\(",
        check: r"\bAssert\.\w+|\.Should\(\)",
        empty: r"\bAssert\.(?:True|IsTrue)\(\s*true\s*\)",
    },
    Language {
        extensions: &["rb"],
        test: r#"^\s*(?:it|specify|test)\s+["']|^\s*def test_"#,
        skip: r#"^\s*(?:xit|xdescribe|xcontext|pending|skip)\b"#,
        check: r"\bexpect[\s({]|\bassert\w*\b|\.should\b",
        empty: r"\bassert\s*\(?true\)?\s*$|\bexpect\(true\)\.to (?:be true|eq\(?\s*true)",
    },
    Language {
        extensions: &["ex", "exs"],
        test: r#"^\s*(?:test|property)\s+""#,
        skip: r"@(?:tag|moduletag|describetag) (?::skip|skip:)",
        check: r"^\s*(?:assert|refute)\w*\b",
        empty: r"^\s*assert true\s*$",
    },
    Language {
        extensions: &["php"],
        test: r"\bfunction test\w*\s*\(|@test\b|#\[Test\]",
        skip: r"markTest(?:Skipped|Incomplete)\(",
        check: r"(?:\$this->|self::|static::)assert\w+\(",
        empty: r"assertTrue\(\s*true\s*\)",
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp"],
        test: r"^\s*(?:TEST|TEST_F|TEST_P|TEST_CASE|SCENARIO|BOOST_AUTO_TEST_CASE)\s*\(",
        skip: r"\bGTEST_SKIP\(|\bTEST\w*\(\s*\w+\s*,\s*DISABLED_",
        check: r"\b(?:EXPECT|ASSERT|CHECK|REQUIRE|BOOST_CHECK)\w*\s*\(|\bassert\s*\(",
        empty: r"\b(?:EXPECT|ASSERT)_TRUE\(\s*true\s*\)",
    },
    Language {
        extensions: &["swift", "dart"],
        test: r#"\bfunc test\w*\s*\(|^\s*@Test\b|^\s*test\s*\(\s*['"]"#,
        skip: r"\bXCTSkip|\bskip:\s*(?:true|')",
        check: r"\bXCTAssert\w*\(|#expect\(|\bexpect\(",
        empty: r"\bXCTAssertTrue\(\s*true\s*\)|#expect\(true\)",
    },
];

impl Language {
    pub(super) fn of(path: &str) -> Option<&'static Self> {
        let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
        LANGUAGES.iter().find(|language| language.extensions.contains(&extension))
    }

    pub(super) fn shows(&'static self, sign: Sign, text: &str) -> bool {
        let pattern = match sign {
            Sign::Test => self.test,
            Sign::Skip => self.skip,
            Sign::Check => self.check,
            Sign::Empty => self.empty,
        };
        compiled(pattern).is_some_and(|pattern| pattern.is_match(text))
    }
}

fn compiled(pattern: &str) -> Option<&'static Regex> {
    static ALL: LazyLock<std::collections::BTreeMap<&'static str, Regex>> = LazyLock::new(|| {
        LANGUAGES
            .iter()
            .flat_map(|language| [language.test, language.skip, language.check, language.empty])
            .filter_map(|pattern| Some((pattern, Regex::new(pattern).ok()?)))
            .collect()
    });
    ALL.get(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(Regex::new(TEST_NAMES).is_ok());
        for language in LANGUAGES {
            for pattern in [language.test, language.skip, language.check, language.empty] {
                assert!(compiled(pattern).is_some(), "{pattern}");
            }
        }
    }

    #[test]
    fn test_files_of_many_languages_are_known() {
        for path in [
            "tests/a.rs",
            "src/x/tests.rs",
            "src/a_test.rs",
            "pkg/a_test.go",
            "test_a.py",
            "a/b_test.py",
            "conftest.py",
            "src/a.test.ts",
            "src/a.spec.jsx",
            "src/__tests__/a.js",
            "src/FooTest.java",
            "src/FooTests.cs",
            "FooIT.java",
            "spec/a_spec.rb",
            "test/a_test.exs",
            "tests/FooTest.php",
            "a_test.cc",
            "FooTests.swift",
            "web/e2e/x.ts",
            "x.bats",
            "Test/a.txt",
        ] {
            assert!(is_test_path(path), "{path}");
        }
        for path in [
            "src/lib.rs",
            "contest/a.rs",
            "src/latest.ts",
            "src/attest.py",
            "Contest.java",
            "protest.rb",
        ] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
