//! pprof's string table: every text once, referred to by its place. The first is empty, as the format asks. pprof prints
//! texts to the terminal as they are, so what a terminal would obey is written out.

use crate::escape::visible;
use std::collections::HashMap;

pub struct Strings {
    known: HashMap<String, i64>,
}

impl Default for Strings {
    fn default() -> Strings {
        Strings { known: HashMap::from([(String::new(), 0)]) }
    }
}

impl Strings {
    pub fn index(&mut self, text: &str) -> i64 {
        let text = visible(text);
        if let Some(index) = self.known.get(&*text) {
            return *index;
        }
        let index = self.known.len() as i64;
        self.known.insert(text.into(), index);
        index
    }

    /// In order of place.
    pub fn into_all(self) -> Vec<String> {
        let mut all: Vec<(String, i64)> = self.known.into_iter().collect();
        all.sort_unstable_by_key(|(_, index)| *index);
        all.into_iter().map(|(text, _)| text).collect()
    }
}
