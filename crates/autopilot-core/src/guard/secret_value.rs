//! Which of the known secrets are compared with what leaves the machine. A hit must mean something:
//! a word, a path, an address, a name of a key or a placeholder is in honest text too.
//!
//! A value that a program made looks random, whatever its name. A password may be anything that a
//! person thought of, so less is asked of it.

use std::collections::BTreeSet;

/// The shortest value that is compared; shorter ones are in honest text by chance.
const COMPARED_BYTES_MIN: usize = 8;
/// The fewest different characters of a value that is compared.
const DISTINCT_MIN: usize = 5;
/// The fewest letters and digits that must look random.
const RANDOM_BYTES_MIN: usize = 4;
/// The shortest part of a value that is a password if it is named one.
const NAMED_PART_BYTES_MIN: usize = 6;
/// The shortest word with letters and digits that looks random in any case, and the shortest number.
const MIXED_WORD_BYTES_MIN: usize = 16;
/// The shortest value of one word without digits that is compared.
const ONE_WORD_BYTES_MIN: usize = 20;
/// The shortest password of several words.
const PASSWORD_WORDS_BYTES_MIN: usize = 16;
/// The fewest words of a passphrase, with spaces between them.
const PHRASE_WORDS_MIN: usize = 4;
/// The shortest part of an address that is a key if it looks random.
const URL_PART_BYTES_MIN: usize = 16;
/// The same for the address of a webhook, in whatever way it looks.
const WEBHOOK_PATH_BYTES_MIN: usize = 8;
/// The letters of a word in camel case from one capital to the next, on average.
const HUMP_BYTES_MIN: usize = 4;

/// Words that a placeholder is made of, the longer ones first.
const PLACEHOLDERS: [&str; 33] = [
    "placeholder",
    "undefined",
    "changeme",
    "password",
    "testing",
    "example",
    "default",
    "replace",
    "postgres",
    "secret",
    "sample",
    "passwd",
    "change",
    "insert",
    "token",
    "admin",
    "guest",
    "local",
    "mysql",
    "dummy",
    "false",
    "value",
    "none",
    "null",
    "true",
    "pass",
    "test",
    "demo",
    "fake",
    "root",
    "user",
    "your",
    "key",
];
/// The most letters besides such words in a short placeholder.
const PLACEHOLDER_LETTERS_MAX: usize = 2;

/// Returns whether the value of a known secret is compared with what leaves the machine. `name` says
/// where it comes from: a variable, a key of the configuration, a file.
pub fn is_compared(name: &str, value: &str) -> bool {
    let value = value.trim();
    let distinct: BTreeSet<u8> = value.bytes().collect();
    if value.len() < COMPARED_BYTES_MIN
        || distinct.len() < DISTINCT_MIN
        || is_reference(value)
        || is_placeholder(value)
    {
        return false;
    }
    match value.split_once("://") {
        Some((_, rest)) if !value.contains(char::is_whitespace) => is_secret_url(name, rest),
        Some(_) | None => {
            looks_random(value)
                || is_phrase(value)
                || has_password_part(value)
                || has_word(name, &["PASS", "PWD", "PASSWORD", "PASSWD", "PASSPHRASE"])
                    && is_password(value)
        }
    }
}

/// Returns whether a value only says where the secret is: `${TOKEN}`, `<your token>`, `{{ token }}`.
fn is_reference(value: &str) -> bool {
    let is_name = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
    };
    let within = |start: &str, end: &str| value.strip_prefix(start)?.strip_suffix(end);
    within("${", "}").is_some_and(is_name)
        || value.strip_prefix('$').is_some_and(is_name)
        || within("%", "%").is_some_and(is_name)
        || within("<", ">").is_some()
        || within("{{", "}}").is_some()
}

/// Returns whether a value is words that everybody uses, perhaps with a number: `test1234`,
/// `your-password-here`.
fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let mut rest = lower.clone();
    PLACEHOLDERS.iter().for_each(|word| rest = rest.replace(word, " "));
    let letters = |text: &str| text.bytes().filter(u8::is_ascii_alphabetic).count();
    if value.len() < MIXED_WORD_BYTES_MIN {
        return rest.contains(' ') && letters(&rest) <= PLACEHOLDER_LETTERS_MAX;
    }
    let is_usual = |word: &str| {
        PLACEHOLDERS.contains(&word)
            || ["my", "here", "this", "with", "to", "a", "in"].contains(&word)
            || word.bytes().all(|byte| byte.is_ascii_digit()) && word.len() <= 4
    };
    words(&lower).all(is_usual) && words(&lower).any(|word| PLACEHOLDERS.contains(&word))
}

