//! Tests by the names that the output of a runner shows.

use super::TestReport;

/// The tests that an output names.
pub fn report(_output: &str) -> TestReport {
    TestReport::default()
}

/// The documentation tests of cargo that an output names: their program takes no arguments, so it
/// writes no report.
pub fn documentation_tests(_output: &str) -> TestReport {
    TestReport::default()
}
