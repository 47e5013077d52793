//! Another place where an agent's model is asked, and another key for it.

/// What the configuration names; nothing means the agent's own ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gateway {
    pub base_url: Option<String>,
    /// The variable that holds the key.
    pub key_env: Option<String>,
}

/// In the place of a key where none is named. Without anything there an agent would take the user's
/// own login, which is for its vendor and nobody else.
pub(crate) const NO_KEY: &str = "none";
