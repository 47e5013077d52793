//! Characters that are not what they look like: those that turn the direction of writing, those
//! nobody sees, and letters of one script that look like those of another.

use std::fmt::Write;

use unicode_normalization::UnicodeNormalization;
use unicode_script::{Script, UnicodeScript};

/// Why a character or word is not what it looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Oddity {
    /// It turns the direction of writing: a line reads in another order than it is run.
    Direction,
    /// Nobody sees it.
    Invisible,
    /// It looks like a Latin letter.
    LookAlike,
}

/// The first odd character of a text with its oddity; none in honest text of any language.
pub(super) fn odd_char(text: &str) -> Option<(char, Oddity)> {
    if text.is_ascii() {
        return None;
    }
    let has_right_to_left = text.chars().any(is_right_to_left);
    let mut before = LetterContext::default();
    for c in text.chars() {
        let found = match c {
            // The marks for a single place are needed where both directions meet.
            '\u{200e}' | '\u{200f}' | '\u{61c}' if has_right_to_left => None,
            '\u{200e}' | '\u{200f}' | '\u{61c}' => Some(Oddity::Direction),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(Oddity::Direction),
            c if is_invisible(c) && !before.expects(c) => Some(Oddity::Invisible),
            _ => None,
        };
        if let Some(oddity) = found {
            return Some((c, oddity));
        }
        before.see(c);
    }
    None
}

/// The characters so far, as far as they decide whether an invisible one has a meaning.
#[derive(Default)]
struct LetterContext {
    last: Option<char>,
    /// The flag of a region is written with invisible letters.
    in_flag: bool,
}

impl LetterContext {
    fn see(&mut self, c: char) {
        let is_tag = matches!(c, '\u{e0020}'..='\u{e007f}');
        self.in_flag = c == '\u{1f3f4}' || self.in_flag && is_tag;
        self.last = Some(c);
    }

    fn expects(&self, c: char) -> bool {
        let Some(last) = self.last else { return false };
        // Some letters in circles and squares are pictures.
        let is_picture = matches!(last, '\u{2139}' | '\u{24c2}' | '\u{1f170}'..='\u{1f189}');
        let is_symbol = !last.is_ascii() && (is_picture || !last.is_alphanumeric());
        match c {
            // Joins the pictures of an emoji, and letters of scripts that join them.
            '\u{200c}' | '\u{200d}' => is_symbol || is_joining(last),
            '\u{fe00}'..='\u{fe0f}' => {
                is_symbol || last.is_ascii_digit() || matches!(last, '#' | '*') || is_joining(last)
            }
            // Parts words where they are written without spaces.
            '\u{200b}' => matches!(
                last.script(),
                Script::Thai | Script::Khmer | Script::Lao | Script::Myanmar
            ),
            '\u{e0100}'..='\u{e01ef}' => last.script() == Script::Han,
            '\u{e0020}'..='\u{e007f}' => self.in_flag,
            '\u{180b}'..='\u{180f}' => last.script() == Script::Mongolian,
            _ => false,
        }
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
}

/// Whether letters of this one's script change their form where they are joined.
fn is_joining(c: char) -> bool {
    !matches!(
        c.script(),
        Script::Latin | Script::Greek | Script::Cyrillic | Script::Common | Script::Han
    )
}

/// The first word that mixes Latin letters with letters of another script that look like them. A
/// Greek letter that can be told from every Latin one is no look-alike: formulas are full of them.
pub(super) fn mixed_word(text: &str) -> Option<&str> {
    if text.is_ascii() {
        return None;
    }
    let is_word = |word: &&str| {
        let has_latin = word.chars().any(|c| c.is_ascii_alphabetic());
        // A click of some languages reads like an exclamation mark.
        has_latin && word.chars().any(|c| latin_look(c).is_some()) || word.contains('\u{1c3}')
    };
    words(text).find(is_word)
}

/// The words of a text as a reader of code sees them: the letter of an escape such as `\n` and a
/// letter beside one of a script without spaces belong to no word, and the ends of two ranges as in
/// `[a-zа-я]` are not one.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| !c.is_alphabetic() || is_unspaced(c);
    let mut at = 0;
    text.split_inclusive(is_between).filter_map(move |piece| {
        let before = &text[..at];
        at += piece.len();
        let word = piece.trim_end_matches(is_between);
        let after = &text[before.len() + word.len()..];
        let is_class = || before.rfind('[') > before.rfind(']');
        let is_ends = word.chars().count() == 2 && before.ends_with('-') && after.starts_with('-');
        let is_escape = before.ends_with('\\') && word.starts_with(|c: char| c.is_ascii());
        match is_ends && is_class() {
            true => None,
            false if is_escape => word.get(1..),
            false => Some(word),
        }
    })
}

fn is_unspaced(c: char) -> bool {
    matches!(c.script(), Script::Han | Script::Hiragana | Script::Katakana | Script::Hangul)
}

