//! Notes: one line each about what is missing from the trace and why. Shared by all threads of the recorder, shown
//! after the run and kept in the manifest.

use std::sync::{Arc, Mutex, Once, PoisonError};

#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

/// More notes than anybody reads.
const MOST: usize = 100;

impl Notes {
    /// Adds a note, once.
    pub fn add(&self, note: impl Into<String>) {
        let note = note.into().replace('\n', " ");
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.contains(&note) {
            return;
        }
        match notes.len() {
            MOST.. => {}
            len if len == MOST - 1 => notes.push("further notes were left out".into()),
            _ => notes.push(note),
        }
    }

    /// All but the first so many.
    pub fn since(&self, first: usize) -> Vec<String> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.get(first..).map(<[_]>::to_vec).unwrap_or_default()
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
