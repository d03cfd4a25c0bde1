//! Completes a trace whose recorder was killed: the rings in shared memory still hold what had not reached the disk, and
//! the footers on disk say exactly where to go on. May be killed itself, and run again.

use crate::dictionary::Dictionary;
use crate::drain::{Attached, Clock, Drain, Phase};
use crate::file_names::RESCUED;
use crate::found_devices::Found;
use crate::journal::{self, Facts};
use crate::lock::Lock;
use crate::manifest::{Manifest, State};
use crate::messages::channel;
use crate::notes::Notes;
use crate::outcome::{Error, Recovered};
use crate::output::{self, local_time};
use crate::private;
use crate::proc;
use crate::processes::Processes;
use crate::shared::Shared;
use crate::store::{Cell, Checkpoint, Left, Store, scan};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use trace::SegmentReader;
use trace::clock::{Anchor, Source};
use trace::codes::{Note, NoteCode};
use trace::plain_file;
use trace::segment::SUFFIX;
use trace::settings::MOST_TRACE_SIZE_MB;
use trace::tables::{MANIFEST, Table, parse_file_name};

/// What a process may be given, and the header of its segment.
const LARGEST_SEGMENT: u64 = (MOST_TRACE_SIZE_MB + 64) << 20;

/// Both folders are ours alone, which `unfinished` has made sure of. None: somebody has completed it meanwhile.
pub(crate) fn complete(trace: &Path, segments: &Path, lock: Lock) -> Result<Option<Recovered>, Error> {
    let not_a_trace = |error: io::Error| Error::NotATrace { path: trace.to_owned(), why: error.to_string() };
    let manifest = Manifest::read(trace).map_err(not_a_trace)?;
    if manifest.state != State::Recording {
        return Ok(None);
    }
    let mut manifest =
        take_rescued(trace, &segments.join(RESCUED), manifest).map_err(|error| unwritable(trace, error))?;
    let mut store = Store::open(trace).map_err(|error| unwritable(trace, error))?;
    let mut left = scan(&store.files());
    take_journal(segments, &mut store, &mut manifest, &mut left);
    let mut work = Work::new(segments, store, manifest, &left, lock);
    left.unreadable.iter().for_each(|file| work.notes.add(Note::new(NoteCode::FileDamaged).with(file)));
    work.drain_segments(segments, left).map_err(|error| unwritable(trace, error))?;
    work.finish(trace, segments).map(Some)
}

pub(crate) fn unwritable(trace: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Error::ReadOnlyTrace { path: trace.to_owned() }
        }
        _ => Error::NotCompleted { path: trace.to_owned(), why: error.to_string() },
    }
}

/// Moves tables and manifest that the recorder had to leave beside the segments.
pub(crate) fn take_rescued(trace: &Path, rescued: &Path, manifest: Manifest) -> io::Result<Manifest> {
    let Ok(entries) = fs::read_dir(rescued) else { return Ok(manifest) };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let unfinished = trace.join(format!("{name}.tmp"));
        // Copied, a file of holes would fill the disk.
        if fs::symlink_metadata(entry.path()).is_ok_and(|metadata| plain_file::is_hollow(&metadata)) {
            continue;
        }
        // One that cannot be read is worth less than the one that is there.
        if name == MANIFEST && Manifest::read(rescued).is_err() {
            continue;
        }
        if parse_file_name(&name).is_some() || name == MANIFEST {
            let copied = plain_file::open_inside(&entry.path())
                .and_then(|mut rescued| io::copy(&mut rescued, &mut private::create(&unfinished)?))
                .and_then(|_| fs::rename(&unfinished, trace.join(&name)));
            copied.inspect_err(|_| _ = fs::remove_file(&unfinished))?;
            fs::remove_file(entry.path())?;
        }
    }
    Manifest::read(trace)
}

/// Takes what the recorder itself saw and had not written into files. Returns how far the journal is whole, in bytes.
pub(crate) fn take_journal(segments: &Path, store: &mut Store, manifest: &mut Manifest, left: &mut Left) -> u64 {
    let files = store.files();
    let next = Table::ALL.map(|table| files.next(table));
    let row = |table: Table, file: u32, cells: &[Cell<'_>]| {
        // The kill came between the closing of a file and the clearing of the journal.
        if file < next[table as usize] {
            return;
        }
        left.add(table, cells);
        store.add(table, cells);
    };
    let facts = |facts: Facts| {
        for (number, process) in facts.processes {
            let known = manifest.processes.len();
            match manifest.processes.get_mut(number) {
                // The manifest may be the newer of the two: a process ends once.
                Some(known) if known.ended_ns.is_none() => *known = process,
                None if number == known => manifest.processes.push(process),
                _ => {}
            }
        }
        facts.notes.into_iter().for_each(|note| {
            if !manifest.notes.contains(&note) {
                manifest.notes.push(note);
            }
        });
        manifest.devices = facts.devices.unwrap_or_else(|| std::mem::take(&mut manifest.devices));
    };
    journal::read(segments, row, facts)
}

struct Work {
    drain: Drain,
    notes: Notes,
    processes: Processes,
    records: u64,
    /// When the recorder last gave a sign of life, in nanoseconds since 1970.
    last_sign: Option<u64>,
}