/// The Latin letter that a letter of another script looks like.
pub(super) fn latin_look(c: char) -> Option<char> {
    const PAIRS: &[(&str, &str)] = &[
        // Cyrillic
        ("аеорсухіјѕԁԛԝһѵкӏ", "aeopcyxijsdqwhvkl"),
        ("АВЕКМНОРСТУХІЈЅԚԜ", "ABEKMHOPCTYXIJSQW"),
        // Greek
        ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX"),
        ("οϲϳ", "ocj"),
        // Armenian
        ("օսհոց", "ouhng"),
        // Cherokee and Lisu
        ("ᎪᏴᏟᎠᎬᎻᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ", "ABCDEHJKLMPRSTVWZ"),
        ("ꓐꓚꓓꓰꓖꓧꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ", "BCDEGHJKLMNOPRSTUVWXYZ"),
        // Latin letters of phonetic writing
        ("ɑɡ", "ag"),
    ];
    if c.is_ascii() {
        return None;
    }
    let pair = |(odd, plain): &(&str, &str)| {
        let at = odd.chars().position(|one| one == c)?;
        plain.chars().nth(at)
    };
    PAIRS.iter().find_map(pair).or_else(|| {
        // Wide letters, and those of mathematics.
        let styled = matches!(c, '\u{ff21}'..='\u{ff5a}' | '\u{1d400}'..='\u{1d7ff}');
        let plain = std::iter::once(c).nfkc().next().filter(char::is_ascii_alphabetic);
        plain.filter(|_| styled)
    })
}

/// Whether a text is in the usual form, in which `é` is one character (NFC).
pub(super) fn is_normal(text: &str) -> bool {
    text.is_ascii() || unicode_normalization::is_nfc(text)
}

/// A text as a careless reader or a file system without cases sees it: two names with the same key
/// can't be told apart everywhere.
pub(super) fn look(text: &str) -> String {
    let seen = text.nfkc().filter(|c| !is_invisible(*c));
    seen.map(|c| latin_look(c).unwrap_or(c)).flat_map(char::to_lowercase).collect()
}

/// The text with each character that is not ASCII spelled out.
pub(super) fn spelled(text: &str) -> String {
    text.chars().fold(String::new(), |mut spelled, c| {
        match c.is_ascii() {
            true => spelled.push(c),
            // Writing to a text never fails.
            false => _ = write!(spelled, "{}", c.escape_unicode()),
        }
        spelled
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_characters_are_found_and_honest_languages_are_not_odd() {
        for (text, oddity) in [
            ("if admin\u{202e} {", Some(Oddity::Direction)),
            ("a \u{2066}b\u{2069}", Some(Oddity::Direction)),
            ("a\u{200f}b", Some(Oddity::Direction)),
            ("pass\u{200b}word", Some(Oddity::Invisible)),
            ("pass\u{200d}word", Some(Oddity::Invisible)),
            ("a\u{2060}b", Some(Oddity::Invisible)),
            ("a\u{feff}b", Some(Oddity::Invisible)),
            ("let \u{3164} = 1", Some(Oddity::Invisible)),
            ("x\u{fe0f}", Some(Oddity::Invisible)),
            ("x\u{e0041}\u{e0042}", Some(Oddity::Invisible)),
            ("ab\u{200b}", Some(Oddity::Invisible)),
            ("日\u{200b}本", Some(Oddity::Invisible)),
            ("a\u{200b}ไทย", Some(Oddity::Invisible)),
            ("①\u{fe0f}", Some(Oddity::Invisible)),
            ("ß\u{fe0f}", Some(Oddity::Invisible)),
            ("ภาษา\u{200b}ไทย ខ្មែរ\u{200b}។ ລາວ\u{200b}ພາສາ မြန်မာ\u{200b}စာ", None),
            ("\u{2139}\u{fe0f} \u{24c2}\u{fe0f} \u{1f170}\u{fe0f} \u{1f17f}\u{fe0f}", None),
            ("שלום\u{200f}!", None),
            ("می\u{200c}خواهم", None),
            ("क\u{94d}\u{200d}ष", None),
            ("👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3}", None),
            ("🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}", None),
            ("Größe naïve 漢字 Привет Καλημέρα", None),
        ] {
            assert_eq!(odd_char(text).map(|(_, oddity)| oddity), oddity, "{text:?}");
        }
    }

    #[test]
    fn words_of_mixed_look_are_found_and_formulas_are_not() {
        for (text, word) in [
            ("let p\u{430}ssword = 1;", Some("p\u{430}ssword")),
            ("def \u{435}val():", Some("\u{435}val")),
            ("\u{39f}K", Some("\u{39f}K")),
            ("if env\u{1c3}= 'x'", Some("env\u{1c3}")),
            ("\u{ff45}val(x)", Some("\u{ff45}val")),
            ("\\p\u{430}ss", Some("\u{430}ss")),
            ("[a-z]-z\u{430}-b", Some("z\u{430}")),
            ("x-z\u{430}-b", Some("z\u{430}")),
            ("[a-zb\u{430}-x]", Some("zb\u{430}")),
            ("社p\u{430}ss", Some("p\u{430}ss")),
            ("\u{ff21}PI", Some("\u{ff21}PI")),
            ("print(\"\\nРезультат: \\tо\")", None),
            ("[a-zA-Zа-яА-ЯёЁ]", None),
            ("\u{ff21}社のAPI, \u{ff22}타입API, \u{ff23}データのCPU", None),
            ("let Δx = μm + λ_max * π2;", None),
            ("αBeta", None),
            ("// Привет, USB-кабель", None),
            ("größe, naïve, Ångström", None),
            ("日本語text", None),
        ] {
            assert_eq!(mixed_word(text), word, "{text}");
        }
    }

    #[test]
    fn each_look_alike_has_its_letter() {
        for (odd, plain) in [('а', 'a'), ('О', 'O'), ('Ν', 'N'), ('ӏ', 'l'), ('ꓜ', 'Z'), ('Ꮓ', 'Z')]
        {
            assert_eq!(latin_look(odd), Some(plain), "{odd}");
        }
        assert_eq!((latin_look('б'), latin_look('a'), latin_look('Δ')), (None, None, None));
        assert_eq!(look("\u{421}onfig.PY"), look("config.py"));
        assert_eq!(look("e\u{301}"), look("\u{e9}"));
    }
}
