//! The table in `docs/security.md`, which is written from the one that the tests check.

use std::fmt::Write;
use std::fs;

use crate::table::{Alone, AttemptRow, Expected, Promise, rows};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
const BEGIN: &str = "<!-- The table is written by `cargo test -p autopilot-host --test attempts -- --write-docs`. -->\n";
const END: &str = "<!-- The end of the table. -->\n";

/// The documentation has this table and no other.
pub fn has_the_table() {
    let text = fs::read_to_string(FILE).unwrap();
    assert!(
        text == with_table(&text),
        "docs/security.md differs from the table of attempts; \
         run `cargo test -p autopilot-host --test attempts -- --write-docs`"
    );
}

/// Writes the table into the documentation.
pub fn write() {
    let text = fs::read_to_string(FILE).unwrap();
    fs::write(FILE, with_table(&text)).unwrap();
}

fn with_table(text: &str) -> String {
    let (before, rest) = text.split_once(BEGIN).expect("the mark before the table");
    let (_, after) = rest.split_once(END).expect("the mark after the table");
    format!("{before}{BEGIN}{}{END}{after}", table())
}

fn table() -> String {
    let mut text = String::from(
        "| attempt | promised | root, namespaces | root, without | user, namespaces | user, without | without a jail | name |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for row in rows() {
        write!(text, "| {} | {} |", row.what, promise(row.promise)).unwrap();
        for expected in row.expected {
            write!(text, " {} |", cell(expected)).unwrap();
        }
        writeln!(text, " {} | `{}` |", alone(row), row.id).unwrap();
    }
    text
}

fn promise(promise: Promise) -> &'static str {
    match promise {
        Promise::Always => "yes",
        Promise::WithNamespaces => "with namespaces",
        Promise::No => "no",
    }
}

fn cell(expected: Expected) -> String {
    match expected {
        Expected::Refused(layer, errno) => format!("{} ({errno:?})", layer.words()),
        Expected::Private(layer) => format!("{}, nothing outside changes", layer.words()),
        Expected::Through => String::from("**not stopped**"),
    }
}

fn alone(row: &AttemptRow) -> String {
    let words = |alone: Alone| match alone {
        Alone::Works => "succeeds",
        Alone::Fails => "refused",
        Alone::Varies => "depends on the kernel",
        Alone::Supervised => "stopped too",
        Alone::Untried => "not tried",
    };
    match row.alone.map(words) {
        [root, user] if root == user => root.into(),
        [root, user] => format!("root: {root}; user: {user}"),
    }
}
