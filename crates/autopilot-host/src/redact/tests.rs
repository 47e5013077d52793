//! Tests of the redaction.

use super::*;

const SECRET: &str = "sk-Very/Secret+0815";

fn redactor() -> Redactor {
    Redactor::new(["ghp_[A-Za-z0-9]{8,}", r"(?i)bearer\s+\S+"], [SECRET]).unwrap()
}

fn streamed(redactor: &Redactor, pieces: &[&[u8]]) -> String {
    let mut stream = redactor.stream();
    let mut clean = Vec::new();
    for piece in pieces {
        stream.push(piece, &mut clean);
    }
    stream.finish(&mut clean);
    String::from_utf8(clean).unwrap()
}

#[test]
fn a07_values_and_patterns_are_hidden_and_the_rest_is_kept() {
    let text = format!("a {SECRET} b ghp_0123456789abc c Bearer xyz\nend");
    let clean = redactor().redact(&text).into_owned();
    assert_eq!(clean, "a [redacted] b [redacted] c [redacted]\nend");
    assert!(matches!(redactor().redact("plain"), Cow::Borrowed("plain")));
}

#[test]
fn a07_a_secret_split_at_every_position_is_hidden_alike() {
    let redactor = redactor();
    let text = format!("x{SECRET}y\nz {SECRET}\nghp_0123456789abc end {SECRET}");
    let whole = redactor.redact(&text).into_owned();
    for first in 0..=text.len() {
        for second in first..=text.len() {
            let bytes = text.as_bytes();
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(streamed(&redactor, &pieces), whole, "cut at {first} and {second}");
        }
    }
}

#[test]
fn a07_piece_by_piece_over_a_line_longer_than_the_window() {
    let redactor = redactor();
    let mut text = "x".repeat(WINDOW_BYTES_MAX * 2);
    for at in [WINDOW_BYTES_MAX + 5, WINDOW_BYTES_MAX - 5, 100] {
        text.insert_str(at, SECRET);
    }
    for size in [61, 997, 4096] {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        let clean = streamed(&redactor, &pieces);
        assert!(!clean.contains("Secret") && clean.matches(REPLACEMENT).count() == 3);
    }
}

