//! The prompt for the agent that says which tests cover which criterion.

use super::part::{block, bullets, cut, fenced};
use super::review::MATERIAL;
use super::{Caps, CoveragePrompt};
use crate::coverage::{CoverageGround, NamedCriterion};
use std::collections::BTreeSet;

/// The tests that one list of the prompt names.
const NAMED_MAX: usize = 400;

const HOW: &str = "\
\n## How to answer

- For each criterion, name the tests that would fail if it were not met. Read them: the name of a test \
says nothing.
- Only tests that fail, or do not compile or load, without the change count. The controller compares \
every name with what it has seen.
- A test that checks something else, checks nothing, or checks less than the criterion asks does not \
cover it. If no test does, name the criterion in `uncovered`; that is no failure of yours.
- `allCovered` is true only if every criterion has a test and `uncovered` is empty.
- Write criteria by their names and tests exactly as they stand between the backticks.
";

/// The prompt that asks for the tests of each criterion.
pub fn coverage(facts: &CoveragePrompt<'_>, caps: Caps) -> String {
    let mut text = String::from(
        "You say which tests cover the acceptance criteria of one change. Read only; change \
         nothing.\n\n",
    );
    text.push_str(MATERIAL);
    let title = facts.title.replace(['\n', '\r'], " ");
    text.push_str(&format!("\n## Acceptance criteria of “{title}”\n\n"));
    let named = |it: &NamedCriterion| format!("{}: {}", it.id, it.text);
    let criteria: Vec<String> = facts.ground.criteria.iter().map(named).collect();
    text.push_str(&bullets(&criteria, caps));
    text.push_str(&tests(facts.ground, caps));
    text.push_str(&block("The change", "diff", facts.diff, caps));
    if facts.diff.len() > caps.prompt_bytes_max {
        text.push_str("\nThe diff is cut: read the rest in your working directory.\n");
    }
    text.push_str(HOW);
    text.push_str(
        "\nAnswer with one JSON object that satisfies this schema, and nothing else:\n\n",
    );
    text.push_str(&fenced("json", &cut(facts.schema, caps.prompt_bytes_max)));
    text
}

/// The tests that pass with the change, by what they do without it.
fn tests(ground: &CoverageGround, caps: Caps) -> String {
    let old: BTreeSet<String> = ground
        .green
        .iter()
        .filter(|id| !ground.is_red(id) && !ground.not_red.contains(*id))
        .cloned()
        .collect();
    let lists = [
        ("They fail without the change", &ground.red),
        ("They do not compile or load without the change", &ground.weak),
        (
            "They are new or changed and do not fail without the change, so they do not count",
            &ground.not_red,
        ),
        ("They were there before and pass, so they do not count", &old),
    ];
    let mut text = String::from("\n## Tests that pass with the change\n");
    for (what, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let mut named: Vec<String> =
            ids.iter().take(NAMED_MAX).map(|id| format!("`{id}`")).collect();
        if ids.len() > NAMED_MAX {
            named.push(format!("and {} more", ids.len() - NAMED_MAX));
        }
        text.push_str(&format!("\n{what}:\n\n{}", bullets(&named, caps)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage::named_criteria;

    #[test]
    fn the_tests_are_listed_by_what_they_do_without_the_change() {
        let of = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let ground = CoverageGround {
            criteria: named_criteria(&["it adds".to_owned(), "it\nsubtracts".to_owned()], ""),
            red: of(&["t::red"]),
            weak: of(&["t::weak"]),
            not_red: of(&["t::vacuous"]),
            green: of(&["t::red", "t::weak", "t::vacuous", "t::old"]),
            base_has_names: true,
        };
        let facts = CoveragePrompt { title: "Sums", ground: &ground, diff: "+x", schema: "{}" };
        let text = coverage(&facts, Caps { prompt_bytes_max: 2_000, tail_lines_max: 10 });
        let from = text.find("## Acceptance").unwrap();
        let to = text.find("## How to answer").unwrap();
        insta::assert_snapshot!(&text[from..to], @r"
        ## Acceptance criteria of “Sums”

        - AC-1: it adds
        - AC-2: it
          subtracts

        ## Tests that pass with the change

        They fail without the change:

        - `t::red`

        They do not compile or load without the change:

        - `t::weak`

        They are new or changed and do not fail without the change, so they do not count:

        - `t::vacuous`

        They were there before and pass, so they do not count:

        - `t::old`

        ## The change

        ```diff
        +x
        ```
        ");
    }
}
