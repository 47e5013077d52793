//! Outputs of real runners, shortened.

use super::*;

/// The tests of a report: `+` passed, `-` failed, `o` skipped, and the number that ran.
fn shown(report: &TestReport) -> String {
    let of = |sign: &str, ids: &std::collections::BTreeSet<String>| {
        ids.iter().map(|id| format!("{sign}{id}, ")).collect::<String>()
    };
    let count = report.count.map_or("?".to_owned(), |count| count.to_string());
    let (passed, failed) = (of("+", &report.passed), of("-", &report.failed));
    format!("{passed}{failed}{}{count}", of("o", &report.skipped))
}

#[test]
fn every_pattern_compiles() {
    assert_eq!(PATTERNS.named.len(), NAMED.len());
    assert_eq!(PATTERNS.counted.len(), COUNTED.len());
    assert_eq!(PATTERNS.tallies.len(), TALLIES.len());
    assert!(PATTERNS.ran.is_some() && PATTERNS.documentation.is_some());
    assert!(PATTERNS.of_file.is_some());
}

#[test]
fn the_usual_runners_name_their_tests() {
    for (output, tests) in [
        (
            "running 3 tests\ntest tests::ign ... ignored, slow\ntest tests::a ... ok\n\
             test tests::p - should panic ... ok\ntest b ... FAILED\n\n\
             test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.08s\n",
            "+tests::a, +tests::p, -b, otests::ign, 3",
        ),
        (
            "collecting ... collected 8 items\n\n\
             test_a.py::test_ok PASSED                                            [ 12%]\n\
             test_a.py::test_skip SKIPPED (no)                                    [ 25%]\n\
             test_a.py::test_x XFAIL                                              [ 37%]\n\
             test_a.py::test_p[a b] PASSED                                        [ 50%]\n\
             test_a.py::test_bad FAILED                                           [ 87%]\n\
             =========================== short test summary info ============\n\
             FAILED test_a.py::test_bad - assert 0\n\
             ========== 1 failed, 2 passed, 1 skipped, 1 xfailed in 0.05s ==========\n",
            "+test_a.py::test_ok, +test_a.py::test_p[a b], -test_a.py::test_bad, \
             otest_a.py::test_skip, otest_a.py::test_x, 3",
        ),
        (
            "[gw1] [ 50%] PASSED test_a.py::test_ok \n[gw0] [100%] FAILED test_a.py::test_bad \n",
            "+test_a.py::test_ok, -test_a.py::test_bad, ?",
        ),
        (
            "test_bad (test_u.T.test_bad) ... FAIL\ntest_ok (test_u.T.test_ok) ... ok\n\
             test_skip (test_u.T.test_skip) ... skipped 'no'\n\
             test_x (test_u.T.test_x) ... expected failure\nRan 4 tests in 0.001s\n",
            "+test_ok (test_u.T.test_ok), -test_bad (test_u.T.test_bad), \
             otest_skip (test_u.T.test_skip), otest_x (test_u.T.test_x), 4",
        ),
        (
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\n--- SKIP: TestB (0.0s)\n",
            "+TestA, -TestA/sub, oTestB, ?",
        ),
        (
            "✔ one (1.134274ms)\n▶ group\n  ✔ in (0.23562ms)\n  ﹣ sk (0.097765ms) # SKIP\n\
             \x20 ✔ later (0.084796ms) # TODO\n✔ group (0.824484ms)\nℹ tests 6\nℹ pass 4\nℹ fail 0\n",
            "+group, +in, +one, olater, osk, 4",
        ),
        (
            "  sum\n    ✔ adds\n    - later\n    1) breaks\n\n\n  1 passing (3ms)\n  1 pending\n  1 failing\n",
            "+adds, 2",
        ),
        (
            " ✓ v/a.test.js > sum > adds 1ms\n ↓ v/a.test.js > sum > later\n\
             \x20× v/a.test.js > sum > breaks 8ms\n\
             \u{1b}[2m      Tests \u{1b}[22m \u{1b}[1m\u{1b}[31m1 failed\u{1b}[39m | 1 passed | 1 skipped (3)\n",
            "+v/a.test.js > sum > adds, -v/a.test.js > sum > breaks, ov/a.test.js > sum > later, 2",
        ),
        (
            "  sum\n    ✓ adds (1 ms)\n    ✕ breaks (2 ms)\n    ○ skipped later\n    ✎ todo someday\n\
             Tests:       1 failed, 1 skipped, 1 todo, 1 passed, 4 total\n",
            "+adds, -breaks, olater, 2",
        ),
        (
            "        PASS [   0.004s] my-crate tests::a\n        FAIL [   0.005s] (2/3) my-crate tests::b\n\
             \x20    Summary [   0.1s] 2 tests run: 1 passed, 1 failed, 0 skipped\n",
            "+my-crate tests::a, -my-crate tests::b, 2",
        ),
        (
            "com.foo.BarTest > adds() PASSED\ncom.foo.BarTest > no() SKIPPED\n",
            "+com.foo.BarTest > adds(), ocom.foo.BarTest > no(), ?",
        ),
        (
            " 1/2 Test  #1: net .....   Passed    0.01 sec\n 2/2 Test  #2: io ......***Failed    0.01 sec\n",
            "+net, -io, ?",
        ),
        ("  Passed My.Tests.Adds [12 ms]\n", "+My.Tests.Adds, ?"),
        ("adds ... ok (3ms)\n", "+adds, ?"),
        ("1..2\nok 1 - adds\nnot ok 2 - breaks # TODO\n", "+adds, obreaks, ?"),
    ] {
        let report = report(output);
        assert_eq!(shown(&report), tests, "in {output}");
        assert_eq!(report.source, ReportSource::Output);
    }
}

