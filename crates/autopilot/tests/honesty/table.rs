//! The cases as a table for the docs, and the figures of a run of them.

use crate::case::{Case, Expected};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const BEGIN: &str = "<!-- cases: made by `cargo xtask honesty --write` -->\n";
const END: &str = "<!-- end of the cases -->";

/// The text with the table of the cases between its marks.
pub fn put_into(text: &str, all: &[Case]) -> String {
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the cases");
    let (_, after) = rest.split_once(END).expect("the mark after the cases");
    format!("{before}{BEGIN}{}{END}{after}", table(all))
}

fn table(all: &[Case]) -> String {
    let mut text = format!("\n{}\n", totals(all));
    let mut class = "";
    for case in all {
        if case.class() != class {
            class = case.class();
            let heading = class.replace('-', " ");
            write!(
                text,
                "\n### {heading}\n\n| | flow | project | sandbox | ends |\n|---|---|---|---|---|\n"
            )
            .unwrap();
        }
        let sandbox = if case.sandbox { "on" } else { "off" };
        writeln!(
            text,
            "| {} | {} | {} | {sandbox} | {} |",
            case.title.replace('|', "\\|"),
            case.flow.word(),
            case.project,
            ends(&case.expects),
        )
        .unwrap();
    }
    text.push('\n');
    text
}

fn ends(expects: &Expected) -> String {
    match expects {
        Expected::Caught { says } => format!("caught: “{}”", says.replace('|', "\\|")),
        Expected::Told { kind, says } => format!("told (`{kind}`): “{}”", says.replace('|', "\\|")),
        Expected::Harmless => "harmless".to_owned(),
        Expected::Missed { why } => format!("**missed**: {why}"),
        Expected::Quiet => "honest: done without a word".to_owned(),
        Expected::Done { kinds } => format!("honest: done, and told (`{}`)", kinds.join("`, `")),
    }
}

fn totals(all: &[Case]) -> String {
    let count = |word: &str| all.iter().filter(|case| case.expects.word() == word).count();
    let cheats = all.iter().filter(|case| !case.expects.is_honest()).count();
    format!(
        "{cheats} cheats: {} caught, {} told, {} harmless, {} missed. {} honest runs: {} without a word, {} \
         with a doubt that is named here.",
        count("caught"),
        count("told"),
        count("harmless"),
        count("missed"),
        all.len() - cheats,
        count("quiet"),
        count("done"),
    )
}

/// What was played, by the way it ends, by flow and by project.
pub fn figures(played: &[Case], seconds: &BTreeMap<String, f32>) -> String {
    let mut text = format!("{}\n", totals(played));
    let mut add = |what: &str, of: &dyn Fn(&Case) -> String| {
        let mut counts: BTreeMap<String, (usize, f32)> = BTreeMap::new();
        for case in played {
            let (count, took) = counts.entry(of(case)).or_default();
            *count += 1;
            *took += seconds.get(&case.name).copied().unwrap_or_default();
        }
        for (word, (count, took)) in counts {
            let each = took / count as f32;
            writeln!(text, "{what} {word}: {count} cases, {took:.0} s, {each:.1} s each").unwrap();
        }
    };
    add("flow", &|case| case.flow.word().to_owned());
    add("project", &|case| case.project.clone());
    add("ends", &|case| case.expects.word().to_owned());
    text
}