/// Returns whether an address, without its scheme, is a secret: it holds a password or a key. Of a
/// webhook the address is all that it takes to use it.
fn is_secret_url(name: &str, rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let path = &rest[authority.len()..];
    let is_known = match authority.rsplit_once('@').map(|(userinfo, _)| userinfo.split_once(':')) {
        // `postgres:postgres` protects nothing.
        Some(Some((user, password))) => {
            !password.is_empty() && user != password && !is_reference(password)
        }
        Some(None) => looks_random(authority.split('@').next().unwrap_or_default()),
        None => false,
    };
    let is_key = |part: &str| part.len() >= URL_PART_BYTES_MIN && looks_random(part);
    let is_webhook = has_word(name, &["WEBHOOK"]) && path.len() >= WEBHOOK_PATH_BYTES_MIN;
    is_known || is_webhook || path.split(['/', '?', '#', '&', '=', ';']).any(is_key)
}

/// Returns whether a text has enough in it that looks as if it were made by chance.
fn looks_random(text: &str) -> bool {
    let random: usize = words(text).filter(|word| !is_plain_word(word)).map(str::len).sum();
    let is_one_word = text.bytes().all(|byte| byte.is_ascii_alphabetic());
    random >= RANDOM_BYTES_MIN
        || is_one_word && (text.len() >= ONE_WORD_BYTES_MIN || has_random_case(text))
}