#[test]
fn a_number_is_better_than_nothing() {
    for (output, count) in [
        (".sx...F\n1 failed, 5 passed, 1 skipped, 1 xfailed in 0.05s\n", Some(6)),
        ("\n8 deselected in 0.01s\n", Some(0)),
        ("no tests ran in 0.01s\n", Some(0)),
        ("....\n-----\nRan 4 tests in 0.001s\n\nOK\n", Some(4)),
        ("PASS ./a.test.js\nTests:       3 passed, 3 total\n", Some(3)),
        (
            " ✓ v/a.test.ts (3 tests | 1 skipped) 9ms\n      Tests  2 passed | 1 skipped (3)\n",
            Some(2),
        ),
        (
            "test result: ok. 2 passed; 0 failed; 0 ignored\ntest result: ok. 3 passed; 0 failed; 0 ignored\n",
            Some(5),
        ),
        ("all good, 12 of them\n", None),
    ] {
        let report = report(output);
        assert_eq!((report.count, report.has_ids()), (count, false), "in {output}");
        let source = count.map_or(ReportSource::ExitCode, |_| ReportSource::Output);
        assert_eq!(report.source, source);
    }
}

#[test]
fn tests_of_one_name_are_numbered() {
    assert_eq!(
        shown(&report("test a ... ok\ntest a ... ok\ntest a ... FAILED\n")),
        "+a, +a #2, -a #3, ?"
    );
}

#[test]
fn documentation_tests_keep_their_names_when_their_lines_move() {
    let output = |line: u32| {
        format!(
            "   Doc-tests foo\nrunning 3 tests\ntest src/lib.rs - one (line {line}) ... ok\n\
             test src/lib.rs - one (line 9{line}) ... FAILED\ntest forged ... ok\n\
             test src/lib.rs - (line 2) - compile ... ok\ntest src/lib.rs - x::y (line 7) ... ignored\n"
        )
    };
    let told = "+doc src/lib.rs -, +doc src/lib.rs - one, -doc src/lib.rs - one #2, odoc src/lib.rs - x::y, ?";
    assert_eq!(shown(&documentation_tests(&output(2))), told);
    assert_eq!(shown(&documentation_tests(&output(3))), told);
    let without = output(2).replace("Doc-tests", "Tests");
    assert_eq!(shown(&documentation_tests(&without)), "?", "nobody has run any");
}
