//! Once a turn, what the samplers saw and what the manifest does not say yet goes into the journal; when files were closed it
//! starts anew. Costs one write into shared memory a turn.

use super::Drain;
use crate::journal::{Facts, Journal};
use crate::manifest::Device;
use crate::shared::Shared;
use crate::store::Store;
use trace::codes::{Note, NoteCode};

pub(super) struct Kept {
    journal: Journal,
    /// Notes that are in it, or in the manifest.
    notes: usize,
    devices: Vec<Device>,
    /// It did not take everything. What comes after may refer to that, so all of it waits for the next files.
    broken: bool,
}

impl Kept {
    fn keep(&mut self, store: &mut Store, shared: &Shared) -> std::io::Result<()> {
        let (notes, devices) = (shared.notes.since(self.notes), shared.devices.all());
        let new_devices = devices != self.devices;
        let facts =
            Facts { processes: shared.processes.take_touched(), devices: new_devices.then(|| devices.clone()), notes };
        self.notes += facts.notes.len();
        self.devices = devices;
        if facts != Facts::default() {
            store.unkept().facts(&facts);
        }
        if store.unkept().is_empty() || self.broken {
            store.unkept().clear();
            return Ok(());
        }
        let result = self.journal.append(store.unkept());
        store.unkept().clear();
        self.broken = result.is_err();
        result
    }
}

impl Drain {
    /// Keeps in this journal what the recorder itself sees, until it is in files.
    pub fn keep_in(&mut self, journal: Journal) {
        self.store.keep_rows();
        self.kept = Some(Kept { journal, notes: 0, devices: Vec::new(), broken: false });
    }

    pub(super) fn keep(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        if let Err(error) = kept.keep(&mut self.store, &self.shared) {
            self.shared.notes.add(not_kept(&error));
        }
    }

    /// All rows are in files.
    pub(super) fn forget_kept(&mut self) {
        if let Some(kept) = &mut self.kept {
            self.store.unkept().clear();
            kept.journal.clear();
            kept.broken = false;
        }
    }
}

pub(crate) fn not_kept(error: &std::io::Error) -> Note {
    Note::new(NoteCode::NoJournal).with(error)
}
