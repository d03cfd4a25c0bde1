//! Looking around: which segments are new, and which processes have died. A segment outlives its process, so nothing is
//! lost between two looks.

use super::{Attached, Drain, Phase};
use crate::proc;
use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};
use trace::SegmentReader;
use trace::codes::{Note, NoteCode};
use trace::segment::{Limit, SUFFIX};

#[derive(Default)]
pub(super) struct Look {
    next: Option<Instant>,
    next_health: Option<Instant>,
    /// Segments that are attached, or that we leave alone.
    known: HashSet<String>,
    /// There are segments that we have no room for yet.
    more: bool,
}

const EVERY: Duration = Duration::from_millis(20);
/// Mappings at a time. Address space is free, page tables and patience are not.
const MOST_ATTACHED: usize = 512;
/// Rings of so many processes may stay in our memory: 16 MB each, at most.
const FEW: usize = 2;
/// So many dead processes are worth a file of their own: their shared memory is freed after it.
const MOST_GONE: usize = 64;

impl Drain {
    pub(super) fn look_around(&mut self, now: Instant) {
        if self.look.next.is_none_or(|next| now >= next) {
            self.look.next = Some(now + EVERY);
            self.find_segments();
        }
        if self.look.next_health.is_none_or(|next| now >= next) {
            self.find_dead();
            // Asking about hundreds of processes takes milliseconds: never more than a fiftieth of the time.
            self.look.next_health = Some(now + EVERY.max(now.elapsed() * 50));
        }
    }

    /// Attaches new segments. Returns how many.
    pub(super) fn find_segments(&mut self) -> usize {
        let Ok(entries) = std::fs::read_dir(&self.segments) else { return 0 };
        self.look.more = false;
        let mut found = 0;
        for entry in entries.flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            let Some(segment) = file.strip_suffix(SUFFIX).filter(|name| !self.look.known.contains(*name)) else {
                continue;
            };
            if self.attached.len() >= MOST_ATTACHED {
                self.look.more = true;
                break;
            }
            self.look.known.insert(segment.to_owned());
            match self.attach(segment, &entry.path()) {
                Ok(attached) => {
                    self.attached.push(attached);
                    found += 1;
                }
                Err(why) => self.shared.notes.add(Note::new(NoteCode::SegmentNotRead).with(segment).with(why)),
            }
        }
        found
    }

    /// Takes in a segment that a killed recorder left.
    pub fn adopt(&mut self, attached: Attached) {
        self.look.known.insert(attached.segment.clone());
        self.attached.push(attached);
    }

    /// Leaves a segment alone.
    pub fn leave(&mut self, segment: &str) {
        self.look.known.insert(segment.to_owned());
    }

    fn attach(&self, segment: &str, path: &Path) -> Result<Attached, String> {
        let reader = SegmentReader::open(path).map_err(|error| format!("it {error}"))?;
        // Whoever recorded it before us is dead: ours is the trace's lock.
        let may_live = |pid| !self.resumed && proc::runs(pid);
        reader
            .claim(std::process::id(), may_live)
            .map_err(|holder| format!("process {holder} is already recording it"))?;
        reader.set_latest_anchor(self.clock.latest());
        self.note_shortage(&reader);
        let process = self.shared.processes.found_segment(&reader.identity());
        let mut attached = Attached::new(segment.to_owned(), reader, process, &self.left.covered);
        // A process may have several segments, and rows do not say from which they came: only the right one closes it.
        let open = self.left.open.iter().filter(|((of, ..), _)| *of == process);
        open.for_each(|((.., id), slice)| attached.reopen(*id, slice.clone()));
        attached.catching_up = self.resumed && self.look.next_health.is_none();
        Ok(attached)
    }

    /// Says of a segment that is smaller than asked for how large it is, and why.
    fn note_shortage(&self, reader: &SegmentReader) {
        let Some((asked, bytes, limit)) = reader.shortage() else { return };
        let limit = match limit {
            Limit::AddressSpace => "address-space",
            Limit::FileSystem => "file-system",
            Limit::Cgroup => "cgroup",
            Limit::FileSize => "file-size",
            Limit::None => "none",
        };
        let note = Note::new(NoteCode::SmallerSegment).with(bytes).with(asked).with(limit);
        self.shared.notes.add(note.of(reader.identity().pid));
    }

    pub(super) fn find_dead(&mut self) {
        for attached in self.attached.iter_mut().filter(|attached| attached.phase == Phase::Living) {
            if !proc::alive(attached.who.pid, attached.who.start_ticks) {
                attached.phase = Phase::Dying;
                self.shared.processes.ended(attached.process);
            }
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        let gone = self.attached.iter().filter(|attached| attached.phase == Phase::Gone).count();
        gone >= MOST_GONE || (self.look.more && gone > 0)
    }

    /// Everything read so far is on disk: lets go of the dead, and of the pages of the living when they are many.
    pub(super) fn release(&mut self) {
        if self.attached.len() > FEW {
            self.attached.iter().for_each(|attached| attached.reader().forget_pages());
        }
        let (known, folder) = (&mut self.look.known, &self.segments);
        self.attached.retain_mut(|attached| {
            attached.set_durable();
            if attached.phase != Phase::Gone {
                return true;
            }
            if attached.has_more() {
                attached.phase = Phase::Hidden;
                return true;
            }
            let name = format!("{}{SUFFIX}", attached.segment);
            if std::fs::remove_file(folder.join(name)).is_ok() {
                known.remove(&attached.segment);
            }
            false
        });
    }

    pub(super) fn more_segments(&self) -> bool {
        self.look.more
    }
}
