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
            lines.push(format!("Not shown yet by this version, and left out: {} events.", kinds.join(", ")));
        }
        for (sort, count) in &self.unknown {
            lines.push(match sort.as_str() {
                "" => format!("{count} events have no type, and are left out."),
                _ => {
                    format!("{count} events are of type {sort:?}, which this version does not know, and are left out.")
                }
            });
        }
        let counted = [
            (self.unknown_more, "events are of still other types that this version does not know, and are left out"),
            (self.unreadable, "events are not valid JSON objects, and are left out"),
            (self.long, "events are larger than 16 MB, and are left out"),
            (self.too_many, "events are more than fit into a timeline, and are left out"),
            (self.times, "events have no time, or one that cannot be, and are left out"),
            (self.ends, "events end before they start, or at a time that cannot be: their duration is used, or none"),
            (self.lengths, "events have a duration that cannot be, and are shown as moments"),
            (self.endless, "events have neither end nor duration, and are shown as moments"),
            (self.exits, "scopes are left without having been entered"),
            (self.unclosed, "scopes are never left in the file: shown as open to its last event"),
            (self.scope_ids, "scopes have the id of another: they are shown, but have no children by id"),
            (self.stacks, "samples refer to a stack that is missing: only their innermost function is known"),
            (self.values, "counter readings have no value that is a number, and are left out"),
            (self.args, "events have arguments that are too long, and are shown without"),
            (self.processes, "processes have the number of another, and are shown as one with it"),
            (self.entries, "entries of stacks, processes, threads, losses or notes could not be read"),
            (self.notes, "further notes are in the file"),
        ];
        lines.extend(counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}.")));
        lines
    }
}