#[test]
fn a07_encoded_forms_are_hidden_at_every_alignment() {
    let redactor = redactor();
    let encode = |text: &str| {
        let mut bits: Vec<u8> =
            text.bytes().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
        bits.resize(bits.len().div_ceil(6) * 6, 0);
        bits.chunks(6)
            .map(|six| six.iter().fold(0usize, |value, bit| value << 1 | usize::from(*bit)))
            .map(|digit| char::from(BASE64[digit]))
            .collect::<String>()
    };
    assert_eq!(encode("Man"), "TWFu");
    for user in ["", "u:", "us:", "use:"] {
        for tail in ["", "!", "!!"] {
            let sent = encode(&format!("{user}{SECRET}{tail}"));
            let clean = redactor.redact(&sent);
            assert!(clean.contains(REPLACEMENT), "{sent}");
            assert!(clean.len() < REPLACEMENT.len() + 12, "{clean}");
        }
    }
    assert_eq!(redactor.redact("k=sk-Very%2FSecret%2B0815"), "k=[redacted]");
    assert_eq!(redactor.redact("k=sk-Very%2fSecret%2b0815"), "k=[redacted]");
    let quoted = Redactor::new([""; 0], ["pa\"ss\\word"]).unwrap();
    assert_eq!(quoted.redact(r#"{"p":"pa\"ss\\word"}"#), r#"{"p":"[redacted]"}"#);
}

#[test]
fn overlapping_secrets_leave_nothing_of_either() {
    let redactor = Redactor::new([""; 0], ["abcdefgh", "efghijkl"]).unwrap();
    assert_eq!(redactor.redact("-abcdefghijkl-"), "-[redacted]-");
}

#[test]
fn a_secret_of_many_lines_is_hidden_whole_and_line_by_line() {
    let key = "-----BEGIN KEY-----\nMIIBVgIBADANBgkqhkiG\n9w0BAQEFAASCAUAwggE8\n-----END KEY-----";
    let redactor = Redactor::new([""; 0], [key]).unwrap();
    for cut in 0..=key.len() {
        let pieces = [b"a\n".as_slice(), &key.as_bytes()[..cut], &key.as_bytes()[cut..], b"\nb"];
        assert_eq!(streamed(&redactor, &pieces), "a\n[redacted]\nb", "cut at {cut}");
    }
    assert_eq!(redactor.redact("x MIIBVgIBADANBgkqhkiG y"), "x [redacted] y");
}

#[test]
fn a_finished_line_is_not_held_back() {
    let redactor = redactor();
    let mut clean = Vec::new();
    redactor.stream().push(b"one\ntw", &mut clean);
    assert_eq!(clean, b"one\n");
}

#[test]
fn the_held_back_part_stays_within_the_window() {
    let redactor = redactor();
    let mut stream = redactor.stream();
    let mut clean = Vec::new();
    for _ in 0..100 {
        stream.push(&[b'x'; 4096], &mut clean);
        assert!(stream.pending.len() <= WINDOW_BYTES_MAX);
    }
}

#[test]
fn short_values_are_no_secrets() {
    let redactor = Redactor::new([""; 0], ["abcde"]).unwrap();
    assert_eq!(redactor.redact("abcde"), "abcde");
}

#[test]
fn names_tell_secrets() {
    for name in
        ["OPENAI_API_KEY", "GITHUB_TOKEN", "npm_authToken", "DB_PASSWORD", "X_AUTH", "GH_PAT"]
    {
        assert!(is_secret_name(name), "{name}");
    }
    for name in ["GIT_AUTHOR_NAME", "SSH_AUTH_SOCK", "PATH", "PWD", "KEYBOARD", "AWS_ACCESS_KEY_ID"]
    {
        assert!(!is_secret_name(name), "{name}");
    }
    let found = secrets_of([("A_TOKEN", "123456"), ("B_TOKEN", "12345"), ("HOME", "/home/me")]);
    assert_eq!(found, ["123456"]);
}

#[test]
fn a_bad_pattern_is_named() {
    let error = Redactor::new(["("], [""; 0]).unwrap_err();
    assert!(error.to_string().contains("`(`"));
}

#[test]
fn json_keeps_its_syntax_and_loses_its_secrets() {
    let text = format!(
        r#"{{"summary":"Checks the bearer token","bearer x":[{{"n":1,"k":"{SECRET}"}},null,true]}}"#
    );
    assert!(serde_json::from_str::<Value>(&redactor().redact(&text)).is_err(), "as text it breaks");
    let mut value: Value = serde_json::from_str(&text).unwrap();
    redactor().redact_json(&mut value);
    let clean = serde_json::json!({
        "summary": "Checks the [redacted]", "bearer x": [{"n": 1, "k": "[redacted]"}, null, true],
    });
    assert_eq!(value, clean);
}

#[test]
fn a_secret_that_was_cut_with_its_text_is_hidden() {
    let redactor = redactor();
    for end in SECRET_BYTES_MIN..SECRET.len() {
        let text = format!("it was {}… [12 bytes cut] and more", &SECRET[..end]);
        assert_eq!(redactor.redact(&text), "it was [redacted]… [12 bytes cut] and more", "{end}");
    }
    assert_eq!(redactor.redact("it was sk-V… [12 bytes cut]"), "it was sk-V… [12 bytes cut]");
}

#[test]
fn words_are_no_secrets_and_keys_without_a_name_are() {
    for (name, value) in [("A_TOKEN", "abcdef"), ("X", "k3yWithoutAName0815"), ("PASS", "a b c d")]
    {
        assert!(is_secret_value(name, value), "{name}={value}");
    }
    for value in ["APPROVE", "production", "localhost", "/srv/app/2026/file", "only-words-in-here"]
    {
        assert!(!is_secret_value("APP_MODE", value), "{value}");
    }
    assert!(!is_secret_value("A_TOKEN", "short"));
}

#[test]
fn a_url_is_told_from_the_password_in_it() {
    let cases: [(&str, &str, &[&str]); 9] = [
        ("https://ada:s3cr%40t@host/r.git", "https://host/r.git", &["s3cr%40t", "s3cr@t"]),
        ("https://ghp0123456789abcdef@host/r", "https://host/r", &["ghp0123456789abcdef"]),
        ("https://ghp0123456789abcdef:@host/r", "https://host/r", &["ghp0123456789abcdef"]),
        ("https://t0ken:x-oauth-basic@host/r", "https://host/r", &["t0ken"]),
        ("https://ada@host/r", "https://host/r", &[]),
        ("ssh://git:pass@host:22/r", "ssh://git@host:22/r", &["pass"]),
        ("ssh://git@host/r", "ssh://git@host/r", &[]),
        ("git@host:o/r.git", "git@host:o/r.git", &[]),
        ("https://host/a@b:c", "https://host/a@b:c", &[]),
    ];
    for (url, clean, secrets) in cases {
        assert_eq!(
            (without_secrets(url).as_str(), secrets_of_url(url)),
            (clean, to_owned(secrets))
        );
    }
}

fn to_owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
