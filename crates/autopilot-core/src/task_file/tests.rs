//! Markdown in, a task or faults out.

use super::*;
use proptest::prelude::*;

fn parsed(text: &str) -> Parsed {
    match parse(Utf8Path::new("tasks/2026-01-31_fix-login.md"), text.as_bytes()) {
        Ok(parsed) => parsed,
        Err(faults) => panic!("{faults}"),
    }
}

fn faults(text: &str) -> String {
    parse(Utf8Path::new("tasks/x.md"), text.as_bytes()).unwrap_err().in_file("x.md")
}

fn warnings(text: &str) -> Vec<String> {
    parsed(text).warnings.iter().map(Warning::to_string).collect()
}

const LABELS: &str = "\
# Task: Fix the login

Goal:
- Users can log in again

Acceptance Criteria:
- A right password is accepted
- A wrong one is refused

Constraints:
- Keep changes minimal.

Allowed Paths:
- src/
- `tests/`

Validation Commands:
- tests: pytest -q
- lint: `ruff check .`
- uat: pytest -q tests/uat

User Acceptance Tests:
- Log in as Ann

Notes:
- See issue 24
";

#[test]
fn labels_and_headings_say_the_same() {
    let headings = LABELS
        .replace("Goal:", "## Goal")
        .replace("Acceptance Criteria:", "## acceptance criteria")
        .replace("Constraints:", "## Constraints:")
        .replace("Allowed Paths:", "### Allowed paths")
        .replace("Validation Commands:", "**Validation Commands:**")
        .replace("Notes:", "**Notes**:");
    let labels = parsed(LABELS);
    assert_eq!(parsed(&headings).spec, labels.spec);
    assert_eq!(labels.kind, FileKind::Task);
    assert_eq!(labels.warnings, []);
    insta::assert_snapshot!(serde_json::to_string_pretty(&labels.spec).unwrap(), @r#"
    {
      "id": "fix-login",
      "title": "Fix the login",
      "goal": "Users can log in again",
      "acceptance": [
        "A right password is accepted",
        "A wrong one is refused"
      ],
      "constraints": [
        "Keep changes minimal."
      ],
      "allowed_paths": [
        "src/",
        "tests/"
      ],
      "deny_paths": [],
      "commands": {
        "tests": "pytest -q",
        "lint": "ruff check .",
        "format": null,
        "uat": "pytest -q tests/uat"
      },
      "uat": [
        "Log in as Ann"
      ],
      "notes": [
        "See issue 24"
      ],
      "depends_on": [],
      "path": "tasks/2026-01-31_fix-login.md"
    }
    "#);
}

#[test]
fn a_task_survives_markdown_and_its_journal() {
    let spec = parsed(LABELS).spec;
    assert_eq!(parsed(&spec.to_markdown()).spec, spec);
    let text = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<TaskSpec>(&text).unwrap(), spec);
}

#[test]
fn windows_files_and_byte_order_marks_are_read_alike() {
    let windows = format!("\u{feff}{}", LABELS.replace('\n', "\r\n"));
    assert_eq!(parsed(&windows).spec, parsed(LABELS).spec);
}

#[test]
fn the_template_is_a_valid_task() {
    assert_eq!(parsed(TEMPLATE).warnings, []);
}

#[test]
fn paragraphs_numbers_boxes_and_continued_lines_are_items() {
    let spec = parsed(
        "# Task: t\n\nGoal: make it\nfast.\n\nAnd small.\n\n## Acceptance Criteria\n1. first\n   goes on\n2) second\n* [ ] third\n  - with a part\n+ [x] fourth\n",
    )
    .spec;
    assert_eq!(spec.goal, "make it fast.\nAnd small.");
    assert_eq!(spec.acceptance, ["first\n goes on", "second", "third\n- with a part", "fourth"]);
}

#[test]
fn code_is_not_read_as_sections() {
    let text = "# Task: t\nGoal:\n- g\nAcceptance Criteria:\n- prints\n  ```md\n  # Task: other\n\n  Goal:\n  ```\n- b\n";
    let spec = parsed(text).spec;
    assert_eq!(spec.acceptance, ["prints\n```md\n# Task: other\n\nGoal:\n```", "b"]);
    assert_eq!(parsed(&spec.to_markdown()).spec, spec);
}

#[test]
fn front_matter_gives_id_and_dependencies() {
    let spec =
        parsed(&format!("---\nid: T1\ndepends_on: [a, b]\nstatus: PENDING\n---\n{LABELS}")).spec;
    assert_eq!((spec.id.as_str(), spec.depends_on.join(" ").as_str()), ("T1", "a b"));
    let comma = parsed(&format!("---\ndepends_on: a, b\n---\n{LABELS}")).spec;
    assert_eq!((comma.id.as_str(), comma.depends_on.len()), ("fix-login", 2));
}

