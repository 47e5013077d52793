//! The changes to an open pull request, without losing a word that a person wrote there.

use super::{PullRequest, PullRequestChange, PullRequestDraft};

/// The longest text the strictest forge accepts, in bytes though it counts letters.
const BODY_BYTES_MAX: usize = 65_000;

/// Returns the parts that differ. The title of a request that somebody else opened is theirs.
pub(super) fn change(known: &PullRequest, draft: &PullRequestDraft) -> PullRequestChange {
    let BodyParts { ours, before, after } = parts(&known.body, &draft.body);
    let body = match (before, after) {
        ("", "") => draft.body.clone(),
        ("", after) => format!("{}\n\n{after}", draft.body),
        (before, "") => format!("{before}\n\n{}", draft.body),
        (before, after) => format!("{before}\n\n{}\n\n{after}", draft.body),
    };
    let same = body == known.body.replace("\r\n", "\n").trim();
    PullRequestChange {
        title: (ours && known.title != draft.title).then(|| draft.title.clone()),
        // With more than the forge accepts, the person's text stays and ours is left out.
        body: (!same && body.len() <= BODY_BYTES_MAX).then_some(body),
    }
}

/// The text of a pull request around our marks. `ours` says whether the marks are there.
struct BodyParts<'a> {
    ours: bool,
    before: &'a str,
    after: &'a str,
}

fn parts<'a>(known: &'a str, draft: &str) -> BodyParts<'a> {
    let first = draft.lines().next().unwrap_or_default();
    let last = draft.lines().last().unwrap_or_default();
    let Some((before, rest)) = known.split_once(first).filter(|_| !first.is_empty()) else {
        return BodyParts { ours: false, before: known.trim(), after: "" };
    };
    // Without the second mark nobody can tell where our text ends; all after the first is taken for
    // ours.
    let after = rest.split_once(last).map_or("", |(_, after)| after);
    BodyParts { ours: true, before: before.trim(), after: after.trim() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(text: &str) -> PullRequestDraft {
        PullRequestDraft {
            head: "h".into(),
            base: "b".into(),
            title: "ours".into(),
            body: format!("<!-- run: 1 -->\n{text}\n<!-- end: 1 -->"),
        }
    }

    fn known(title: &str, body: &str) -> PullRequest {
        PullRequest { number: 1, url: String::new(), title: title.into(), body: body.into() }
    }

    #[test]
    fn what_a_person_wrote_around_ours_stays() {
        let old = draft("old").body;
        let found = known("ours", &format!("Hello!\r\n\r\n{old}\r\n\r\nCloses #7"));
        let changed = change(&found, &draft("new"));
        let new = draft("new").body;
        assert_eq!(changed.body.unwrap(), format!("Hello!\n\n{new}\n\nCloses #7"));
        assert_eq!(changed.title, None);
    }

    #[test]
    fn one_that_a_person_opened_keeps_its_title_and_its_text() {
        let changed = change(&known("mine", "my words"), &draft("new"));
        assert_eq!(changed.title, None);
        assert_eq!(changed.body.unwrap(), format!("my words\n\n{}", draft("new").body));
    }

    #[test]
    fn what_is_said_already_is_not_said_again() {
        let found = known("ours", &draft("new").body.replace('\n', "\r\n"));
        assert_eq!(change(&found, &draft("new")), PullRequestChange::default());
        let renamed = known("another", &draft("new").body);
        assert_eq!(change(&renamed, &draft("new")).title.as_deref(), Some("ours"));
    }

    #[test]
    fn a_text_too_long_for_the_forge_leaves_a_persons_alone() {
        let changed = change(&known("mine", &"x".repeat(BODY_BYTES_MAX)), &draft("new"));
        assert_eq!(changed, PullRequestChange::default());
    }
}
