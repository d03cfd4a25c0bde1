//! Tokens that are padding: rows of ids that end (or begin) in a run of one value, and the operators that compute on all of them. The recorder counts
//! the run where the ids are in the host's memory; from there they are followed to the embedding that reads them, and on from it.

use super::OpSet;
use crate::operators::{Op, Padded, sizes, types};
use std::collections::{BTreeMap, HashMap};
use timeline::Timeline;

/// One line whose ids are padded.
#[derive(Clone, PartialEq, Debug)]
pub struct Padding<'a> {
    /// Where the ids were first seen.
    pub at: &'a str,
    /// Of all turns together.
    pub ids: Padded,
    /// Rows, and what they are padded to.
    pub shape: [u64; 2],
    /// The embedding says itself that this id is padding.
    pub is_said: bool,
    /// The embedding and what computes on its tokens.
    pub ops: OpSet,
}

const EMBEDDING: &str = "aten::embedding";
/// Gives the same ids in another place or type.
const COPIES: [&str; 3] = ["aten::to", "aten::_to_copy", "aten::copy_"];

pub fn find<'a: 'b, 'b>(turns: impl Iterator<Item = &'b [Op<'a>]>, timeline: &'a Timeline) -> Vec<Padding<'a>> {
    let mut found: BTreeMap<&'a str, Padding<'a>> = BTreeMap::new();
    for ops in turns {
        in_turn(ops, timeline, &mut found);
    }
    let mut all: Vec<Padding> = found.into_values().collect();
    all.sort_by_key(|one| (u64::MAX - one.ops.ns(), one.at));
    all
}

fn in_turn<'a>(ops: &[Op<'a>], timeline: &'a Timeline, found: &mut BTreeMap<&'a str, Padding<'a>>) {
    // Ids by value, and what follows from the embeddings of them: the line and the sizes.
    let mut ids: HashMap<u64, (&'a str, Padded)> = HashMap::new();
    let mut tokens: HashMap<u64, (&'a str, [u64; 2])> = HashMap::new();
    for op in ops {
        let name = timeline.names.text(op.name);
        let read = || op.reads.iter().filter(|value| **value != 0);
        let seen = read().find_map(|value| ids.get(value).copied());
        // What it counted itself is of the very ids that it reads.
        let own = op.padded.map(|padded| (seen.map_or(op.at, |(at, _)| at), padded)).or(seen);
        if name == EMBEDDING {
            let embedded = own.and_then(|own| embedded(op, own, timeline, found));
            embedded.into_iter().for_each(|one| tokens.extend(op.writes.iter().map(|value| (*value, one))));
        } else if let Some(from) = read().find_map(|value| tokens.get(value).copied()) {
            if has_tokens(op, from.1, timeline) {
                tokens.extend(op.writes.iter().map(|value| (*value, from)));
                found.get_mut(from.0).into_iter().filter(|_| !op.is_view).for_each(|one| one.ops.add(op));
            }
        } else if let Some(own) = own.filter(|_| op.is_view || COPIES.contains(&name)) {
            let same = op.reads.iter().filter(|_| op.padded.is_some()).chain(&op.writes);
            same.filter(|value| **value != 0).for_each(|value| _ = ids.entry(*value).or_insert(own));
        }
    }
}

/// Adds an embedding of padded ids; gives its line and sizes.
fn embedded<'a>(
    op: &Op<'a>,
    (at, ids): (&'a str, Padded),
    timeline: &'a Timeline,
    found: &mut BTreeMap<&'a str, Padding<'a>>,
) -> Option<(&'a str, [u64; 2])> {
    let args = op.args(timeline);
    let dims = sizes(args, "Input Dims");
    let [rows, length] = *dims.get(1)?.as_slice() else { return None };
    let shape = [rows, length];
    let said = types(args, "Concrete Inputs").get(2).and_then(|id| id.parse().ok()) == Some(ids.id);
    let empty =
        Padding { at, ids: Padded { id: ids.id, ..Padded::default() }, shape, is_said: said, ops: OpSet::default() };
    let one = found.entry(at).or_insert(empty);
    one.ids.tokens = one.ids.tokens.saturating_add(ids.tokens);
    one.ids.padding = one.ids.padding.saturating_add(ids.padding);
    one.ids.common = one.ids.common.saturating_add(ids.common);
    one.is_said &= said;
    one.ops.add(op);
    Some((at, shape))
}

/// Whether one of its tensors still has every token: rows by tokens, all in a row, or tokens by tokens.
fn has_tokens(op: &Op, [rows, length]: [u64; 2], timeline: &Timeline) -> bool {
    let whole = [length, rows.saturating_mul(length)];
    sizes(op.args(timeline), "Input Dims").iter().any(|sizes| sizes.iter().any(|side| whole.contains(side)))
}

#[cfg(test)]
mod tests {
    use crate::dataflow::Dataflow;
    use timeline::Timeline;

    fn said(ops: &[(&str, &str, &str)]) -> Vec<(String, u64, u64, bool, f64)> {
        let lines = ops.iter().enumerate().map(|(at, (name, dims, more))| {
            format!(
                "op aten::{name} {}us..{}us args {{\"Input~Dims\":[{dims}],\"Concrete~Inputs\":[\"\",\"\",\"0\"],\"device\":\"cpu\",{more},\"at\":\"m.py:{}\",\"turn\":[0,0]}}\n",
                20 * at,
                20 * at + 10,
                at + 1
            )
        });
        let timeline = Timeline::from_text(&format!("track main\n{}", lines.collect::<String>())).unwrap();
        let found = Dataflow::find(&timeline).padding(&timeline);
        found
            .iter()
            .map(|one| (one.at.to_owned(), one.ids.padding, one.ids.common, one.is_said, one.ops.count()))
            .collect()
    }

    #[test]
    fn ids_are_followed_to_the_embedding_and_on_from_it() {
        let program = [
            ("to", "[4,32]", "\"in\":[1],\"out\":[2],\"padded\":[128,100,96,0]"),
            ("embedding", "[9,8],[4,32]", "\"in\":[7,2],\"out\":[3]"),
            ("linear", "[4,32,8],[8,8]", "\"in\":[3,6],\"out\":[4]"),
            ("ne", "[4,32]", "\"in\":[2],\"out\":[11]"),
            ("mul", "[4,32,8],[4,32,1]", "\"in\":[11,4],\"out\":[4]"),
            ("mean", "[4,32,8]", "\"in\":[4],\"out\":[5]"),
            ("linear", "[4,8],[8,8]", "\"in\":[5,6],\"out\":[8]"),
            ("relu", "[4,32,8]", "\"in\":[99],\"out\":[98]"),
        ];
        assert_eq!(said(&program), [("m.py:1".into(), 100, 96, true, 4.0)]);
        let direct = [("embedding", "[9,8],[4,32]", "\"in\":[7,2],\"out\":[3],\"padded\":[128,100,96,5]")];
        assert_eq!(said(&direct), [("m.py:1".into(), 100, 96, false, 1.0)]);
    }

    #[test]
    fn ids_without_padding_and_counts_that_cannot_be_say_nothing() {
        for padded in ["", ",\"padded\":[128,128,0,0]", ",\"padded\":[128,5,9,0]", ",\"padded\":[128]"] {
            let ids = format!("\"in\":[7,2],\"out\":[3]{padded}");
            assert_eq!(said(&[("embedding", "[9,8],[4,32]", &ids)]), [], "{padded}");
        }
    }
}
