//! Closing files: in which order things go to disk, what happens when the disk takes nothing, and the end.

use super::{Drain, Phase};
use crate::file_names::RESCUED;
use crate::lock::Lock;
use crate::store::Covered;
use std::time::Instant;
use trace::codes::{Note, NoteCode};
use trace::tables::Table;

/// Times that processes are read which still write although they were told to stop.
const LAST_PASSES: u32 = 4;

/// What is left when the recording ends.
pub(crate) struct Ended {
    /// Processes that still run; their records end here.
    pub running: usize,
    /// Records that could not be written to the trace, but are kept in shared memory.
    pub kept: bool,
}

impl Drain {
    /// Writes everything that was read, then tells the rings. A failure keeps everything where it is.
    pub fn close(&mut self) -> bool {
        self.last_close = Instant::now();
        // An end whose begin is in a ring that was read before it: one more look finds it.
        for _ in 0..3 {
            if !self.attached.iter().any(|attached| attached.waits_for_begins()) || self.store.is_full() {
                break;
            }
            self.visit();
        }
        for attached in &mut self.attached {
            attached.checkpoint(self.store.batch(Table::Slices));
            attached.count_losses(&mut self.losses);
            self.shared.processes.set_collectors(attached.process, &attached.collectors());
        }
        self.losses.hand_over(&mut self.store);
        let result = self.write();
        let done = result.is_ok();
        if done {
            self.forget_kept();
            self.release();
        }
        if let Some(error) = result.as_ref().err().filter(|_| self.failing.is_none()) {
            self.shared.notes.add(Note::new(NoteCode::DiskFailed).with(error));
        }
        self.failing = result.err();
        done
    }

    fn write(&mut self) -> std::io::Result<()> {
        // Names before whatever refers to them, also when there are more than one batch takes.
        while !self.shared.dictionary.hand_over(&mut self.store) {
            self.store.close_names()?;
        }
        let covered = self.covered();
        // A process is in the manifest before a row carries its number, and a note before its record may be forgotten.
        let (processes, notes) = (self.shared.processes.take_changed(), self.shared.notes.all());
        let devices = self.shared.devices.all();
        if processes.is_some() || notes != self.manifest.notes || devices != self.manifest.devices {
            self.manifest.devices = devices;
            self.manifest.processes = processes.unwrap_or_else(|| self.shared.processes.all());
            self.manifest.notes = notes;
            if let Err(error) = self.manifest.write_in_reserve(&self.trace) {
                self.shared.processes.set_changed();
                if error.kind() != std::io::ErrorKind::NotFound {
                    return Err(error);
                }
            }
        }
        let restored = self.store.restored;
        self.store.close(&covered)?;
        if self.store.restored > restored {
            self.shared.notes.add(Note::new(NoteCode::FilesPutBack));
            self.shared.processes.set_changed();
            // The lock went with the folder.
            self.lock = Lock::take(&self.trace.join(trace::tables::LOCK)).ok();
        }
        Ok(())
    }

    fn covered(&self) -> Covered {
        let mut covered = Covered::default();
        self.attached.iter().for_each(|attached| attached.cover(&mut covered));
        covered
    }

    /// Reads everything that is attached to the end and writes it. Returns how many records there were.
    pub fn drain_all(&mut self) -> std::io::Result<u64> {
        let mut records = 0;
        loop {
            let visit = self.visit();
            records += visit.records;
            if !self.close() {
                return Err(self.failing.take().unwrap_or_else(|| std::io::ErrorKind::Other.into()));
            }
            if !visit.cut_short {
                return Ok(records);
            }
        }
    }

    /// Records that were overwritten before they could be read, so far.
    pub fn lost_records(&self) -> u64 {
        self.losses.overwritten
    }

    /// The command has ended: reads what is left, tells those who still run to stop, and closes.
    pub fn finish(&mut self) -> Ended {
        for pass in 0.. {
            self.find_segments();
            self.find_dead();
            // Those who run on are told, so that the rings come to rest.
            self.attached.iter().for_each(|attached| attached.reader().set_wanted(false));
            let visit = self.visit();
            self.receive();
            self.keep();
            let done = self.close();
            // The dead are read to the end; the living might go on for ever.
            let unread = self.attached.iter().any(|attached| attached.phase == Phase::Dying);
            if !done || !(unread || self.more_segments() || visit.cut_short && pass < LAST_PASSES) {
                break;
            }
        }
        let runs = |phase| matches!(phase, Phase::Living | Phase::Hidden);
        // A process that uses CUDA has two segments.
        let living = self.attached.iter().filter(|attached| runs(attached.phase));
        let running = living.map(|attached| attached.process).collect::<std::collections::HashSet<_>>().len();
        let kept = self.failing.is_some();
        if kept {
            let covered = self.covered();
            // What the disk does not take goes beside the segments; a recovery finds it there.
            if let Err(error) = self.store.rescue(&self.segments.join(RESCUED), &covered) {
                self.shared.notes.add(Note::new(NoteCode::LastSamplesLost).with(error));
            }
        }
        Ended { running, kept }
    }
}
