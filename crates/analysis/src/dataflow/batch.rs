//! How many items a step works on at once, where the shapes of its operators say so: the leading size of what convolutions, attention, embeddings and
//! normalisations are given. Matrix products say nothing: theirs is often the batch times the length.

use crate::operators::{Look, Op, sizes};
use std::collections::BTreeMap;
use timeline::Timeline;

/// The operators whose argument at this place has the batch first, and the dimensions that it has at least.
const BATCHED: [(&str, usize, usize); 11] = [
    ("aten::convolution", 0, 3),
    ("aten::_convolution", 0, 3),
    ("aten::conv2d", 0, 4),
    ("aten::cudnn_convolution", 0, 3),
    ("aten::scaled_dot_product_attention", 0, 4),
    ("aten::_scaled_dot_product_flash_attention", 0, 4),
    ("aten::_scaled_dot_product_efficient_attention", 0, 4),
    ("aten::embedding", 1, 2),
    ("aten::layer_norm", 0, 3),
    ("aten::native_layer_norm", 0, 3),
    ("aten::batch_norm", 0, 3),
];
/// One operator may work on something else: a table of positions, a mask.
const LEAST_OPS: u64 = 3;

/// A batch size that operators agree on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batch {
    pub size: u64,
    /// How many operators have it, by name.
    pub ops: BTreeMap<&'static str, u64>,
}

/// None: no such operator was looked at, or they do not all have the same. A table of positions has one row, whatever the batch.
pub fn find(looks: &[Look], timeline: &Timeline) -> Option<Batch> {
    let mut found: Option<Batch> = None;
    for (name, size) in looks.iter().flat_map(|look| &look.ops).filter_map(|op| leading(op, timeline)) {
        let batch = found.get_or_insert_with(|| Batch { size, ops: BTreeMap::new() });
        let is_table = |size: u64| size == 1 && name == "aten::embedding";
        match batch.size == size {
            true => *batch.ops.entry(name).or_default() += 1,
            false if is_table(size) => {}
            // What came before was the table.
            false if batch.size == 1 && batch.ops.keys().all(|name| *name == "aten::embedding") => {
                *batch = Batch { size, ops: BTreeMap::from([(name, 1)]) };
            }
            false => return None,
        }
    }
    found.filter(|batch| batch.ops.values().sum::<u64>() >= LEAST_OPS)
}

fn leading(op: &Op, timeline: &Timeline) -> Option<(&'static str, u64)> {
    let own = timeline.names.text(op.name);
    let (name, place, least) = BATCHED.into_iter().find(|(name, _, _)| *name == own)?;
    let dims = sizes(op.args(timeline), "Input Dims");
    let dims = dims.get(place).filter(|dims| dims.len() >= least)?;
    Some((name, *dims.first()?)).filter(|(_, size)| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::looks;

    fn of(ops: &[(&str, &str)]) -> Option<u64> {
        let mut text = String::from("track main\n");
        for (at, (name, dims)) in ops.iter().enumerate() {
            let args = format!("{{\"Input~Dims\":{dims},\"Input~type\":[],\"device\":\"cuda:0\",\"turn\":[0,1]}}");
            text += &format!("op {name} {at}us..{}us args {args}\n", at + 1);
        }
        let timeline = Timeline::from_text(&text).unwrap();
        find(&looks(&timeline), &timeline).map(|batch| batch.size)
    }

    #[test]
    fn operators_that_agree_tell_the_batch() {
        let norm = ("aten::layer_norm", "[[4,128,768],[768]]");
        let attention = ("aten::scaled_dot_product_attention", "[[4,12,128,64],[4,12,128,64]]");
        let linear = ("aten::addmm", "[[768],[512,768],[768,768]]");
        assert_eq!(of(&[norm, linear, attention, norm]), Some(4));
        let positions = ("aten::embedding", "[[512,768],[1,128]]");
        let tokens = ("aten::embedding", "[[50257,768],[4,128]]");
        assert_eq!(of(&[positions, tokens, norm, attention]), Some(4));
        assert_eq!(of(&[tokens, positions, norm, attention]), Some(4));
    }

    #[test]
    fn nothing_is_said_where_they_differ_or_are_few() {
        let (four, two) = (("aten::layer_norm", "[[4,128,768]]"), ("aten::layer_norm", "[[2,128,768]]"));
        assert_eq!(of(&[four, four, four, two]), None);
        assert_eq!(of(&[four, four]), None);
        assert_eq!(of(&[("aten::mm", "[[4,8],[8,8]]"); 5]), None);
        assert_eq!(of(&[("aten::layer_norm", "[[4,128"); 5]), None);
    }
}