/// Returns whether the letters of a long word are small and capital by chance, not as in `myToken`.
fn has_random_case(word: &str) -> bool {
    let bytes = word.as_bytes();
    let humps = bytes
        .windows(2)
        .filter(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    word.len() >= MIXED_WORD_BYTES_MIN && word.len() < (humps.count() + 1) * HUMP_BYTES_MIN
}

/// Returns whether a word is letters, a number, a name with a number in it, or a number with a unit.
fn is_plain_word(word: &str) -> bool {
    let runs: Vec<&[u8]> =
        word.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()).collect();
    let is_digits = |run: &[u8]| run.first().is_some_and(u8::is_ascii_digit);
    let digits: usize = runs.iter().filter(|run| is_digits(run)).map(|run| run.len()).sum();
    match runs.as_slice() {
        [] => true,
        [run] => !is_digits(run) || run.len() < MIXED_WORD_BYTES_MIN,
        _ if word.len() >= MIXED_WORD_BYTES_MIN => false,
        [letters, _] if !is_digits(letters) => digits <= 5,
        [digits, unit] => digits.len() <= 2 || unit.len() <= 3,
        // The middle of a time: `15T10`.
        [day, b"T", hour] => day.len() <= 2 && hour.len() <= 2,
        [first, _, _] | [first, _, _, _] => {
            let has = |class: fn(&u8) -> bool| word.as_bytes().iter().any(class);
            let is_short =
                word.len() <= 4 && !(has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
            is_short || !is_digits(first) && first.len() >= 3 && digits <= 5
        }
        [_, _, _, _, ..] => false,
    }
}

/// Returns whether a value is a passphrase: some words with spaces between them.
fn is_phrase(value: &str) -> bool {
    value.split_whitespace().count() >= PHRASE_WORDS_MIN
        && value.len() >= PASSWORD_WORDS_BYTES_MIN
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ')
}

/// Returns whether a value has a named secret among its parts, as in `Server=db;Password=x`.
fn has_password_part(value: &str) -> bool {
    const NAMES: [&str; 5] = ["password=", "passwd=", "pwd=", "accountkey=", "accesskey="];
    let lower = value.to_ascii_lowercase();
    NAMES.iter().any(|name| {
        let mut parts = lower.match_indices(name).map(|(at, name)| &lower[at + name.len()..]);
        parts.any(|rest| {
            let part = rest.split([';', '&', ' ', ',']).next().unwrap_or_default();
            part.len() >= NAMED_PART_BYTES_MIN && !is_reference(part) && !is_placeholder(part)
        })
    })
}

/// Returns whether what a person chose as a password may be told from honest text.
fn is_password(value: &str) -> bool {
    let has = |class: fn(&u8) -> bool| value.as_bytes().iter().any(class);
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let is_one_word = value.bytes().all(|byte| byte.is_ascii_lowercase());
    let min = if is_one_word { ONE_WORD_BYTES_MIN } else { PASSWORD_WORDS_BYTES_MIN };
    !value.starts_with(['/', '~', '.']) && (is_mixed || value.len() >= min)
}

fn has_word(name: &str, known: &[&str]) -> bool {
    let upper = name.to_ascii_uppercase();
    words(&upper).any(|word| known.iter().any(|known| word == *known || word.ends_with(known)))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that honest code and texts hold, under names that say that they are secret.
    const HONEST: [(&str, &str); 59] = [
        ("KMS_KEY", "alias/aws/s3"),
        ("KMS_KEY", "arn:aws:kms:eu-west-1:123456789012:alias/my-app"),
        ("KMS_KEY", "projects/my-app/locations/global/keyRings/ring/cryptoKeys/key1"),
        ("API_KEY", "http://localhost:3000"),
        ("API_KEY", "https://api.example.com/v1/users?page=2"),
        ("DB_DSN", "postgres://postgres:postgres@localhost:5432/app"),
        ("DB_DSN", "postgres://app@localhost:5432/app"),
        ("DB_DSN", "postgres://app:${DB_PASSWORD}@db/app"),
        ("SIGNING_KEY", "file:///etc/ssl/private/server.pem"),
        ("API_TOKEN", "op://Personal/GitHub/credential"),
        ("SECRET_NAME", "my-app/prod"),
        ("SECRET_NAME", "prod/eu-west-1/my-app/db-password"),
        ("SECRET_NAME", "myApplicationSecret"),
        ("TOKEN", "true"),
        ("TOKEN", "none"),
        ("TOKEN", "undefined"),
        ("TOKEN", "changeme"),
        ("TOKEN", "your-api-token-here"),
        ("TOKEN", "<your api token 12345>"),
        ("TOKEN", "${SERVICE_TOKEN_2}"),
        ("TOKEN", "$SERVICE_TOKEN_2"),
        ("TOKEN", "{{ secrets.DEPLOY_TOKEN_2 }}"),
        ("TOKEN", "xxxxxxxx-xxxx-xxxx"),
        ("TOKEN_ENCODING", "base64url"),
        ("TOKEN_AUDIENCE", "my-service.internal"),
        ("TOKEN_EXPIRES", "2026-01-15T10:00:00Z"),
        ("KEY_TYPE", "ecdsa-sha2-nistp256"),
        ("KEY_CURVE", "secp256k1"),
        ("SSH_KEY", "/home/me/.ssh/id_ed25519"),
        ("SSH_KEY", "~/.ssh/id_ed25519"),
        ("SSH_KEY", "./keys/deploy-key-2026.pem"),
        ("AUTH_HOST", "auth.example.com:8443"),
        ("AUTH_MODEL", "claude-sonnet-4-5-20250929"),
        ("AUTH_IMAGE", "postgres-15-alpine"),
        ("AUTH_FLAGS", "--max-old-space-size=4096"),
        ("AUTH_LEVEL", "info,hyper=warn"),
        ("AUTH_MAIL", "ada.lovelace@example.com"),
        ("AUTH_ROLE", "roles/cloudkms.cryptoKeyEncrypterDecrypter"),
        ("CACHE_KEY", "linux-x86-64-cargo-v2"),
        ("CACHE_KEY", "production"),
        ("CACHE_KEY", "averylongword"),
        ("CACHE_KEY", "20260115"),
        ("CACHE_KEY", "00000000"),
        ("CACHE_KEY", "aaaaaaaaaaaaaaaaaaaaaaaa"),
        ("CACHE_KEY", "application/json; charset=utf-8"),
        ("RELEASE_KEY", "v1.2.3-beta.4"),
        ("REGION_KEY", "us-east-1"),
        ("PASSWORD", "hunter2"),
        ("PASSWORD", "test1234"),
        ("PASSWORD", "password1"),
        ("PASSWORD", "admin12345"),
        ("PASSWORD", "changeme123"),
        ("PASSWORD", "your-password-here"),
        ("PASSWORD", "example-key-1"),
        ("PASSWORD", "/run/secrets/db-password-2"),
        ("PASSWORD", "development"),
        ("STORAGE_KEY", "Server=db;Password=${DB_PASSWORD}"),
        ("GREETING_KEY", "hello, world"),
        ("I18N_KEY", "menu.file.open-recent"),
    ];

    /// Values that somebody would have to revoke.
    const SECRET: [(&str, &str); 38] = [
        ("A_KEY", "cnry-5up3r-s3cr3t-value-91x"),
        ("A_KEY", "0123456789abcdef0123456789abcdef"),
        ("A_KEY", "1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("A_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("A_KEY", "/bPxRfiCYEX9wJalrXUtnFEMI+K7MDENG"),
        ("A_KEY", "~8Q~aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0"),
        ("A_KEY", "QmFzZTY0VGhhdExvb2tzUmFuZG9t"),
        ("A_KEY", "aBcXeFgQiJkLzNoPwRsTuV"),
        ("A_KEY", "XKQZJVWYBFHGPMLDNCTS"),
        ("A_TOKEN", "a8Xk29fq"),
        ("A_TOKEN", "t0k3nOfTheForge"),
        ("A_TOKEN", "c4nn3lWithoutAName99"),
        ("A_TOKEN", "ghp_0123456789abcdefghijABCDEFGHIJ012345"),
        ("A_TOKEN", "npm_aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW2xY4"),
        ("A_TOKEN", "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"),
        ("A_TOKEN", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w"),
        ("A_TOKEN", "1234567890123456789"),
        ("A_TOKEN", "cnry-from-dotenv-77aa21"),
        ("DEPLOY", "zq7-Rv2x-canary"),
        ("A_SECRET", "correcthorsebatterystaple"),
        ("A_SECRET", "correct horse battery staple"),
        ("AN_AUTH", "Basic dXNlcjpwYXNzd29yZDE="),
        ("AN_AUTH", "$2b$12$KIXQ1z7Yt5e9wU3oP0aBcO"),
        ("PASSWORD", "hunter22"),
        ("PASSWORD", "correct-horse-battery-staple"),
        ("the password in DATABASE_URL", "pg-pass-77x"),
        ("passphrase in .env", "Tr0ub4dor&3"),
        ("dbPassword in .npmrc", "summer-of-69"),
        ("DB_DSN", "postgres://app:hunter22@db.internal/app"),
        ("DB_DSN", "postgres://app:swordfish@db.internal/app"),
        ("SENTRY_DSN", "https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@o1.ingest.example.io/2"),
        ("SQL_DSN", "Server=db;User Id=sa;Password=swordfish"),
        ("STORAGE_KEY", "AccountName=me;AccountKey=abc/def+ghi=="),
        ("notify.webhook", "https://hooks.slack.com/services/T0/B0/xyz"),
        ("SLACK_WEBHOOK_URL", "https://hooks.slack.com/services/T0/B0/xyz"),
        ("API_KEY", "https://h.example/in/x1y2z3a4b5c6d7e8f9"),
        ("A_KEY", "{\"type\":\"service_account\",\"private_key_id\":\"0a1b2c3d4e5f60718293\"}"),
        ("A_KEY", "-----BEGIN X-----\nMIIBVgIBADANBgkqhkiG9w0B\n-----END X-----"),
    ];

    #[test]
    fn what_honest_text_may_hold_is_not_compared() {
        let wrong = HONEST.iter().filter(|(name, value)| is_compared(name, value));
        assert_eq!(wrong.collect::<Vec<_>>(), [] as [&(&str, &str); 0]);
    }

    #[test]
    fn what_would_have_to_be_revoked_is_compared() {
        let padded = |value: &str| format!(" {value}\n");
        let wrong = SECRET.iter().filter(|(name, value)| !is_compared(name, &padded(value)));
        assert_eq!(wrong.collect::<Vec<_>>(), [] as [&(&str, &str); 0]);
    }
}
