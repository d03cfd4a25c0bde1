//! Reads single fields of an operator's arguments: one line of JSON that we wrote ourselves, or that somebody else wrote to harm.

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let start = text.find(&format!("\"{key}\":"))? + key.len() + 3;
    Some(text[start..].trim_start())
}

/// More than a record of ours has room for; what a list has beyond is not read.
pub const LONGEST: usize = 2048;

/// A list of whole numbers; one that cannot be a value's is 0. Without its end it is nothing: more may have followed.
pub fn numbers(text: &str, key: &str) -> Vec<u64> {
    let Some((list, _)) =
        after(text, key).and_then(|rest| rest.strip_prefix('[')).and_then(|rest| rest.split_once(']'))
    else {
        return Vec::new();
    };
    let plain = list.split(',').map(str::trim).filter(|one| !one.is_empty()).take(LONGEST);
    plain.map(|one| one.parse().unwrap_or(0)).collect()
}

/// A text as it stands between its quotes.
pub fn quoted<'a>(text: &'a str, key: &str) -> &'a str {
    let Some(rest) = after(text, key).and_then(|rest| rest.strip_prefix('"')) else { return "" };
    let mut escaped = false;
    for (at, letter) in rest.char_indices() {
        match letter {
            '"' if !escaped => return &rest[..at],
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    ""
}

pub fn flag(text: &str, key: &str) -> bool {
    after(text, key).is_some_and(|rest| rest.starts_with('1'))
}

/// The sizes of all tensors after a key, those in lists of tensors too, in order; a scalar has none.
pub fn sizes(text: &str, key: &str) -> Vec<Vec<u64>> {
    let Some(rest) = after(text, key) else { return Vec::new() };
    let (mut depth, mut open, mut all) = (0, 0, Vec::new());
    for (at, letter) in rest.char_indices() {
        match letter {
            '[' => (depth, open) = (depth + 1, at + 1),
            ']' => {
                depth -= 1;
                // Only the innermost list has its own begin behind it.
                if open > 0 {
                    let list = rest[open..at].split(',').filter(|one| !one.trim().is_empty());
                    all.push(list.map(|one| one.trim().parse().unwrap_or(0)).collect());
                    open = 0;
                }
            }
            _ => {}
        }
        if depth <= 0 {
            break;
        }
    }
    all
}

/// The types after a key.
pub fn types<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let Some((list, _)) =
        after(text, key).and_then(|rest| rest.strip_prefix('[')).and_then(|rest| rest.split_once(']'))
    else {
        return Vec::new();
    };
    list.split('"').skip(1).step_by(2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_lists_of_tensors() {
        let text = r#"{"Input Dims":[[[2,3],[4,3]],[]],"Input type":["TensorList",""],"Output Dims":[[6,3]]}"#;
        assert_eq!(sizes(text, "Input Dims"), [vec![2, 3], vec![4, 3], vec![]]);
        assert_eq!((sizes(text, "Output Dims"), types(text, "Input type")), (vec![vec![6, 3]], vec!["TensorList", ""]));
        for text in [r#"{"Input Dims":[[[["#, r#"{"Input Dims":]]]"#, r#"{"Input Dims":7"#, "\u{1F600}"] {
            assert!(sizes(text, "Input Dims").is_empty() && types(text, "Input Dims").is_empty(), "{text}");
        }
    }

    #[test]
    fn fields_by_their_key() {
        let text = r#"{"in":[1, 22,3],"out":[],"view":1,"cut":0,"at":"a \"b\".py:3 f","over":[x,-5]}"#;
        assert_eq!(
            (numbers(text, "in"), numbers(text, "out"), numbers(text, "over")),
            (vec![1, 22, 3], vec![], vec![0, 0])
        );
        let long = format!("{{\"in\":[{}1]}}", "1,".repeat(LONGEST));
        assert_eq!(numbers(&long, "in").len(), LONGEST);
        assert_eq!((flag(text, "view"), flag(text, "cut"), flag(text, "none")), (true, false, false));
        assert_eq!(
            (quoted(text, "at"), quoted(text, "in"), quoted(r#"{"at":"open"#, "at")),
            (r#"a \"b\".py:3 f"#, "", "")
        );
    }
}
