//! What slices are called as steps: markers of engines by what they mark, names that differ in a number by what they share
//! ("iteration 7", "iteration 8"), all others by themselves.

use std::collections::HashMap;
use timeline::{NameIndex, Timeline, step_marker};

/// Numbered parts of one step, not steps: a model has layers.
const PARTS: [&str; 8] = ["layer", "block", "head", "expert", "stage", "op_id", "rank", "worker"];
/// Operators of PyTorch, which its profiler marks with NVTX ranges: never steps.
const OPERATORS: [&str; 6] = ["aten::", "autograd::", "torch::", "prims::", "c10", "nccl:"];

#[derive(Default)]
pub struct Called {
    /// By name: its place among the labels, one higher. 0: not asked for yet.
    known: Vec<u32>,
    by_key: HashMap<String, u32>,
    pub labels: Vec<Label>,
    /// Whether names that differ in a number are one.
    numbered: bool,
}

pub struct Label {
    pub text: String,
    /// An engine marks steps with it, whatever kind of slice it is.
    pub is_step: bool,
    pub is_operator: bool,
}

impl Called {
    pub fn new(timeline: &Timeline, numbered: bool) -> Called {
        Called { known: vec![0; timeline.names.len()], numbered, ..Called::default() }
    }

    /// The place of a name's label.
    pub fn of(&mut self, timeline: &Timeline, name: NameIndex) -> u32 {
        let Some(known) = self.known.get(name.0 as usize).copied() else { return 0 };
        if known > 0 {
            return known - 1;
        }
        let place = self.add(timeline.names.text(name));
        self.known[name.0 as usize] = place + 1;
        place
    }

    fn add(&mut self, text: &str) -> u32 {
        let marker = step_marker(text);
        let key = match marker {
            Some(marker) => marker.to_owned(),
            None if self.numbered => shared(text),
            None => text.to_owned(),
        };
        let next = self.labels.len() as u32;
        let place = *self.by_key.entry(key).or_insert_with_key(|key| {
            let is_operator = OPERATORS.iter().any(|start| text.starts_with(start));
            let text = if marker.is_some() { key.clone() } else { text.to_owned() };
            self.labels.push(Label { text, is_step: marker.is_some(), is_operator });
            next
        });
        let label = &mut self.labels[place as usize];
        if marker.is_none() && label.text != text {
            label.text = shared(text);
        }
        place
    }
}

/// A name with `#` for each number. Numbered parts of a step keep theirs.
fn shared(text: &str) -> String {
    let small = text.to_ascii_lowercase();
    if !text.bytes().any(|byte| byte.is_ascii_digit()) || PARTS.iter().any(|part| small.contains(part)) {
        return text.to_owned();
    }
    let mut key = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if key.ends_with('#') => {}
            true => key.push('#'),
            false => key.push(letter),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_make_names_but_layers_keep_theirs() {
        for (text, key) in [
            ("iteration 12", "iteration #"),
            ("step[3/100]", "step[#/#]"),
            ("decode", "decode"),
            ("layer_3", "layer_3"),
            ("Stage 2", "Stage 2"),
        ] {
            assert_eq!(shared(text), key);
        }
    }
}
