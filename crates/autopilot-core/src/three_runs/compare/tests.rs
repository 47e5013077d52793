//! What runs show when they are compared, case by case.

use super::*;

/// A command with a report: `+a` passed, `-a` failed, `~a` was skipped, `?a` was never reported, `!a`
/// did not load.
fn tests(code: i32, told: &str) -> SeenCommand {
    let mut report = TestReport::default();
    for word in told.split_whitespace() {
        let (sign, name) = word.split_at(1);
        let names = match sign {
            "+" => &mut report.passed,
            "-" => &mut report.failed,
            "~" => &mut report.skipped,
            "?" => &mut report.unreported,
            "!" => &mut report.not_loaded,
            other => panic!("the sign {other}"),
        };
        names.insert(name.to_owned());
    }
    SeenCommand { report: Some(Box::new(report)), ..plain(code) }
}

fn plain(code: i32) -> SeenCommand {
    SeenCommand {
        name: "tests".to_owned(),
        command: "run".to_owned(),
        exit_code: Some(code),
        ended: true,
        ..SeenCommand::default()
    }
}

#[derive(Default)]
struct Seen {
    base: RoundEvidence,
    green: Vec<SeenCommand>,
    no_regression: Vec<SeenCommand>,
    red: Vec<ProofRun>,
    touched: BTreeSet<String>,
    base_tests: BTreeMap<String, BTreeSet<String>>,
    changed: BTreeSet<String>,
    moved: BTreeMap<String, String>,
    left_out: BTreeSet<String>,
}

fn seen(base: SeenCommand, green: SeenCommand, no_regression: SeenCommand) -> Seen {
    let tests = ["a", "b"].map(str::to_owned);
    Seen {
        base: RoundEvidence { checks: vec![base], ..RoundEvidence::default() },
        green: vec![green],
        no_regression: vec![no_regression],
        touched: ["t.py", "conf.ini"].map(str::to_owned).into(),
        base_tests: [("t.py".to_owned(), tests.into())].into(),
        ..Seen::default()
    }
}

impl Seen {
    fn runs(&self) -> RunsSeen<'_> {
        RunsSeen {
            touched: &self.touched,
            base: &self.base,
            green: &self.green,
            no_regression: &self.no_regression,
            red: &self.red,
            base_tests: &self.base_tests,
            changed_tests: &self.changed,
            moved_tests: &self.moved,
            left_out: &self.left_out,
        }
    }

    fn open(&self) -> String {
        let words: Vec<String> = open_tests(&self.runs()).iter().map(OpenTest::words).collect();
        words.join(", ")
    }

    fn red(mut self, runs: Vec<SeenCommand>) -> String {
        self.red = runs
            .into_iter()
            .map(|seen| ProofRun { tree: "t".to_owned(), checks: vec![seen] })
            .collect();
        let RedTests { proven, weak, not, .. } = red_tests(&self.runs());
        let list = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(" ");
        format!("proven {} | weak {} | not {}", list(proven), list(weak), list(not))
    }
}

#[test]
fn a_test_of_the_base_that_does_not_pass_as_it_did_is_open() {
    let base = || tests(0, "+a +b");
    for (name, green, no_regression, open) in [
        ("nothing broken", tests(0, "+a +b +c"), tests(0, "+a +b"), ""),
        ("rewritten", tests(0, "+a +b"), tests(1, "-a +b"), "`a` (t.py) fails with the change"),
        ("never ended", tests(0, "+a +b"), tests(0, "+b ?a"), "`a` (t.py) fails with the change"),
        ("deleted", tests(0, "+b"), tests(0, "+a +b"), "`a` (t.py) is gone"),
        ("skipped", tests(0, "~a +b"), tests(0, "+a +b"), "`a` (t.py) is skipped now"),
        (
            "a file that does not load",
            tests(0, "+a +b"),
            tests(1, "+b !t.py"),
            "`t.py` does not compile or load with the change",
        ),
        (
            "nothing compiles",
            tests(0, "+a +b"),
            plain(101),
            "`t.py` does not compile or load with the change",
        ),
        ("a failure of no test", tests(0, "+a"), tests(1, "+a"), "`t.py` fails with the change"),
        ("no names at all", plain(0), plain(1), "`t.py` fails with the change"),
        ("no names, and good", plain(0), plain(0), ""),
    ] {
        assert_eq!(seen(base(), green, no_regression).open(), open, "{name}");
    }
}

#[test]
fn what_the_base_fails_as_well_is_not_open() {
    let red = || tests(1, "-a +b");
    assert_eq!(seen(red(), tests(1, "-a +b"), tests(1, "-a +b")).open(), "");
    assert_eq!(
        seen(red(), tests(0, "+a +b"), tests(1, "-a -b")).open(),
        "`b` (t.py) fails with the change"
    );
    let named = SeenCommand { failing: ["a".to_owned()].into(), ..plain(1) };
    assert_eq!(seen(named, tests(0, "+t.py::a"), tests(1, "-t.py::a")).open(), "");
    let words = SeenCommand { mark: Some("m".to_owned()), ..plain(1) };
    assert_eq!(seen(words.clone(), words.clone(), words).open(), "");
}

#[test]
fn a_test_that_was_renamed_or_moved_is_not_gone() {
    let mut moved = seen(tests(0, "+a +b"), tests(0, "+c +b"), tests(0, "+a +b"));
    assert_eq!(moved.open(), "`a` (t.py) is gone");
    moved.moved.insert("a".to_owned(), "c".to_owned());
    assert_eq!(moved.open(), "");
    moved.green = vec![tests(0, "+b")];
    assert_eq!(moved.open(), "`a` (t.py) is gone", "its body is somewhere and does not run");
}

