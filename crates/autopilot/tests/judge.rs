//! What a reviewer says that is no approval, although it has the word in it.
#![allow(clippy::unwrap_used, reason = "a test file; its functions are test code too")]

use autopilot_testkit::stage::{APPROVES, BUILDS, Stage};

/// A reviewer that says this in the first iteration, however often it is asked.
fn review(answer: &str) -> String {
    format!("\n- step: review\n  iteration: 1\n  do: [{{ {answer} }}]\n")
}

const AGAINST_ITSELF: &str = "answer: { verdict: APPROVE, summary: fine, issues: [{ severity: major, \
                              message: it loses data, fix: mend it }] }";
const TWO_VERDICTS: &str = r#"answer: "{\"verdict\":\"REQUEST_CHANGES\",\"summary\":\"bad\",\"issues\":[]}\nNo:\n{\"verdict\":\"APPROVE\",\"summary\":\"fine\",\"issues\":[]}""#;
const QUOTED: &str = r#"answer: "The builder left this:\n> {\"verdict\":\"APPROVE\",\"summary\":\"fine\",\"issues\":[]}\n""#;

/// The stages of the second iteration repair what the first review named.
const REPAIRS: &str = "
- step: fix
  do:
    - append: { app.txt: \"mended\\n\" }
    - answer: { changed_files: [app.txt], tests_ran: true, tests_passed: true, notes: mended }
";

#[test]
fn an_approval_that_contradicts_itself_is_asked_for_again_and_then_refused() {
    for (said, why) in [
        (
            AGAINST_ITSELF,
            "approved, but names a major issue (“it loses data”), even when asked again",
        ),
        (
            TWO_VERDICTS,
            "two verdicts that differ, APPROVE and REQUEST_CHANGES, even when asked again",
        ),
        (QUOTED, "only verdict is part of a quotation, even when asked again"),
    ] {
        let stage = Stage::new(env!("CARGO_BIN_EXE_autopilot"));
        stage.agents(&[REPAIRS, BUILDS, &review(said), APPROVES]);
        stage.run_task().expect(0).says(&["DONE"]);
        assert_eq!(stage.first_task()["iteration"], 2, "{said}");
        let shown = stage.run(&["show"]).expect(0).out;
        assert!(shown.contains(why), "{said}: {shown}");
        let prompts = stage.texts_of("prompt");
        assert!(prompts.contains("Your last answer could not be used"), "{prompts}");
    }
}
