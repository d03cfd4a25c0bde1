//! What the file holds that could not be shown, counted, and said in one note each.

use std::collections::BTreeMap;
use trace::event::cut;

/// Types beyond this are counted together: a file may invent one an event.
const MOST_TYPES: usize = 20;

#[derive(Default)]
pub struct JsonWarnings {
    /// Events of types that the format has and we do not show yet.
    pub unshown: BTreeMap<&'static str, u64>,
    unknown: BTreeMap<String, u64>,
    unknown_more: u64,
    pub unreadable: u64,
    pub long: u64,
    pub times: u64,
    pub ends: u64,
    pub lengths: u64,
    pub endless: u64,
    pub exits: u64,
    pub unclosed: u64,
    pub scope_ids: u64,
    pub stacks: u64,
    pub values: u64,
    pub args: u64,
    pub processes: u64,
    pub too_many: u64,
    pub entries: u64,
    pub notes: u64,
}

impl JsonWarnings {
    pub fn unknown(&mut self, sort: &str) {
        let sort = cut(sort, 60);
        if let Some(count) = self.unknown.get_mut(sort) {
            *count += 1;
        } else if self.unknown.len() < MOST_TYPES {
            self.unknown.insert(sort.to_owned(), 1);
        } else {
            self.unknown_more += 1;
        }
    }

    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.unshown.is_empty() {
            let kinds: Vec<String> = self.unshown.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            lines.push(format!("Skipped, not supported by this version: {} events.", kinds.join(", ")));
        }
        for (sort, count) in &self.unknown {
            lines.push(match sort.as_str() {
                "" => format!("{count} events without a type, skipped."),
                _ => {
                    format!("{count} events of the unknown type {sort:?}, skipped.")
                }
            });
        }
        let counted = [
            (self.unknown_more, "events of other unknown types, skipped"),
            (self.unreadable, "events that are not valid JSON objects, skipped"),
            (self.long, "events larger than 16 MiB, skipped"),
            (self.too_many, "events beyond what a timeline can hold, skipped"),
            (self.times, "events with a missing or invalid timestamp, skipped"),
            (self.ends, "events that end before they start, or at an invalid time: their duration is used, if any"),
            (self.lengths, "events with an invalid duration, shown as instants"),
            (self.endless, "events with neither end nor duration, shown as instants"),
            (self.exits, "scope exits without an enter"),
            (self.unclosed, "scopes without an exit, shown as open until the last event"),
            (self.scope_ids, "scopes with a duplicate id, shown without children by id"),
            (self.stacks, "samples with a missing stack: only the innermost function is known"),
            (self.values, "counter readings without a numeric value, skipped"),
            (self.args, "events with arguments that are too long, shown without them"),
            (self.processes, "processes with a duplicate pid, shown as one"),
            (self.entries, "unreadable entries of stacks, processes, threads, losses or notes"),
            (self.notes, "more notes in the file"),
        ];
        lines.extend(counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}.")));
        lines
    }
}
