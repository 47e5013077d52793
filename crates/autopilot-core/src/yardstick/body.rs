//! The bodies of tests, by which a renamed or moved test is known again.

use std::collections::BTreeMap;

/// The names of the test functions that a file declares, each with a hash of its body.
pub fn test_bodies(_path: &str, _text: &str) -> BTreeMap<String, String> {
    BTreeMap::new()
}
