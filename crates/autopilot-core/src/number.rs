//! Numbers in messages.

/// A number with its noun: `1 task`, `2 tasks`.
pub fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A size for people: `1.5 GB`, `12.0 MB`, `3.0 kB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let unit = UNITS.iter().find(|(_, unit)| bytes >= *unit);
    match unit {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_say_them() {
        let said: Vec<String> = [7, 3_000, 12_345_678, 1_500_000_000].map(size).to_vec();
        assert_eq!(said, ["7 B", "3.0 kB", "12.3 MB", "1.5 GB"]);
    }
}
