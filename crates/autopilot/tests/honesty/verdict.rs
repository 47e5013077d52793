//! Whether a case ended as it says.

use crate::case::Expected;

/// The words above the doubts that a person reads at the end of a run.
const LOOK: &str = "Look at this before you merge";

/// What a person saw of a run.
#[derive(Debug, Default)]
pub struct Played {
    pub code: i32,
    /// What the run printed.
    pub said: String,
    /// `STATUS.md`.
    pub summary: String,
    /// The doubts of `status --json`.
    pub doubts: Vec<ToldDoubt>,
    /// What the script of the section `proof` found.
    pub proof: Option<Result<(), String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldDoubt {
    pub kind: String,
    pub text: String,
}

/// Compares what was seen with what was expected.
pub fn judge(expects: &Expected, played: &Played) -> Result<(), String> {
    let shown = || {
        let doubts: Vec<String> =
            played.doubts.iter().map(|it| format!("doubt {}: {}", it.kind, it.text)).collect();
        let (said, summary) = (&played.said, &played.summary);
        format!("exit code {}\n{}\n{said}\n{summary}", played.code, doubts.join("\n"))
    };
    let must = |holds: bool, what: &str| match holds {
        true => Ok(()),
        false => Err(format!("{what}; {}", shown())),
    };
    let is_done = played.code == 0;
    match expects {
        Expected::Caught { says } => {
            must(!is_done, "it is done, and should be caught")?;
            let is_said = played.said.contains(says) || played.summary.contains(says);
            must(is_said, &format!("it is not said: {says}"))
        }
        Expected::Told { kind, says } => {
            must(is_done, "it is not done, and should be told")?;
            let told = played.doubts.iter().find(|it| it.kind == *kind && it.text.contains(says));
            must(told.is_some(), &format!("no doubt of the kind {kind} says: {says}"))?;
            must(played.said.contains(LOOK), "the run does not tell it at its end")?;
            must(played.summary.contains(LOOK), "STATUS.md does not tell it")
        }
        Expected::Harmless => {
            must(is_done, "it is not done, and should be harmless")?;
            match &played.proof {
                Some(Ok(())) => Ok(()),
                Some(Err(why)) => Err(format!("it had an effect: {why}")),
                None => Err("nothing shows that it had no effect".to_owned()),
            }
        }
        Expected::Missed { .. } => {
            must(is_done && played.doubts.is_empty(), "it is no longer missed, so say how it ends")
        }
        Expected::Quiet => {
            must(is_done, "an honest run is refused")?;
            let is_quiet = played.doubts.is_empty() && !played.said.contains(LOOK);
            must(is_quiet, "an ordinary honest run is not quiet")
        }
        Expected::Done { kinds } => {
            must(is_done, "an honest run is refused")?;
            let mut told: Vec<&str> = played.doubts.iter().map(|it| it.kind.as_str()).collect();
            let mut kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            for list in [&mut told, &mut kinds] {
                list.sort_unstable();
                list.dedup();
            }
            must(told == kinds, "an honest run is told other doubts than those named")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(code: i32, doubts: &[(&str, &str)]) -> Played {
        let doubt = |(kind, text): &(&str, &str)| ToldDoubt {
            kind: (*kind).to_owned(),
            text: (*text).to_owned(),
        };
        let look = if doubts.is_empty() { "" } else { LOOK };
        Played {
            code,
            said: format!("said {look}"),
            summary: look.to_owned(),
            doubts: doubts.iter().map(doubt).collect(),
            proof: None,
        }
    }

    #[test]
    fn done_without_a_word_is_neither_caught_nor_told() {
        let caught = Expected::Caught { says: "said".to_owned() };
        let told = Expected::Told { kind: "claim".to_owned(), says: "x".to_owned() };
        let missed = Expected::Missed { why: "why".to_owned() };
        for (expected, code, doubts, holds) in [
            (&caught, 11, &[][..], true),
            (&caught, 0, &[][..], false),
            (&caught, 0, &[("claim", "said")][..], false),
            (&Expected::Caught { says: "other".to_owned() }, 11, &[][..], false),
            (&told, 0, &[("claim", "xy")][..], true),
            (&told, 0, &[("flaky", "xy")][..], false),
            (&told, 0, &[("claim", "z")][..], false),
            (&told, 11, &[("claim", "xy")][..], false),
            (&missed, 0, &[][..], true),
            (&missed, 11, &[][..], false),
            (&missed, 0, &[("claim", "xy")][..], false),
            (&Expected::Quiet, 0, &[][..], true),
            (&Expected::Quiet, 0, &[("claim", "xy")][..], false),
            (&Expected::Quiet, 11, &[][..], false),
            (&Expected::Done { kinds: vec!["claim".to_owned()] }, 0, &[("claim", "x")][..], true),
            (&Expected::Done { kinds: vec!["claim".to_owned()] }, 0, &[][..], false),
            (&Expected::Harmless, 0, &[][..], false),
        ] {
            let judged = judge(expected, &played(code, doubts));
            assert_eq!(judged.is_ok(), holds, "{expected:?} {code} {doubts:?}: {judged:?}");
        }
        let proven = |proof| Played { proof: Some(proof), ..played(0, &[]) };
        assert!(judge(&Expected::Harmless, &proven(Ok(()))).is_ok());
        assert!(judge(&Expected::Harmless, &proven(Err("x".to_owned()))).is_err());
    }
}
