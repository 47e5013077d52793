//! An address and a key for an agent's model other than the vendor's.

use serde_json::{Map, Value};

/// The address and the key that the configuration names; `None` leaves the agent's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gateway {
    pub base_url: Option<String>,
    /// The name of the environment variable that holds the key.
    pub key_env: Option<String>,
}

/// The way by which an agent reaches its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayWay {
    /// The user's own address and login.
    Own,
    /// The user's own address with another key.
    OtherKey,
    /// Another address, with a key of its own or none.
    OtherAddress,
}

impl Gateway {
    /// The way that these settings lead.
    pub fn way(&self) -> GatewayWay {
        match (&self.base_url, &self.key_env) {
            (Some(_), _) => GatewayWay::OtherAddress,
            (None, Some(_)) => GatewayWay::OtherKey,
            (None, None) => GatewayWay::Own,
        }
    }
}

/// The placeholder for a key where none is configured. Without one an agent would take the user's
/// own login, which is for its vendor and nobody else.
pub(crate) const NO_KEY: &str = "none";

/// The settings of Claude Code that lead to an account, by whatever way.
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
/// The prefixes of variables that hold a key.
const KEY_ENV: &[&str] =
    &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_API_KEY", "CLAUDE_CODE_OAUTH_"];
/// The prefixes of variables that lead to an account, except those that name a model.
const ACCOUNT_ENV: &[&str] = &[
    "ANTHROPIC_",
    "AWS_BEARER_",
    "CLAUDE_CODE_API_KEY",
    "CLAUDE_CODE_OAUTH_",
    "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_USE_",
];

/// Whether a Claude Code that reaches its model by `way` must not inherit the user's variable
/// `name`.
pub fn is_withheld(name: &str, way: GatewayWay) -> bool {
    let begins = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    match way {
        GatewayWay::Own => false,
        GatewayWay::OtherKey => begins(KEY_ENV),
        GatewayWay::OtherAddress => begins(ACCOUNT_ENV) && !name.contains("MODEL"),
    }
}

/// Returns a user's settings of Claude Code without the user's own way to a model. With it, the
/// configured address would not be asked, or would be given the user's key. `None` if the settings
/// can't be read.
pub fn without_own_way(settings: &[u8], way: GatewayWay) -> Option<String> {
    let mut settings: Map<String, Value> = serde_json::from_slice(settings).ok()?;
    settings.retain(|name, _| !ACCOUNT.contains(&name.as_str()));
    if let Some(Value::Object(env)) = settings.get_mut("env") {
        env.retain(|name, _| !is_withheld(name, way));
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
        let kept = without_own_way(theirs.as_bytes(), GatewayWay::OtherAddress).unwrap();
        let kept: Value = serde_json::from_str(&kept).unwrap();
        let expected = serde_json::json!({
            "model": "m", "env": { "EDITOR": "vi" }, "permissions": { "deny": ["Bash"] }
        });
        assert_eq!(kept, expected);
        let theirs =
            r#"{"apiKeyHelper":"./k","env":{"ANTHROPIC_BASE_URL":"u","ANTHROPIC_API_KEY":"k"}}"#;
        let kept = without_own_way(theirs.as_bytes(), GatewayWay::OtherKey).unwrap();
        assert_eq!(kept, r#"{"env":{"ANTHROPIC_BASE_URL":"u"}}"#, "the key is for that address");
        assert_eq!(without_own_way(b"not json", GatewayWay::OtherAddress), None);
        assert_eq!(without_own_way(b"[1]", GatewayWay::OtherAddress), None);
    }

    #[test]
    fn at_another_address_no_variable_leads_back() {
        for name in [
            "CLAUDE_CODE_USE_ANTHROPIC_AWS",
            "CLAUDE_CODE_USE_MANTLE",
            "ANTHROPIC_AWS_API_KEY",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ] {
            assert!(is_withheld(name, GatewayWay::OtherAddress), "{name}");
            assert!(!is_withheld(name, GatewayWay::Own), "{name}");
        }
        assert!(!is_withheld("ANTHROPIC_DEFAULT_OPUS_MODEL", GatewayWay::OtherAddress));
        assert!(is_withheld("ANTHROPIC_API_KEY", GatewayWay::OtherKey));
        assert!(!is_withheld("ANTHROPIC_BASE_URL", GatewayWay::OtherKey));
    }
}