impl Work {
    fn new(segments: &Path, store: Store, manifest: Manifest, left: &Left, lock: Lock) -> Work {
        let notes = Notes::default();
        notes.take_over(&manifest.notes);
        let processes = Processes::continued(manifest.processes.clone());
        let dictionary = Arc::new(Dictionary::new(left.last_name));
        let devices = Found::of(manifest.devices.clone());
        let shared = Shared { dictionary, processes: processes.clone(), notes: notes.clone(), devices };
        let clock = Clock::start(Source::Monotonic);
        let last_anchor = left.last_anchor.map(|anchor| anchor.real);
        let last_sign = last_anchor.max(journal::last_written(segments));
        let mut drain = Drain::new(store, manifest, segments.to_owned(), clock, channel().1, shared);
        drain.hold(lock);
        Work { drain, notes, processes, records: 0, last_sign }
    }

    /// One segment after the other: each may be a hundred megabytes.
    fn drain_segments(&mut self, folder: &Path, left: Left) -> io::Result<()> {
        let mut open: HashMap<i32, Vec<(i32, Checkpoint)>> = HashMap::new();
        for ((process, _, id), checkpoint) in left.open {
            open.entry(process).or_default().push((id, checkpoint));
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(segment) = file.strip_suffix(SUFFIX) else { continue };
            self.drain.leave(segment);
            let reader = match self.open(&entry.path(), segment) {
                Ok(reader) => reader,
                Err(why) => {
                    self.notes.add(Note::new(NoteCode::SegmentNotRead).with(segment).with(why));
                    continue;
                }
            };
            let (who, anchor) = (reader.identity(), reader.latest_anchor());
            self.last_sign = self.last_sign.max(anchor.map(|anchor| anchor.real));
            let process = self.processes.found_segment(&who);
            // CLOCK_MONOTONIC needs no mapping, and the last mapping may still be needed for a segment that lives on.
            if reader.source() != Source::Monotonic {
                self.drain.clock = self.clock(&reader);
            }
            let mut attached = Attached::new(segment.to_owned(), reader, process, &left.covered);
            // A process may have several segments, and rows do not say from which they came: only the right one closes it.
            open.get(&process).into_iter().flatten().for_each(|(id, slice)| attached.reopen(*id, slice.clone()));
            if !proc::alive(who.pid, who.start_ticks) {
                attached.phase = Phase::Dying;
                self.processes.ended(process);
            }
            self.drain.adopt(attached);
            self.records += self.drain.drain_all()?;
        }
        Ok(())
    }

    /// A dead process's segment is copied: nobody vouches for its file any more.
    fn open(&self, path: &Path, segment: &str) -> Result<SegmentReader, String> {
        // `<pid>-<start>`, and a number after it for the second segment of a process.
        let mut parts = segment.split('-');
        let identity =
            parts.next().and_then(|pid| pid.parse().ok()).zip(parts.next().and_then(|start| start.parse().ok()));
        let reader = if identity.is_some_and(|(pid, start)| proc::alive(pid, start)) {
            SegmentReader::open(path)
        } else {
            plain_file::read_inside(path, LARGEST_SEGMENT)
                .map_err(Into::into)
                .and_then(|bytes| SegmentReader::load(&bytes))
        };
        let reader = reader.map_err(|error| format!("it {error}"))?;
        let claimed = reader.claim(std::process::id(), proc::runs);
        claimed.map_err(|holder| format!("process {holder} is recording it"))?;
        Ok(reader)
    }

    /// The clock of a segment, from the readings in its header; or from now, in case the machine still runs.
    fn clock(&self, reader: &SegmentReader) -> Clock {
        let (first, latest) = (reader.start_anchor(), reader.latest_anchor());
        let same_boot = self.drain.manifest.clock.boot_id == crate::host::boot_id();
        let second = if same_boot { Some(Anchor::take(reader.source())) } else { latest };
        match (first, second) {
            (Some(first), Some(second)) => Clock::again(reader.source(), first, second),
            _ => Clock::start(reader.source()),
        }
    }

    fn finish(mut self, trace: &Path, segments: &Path) -> Result<Recovered, Error> {
        let lost = self.drain.lost_records();
        let ended = self.drain.finish();
        if ended.kept {
            let why = self.drain.failing.take().map(|error| error.to_string()).unwrap_or_default();
            return Err(Error::NotCompleted { path: trace.to_owned(), why });
        }
        if let Err(error) = self.drain.store.finish(Some(segments)) {
            self.notes.add(Note::new(NoteCode::FilesNotJoined).with(error));
        }
        let clean_end = self.drain.manifest.ended_ns.is_some();
        if !clean_end {
            let when = self.last_sign.map_or("an unknown time".into(), |real| local_time(real, "%H:%M:%S"));
            self.notes.add(Note::new(NoteCode::Recovered).with(when).with(self.records).with(lost));
        }
        if ended.running > 0 {
            self.notes.add(Note::new(NoteCode::RecordedUpToNow).with(ended.running));
        }
        let manifest = &mut self.drain.manifest;
        let last = manifest.created_unix_ns.max(self.last_sign.unwrap_or(0)) - manifest.created_unix_ns;
        manifest.ended_ns = manifest.ended_ns.or(Some(manifest.started_ns + last));
        (manifest.state, manifest.segments) = (State::Recovered, None);
        (manifest.processes, manifest.notes) = (self.processes.all(), self.notes.all());
        manifest.write_in_reserve(trace).map_err(|error| unwritable(trace, error))?;
        if ended.running == 0 {
            output::remove_segments(segments);
        }
        Ok(Recovered { records: self.records, lost, notes: self.notes.said() })
    }
}
