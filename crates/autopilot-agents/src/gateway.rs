//! Another place where an agent's model is asked, and another key for it.

use serde_json::{Map, Value};

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

/// Settings of Claude Code that lead to an account, by whatever way.
const ACCOUNT: &[&str] = &[
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "gcpAuthRefresh",
    "customApiKeyResponses",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "oauthAccount",
    "primaryApiKey",
];
/// The same of the variables its settings set.
const ACCOUNT_ENV: &[&str] = &[
    "ANTHROPIC_",
    "AWS_BEARER_",
    "CLAUDE_CODE_API_KEY",
    "CLAUDE_CODE_OAUTH_",
    "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_USE_",
];

/// A user's settings of Claude Code without the user's own way to a model: over them, no other
/// address would be asked, or it would be given the user's own key. Nothing if they can't be read.
pub fn without_own_way(settings: &[u8]) -> Option<String> {
    let mut settings: Map<String, Value> = serde_json::from_slice(settings).ok()?;
    settings.retain(|name, _| !ACCOUNT.contains(&name.as_str()));
    if let Some(Value::Object(env)) = settings.get_mut("env") {
        env.retain(|name, _| !ACCOUNT_ENV.iter().any(|start| name.starts_with(start)));
    }
    Some(Value::from(settings).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_the_users_own_account_is_left_out_and_the_rest_kept() {
        let theirs = r#"{"apiKeyHelper":"./key","model":"m","env":{"ANTHROPIC_CUSTOM_HEADERS":"x",
            "ANTHROPIC_API_KEY":"k","CLAUDE_CODE_USE_BEDROCK":"1","EDITOR":"vi"},
            "permissions":{"deny":["Bash"]},"oauthAccount":{"id":1},"primaryApiKey":"k"}"#;
        let kept: Value =
            serde_json::from_str(&without_own_way(theirs.as_bytes()).unwrap()).unwrap();
        let expected = serde_json::json!({
            "model": "m", "env": { "EDITOR": "vi" }, "permissions": { "deny": ["Bash"] }
        });
        assert_eq!(kept, expected);
        assert_eq!(without_own_way(b"not json"), None);
        assert_eq!(without_own_way(b"[1]"), None);
    }
}
