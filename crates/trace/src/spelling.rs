//! How far two words are apart, for suggestions after a mistyped one. Which word was meant is for those who know the words.

/// Letters to put in, take out or replace to make one word of the other.
pub fn edits<T: PartialEq>(one: &[T], other: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, with) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != with);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn letters_are_put_in_taken_out_and_replaced() {
        assert_eq!((edits(b"", b"abc"), edits(b"abc", b""), edits(b"kitten", b"sitting")), (3, 3, 3));
        assert_eq!((edits(b"tags", b"tag"), edits(b"Tag", b"tag"), edits(b"tag", b"tag")), (1, 1, 0));
    }
}
