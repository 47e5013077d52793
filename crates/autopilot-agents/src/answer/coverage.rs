//! Coverage as an answer. It is checked against its schema and against the criteria and tests that there
//! are; the faults of both are reported at once.

use autopilot_core::coverage::{CoverageAnswer, CoverageGround, coverage_faults};

use super::{AnswerFault, AnswerSchema, GivenAnswer, read};

/// Reads which tests cover which criterion. The answer must also satisfy `also`, a schema the user
/// edited. A name that nobody knows is a fault; whether a test proves anything is not looked at here.
pub fn read_coverage<'a>(
    given: impl Into<GivenAnswer<'a>>,
    also: Option<&AnswerSchema>,
    ground: &CoverageGround,
) -> Result<CoverageAnswer, Vec<AnswerFault>> {
    let answer: CoverageAnswer = read(given, also)?;
    let faults = coverage_faults(&answer, ground);
    match faults.is_empty() {
        true => Ok(answer),
        false => Err(faults.into_iter().map(AnswerFault::from).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use autopilot_core::coverage::named_criteria;

    fn ground() -> CoverageGround {
        CoverageGround {
            criteria: named_criteria(&["a".to_owned(), "b".to_owned()], ""),
            red: ["t::one".to_owned()].into(),
            green: ["t::one", "t::old"].map(str::to_owned).into(),
            ..CoverageGround::default()
        }
    }

    fn faults(answer: &str) -> Vec<String> {
        match read_coverage(answer, None, &ground()) {
            Ok(_) => Vec::new(),
            Err(faults) => faults.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn an_answer_about_what_there_is_is_read_whether_it_is_believed_or_not() {
        for answer in [
            r#"{"map":[{"criterion":"AC-1","tests":["t::one"]}],"allCovered":false,"uncovered":["AC-2"]}"#,
            r#"Here: {"map":[{"criterion":"AC-1","tests":["t::old"]},{"criterion":"AC-2","tests":["t::one"]}],"allCovered":true,"uncovered":[]}"#,
        ] {
            assert_eq!(faults(answer), [""; 0], "{answer}");
        }
    }

    #[test]
    fn every_fault_of_an_answer_is_named_at_once() {
        let answer = r#"{"map":[{"criterion":"AC-1","tests":["t::none"]},{"criterion":"AC-9","tests":["t::one"]}],
            "allCovered":true,"uncovered":["AC-7"]}"#;
        assert_eq!(
            faults(answer),
            [
                "/map/0/tests/0: no test `t::none` passes with the change",
                "/map/1/criterion: there is no criterion `AC-9`",
                "/uncovered/0: there is no criterion `AC-7`",
                "/allCovered: it is true, and the answer has no test for AC-2",
            ]
        );
        assert_eq!(faults(r#"{"map":[],"uncovered":[]}"#).len(), 1);
        assert_eq!(faults("none").len(), 1);
    }
}
