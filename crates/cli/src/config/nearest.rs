//! The known word that is nearest to a mistyped one.

/// None when nothing is near: then a suggestion would only confuse.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase().replace('-', "_");
    let near = |name: &&str| distance(&word, name);
    let found = known.min_by_key(near)?;
    (distance(&word, found) <= (word.len().max(found.len()) / 2).max(2)).then_some(found)
}

/// Letters to change, add or take away.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, letter) in a.chars().take(100).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in b.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_nonsense_is_not() {
        let known = || ["rate_hz", "memory_hz", "trace_size_mb"].into_iter();
        assert_eq!(nearest("rate_hertz", known()), Some("rate_hz"));
        assert_eq!(nearest("Trace-Size", known()), Some("trace_size_mb"));
        assert_eq!(nearest("xylophone_quartet", known()), None);
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }
}
