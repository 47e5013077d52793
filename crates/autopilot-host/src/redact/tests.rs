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
