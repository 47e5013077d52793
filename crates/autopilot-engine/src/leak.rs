//! Known secrets in what could leave the hub, in the words of the guards. The host finds them, the
//! rule beside the guards says what they mean.

use autopilot_core::guard::{LeakForm, LeakPlace, SecretLeak, secret};
use autopilot_host::git::{FoundLeak, FoundPlace};
use autopilot_host::redact::SecretForm;

/// The rule of the border: the reason why something with these leaks stays in the hub.
pub fn withheld(leaks: &[FoundLeak]) -> Option<String> {
    secret::withheld(&in_guard_words(leaks))
}

/// The leaks as the guards know them.
pub fn in_guard_words(leaks: &[FoundLeak]) -> Vec<SecretLeak> {
    leaks.iter().map(leak).collect()
}

fn leak(found: &FoundLeak) -> SecretLeak {
    let form = match found.form {
        SecretForm::Plain => LeakForm::Plain,
        SecretForm::Base64 => LeakForm::Base64,
        SecretForm::Hex => LeakForm::Hex,
        SecretForm::UrlEncoded => LeakForm::UrlEncoded,
        SecretForm::Split => LeakForm::Split,
    };
    let place = match found.place.clone() {
        FoundPlace::File { path, line } => LeakPlace::File { path, line },
        FoundPlace::FileName { path } => LeakPlace::FileName { path },
        FoundPlace::OldFile { path, line } => LeakPlace::OldFile { path, line },
        FoundPlace::Commit { commit } => LeakPlace::Commit { commit },
        FoundPlace::Branch => LeakPlace::Branch,
        FoundPlace::Text { what } => LeakPlace::Text { what },
    };
    SecretLeak { secret: found.secret.clone(), form, place }
}
