//! The author of commits: the user as git knows them, else a named default.

/// The author and committer of the controller's commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitIdentity {
    /// The name.
    pub name: String,
    /// The e-mail address.
    pub email: String,
}

impl Default for CommitIdentity {
    fn default() -> Self {
        Self { name: "Autopilot".into(), email: "autopilot@localhost".into() }
    }
}

impl CommitIdentity {
    /// Returns the configured identity, or the default if git would refuse it. Git refuses an
    /// identity with only punctuation in it, and angle brackets or line ends would break the commit
    /// header.
    pub(crate) fn or_default(name: &str, email: &str) -> Self {
        let clean = |s: &str| s.chars().filter(|c| !matches!(c, '<' | '>' | '\n' | '\0')).collect();
        let (name, email): (String, String) = (clean(name), clean(email));
        let usable = |s: &str| s.chars().any(char::is_alphanumeric);
        if usable(&name) && usable(&email) {
            Self { name: name.trim().into(), email: email.trim().into() }
        } else {
            Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_identity_is_none() {
        assert_eq!(CommitIdentity::or_default("Ada", ""), CommitIdentity::default());
        assert_eq!(CommitIdentity::or_default(" . ", "a@b"), CommitIdentity::default());
        let ada = CommitIdentity::or_default("Ada <x>\n", "a@b");
        assert_eq!(ada, CommitIdentity { name: "Ada x".into(), email: "a@b".into() });
    }
}
