//! Which values are secrets: by the name they are assigned to, by how they look, and as parts of
//! URLs.

use super::SECRET_BYTES_MIN;

/// The shortest value with letters and digits that is a secret whatever its name.
const UNNAMED_BYTES_MIN: usize = 16;

/// The same for a value in the configuration of an agent.
const SETTING_BYTES_MIN: usize = 8;

/// Returns the values of environment variables whose name says that they are secret.
pub fn secrets_of<'a, N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Vec<V>
where
    N: AsRef<str>,
    V: AsRef<[u8]> + 'a,
{
    variables
        .into_iter()
        .filter(|(name, value)| {
            is_secret_name(name.as_ref()) && value.as_ref().len() >= SECRET_BYTES_MIN
        })
        .map(|(_, value)| value)
        .collect()
}

/// Returns whether a variable of that name is likely to hold a secret; `GIT_AUTHOR_NAME` is not.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 11] = [
        "AUTH",
        "AUTHORIZATION",
        "KEY",
        "KEYS",
        "PASS",
        "PASSPHRASE",
        "PAT",
        "PWD",
        "COOKIE",
        "DSN",
        "WEBHOOK",
    ];
    const ENDINGS: [&str; 9] = [
        "KEY",
        "TOKEN",
        "TOKENS",
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "CREDENTIALS",
    ];
    // These words name a place, and `PWD` alone the working directory.
    const PLACES: [&str; 6] = ["SOCK", "FILE", "PATH", "DIR", "HOME", "ID"];
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).filter(|word| !word.is_empty()).collect();
    if matches!(upper.as_str(), "PWD" | "OLDPWD") {
        return false;
    }
    !words.last().is_some_and(|last| PLACES.contains(last))
        && words
            .iter()
            .any(|word| WORDS.contains(word) || ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// Returns whether a value assigned to a name, as in `.env`, is likely a secret: its name says so,
/// or it looks like a key. `APPROVE` and `localhost` are words.
pub fn is_secret_value(name: &str, value: &str) -> bool {
    is_secret(name, value, UNNAMED_BYTES_MIN)
}

/// The same for a value that a person wrote into the configuration for an agent: a shorter one is
/// taken for a key as well.
pub fn is_secret_setting(name: &str, value: &str) -> bool {
    is_secret(name, value, SETTING_BYTES_MIN)
}

fn is_secret(name: &str, value: &str, unnamed_min: usize) -> bool {
    let looks_like_a_key = || value.len() >= unnamed_min && !is_public(name) && is_key(value);
    value.len() >= SECRET_BYTES_MIN && (is_secret_name(name) || looks_like_a_key())
}

/// Returns whether a value looks as if it were made by chance: letters and digits in one word, other
/// than in `postgres-15-alpine`, `python3` or `v1`.
fn is_key(value: &str) -> bool {
    let is_plain_text = value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    let is_place_or_option = value.starts_with(['/', '.', '~', '-']);
    let mut words = value.split(|c: char| !c.is_ascii_alphanumeric());
    is_plain_text && !is_place_or_option && words.any(|word| !is_plain_word(word))
}

/// Returns whether a word is letters, a number, a name with a short number, or a number with a unit.
fn is_plain_word(word: &str) -> bool {
    let letters = word.bytes().take_while(u8::is_ascii_alphabetic).count();
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    let is_numbered = letters >= 3 || matches!(&word[..letters], "v" | "V" | "x" | "h" | "s");
    let rest = &word[letters.max(digits)..];
    match letters {
        0 => rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_alphabetic()),
        _ => {
            rest.is_empty()
                || is_numbered && rest.len() <= 3 && rest.bytes().all(|byte| byte.is_ascii_digit())
        }
    }
}

/// Returns whether a name says that its value may be known to everybody, such as a commit's.
fn is_public(name: &str) -> bool {
    const PUBLIC: [&str; 11] = [
        "SHA", "COMMIT", "REF", "HASH", "DIGEST", "VERSION", "CHECKSUM", "ADDRESS", "COLORS", "ID",
        "TERMCAP",
    ];
    let upper = name.to_ascii_uppercase();
    upper.split(['_', '-', '.']).any(|word| PUBLIC.contains(&word))
}

/// Returns the parts of an address's path and query that look like keys. The address of a webhook is
/// all that it takes to use it.
pub fn keys_of_url(url: &str) -> Vec<String> {
    let Some((_, rest)) = url.split_once("://") else { return Vec::new() };
    let Some(start) = rest.find(['/', '?', '#']) else { return Vec::new() };
    let parts = rest[start..].split(['/', '?', '#', '&', '=', ';']);
    let is_key_part = |part: &&str| part.len() >= UNNAMED_BYTES_MIN && is_key(part);
    parts.filter(is_key_part).map(str::to_owned).collect()
}

/// Returns the secrets in a URL, as they are written there and unescaped. A user without a password
/// is one if it looks like a token, as some services want it.
pub fn secrets_of_url(url: &str) -> Vec<String> {
    let Some((_, userinfo)) = userinfo(url) else { return Vec::new() };
    let secret = match userinfo.split_once(':') {
        Some((user, "" | "x-oauth-basic")) => user,
        // `postgres:postgres` protects nothing, and hiding it would hide the word everywhere.
        Some((user, password)) if user == password => return Vec::new(),
        Some((_, password)) => password,
        None if is_secret_value("", userinfo) => userinfo,
        None => return Vec::new(),
    };
    let mut secrets = vec![secret.to_owned()];
    secrets.extend(unescaped(secret).filter(|meant| meant != secret));
    secrets
}

/// Returns the URL without its credentials. Over SSH the user's name is part of the address and
/// stays.
pub fn without_secrets(url: &str) -> String {
    let Some((scheme, userinfo)) = userinfo(url) else { return url.to_owned() };
    let rest = &url[scheme.len() + "://".len() + userinfo.len() + "@".len()..];
    let user = userinfo.split(':').next().unwrap_or_default();
    let is_ssh = scheme.to_ascii_lowercase().contains("ssh");
    if is_ssh && !user.is_empty() {
        format!("{scheme}://{user}@{rest}")
    } else {
        format!("{scheme}://{rest}")
    }
}

/// Returns the scheme and the part before the host.
fn userinfo(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    Some((scheme, authority.rsplit_once('@')?.0))
}

fn unescaped(text: &str) -> Option<String> {
    let mut meant = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digit = |at: usize| more.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                meant.push(u8::try_from(high * 16 + low).ok()?);
                rest = &more[2..];
            }
            _ => {
                meant.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(meant).ok()
}
