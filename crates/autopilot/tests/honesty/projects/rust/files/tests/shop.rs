//! What the shop promises.

#[test]
fn total() {
    assert_eq!(shop::total(&[1, 2, 3]), 6);
}

#[test]
fn label() {
    assert_eq!(shop::label(" tea "), "TEA");
}
