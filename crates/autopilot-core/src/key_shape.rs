//! The shapes of well-known keys: text that is most likely a secret, whoever it belongs to.
//!
//! Each shape begins with a fixed text, so that looking for all of them at once costs little, and
//! is made of ASCII alone. Only linear-time matching is used on them.

/// The shape of one kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyShape {
    /// The kind of key, with its article, as it is told to a person.
    pub name: &'static str,
    /// The regular expression. It never needs more than one line, except for a private key.
    pub pattern: &'static str,
}

/// Every shape that is known. Of a URL only the password counts.
pub const KEY_SHAPES: &[KeyShape] = &[
    shape("an AWS access key", r"(?-u:\b)(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)"),
    shape(
        "an AWS secret key",
        r#"(?:aws_secret_access_key|AWS_SECRET_ACCESS_KEY)["']?[ \t]{0,4}[=:][ \t]{0,4}["']?[A-Za-z0-9/+=]{40}"#,
    ),
    shape("a GitHub token", r"(?-u:\b)(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    shape("a GitLab token", r"(?-u:\b)gl(?:pat|rt|dt|ptt|cbt|soat|ft)-[A-Za-z0-9_-]{16,}"),
    shape("a Slack token", r"(?-u:\b)(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{10,}"),
    shape("a Slack webhook", r"hooks\.slack\.com/services/[A-Za-z0-9/_-]{20,}"),
    shape("a Discord webhook", r"discord(?:app)?\.com/api/webhooks/[0-9]{8,}/[A-Za-z0-9_-]{20,}"),
    shape(
        "a Google key",
        r"(?-u:\b)(?:AIza[0-9A-Za-z_-]{30,}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[0-9A-Za-z_-]{20,})",
    ),
    shape(
        "an Anthropic or OpenAI key",
        r"(?-u:\b)sk-(?:(?:ant|proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{16,}|[A-Za-z0-9]{20,})",
    ),
    shape(
        "a Stripe key",
        r"(?-u:\b)(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{16,})",
    ),
    shape("an npm token", r"(?-u:\b)npm_[A-Za-z0-9]{30,}"),
    shape("a PyPI token", r"(?-u:\b)pypi-[A-Za-z0-9_-]{40,}"),
    shape("a crates.io token", r"(?-u:\b)cio[A-Za-z0-9]{32}(?-u:\b)"),
    shape("a Hugging Face token", r"(?-u:\b)hf_[A-Za-z0-9]{30,}"),
    shape("a SendGrid key", r"(?-u:\b)SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    shape("a DigitalOcean token", r"(?-u:\b)do[opr]_v1_[a-f0-9]{64}"),
    shape("a Docker token", r"(?-u:\b)dckr_pat_[A-Za-z0-9_-]{20,}"),
    shape("an Azure storage key", r"AccountKey=[A-Za-z0-9+/=]{60,}"),
    shape("an age key", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    shape(
        "a JSON Web Token",
        r"(?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    ),
    shape(
        "a private key",
        r#"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:[A-Za-z-]+: [ -~]*\n|[ \t\r\n"',+]|\\[nr]|[A-Za-z0-9+/=]{16,})*(?:[A-Za-z0-9+/=]{1,15}(?:[ \t\r\n"',+]|\\[nr])*)?-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|(?:[ \t\r\n]|\\[nr]|[A-Za-z0-9+/=]{16,})*)"#,
    ),
    shape(
        "a URL with a password",
        r"://[A-Za-z0-9._~%!&*+=-]*:[A-Za-z0-9._~%!&*+=,;:?^#|-]{3,}@[A-Za-z0-9\[]",
    ),
];

/// One regular expression for all shapes.
pub fn any_key() -> String {
    let patterns: Vec<&str> = KEY_SHAPES.iter().map(|shape| shape.pattern).collect();
    patterns.join("|")
}

const fn shape(name: &'static str, pattern: &'static str) -> KeyShape {
    KeyShape { name, pattern }
}