#[test]
fn kinds() {
    let kind = |path: &str, text: &str| parse(Utf8Path::new(path), text.as_bytes()).map(|p| p.kind);
    assert_eq!(kind("x.md", LABELS).ok(), Some(FileKind::Task));
    assert_eq!(kind("x.md", "# Plan: big\nanything").ok(), Some(FileKind::Plan));
    assert_eq!(kind("docs/Plan.md", "# Rewrite\n\nWords.").ok(), Some(FileKind::Plan));
    assert_eq!(kind("plan.md", "Words only.").ok(), Some(FileKind::Plan));
    let plan =
        parse(Utf8Path::new("plan.md"), b"---\nid: p\n---\n# Plan: big\n\nDeny Paths:\n- infra/\n")
            .unwrap();
    assert_eq!(
        (plan.spec.title.as_str(), plan.spec.deny_paths.join("")),
        ("big", "infra/".to_owned())
    );
    assert_eq!(plan.body, "# Plan: big\n\nDeny Paths:\n- infra/");
}

#[test]
fn faults_as_a_person_reads_them() {
    let valid = |end: &str| format!("# Task: t\nGoal:\n- g\nAcceptance Criteria:\n- a\n{end}");
    for (text, said) in [
        (
            "",
            "x.md:1:1: there are no Acceptance Criteria; add a line `Acceptance Criteria:` and below it `- …`, at least one that can be tested\n\
             x.md:1:1: there is no Goal; add a line `Goal:` and below it `- …`\n\
             x.md:1:1: there is no title; start with `# Task: <title>` for a task or `# Plan: <title>` for a plan",
        ),
        (
            "# Fix it\nGoal:\n- g\nAcceptance Criteria:\n- a\n",
            "x.md:1:1: the first heading is `# Fix it`; write `# Task: <title>` for a task or `# Plan: <title>` for a plan",
        ),
        (
            "# Task:\nGoal:\n- g\nAcceptance Criteria:\n- a\n",
            "x.md:1:1: the title is empty; write it after the colon",
        ),
        (
            "# Task: t\nGoal:\n\nAcceptance Criteria:\n-\n",
            "x.md:2:1: Goal is empty; say what should change, as `- …`\n\
             x.md:4:1: Acceptance Criteria is empty; add at least one `- …` that can be tested",
        ),
        (
            "# Task: t\nGoal:\n- g\nAcceptance Criteria:\nIt works.\n",
            "x.md:5:1: acceptance criteria must be bullets; start each with `- `",
        ),
        (
            &valid(
                "Validation Commands:\n- test: x\n- deploy: y\n- lint:\n- pytest\n- tests: a\n- tests: b\n",
            ),
            "x.md:7:1: unknown command key `test`; did you mean `tests`?\n\
             x.md:8:1: unknown command key `deploy`; known: tests, lint, format, uat\n\
             x.md:9:1: the command of `lint` is empty; write it or remove the line\n\
             x.md:10:1: `pytest` is not a command; write `- tests: <command>` (keys: tests, lint, format, uat)\n\
             x.md:12:1: `tests` is given twice; keep one",
        ),
        (
            &valid("Allowed Paths:\n- ../other\n- /etc\n- src\n"),
            "x.md:7:1: path `../other` goes up with `..`; write it relative to the repository's root\n\
             x.md:8:1: path `/etc` is not inside the repository; write it relative to the repository's root",
        ),
        (
            &valid("\nAlowed Paths:\n- src\n"),
            "x.md:7:1: unknown section `Alowed Paths`; did you mean `Allowed Paths`?",
        ),
        (
            &valid("# Task: two\n"),
            "x.md:6:1: a second title starts here; put each task into its own file",
        ),
        (
            &valid("```\nopen\n"),
            "x.md:6:1: the code block that starts here is not closed; end it with ```",
        ),
        (&valid("- a\0b\n"), "x.md:6:4: the line has an invisible character (U+0000); remove it"),
        (
            &valid("- \u{1b}[31mred\n"),
            "x.md:6:3: the line has an invisible character (U+001B); remove it",
        ),
        (
            &valid("- \u{202e}drow\n"),
            "x.md:6:3: the line has an invisible character (U+202E); remove it",
        ),
        (
            &format!("---\nid: -x y\n{}", valid("")),
            "x.md:1:1: the front matter is not closed; end it with a line `---` or remove the first",
        ),
        (
            &format!("---\nid: x y\n---\n{}", valid("")),
            "x.md:2:5: `x y` is not a valid task id; use letters, digits, `.`, `_` and `-`, as in `x-y`",
        ),
    ] {
        assert_eq!(faults(text), said);
    }
}

