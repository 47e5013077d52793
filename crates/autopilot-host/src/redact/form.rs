//! The forms in which the value of a secret may appear in a text.

use super::{SECRET_BYTES_MIN, SECRET_LINE_BYTES_MIN};
use crate::escape;

/// The way in which the value of a secret is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretForm {
    /// As it is, or escaped as in JSON, or one long line of it.
    Plain,
    /// Base64, standard or URL-safe.
    Base64,
    /// Hexadecimal, in either case.
    Hex,
    /// Percent-encoded, in either case.
    UrlEncoded,
    /// In pieces, with anything but letters and digits between them.
    Split,
}

const UPPER: &[u8; 16] = b"0123456789ABCDEF";
const LOWER: &[u8; 16] = b"0123456789abcdef";
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE64_URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns every form that can be found as one piece of text. None for a value that is too short.
pub(crate) fn forms_of(secret: &[u8]) -> Vec<(SecretForm, Vec<u8>)> {
    let secret = secret.trim_ascii();
    if secret.len() < SECRET_BYTES_MIN {
        return Vec::new();
    }
    let mut forms = vec![(SecretForm::Plain, secret.to_vec())];
    if let Ok(text) = std::str::from_utf8(secret) {
        // An answer in JSON is often itself a string in a line of JSON.
        let mut json = text.to_owned();
        for _ in 0..2 {
            let quoted = serde_json::Value::from(json.as_str()).to_string();
            json = quoted[1..quoted.len() - 1].to_owned();
            forms.push((SecretForm::Plain, json.as_bytes().to_vec()));
        }
    }
    for digits in [UPPER, LOWER] {
        let percent = escape::percent(secret, digits).into_bytes();
        forms.push((SecretForm::UrlEncoded, percent));
        forms.push((SecretForm::Hex, hex(secret, "", digits)));
    }
    for alphabet in [BASE64, BASE64_URL] {
        for offset in 0..3 {
            forms.push((SecretForm::Base64, base64_core(secret, offset, alphabet)));
        }
    }
    if secret.contains(&b'\n') {
        let lines = secret.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let long =
            lines.filter(|line| line.len() >= SECRET_LINE_BYTES_MIN && !line.starts_with(b"-----"));
        forms.extend(long.map(|line| (SecretForm::Plain, line.to_vec())));
    }
    forms
}

/// What is left of the beginning of an escaped byte after everything but letters and digits is left
/// out: of `\x41` and `&#x41;`, `0x41`, `\u0041`, `\u{41}`, `\U00000041` and `&#x0041;`.
const ESCAPES: [&str; 6] = ["x", "0x", "u00", "u", "U000000", "x00"];

/// Returns further forms that only count after everything but letters and digits is left out: all
/// bytes escaped, by their hexadecimal or decimal numbers as in `&#65;`, or only those that are
/// neither letters nor digits.
pub(crate) fn byte_forms_of(secret: &[u8]) -> Vec<Vec<u8>> {
    let secret = secret.trim_ascii();
    let mut forms = Vec::new();
    for before in ESCAPES {
        for digits in [UPPER, LOWER] {
            let escape = |byte: u8| hex(&[byte], before, digits);
            forms.push(secret.iter().flat_map(|byte| escape(*byte)).collect());
            forms.push(escaped_marks(secret, escape));
        }
    }
    let decimal = |byte: u8| byte.to_string().into_bytes();
    forms.push(secret.iter().flat_map(|byte| decimal(*byte)).collect());
    forms.push(escaped_marks(secret, decimal));
    forms
}

/// Returns the text with its letters and digits as they are.
fn escaped_marks(secret: &[u8], escape: impl Fn(u8) -> Vec<u8>) -> Vec<u8> {
    let part = |byte: &u8| match byte.is_ascii_alphanumeric() {
        true => vec![*byte],
        false => escape(*byte),
    };
    secret.iter().flat_map(part).collect()
}

fn hex(secret: &[u8], before: &str, digits: &[u8; 16]) -> Vec<u8> {
    let mut text = Vec::with_capacity(secret.len() * (2 + before.len()));
    for byte in secret {
        text.extend_from_slice(before.as_bytes());
        text.push(digits[usize::from(byte >> 4)]);
        text.push(digits[usize::from(byte & 15)]);
    }
    text
}

/// Returns the base64 digits that depend on the secret alone when it begins `offset` bytes after a
/// group of three.
fn base64_core(secret: &[u8], offset: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let bits = (offset * 8)..((offset + secret.len()) * 8);
    let bit = |at: usize| {
        let byte = secret[at / 8 - offset];
        usize::from(byte >> (7 - at % 8) & 1)
    };
    let first = bits.start.div_ceil(6);
    let last = bits.end / 6;
    (first..last)
        .map(|digit| alphabet[(digit * 6..digit * 6 + 6).fold(0, |value, at| value << 1 | bit(at))])
        .collect()
}

/// Returns text in base64 with the standard alphabet, without padding; for tests.
#[cfg(test)]
pub(crate) fn base64(text: &[u8]) -> String {
    let mut padded = text.to_vec();
    padded.extend([0; 3]);
    let digits = (text.len() * 8).div_ceil(6);
    String::from_utf8_lossy(&base64_core(&padded, 0, BASE64)[..digits]).into_owned()
}
