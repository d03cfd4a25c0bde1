//! What the file holds that could not be shown as it is, counted, and said in one note each.

use crate::import::window::FAR;
use std::collections::BTreeMap;
use trace::event::cut;

/// Categories beyond this are counted together: a file may invent one an event.
const MOST_CATEGORIES: usize = 20;

#[derive(Default)]
pub struct KinetoWarnings {
    unknown: BTreeMap<String, u64>,
    unknown_more: u64,
    pub unreadable: u64,
    pub long: u64,
    pub too_many: u64,
    pub times: u64,
    pub lengths: u64,
    pub far: u64,
    pub other_processes: u64,
}

impl KinetoWarnings {
    pub fn unknown(&mut self, category: &str) {
        let category = cut(category, 60);
        if let Some(count) = self.unknown.get_mut(category) {
            *count += 1;
        } else if self.unknown.len() < MOST_CATEGORIES {
            self.unknown.insert(category.to_owned(), 1);
        } else {
            self.unknown_more += 1;
        }
    }

    /// Events were met that are not known; in words, what they are.
    pub fn strange(&self) -> Option<String> {
        let categories = self.unknown.keys().map(String::as_str).filter(|category| !category.is_empty());
        let categories: Vec<&str> = categories.take(5).collect();
        (!self.unknown.is_empty()).then(|| match categories.len() {
            0 => "its events have no categories".into(),
            _ => format!("its categories: {}", categories.join(", ")),
        })
    }

    pub fn lines(&self) -> Vec<String> {
        let unknown = self.unknown.iter().map(|(category, count)| match category.as_str() {
            "" => format!("{count} events without a category or with an unsupported phase, skipped."),
            _ => format!("{count} events of the unknown category {category:?}, skipped."),
        });
        let counted = [
            (self.unknown_more, "events of other unknown categories, skipped"),
            (self.unreadable, "events that are not valid JSON objects, skipped"),
            (self.long, "events larger than 16 MiB, skipped"),
            (self.too_many, "events beyond what a timeline can hold, skipped"),
            (self.times, "events with a missing or invalid timestamp, skipped"),
            (self.lengths, "events with a negative or absurd duration, shown as instants"),
            (self.far, FAR),
            (
                self.other_processes,
                "more processes made CUDA calls: the file does not say whose the GPU work is, so one process has all of it",
            ),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}."));
        unknown.chain(counted).collect()
    }
}
