//! Notes: one line each about what is missing from the trace and why. What is true of many processes is one note. Shared by
//! all threads of the recorder, shown after the run and kept in the manifest.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Note>>>);

struct Note {
    /// With [`WHO`] where the processes stand.
    text: String,
    /// Of which processes, the first that it was noted of in front.
    first: Option<u32>,
    processes: BTreeSet<u32>,
}

/// In a note's text: the processes that it is about. No text of ours or of the system has this character.
const WHO: &str = "\u{0}";

impl Note {
    fn shown(&self) -> String {
        let Some(first) = self.first else { return self.text.clone() };
        let who = match self.processes.len() {
            1 => format!("process {first}"),
            count => format!("{count} processes (process {first} first)"),
        };
        self.text.replace(WHO, &who)
    }
}

/// More notes than anybody reads.
const MOST: usize = 100;

impl Notes {
    /// Adds a note, once.
    pub fn add(&self, note: impl Into<String>) {
        self.push(note.into().replace(WHO, ""), None);
    }

    /// Adds a note about a process: `note` puts the name that it is given, like "process 12", where it belongs. The same about
    /// another process makes one note of both.
    pub fn add_of(&self, pid: u32, note: impl FnOnce(&str) -> String) {
        self.push(note(WHO), Some(pid));
    }

    fn push(&self, text: String, process: Option<u32>) {
        let text = text.replace('\n', " ");
        let mut notes = self.lock();
        let known = notes.iter_mut().find(|note| note.text == text && note.first.is_some() == process.is_some());
        if let Some(known) = known {
            known.processes.extend(process);
            return;
        }
        let len = notes.len();
        let (text, process) = match len {
            MOST.. => return,
            _ if len == MOST - 1 => ("further notes were left out".into(), None),
            _ => (text, process),
        };
        notes.push(Note { text, first: process, processes: process.into_iter().collect() });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All but the first so many.
    pub fn since(&self, first: usize) -> Vec<String> {
        self.lock().iter().skip(first).map(Note::shown).collect()
    }

    pub fn all(&self) -> Vec<String> {
        self.since(0)
    }

    /// Runs one round of a recorder thread. A defect of ours ends neither the thread nor the workload.
    pub fn guard<T>(&self, who: &str, round: impl FnOnce() -> T) -> Option<T> {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(round));
        result.inspect_err(|_| self.add(format!("a defect in inferscope interrupted {who}; please report it"))).ok()
    }
}

/// The threads of the recorder.
const THREADS: [&str; 6] = ["drain", "compact", "watch", "stacks", "device", "pcie"];

/// Defects in our threads are noted, not printed into the output of the workload, with which we share the terminal.
pub(crate) fn silence_threads() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current().name().is_none_or(|name| !THREADS.contains(&name)) {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_true_of_many_processes_is_one_note() {
        let notes = Notes::default();
        notes.add_of(12, |who| format!("no stacks of {who}: permission denied"));
        assert_eq!(notes.all(), ["no stacks of process 12: permission denied"]);
        (3..503).for_each(|pid| notes.add_of(pid, |who| format!("no stacks of {who}: permission denied")));
        notes.add_of(7, |who| format!("no stacks of {who}: it ended"));
        notes.add("the disk was full");
        notes.add("the disk was full");
        let all = [
            "no stacks of 500 processes (process 12 first): permission denied",
            "no stacks of process 7: it ended",
            "the disk was full",
        ];
        assert_eq!(
            (notes.all(), notes.since(1)),
            (all.map(String::from).to_vec(), all[1..].iter().map(|note| (*note).to_owned()).collect())
        );
    }

    #[test]
    fn notes_are_bounded() {
        let notes = Notes::default();
        (0..1000).for_each(|number| notes.add(format!("note {number}")));
        assert_eq!((notes.all().len(), notes.all()[MOST - 1].as_str()), (MOST, "further notes were left out"));
    }
}
