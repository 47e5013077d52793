//! Tests of the search for known secrets.

use super::*;
use crate::redact::form::base64;

const KEY: &str = "sk-Very/Secret+0815-Qx9";

fn finder() -> SecretFinder {
    SecretFinder::new(&[NamedSecret::new("A_KEY", KEY)]).unwrap()
}

fn found(text: &str) -> Vec<(u64, SecretForm)> {
    finder().find(text.as_bytes()).into_iter().map(|hit| (hit.line, hit.form)).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_value_is_found_in_every_form_with_its_line() {
    use SecretForm::{Base64, Hex, Plain, UrlEncoded};
    let cases = [
        (KEY.to_owned(), Plain),
        ("sk-Very%2FSecret%2B0815-Qx9".to_owned(), UrlEncoded),
        ("sk-Very%2fSecret%2b0815-Qx9".to_owned(), UrlEncoded),
        (hex(KEY), Hex),
        (hex(KEY).to_uppercase(), Hex),
    ];
    for (text, form) in cases {
        assert_eq!(found(&format!("one\ntwo\nlet k = \"{text}\";\nfour\n")), [(3, form)], "{text}");
    }
    for before in ["", "u", "us", "use"] {
        let standard = base64(format!("{before}{KEY}!").as_bytes());
        let url_safe = standard.replace('+', "-").replace('/', "_");
        for text in [standard, url_safe] {
            assert_eq!(found(&format!("\n{text}")), [(2, Base64)], "{before} {text}");
        }
    }
}

#[test]
fn a_value_in_pieces_is_found_at_its_first_line() {
    let split = |text: &str| assert_eq!(found(text), [(2, SecretForm::Split)], "{text}");
    split("\nsk-Very/Sec\nret+0815-Qx9\n");
    split("\nlet k = \"sk-Very\" +\n    \"/Secret\" + '+0815' +\n \"-Qx9\";");
    split("\nk = 'sk-Very/Sec' \\\n    'ret+0815-Qx9'");
    split("\n# sk-Very/\n# Secret+\n# 0815-Qx9\n");
    split("\n[\"sk-\", \"Very\", \"/Secret\", \"+0815\", \"-Qx9\"].join(\"\")");
    split("\n$k = 'sk-Very' . '/Secret' . '+0815-Qx9';");
    split("\nconcat('sk-Very/', 'Secret+', '0815-Qx9')");
    split("\ns k - V e r y / S e c r e t + 0 8 1 5 - Q x 9");
    let encoded = base64(KEY.as_bytes());
    split(&format!("\n{}\n{}\n", &encoded[..10], &encoded[10..]));
    let hex = hex(KEY);
    split(&format!("\n{}\\\n{}", &hex[..11], &hex[11..]));
    let bytes = |before: &str| -> Vec<String> {
        KEY.bytes().map(|byte| format!("{before}{byte:02x}")).collect()
    };
    split(&format!("\n{{ {} }}", bytes("0x").join(", ")));
    split(&format!("\n\"{}\"", bytes("\\x").concat()));
    split(&format!("\n{}", bytes("").join(":")));
    let wide: String = KEY.chars().flat_map(|c| [c, '\0']).collect();
    split(&format!("\n{wide}"));
}

#[test]
fn a_value_with_escapes_is_found() {
    let split = |text: &str| assert_eq!(found(text), [(2, SecretForm::Split)], "{text}");
    let all = |form: fn(u8) -> String| KEY.bytes().map(form).collect::<String>();
    let marks = |form: fn(u8) -> String| -> String {
        let part = |byte: u8| match byte.is_ascii_alphanumeric() {
            true => char::from(byte).to_string(),
            false => form(byte),
        };
        KEY.bytes().map(part).collect()
    };
    let forms: [fn(u8) -> String; 10] = [
        |byte| format!("\\u{byte:04x}"),
        |byte| format!("\\u{byte:04X}"),
        |byte| format!("\\u{{{byte:x}}}"),
        |byte| format!("\\U{byte:08x}"),
        |byte| format!("\\x{byte:02x}"),
        |byte| format!("\\x{byte:02X}"),
        |byte| format!("&#{byte};"),
        |byte| format!("&#x{byte:02X};"),
        |byte| format!("&#x{byte:04x};"),
        |byte| format!("{byte}, "),
    ];
    for form in forms {
        split(&format!("\nlet k = \"{}\";\n", all(form)));
    }
    for form in &forms[..9] {
        split(&format!("\nlet k = \"{}\";\n", marks(*form)));
    }
    let honest = r#"let quote = "\u0022 \x41 &#65; &#x2F;"; [115, 107, 45, 86, 101]"#;
    assert_eq!(found(honest), []);
}

#[test]
fn the_hits_do_not_depend_on_where_the_text_was_cut() {
    let finder = finder();
    let text = format!("a\n{KEY}\nb 'sk-Very/' +\n'Secret+0815-Qx9'\n{}\n", hex(KEY));
    let whole = finder.find(text.as_bytes());
    assert_eq!(whole.iter().map(|hit| hit.line).collect::<Vec<_>>(), [2, 3, 5]);
    for size in 1..text.len() {
        let mut search = finder.search();
        text.as_bytes().chunks(size).for_each(|piece| search.push(piece));
        assert_eq!(search.finish(), whole, "pieces of {size}");
    }
}

#[test]
fn a_value_over_the_border_of_two_chunks_is_found_in_a_huge_text() {
    let finder = finder();
    for at in CHUNK_BYTES - 30..CHUNK_BYTES + 200 {
        let mut text = vec![b'.'; 3 * CHUNK_BYTES];
        text[at..at + KEY.len()].copy_from_slice(KEY.as_bytes());
        assert_eq!(finder.find(&text).len(), 1, "at {at}");
    }
}

#[test]
fn a_key_of_many_lines_is_found_whole_line_by_line_and_joined() {
    let key = "-----BEGIN X-----\nMIIBVgIBADANBgkqhkiG\n9w0BAQEFAASCAUAwggE8\n-----END X-----";
    let finder = SecretFinder::new(&[NamedSecret::new("PEM", key)]).unwrap();
    for text in [key, &key.replace('\n', "\\n"), "9w0BAQEFAASCAUAwggE8", &key.replace('\n', "")] {
        assert!(!finder.find(text.as_bytes()).is_empty(), "{text}");
    }
    assert!(finder.find(b"-----BEGIN X-----").is_empty());
}

#[test]
fn the_number_of_hits_is_limited_and_the_first_are_kept() {
    let text = format!("{KEY}\n").repeat(10_000);
    let lines: Vec<u64> = finder().find(text.as_bytes()).iter().map(|hit| hit.line).collect();
    assert_eq!(lines, (1..=HITS_MAX as u64).collect::<Vec<_>>());
}

#[test]
fn without_secrets_nothing_is_looked_for() {
    let finder = SecretFinder::new(&[]).unwrap();
    assert!(finder.is_idle());
    assert!(finder.find(b"let level = \"debug\"; listen(8080)").is_empty());
}

#[test]
fn text_that_only_resembles_a_value_is_not_a_hit() {
    for text in ["sk-Very/Secret+0815", "sk-very/secret+0815-qx9", "Secret 0815 Very sk Qx9"] {
        assert_eq!(found(text), [], "{text}");
    }
}

#[test]
fn a_secret_is_not_printed_by_accident() {
    assert_eq!(format!("{:?}", NamedSecret::new("A_KEY", KEY)), "NamedSecret(A_KEY)");
}
