//! The names that the page uses, renumbered from 0: a trace may hold a million, a page shows some thousands.

use std::collections::HashMap;
use timeline::{NameIndex, Timeline};

/// Longer names are cut on the page, with an ellipsis; the exports have them whole.
const LONGEST: usize = 200;

#[derive(Default)]
pub struct PageNames {
    places: HashMap<NameIndex, u64>,
    used: Vec<NameIndex>,
}

impl PageNames {
    pub fn place(&mut self, name: NameIndex) -> u64 {
        let next = self.used.len() as u64;
        *self.places.entry(name).or_insert_with(|| {
            self.used.push(name);
            next
        })
    }

    /// The texts, and beside each the file it is defined in.
    pub fn texts(&self, timeline: &Timeline) -> (Vec<String>, Vec<String>) {
        let name = |index: &NameIndex| timeline.names.get(*index);
        (
            self.used.iter().map(|n| short(&name(n).text)).collect(),
            self.used.iter().map(|n| short(&name(n).file)).collect(),
        )
    }
}

pub fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