#[test]
fn a_new_test_is_red_if_it_fails_without_the_change() {
    let new = || seen(tests(0, "+a"), tests(0, "+a +n +v"), tests(0, "+a"));
    assert_eq!(new().red(vec![tests(1, "+a -n +v")]), "proven n | weak  | not v");
    assert_eq!(new().red(vec![plain(101)]), "proven  | weak n v | not ");
    // Run one file after the other, the vacuous test can't hide behind one that does not compile.
    let one_by_one = vec![plain(101), plain(101), tests(0, "+a +v")];
    assert_eq!(new().red(one_by_one), "proven  | weak n | not v");
    assert_eq!(new().red(vec![tests(0, "+a +n +v")]), "proven  | weak  | not n v");
    assert_eq!(new().red(Vec::new()), "proven  | weak  | not ");
}

#[test]
fn a_test_whose_file_was_one_too_many_is_not_taken_as_red() {
    let base = || tests(0, "+a");
    let mut many = seen(base(), tests(0, "+a +n +t/z.py::v +w"), base());
    many.left_out = ["t/z.py", "w"].map(str::to_owned).into();
    let run = ProofRun { tree: "t".to_owned(), checks: vec![plain(101)] };
    many.red = vec![run.clone(), run];
    let red = red_tests(&many.runs());
    assert_eq!(red.weak, ["n".to_owned()].into());
    assert_eq!(red.unknown, ["t/z.py::v", "w"].map(str::to_owned).into());
    assert_eq!((red.proven.len(), red.not.len()), (0, 0));
}

#[test]
fn a_test_that_vanished_is_lost_unless_it_is_open_or_moved() {
    let lost = |seen: &Seen| {
        let found = vanished_tests(&seen.runs(), &open_tests(&seen.runs()));
        found.iter().map(OpenTest::words).collect::<Vec<_>>().join(", ")
    };
    // Only tests were changed, so no run has the base's over the new code.
    let mut alone = seen(tests(0, "+a +b +c"), tests(0, "~a +c2"), tests(0, ""));
    alone.no_regression.clear();
    assert_eq!(lost(&alone), "`a` (t.py) is skipped now, `b` (t.py) is gone, `c` is gone");
    alone.moved.insert("c".to_owned(), "c2".to_owned());
    assert_eq!(lost(&alone), "`a` (t.py) is skipped now, `b` (t.py) is gone");
    let open = seen(tests(0, "+a +b"), tests(0, "+b"), tests(0, "+a +b"));
    assert_eq!(lost(&open), "");
    let by_file = seen(tests(0, "+a +b"), tests(0, "+b"), plain(101));
    assert_eq!(lost(&by_file), "");
}

#[test]
fn a_test_that_is_left_out_without_the_change_hides_behind_no_other() {
    let of = |new: &str, source, red: &str| {
        let mut seen = seen(tests(0, "+t::a"), tests(0, &format!("+t::a {new}")), plain(0));
        seen.no_regression.clear();
        let mut run = tests(1, red);
        run.report.as_mut().unwrap().source = source;
        seen.red(vec![run])
    };
    use ReportSource::{Output, Runner};
    assert_eq!(of("+t::n +t::v", Runner, "-t::n ~t::v"), "proven t::n | weak  | not t::v");
    assert_eq!(of("+t::n +t::v", Runner, "-t::n"), "proven t::n | weak  | not t::v");
    assert_eq!(of("+t::n +t::v[1::2]", Runner, "-t::n"), "proven t::n | weak  | not t::v[1::2]");
    // Another file may not have loaded, and other sources do not say what did.
    assert_eq!(of("+t::n +u::v", Runner, "-t::n"), "proven t::n | weak u::v | not ");
    assert_eq!(of("+t::n +t::v", Output, "-t::n"), "proven t::n | weak t::v | not ");
    assert_eq!(of("+n +v", Runner, "-n"), "proven n | weak v | not ");
}

#[test]
fn a_changed_test_counts_and_a_moved_one_does_not() {
    let mut changed = seen(tests(0, "+a"), tests(0, "+a +m"), tests(0, "+a"));
    changed.changed.insert("a".to_owned());
    changed.moved.insert("old".to_owned(), "m".to_owned());
    assert_eq!(changed.red(vec![tests(1, "-a -m")]), "proven a | weak  | not ");
}

#[test]
fn an_exit_code_alone_is_weak() {
    let runs = || seen(plain(0), plain(0), plain(0));
    assert_eq!(runs().red(vec![plain(1)]), "proven  | weak conf.ini t.py | not ");
    assert_eq!(runs().red(vec![plain(0)]), "proven  | weak  | not conf.ini t.py");
    // Lint is not run without the change, and shows nothing of its tests.
    let lint = SeenCommand { name: "lint".to_owned(), command: "lint".to_owned(), ..plain(0) };
    let mut with_lint = runs();
    with_lint.green.push(lint);
    assert_eq!(with_lint.red(vec![plain(1)]), "proven  | weak conf.ini t.py | not ");
}

#[test]
fn the_name_of_a_test_is_found_in_its_runners_words() {
    for (id, name) in [
        ("tests/test_a.py::TestX::test_y[1-2]", "test_y"),
        ("cli::prints::help", "help"),
        ("suite > adds > two", "two"),
        ("adds two numbers", "adds two numbers"),
        ("[odd]", "[odd]"),
    ] {
        assert_eq!(last_name(id), name);
    }
}
