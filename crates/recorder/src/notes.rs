//! Notes: one line each about what is missing from the trace and why. What is true of many processes is one note. Shared by
//! all threads of the recorder, shown after the run and kept in the manifest.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use trace::codes::{Note, NoteCode};

#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<Noted>>>);

struct Noted {
    note: Note,
    /// The processes that it was noted of. None: an earlier recorder did, and which they were is not known.
    processes: Option<BTreeSet<u32>>,
}

/// More notes than anybody reads.
const MOST: usize = 100;

impl Notes {
    /// Adds a note, once. The same about another process makes one note of both.
    pub fn add(&self, note: Note) {
        let mut notes = self.lock();
        let same = |noted: &Noted| (noted.note.code, &noted.note.args) == (note.code, &note.args);
        let fits = |noted: &Noted| match note.process {
            None => noted.note == note,
            Some(_) => noted.processes.is_some() && noted.note.process.is_some() && same(noted),
        };
        if let Some(known) = notes.iter_mut().find(|noted| fits(noted)) {
            if let (Some(pid), Some(all)) = (note.process, &mut known.processes) {
                all.insert(pid);
                known.note.processes = all.len() as u32;
            }
            return;
        }
        let note = match notes.len() {
            MOST.. => return,
            len if len == MOST - 1 => Note::new(NoteCode::NotesLeftOut),
            _ => note,
        };
        let processes = Some(note.process.into_iter().collect());
        notes.push(Noted { note, processes });
    }

    /// Takes over what an earlier recorder of the same trace noted.
    pub fn take_over(&self, all: &[Note]) {
        let noted = |note: &Note| Noted { note: note.clone(), processes: None };
        self.lock().extend(all.iter().map(noted));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Noted>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All but the first so many.
    pub fn since(&self, first: usize) -> Vec<Note> {
        self.lock().iter().skip(first).map(|noted| noted.note.clone()).collect()
    }

    pub fn all(&self) -> Vec<Note> {
        self.since(0)
    }

    /// As sentences.
    pub fn said(&self) -> Vec<String> {
        self.all().iter().map(Note::said).collect()
    }

    /// Runs one round of a recorder thread. A defect of ours ends neither the thread nor the workload.
    pub fn guard<T>(&self, who: &str, round: impl FnOnce() -> T) -> Option<T> {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(round));
        result.inspect_err(|_| self.add(Note::new(NoteCode::Defect).with(who))).ok()
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
        let denied = |pid| Note::new(NoteCode::NoStacks).with("permission denied").of(pid);
        notes.add(denied(12));
        assert_eq!(notes.said(), ["no stacks of process 12: permission denied"]);
        (3..503).for_each(|pid| notes.add(denied(pid)));
        notes.add(Note::new(NoteCode::NoStacks).with("it ended").of(7));
        notes.add(Note::new(NoteCode::DiskFailed).with("full"));
        notes.add(Note::new(NoteCode::DiskFailed).with("full"));
        let said = notes.said();
        assert_eq!(
            said[..2],
            ["no stacks of 500 processes (process 12 first): permission denied", "no stacks of process 7: it ended"]
        );
        assert_eq!((said.len(), notes.since(1).len()), (3, 2));
    }

    #[test]
    fn what_an_earlier_recorder_noted_is_not_counted_on() {
        let notes = Notes::default();
        let denied = |pid| Note::new(NoteCode::NoStacks).with("permission denied").of(pid);
        notes.take_over(&[Note { processes: 5, ..denied(12) }, Note::new(NoteCode::NoPython)]);
        notes.add(denied(13));
        notes.add(Note::new(NoteCode::NoPython));
        assert_eq!(notes.all().iter().map(|note| note.processes).collect::<Vec<_>>(), [5, 0, 1]);
    }

    #[test]
    fn notes_are_bounded() {
        let notes = Notes::default();
        (0..1000).for_each(|number| notes.add(Note::new(NoteCode::DiskFailed).with(number)));
        assert_eq!((notes.all().len(), notes.all()[MOST - 1].code), (MOST, NoteCode::NotesLeftOut));
    }
}
