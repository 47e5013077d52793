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
    let encode = |text: &str| form::base64(text.as_bytes());
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
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(redactor.redact(&format!("k={hex};")), "k=[redacted];");
    assert_eq!(redactor.redact(&hex.to_uppercase()), REPLACEMENT);
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
fn settings_are_no_secrets_and_short_keys_among_them_are() {
    for value in ["zq7-Rv2x-canary", "hunter22x1y", "a1b2c3d4", "77aa21-x9y8"] {
        assert!(is_secret_setting("DEPLOY", value), "{value}");
    }
    for value in [
        "debug",
        "8080",
        "true",
        "us-east-1",
        "postgres-15-alpine",
        "python3.12",
        "node20",
        "--max-old-space-size=4096",
        "claude-sonnet-4-5-20250929",
        "gpt-5.1-codex-max",
        "30min",
        "x86_64-unknown-linux-gnu",
        "api-v1-beta",
        "/srv/app/a1b2c3d4",
        "http://localhost:8080",
        "info,hyper=warn",
        "2026-01-15",
    ] {
        assert!(!is_secret_setting("SETTING", value), "{value}");
    }
    assert!(!is_secret_setting("GIT_COMMIT", "3f786850e387550fdab836ed7e6dc881de23001b"));
    let url = "https://h.example.com/services/T0AB/x1y2z3a4b5c6d7e8f9?to=general-channel-42";
    assert_eq!(keys_of_url(url), ["x1y2z3a4b5c6d7e8f9"]);
    assert_eq!(keys_of_url("http://localhost:8080/v1/users"), [""; 0]);
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

fn with_shapes() -> Redactor {
    let shapes = r"(?-u:\b)gh[ps]_[A-Za-z0-9]{20,}|://[a-z]*:[a-z0-9]{3,}@[a-z]|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:[\r\n]|[A-Za-z0-9+/=]{4,})*(?:-----END (?:[A-Z]+ )*PRIVATE KEY-----)?";
    Redactor::new([""; 0], [""; 0]).unwrap().hiding_shapes(shapes).unwrap()
}

#[test]
fn the_shape_of_a_key_is_hidden_and_of_a_url_only_the_password() {
    let redactor = with_shapes();
    let token = format!("ghp_{}", "a1".repeat(18));
    assert_eq!(redactor.redact(&format!("x {token} y")), "x [redacted] y");
    assert_eq!(
        redactor.redact("git at https://ada:s3cret@host/r"),
        "git at https://ada:[redacted]@host/r"
    );
    assert!(matches!(redactor.redact("plain ghp_short"), Cow::Borrowed(_)));
}

#[test]
fn a_private_key_is_hidden_whole_however_it_is_cut() {
    let redactor = with_shapes();
    let key = format!(
        "-----BEGIN RSA {0} KEY-----\nMIIBVgIBADAN\n9w0BAQEFAASC\nQUFB\n-----END RSA {0} KEY-----",
        "PRIVATE"
    );
    let text = format!("a\n{key}\nb\n");
    for cut in 0..=text.len() {
        let pieces = [&text.as_bytes()[..cut], &text.as_bytes()[cut..]];
        assert_eq!(streamed(&redactor, &pieces), "a\n[redacted]\nb\n", "cut at {cut}");
    }
    // One that never ends holds back no more than the window.
    let mut stream = redactor.stream();
    let mut clean = Vec::new();
    stream.push(b"-----BEGIN X-----\n", &mut clean);
    for _ in 0..100 {
        stream.push(&b"x y z\n".repeat(100), &mut clean);
        assert!(stream.pending.len() <= 2 * WINDOW_BYTES_MAX);
    }
}
