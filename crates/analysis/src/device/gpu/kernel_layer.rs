//! What to call the layer that a kernel belongs to: one only where more than half of its launches are in it. A kernel that every
//! block of a model launches has a path with stars, and one that unlike layers share has only their number.

use std::collections::BTreeMap;
use std::fmt;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KernelLayer {
    /// The path that more than half of the launches have; `*` stands for numbers in which these paths differ.
    Path(String),
    /// Unlike layers share it: so many.
    Several(usize),
}

impl KernelLayer {
    /// None where there is no one path to name.
    pub fn path(&self) -> Option<&str> {
        match self {
            KernelLayer::Path(path) => Some(path),
            KernelLayer::Several(_) => None,
        }
    }

    /// Of paths with how many of the kernel's `launches` each has. None: most are in no layer that is known.
    pub(crate) fn of<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>, launches: u64) -> Option<KernelLayer> {
        // Several modules may have one path.
        let mut each: BTreeMap<&str, u64> = BTreeMap::new();
        counts.into_iter().for_each(|(path, count)| *each.entry(path).or_default() += count);
        let paths: Vec<(&str, u64)> = each.into_iter().collect();
        let most = |count: u64| count > launches / 2;
        let sum = |paths: &[(&str, u64)]| paths.iter().fold(0u64, |sum, path| sum.saturating_add(path.1));
        if !most(sum(&paths)) {
            return None;
        }
        if let Some((path, _)) = paths.iter().find(|path| most(path.1)) {
            return Some(KernelLayer::Path((*path).to_owned()));
        }
        let mut alike: BTreeMap<String, Vec<(&str, u64)>> = BTreeMap::new();
        for path in &paths {
            alike.entry(shape(path.0)).or_default().push(*path);
        }
        let group = alike.values().find(|group| most(sum(group)));
        Some(group.map_or(KernelLayer::Several(paths.len()), |group| KernelLayer::Path(pattern(group))))
    }
}

/// The path, or `13 layers`.
impl fmt::Display for KernelLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelLayer::Path(path) => f.write_str(path),
            KernelLayer::Several(count) => write!(f, "{count} layers"),
        }
    }
}

/// Digits that stand together, and what stands between them.
fn pieces(path: &str) -> impl Iterator<Item = &str> {
    let digit = |letter: char| letter.is_ascii_digit();
    let mut rest = path;
    std::iter::from_fn(move || {
        let first = digit(rest.chars().next()?);
        let (piece, after) = rest.split_at(rest.find(|letter| digit(letter) != first).unwrap_or(rest.len()));
        rest = after;
        Some(piece)
    })
}

fn is_number(piece: &str) -> bool {
    piece.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The same for all paths that differ in nothing but numbers.
fn shape(path: &str) -> String {
    pieces(path).map(|piece| if is_number(piece) { "*" } else { piece }).collect()
}

/// Paths of one shape: numbers that all of them share stay.
fn pattern(paths: &[(&str, u64)]) -> String {
    let mut common: Vec<&str> = pieces(paths[0].0).collect();
    for (path, _) in &paths[1..] {
        for (piece, other) in common.iter_mut().zip(pieces(path)) {
            if *piece != other {
                *piece = "*";
            }
        }
    }
    common.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(paths: &[(&str, u64)], launches: u64) -> String {
        KernelLayer::of(paths.iter().copied(), launches).map_or_else(|| "-".into(), |layer| layer.to_string())
    }

    #[test]
    fn a_layer_is_named_only_where_most_launches_are_in_it() {
        assert_eq!(said(&[("head", 6), ("embed", 5)], 11), "head");
        assert_eq!(said(&[("head", 5), ("embed", 5)], 10), "2 layers");
        // Most were launched in no layer that is known: to name one would say more than the recording shows.
        assert_eq!(said(&[("head", 5)], 10), "-");
        assert_eq!(said(&[], 10), "-");
    }

    #[test]
    fn paths_that_differ_only_in_numbers_are_one_with_stars() {
        let blocks = ["layers.0.attention.qkv", "layers.1.attention.qkv", "layers.12.attention.qkv"];
        assert_eq!(said(&blocks.map(|path| (path, 15)), 45), "layers.*.attention.qkv");
        assert_eq!(said(&[("stage.2.conv1", 1), ("stage.2.conv2", 1)], 2), "stage.2.conv*");
        // Nearly all are alike, and the stars stand for those.
        assert_eq!(said(&[("h.0.mlp", 9), ("h.1.mlp", 9), ("head", 3)], 21), "h.*.mlp");
        assert_eq!(said(&[("h.0.mlp", 9), ("h.0.attn", 9), ("head", 3)], 21), "3 layers");
        assert_eq!(KernelLayer::Several(13).path(), None);
    }
}