#[test]
fn remarks_as_a_person_reads_them() {
    let text = "# Task: t\nSome words.\n\nGoal:\n- g\n\nAcceptance Criteria:\n- a\n\nBackground:\n- b\n\n## Goal\n- more\n";
    assert_eq!(
        warnings(text),
        [
            "line 2, column 1: text before the first section is kept as a note",
            "line 10, column 1: unknown section `Background` is kept as a note; known sections: Goal, Acceptance Criteria, Constraints, Allowed Paths, Deny Paths, Validation Commands, User Acceptance Tests, Notes",
            "line 13, column 1: this section already exists (line 4); both are read",
        ]
    );
    let spec = parsed(text).spec;
    assert_eq!(spec.goal, "g\nmore");
    assert_eq!(spec.notes, ["Some words.", "Background:", "b"]);
}

#[test]
fn a_sentence_with_a_colon_is_no_section() {
    let spec = parsed(
        "# Task: t\nGoal:\n- g\nAcceptance Criteria:\n- a\nNotes:\nDo the following: x\nNote that: y\n",
    );
    assert_eq!(spec.warnings, []);
}

#[test]
fn files_that_are_no_text_or_too_large_are_refused() {
    let said = |bytes: &[u8]| parse(Utf8Path::new("x.md"), bytes).unwrap_err().in_file("x.md");
    assert_eq!(
        said(b"# Task: t\n\xff\xfe"),
        "x.md:2:1: the text is not UTF-8; save the file in that encoding"
    );
    let huge = vec![b'x'; TASK_BYTES_MAX + 1];
    assert!(said(&huge).starts_with("x.md:1:1: the file has 1048577 bytes"));
}

#[test]
fn the_number_of_items_is_limited() {
    let many = |count: usize| {
        format!("# Task: t\nGoal:\n- g\nAcceptance Criteria:\n{}", "- a\n".repeat(count))
    };
    assert_eq!(parsed(&many(ITEMS_MAX - 1)).spec.acceptance.len(), ITEMS_MAX - 1);
    assert_eq!(
        faults(&many(ITEMS_MAX)),
        "x.md:4:1: there are more than 10000 items; split the task"
    );
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(Utf8Path::new("x.md"), &bytes);
    }

    #[test]
    fn no_markdown_panics(lines in proptest::collection::vec("(#{0,3} ?|- |\\* |```|---|  )(Goal|Task|Acceptance Criteria|Validation Commands|x)?:?[ a-z:`é]{0,8}", 0..30)) {
        let _ = parse(Utf8Path::new("x.md"), lines.join("\n").as_bytes());
    }

    #[test]
    fn what_is_written_back_is_read_alike(
        title in "[a-z]([a-z ]{0,10}[a-z])?",
        items in proptest::collection::vec("[a-z]([a-z:.,` ]{0,20}[a-z])?(\n[a-z]{1,5})?", 1..6),
    ) {
        let spec = TaskSpec {
            id: "x".to_owned(),
            title,
            goal: items.join("\n"),
            acceptance: items.clone(),
            notes: items,
            path: "x.md".into(),
            ..TaskSpec::default()
        };
        let again = parse(Utf8Path::new("x.md"), spec.to_markdown().as_bytes());
        prop_assert_eq!(again.map(|parsed| parsed.spec), Ok(spec));
    }
}

#[test]
fn a_tasks_own_commands_come_before_the_configured_ones() {
    let text = "commands: { tests: make test, lint: make lint, uat: make uat }";
    let (config, _) = crate::config::Config::parse(text).unwrap();
    let own = CommandOverrides { tests: Some("make cart".into()), ..CommandOverrides::default() };
    let told = |commands: Vec<(&str, String)>| {
        let lines = commands.iter().map(|(name, line)| format!("{name}: {line}"));
        lines.collect::<Vec<_>>().join(", ")
    };
    let all = told(config.commands.all(&own));
    assert_eq!(all, "tests: make cart, lint: make lint, uat: make uat");
    assert_eq!(told(config.commands.validation(None)), "tests: make test, lint: make lint");
    let blank = CommandOverrides { tests: Some(" ".into()), ..CommandOverrides::default() };
    assert_eq!(told(config.commands.validation(Some(&blank))), "lint: make lint");
}

#[test]
fn paths_may_be_quoted_in_the_usual_ways() {
    let quoted = "- `src/*`\n- \"src/**\"\n- 'docs/*.md'\n- `\"a b/*\"`\n- \"`web`\"\n- don't/x\n- \"a\" b\n";
    let text = format!(
        "# Task: t\nGoal:\n- g\nAcceptance Criteria:\n- a\nAllowed Paths:\n{quoted}Deny Paths:\n- 'x/**'\n"
    );
    let spec = parsed(&text).spec;
    let wanted = ["src/*", "src/**", "docs/*.md", "a b/*", "web", "don't/x", "\"a\" b"];
    assert_eq!(spec.allowed_paths, wanted);
    assert_eq!(spec.deny_paths, ["x/**"]);
}
