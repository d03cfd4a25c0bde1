//! Begins a trace, or goes on with one whose recorder was killed: what is on disk says where each ring is read from, the journal
//! holds what was in no file yet. A new trace is one that has nothing yet.

use crate::dictionary::Dictionary;
use crate::drain::{Clock, Drain, not_kept};
use crate::file_names::RESCUED;
use crate::found_devices::Found;
use crate::host;
use crate::journal::Journal;
use crate::lock::Lock;
use crate::manifest::{Manifest, State};
use crate::messages::{Outbox, channel};
use crate::notes::Notes;
use crate::output::Output;
use crate::private;
use crate::processes::Processes;
use crate::recover::{take_journal, take_rescued};
use crate::shared::Shared;
use crate::store::{Left, Store, scan};
use std::io;
use std::sync::Arc;
use trace::Source;
use trace::clock::Anchor;
use trace::codes::{LossReason, Note, NoteCode};
use trace::tables::{LOCK, MANIFEST, Table};

pub(crate) struct Resumed {
    pub drain: Drain,
    pub outbox: Outbox,
    /// An earlier recorder took samples of stacks.
    pub had_samples: bool,
}

/// What an earlier recorder of the same supervisor completed, and its notes; or the trace to go on with.
pub(crate) enum Begun {
    Complete(Vec<Note>),
    Open(Box<Resumed>),
}

/// `fresh` is the manifest of a trace that has none yet. `restarts`: how many recorders of it were killed.
pub(crate) fn resume(output: &Output, fresh: &Manifest, notes: &[Note], restarts: u32) -> io::Result<Begun> {
    private::folder(&output.trace)?;
    let lock_path = output.trace.join(LOCK);
    // The supervisor's lock is ours too, unless it went with the folder.
    let lock = if output.lock.is_of(&lock_path) { None } else { Lock::take(&lock_path).ok() };
    let mut manifest = match Manifest::read(&output.trace) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => fresh.clone(),
        read => read?,
    };
    if manifest.state != State::Recording {
        return Ok(Begun::Complete(manifest.notes));
    }
    let removed = restarts > 0 && !output.trace.join(MANIFEST).exists();
    if removed {
        manifest.notes.push(Note::new(NoteCode::FolderLost));
    }
    if output.segments.join(RESCUED).exists() {
        manifest = take_rescued(&output.trace, &output.segments.join(RESCUED), manifest)?;
    }
    let mut store = Store::open(&output.trace)?;
    let mut left = scan(&store.files());
    let whole = take_journal(&output.segments, &mut store, &mut manifest, &mut left);
    manifest.recorder_pid = std::process::id();
    let shared = shared(&manifest, &left);
    notes.iter().for_each(|note| shared.notes.add(note.clone()));
    left.unreadable.iter().for_each(|file| shared.notes.add(Note::new(NoteCode::FileDamaged).with(file)));
    (manifest.notes, manifest.processes) = (shared.notes.all(), shared.processes.all());
    let written = manifest.write_in_reserve(&output.trace);
    // A disk that is full by now keeps nobody from going on: records wait in shared memory.
    if restarts == 0 {
        written?;
    }
    let had_samples = !store.files().of(Table::Samples).is_empty() || store.batch(Table::Samples).rows() > 0;
    let (outbox, inbox) = channel();
    let clock = clock(&manifest, &left);
    let notes = shared.notes.clone();
    let mut drain = Drain::new(store, manifest, output.segments.clone(), clock, inbox, shared);
    lock.into_iter().for_each(|lock| drain.hold(lock));
    drain.go_on(left, restarts);
    match Journal::resume(&output.segments, whole) {
        Ok(journal) => drain.keep_in(journal),
        Err(error) => notes.add(not_kept(&error)),
    }
    if whole > 0 {
        // Into files first, and then the journal begins anew. If the disk takes nothing now, it holds what it held.
        drain.close();
    }
    Ok(Begun::Open(Box::new(Resumed { drain, outbox, had_samples })))
}

fn shared(manifest: &Manifest, left: &Left) -> Shared {
    let notes = Notes::default();
    notes.take_over(&manifest.notes);
    Shared {
        dictionary: Arc::new(Dictionary::after(left.last_name, left.last_stack)),
        processes: Processes::continued(manifest.processes.clone()),
        devices: Found::of(manifest.devices.clone()),
        notes,
    }
}

/// The clock goes on: the line through the trace's first reading and one of now is the best there is.
fn clock(manifest: &Manifest, left: &Left) -> Clock {
    let source = if manifest.clock.source == "tsc" { Source::Tsc } else { Source::Monotonic };
    match left.first_anchor.filter(|_| manifest.clock.boot_id == host::boot_id()) {
        Some(first) => Clock::again(source, first, Anchor::take(source)),
        None => Clock::start(source),
    }
}

impl Drain {
    /// Records that were overwritten while no recorder ran, in all.
    pub fn lost_away(&self) -> u64 {
        self.left.losses.get(&LossReason::OverwrittenDuringRestart).copied().unwrap_or(0) + self.losses.away
    }
}
