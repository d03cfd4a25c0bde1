//! Notes: one line each about what is missing from the trace and why. Shared by all threads of the recorder, shown
//! after the run and kept in the manifest.

use std::sync::{Arc, Mutex, PoisonError};

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

    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs one round of a recorder thread. A defect of ours ends neither the thread nor the workload.
    pub fn guard<T>(&self, who: &str, round: impl FnOnce() -> T) -> Option<T> {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(round));
        result.inspect_err(|_| self.add(format!("a defect in inferscope interrupted {who}; please report it"))).ok()
    }
}
