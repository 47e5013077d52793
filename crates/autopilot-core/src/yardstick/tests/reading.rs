//! What tests read and what stands for their runner, by names.

use super::{shares, word};

#[test]
fn what_a_test_of_the_shell_reads_by_name_decides_as_it_does() {
    let files = [
        ("test.sh", "for t in tests/*.sh; do sh \"$t\"; done"),
        (
            "tests/label.sh",
            ". ./shop.sh\n. ./helpers/assert.sh\nis a \"$(cat expected/label.txt)\"\nsh helpers/other.sh\n",
        ),
        ("helpers/assert.sh", "is() { :; }"),
        ("helpers/other.sh", "true"),
        ("expected/label.txt", "a"),
        ("shop.sh", "true"),
    ];
    let of = |path: &str| word(&shares(&files, &[("tests", "sh test.sh")], &[], path));
    assert_eq!(of("helpers/assert.sh"), "used by `tests/label.sh`");
    assert_eq!(of("expected/label.txt"), "used by `tests/label.sh`");
    for product in ["shop.sh", "helpers/other.sh"] {
        assert_eq!(of(product), "product", "{product}");
    }
}

#[test]
fn a_program_of_the_tree_in_the_path_of_a_command_decides() {
    let files = [("bin/pytest", "#!/bin/sh"), ("bin/other", "#!/bin/sh"), ("pytest", "x")];
    for line in
        ["PATH=bin:$PATH pytest -q", "PATH=\"$PWD/bin:$PATH\" pytest", "env PATH=./bin pytest"]
    {
        let of = |path: &str| word(&shares(&files, &[("tests", line)], &[], path));
        assert_eq!(of("bin/other"), "product", "{line}");
        assert_eq!(of("bin/pytest"), "run by `tests`", "{line}");
    }
}
