//! Words that were mistyped: which known one was meant.

use timeline::edits;

/// The known word that a mistyped one is nearest to. None: nothing is near, and a suggestion would only confuse.
pub fn nearest_of<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let even = |word: &str| word.chars().take(100).collect::<String>().to_lowercase().replace('-', "_");
    let word = even(word);
    // The beginning of a word is more than some of its letters.
    let begins = |name: &str| word.len() >= BEGINNING && even(name).starts_with(&word);
    let near = known.min_by_key(|name| (!begins(name), distance(&word, &even(name))))?;
    let slip = distance(&word, &even(near)) <= (word.len().max(near.len()) / 3).max(2);
    (slip || begins(near)).then_some(near)
}

/// With fewer letters too many words begin.
const BEGINNING: usize = 3;

/// Letters to change, add or take away; of long words only the first hundred letters are looked at.
pub fn distance(a: &str, b: &str) -> usize {
    let letters = |word: &str| word.chars().take(100).map(|letter| letter.to_ascii_lowercase()).collect::<Vec<char>>();
    edits(&letters(a), &letters(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_what_was_meant() {
        let known = || ["rats", "rate_hz", "memory_hz", "trace_size_mb"].into_iter();
        for (word, near) in
            [("rate", "rate_hz"), ("rate_hertz", "rate_hz"), ("Trace-Size", "trace_size_mb"), ("rat", "rats")]
        {
            assert_eq!(nearest_of(word, known()), Some(near), "{word}");
        }
        assert_eq!((distance("", "abc"), distance("kitten", "sitting")), (3, 3));
    }
}
