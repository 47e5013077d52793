//! Finds the known word that a mistyped one most likely meant.

/// Returns the known word nearest to `word`. At most a third of the letters may differ, else the
/// guess would only confuse.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| (distance(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| {
            let letters = word.chars().count().max(candidate.chars().count());
            *distance <= (letters / 3).max(1) && *distance < letters
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// The number of letters to insert, delete, replace or swap with their neighbour.
pub fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > LETTERS_MAX || a.len().min(b.len()) > LETTERS_MAX {
        return a.len().max(b.len());
    }
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for (i, letter) in a.iter().enumerate() {
        let above = &rows[i];
        let mut row = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let replaced = above[j] + usize::from(letter != other);
            let mut cost = replaced.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i - 1] == *other && *letter == b[j - 1] {
                cost = cost.min(rows[i - 1][j - 1] + 1);
            }
            row.push(cost);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The longest word that is compared; longer words are not typing errors.
const LETTERS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_its_word_and_nonsense_finds_none() {
        let known = ["tests", "lint", "format", "uat"];
        assert_eq!(nearest("test", known), Some("tests"));
        assert_eq!(nearest("tsets", known), Some("tests"));
        assert_eq!(nearest("LINT", known), Some("lint"));
        assert_eq!(nearest("fromat", known), Some("format"));
        assert_eq!(nearest("deploy", known), None);
        assert_eq!(nearest(&"x".repeat(10_000), known), None);
    }
}
