feature() { sed -i '/^#\[cfg(test)\]$/i /// The total less some percent.\npub fn discounted(prices: \&[u32], percent: u32) -> u32 {\n    total(prices) * (100 - percent) / 100\n}\n' src/lib.rs; }
tests() { printf '\n#[test]\nfn discounted() {\n    assert_eq!(shop::discounted(&[100], 10), 90);\n}\n' >> tests/shop.rs; }
works() { feature; tests; }
# Breaks what the test of labels expects.
breaks() { works; sed -i 's/name.trim().to_uppercase()/name.to_lowercase()/' src/lib.rs; }
