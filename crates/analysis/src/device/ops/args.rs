//! Reads the arguments of an operator as PyTorch's profiler writes them: the sizes of its tensors, their types, and scalars as text.

/// The list after a key of a JSON object, without its outer brackets; nothing where it is not there.
fn list<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let start = text.find(&format!("\"{key}\":"))? + key.len() + 3;
    let rest = text[start..].trim_start().strip_prefix('[')?;
    let (mut depth, mut quoted) = (1, false);
    for (at, letter) in rest.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '[' if !quoted => depth += 1,
            ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&rest[..at]);
        }
    }
    None
}

/// One for each argument; empty for what is no tensor.
pub fn dims(text: &str) -> Vec<Vec<u64>> {
    let Some(mut rest) = list(text, "Input Dims") else { return Vec::new() };
    let mut all = Vec::new();
    while let Some(start) = rest.find('[') {
        let inner = &rest[start + 1..];
        let Some(end) = inner.find(']') else { break };
        // A list of tensors has lists inside: its sizes are not asked for.
        let nested = inner[..end].contains('[');
        let sizes = inner[..end].split(',').map(|size| size.trim().parse().ok()).collect::<Option<Vec<u64>>>();
        all.push(if nested { Vec::new() } else { sizes.unwrap_or_default() });
        rest = if nested { skip(inner) } else { &inner[end + 1..] };
    }
    all
}

/// What follows a list that has lists inside.
fn skip(inner: &str) -> &str {
    let mut depth = 1;
    for (at, letter) in inner.char_indices() {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        if depth == 0 {
            return &inner[at + 1..];
        }
    }
    ""
}

pub fn types(text: &str) -> Vec<&str> {
    quoted(list(text, "Input type").unwrap_or(""))
}

pub fn scalars(text: &str) -> Vec<&str> {
    quoted(list(text, "Concrete Inputs").unwrap_or(""))
}

fn quoted(list: &str) -> Vec<&str> {
    list.split('"').skip(1).step_by(2).collect()
}

/// `[16, 16]`, or one number for all sides.
pub fn sides(text: &str) -> Option<[u64; 2]> {
    let plain = text.trim_matches(['[', ']']);
    let numbers: Option<Vec<u64>> = plain.split(',').map(|one| one.trim().parse().ok()).collect();
    match numbers?.as_slice() {
        [one] => Some([*one; 2]),
        [first, second] => Some([*first, *second]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_apart() {
        let text = r#"{"Concrete Inputs":["","[16, 16]","1"],"Input type":["c10::BFloat16","ScalarList",""],"Input Dims":[[4,3,224,224],[],[[2,3],[4]],[7]]}"#;
        assert_eq!(dims(text), [vec![4, 3, 224, 224], vec![], vec![], vec![7]]);
        assert_eq!(types(text), ["c10::BFloat16", "ScalarList", ""]);
        assert_eq!(scalars(text).get(1).and_then(|one| sides(one)), Some([16, 16]));
        assert_eq!((sides("3"), sides("[1, 2, 3]"), sides("x")), (Some([3, 3]), None, None));
    }

    #[test]
    fn nonsense_is_nothing() {
        for text in ["", "{", r#"{"Input Dims":"#, r#"{"Input Dims":[[1,"#, r#"{"Input Dims":7,"Input type":[3]}"#] {
            assert!(dims(text).is_empty() && types(text).is_empty(), "{text}");
        }
    }
}
