//! Object names as git prints them: full lower-case hex, checked once and then trusted.

use std::fmt;

use super::error::GitError;

/// A full object name (SHA-1 or SHA-256). It never starts with a dash, so it is safe as an
/// argument.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

impl Oid {
    /// Reads an object name of full length in lower-case hexadecimal.
    pub fn parse(text: &str) -> Result<Self, GitError> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if hex && matches!(text.len(), 40 | 64) {
            Ok(Self(text.to_owned()))
        } else {
            let shown: String = text.chars().take(80).collect();
            Err(GitError::Unreadable { what: "object name".into(), text: shown })
        }
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, GitError> {
        Self::parse(&String::from_utf8_lossy(bytes))
    }

    /// Reads an object name in the binary form of trees and indexes; the caller knows its length.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns the binary form of trees and indexes.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let digits: Vec<u8> = self
            .0
            .bytes()
            .map(|b| if b.is_ascii_digit() { b - b'0' } else { b - b'a' + 10 })
            .collect();
        digits
            .chunks_exact(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
            .collect()
    }

    /// Returns the name in full.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns twelve digits: enough for people, and for names that are made unique by other means.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    /// Returns whether this is the name by which git means "no object".
    pub(crate) fn is_zero(&self) -> bool {
        self.0.bytes().all(|b| b == b'0')
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Oid {
    type Error = GitError;
    fn try_from(text: String) -> Result<Self, GitError> {
        Self::parse(&text)
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_lower_case_hex_is_an_object_name() {
        assert!(Oid::parse(&"a".repeat(40)).is_ok());
        assert!(Oid::parse(&"0".repeat(64)).unwrap().is_zero());
        for bad in ["", "HEAD", "--upload-pack=x", &"A".repeat(40), &"a".repeat(39)] {
            assert!(Oid::parse(bad).is_err(), "{bad}");
        }
    }
}
