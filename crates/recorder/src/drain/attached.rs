//! One segment of the workload, being drained: how far each ring was read, what its names are called in the trace, and
//! which of its records are on disk.

use super::clock::Clock;
use super::losses::{Losses, REASONS};
use super::pairing::Pairing;
use crate::dictionary::Dictionary;
use crate::notes::Notes;
use crate::processes::Processes;
use crate::store::{Checkpoint, Covered, OnDisk, Store, counter, lost};
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use trace::event::{EVENT_SIZE, EVENT_WORDS};
use trace::gathered::TextGatherer;
use trace::names::NameCursor;
use trace::ring::Reader;
use trace::segment::{Identity, SegmentReader};
use trace::stack_frame::StackFrame;
use trace::status::Collector;
use trace::tables::Table;

pub(crate) type Record = [u64; EVENT_WORDS];

/// Where drained records go.
pub(crate) struct Sink<'a> {
    pub store: &'a mut Store,
    pub dictionary: &'a Dictionary,
    pub processes: &'a Processes,
    pub notes: &'a Notes,
    pub clock: &'a Clock,
    pub losses: &'a mut Losses,
    pub buffer: &'a mut Vec<Record>,
    /// Counts up; every ring is visited once in each.
    pub round: u64,
}

/// What a visit to a segment found.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Visit {
    pub records: u64,
    /// So much is not on disk that rings may grow large: time to close a file.
    pub ripe: bool,
    /// Writers had to overwrite, or found no ring, since the last file was closed.
    pub pressed: bool,
    /// Records were left in some ring.
    pub cut_short: bool,
}

#[derive(Default)]
pub(super) struct Ring {
    pub position: u64,
    pub texts: TextGatherer,
    /// Text and numbers that were read but whose owner was not: they do not count as read.
    pub pending: u64,
    pub durable: u64,
    /// Records before these are on disk already, in the tables of devices, though `position` was to read them again.
    pub gpu_from: u64,
    pub allocations_from: u64,
    pub blocks_from: u64,
}

impl Ring {
    /// What came before is gone: no owner follows for the text that is here.
    pub fn forget_text(&mut self) {
        if self.pending > 0 {
            (self.texts, self.pending) = (TextGatherer::default(), 0);
        }
    }
}

/// Where the process of a segment is in its life, as far as draining goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Living,
    /// Cannot be seen in /proc but writes (another pid namespace): never taken for dead.
    Hidden,
    /// Dead, with records to read.
    Dying,
    /// Dead and read: the segment may go once that is on disk.
    Gone,
}

pub(crate) struct Attached {
    pub phase: Phase,
    pub segment: String,
    pub who: Identity,
    pub process: i32,
    pub(super) reader: SegmentReader,
    pub(super) rings: Vec<Ring>,
    /// Rings with something new, found at the begin of a visit.
    news: Vec<usize>,
    pub(super) pressed: bool,
    cursor: NameCursor,
    /// Trace-wide numbers by the segment's numbers.
    pub(super) names: Vec<i32>,
    /// Trace-wide numbers of the stacks that end in a frame, by the frame's number among the names.
    pub(super) stacks: HashMap<u32, i32>,
    pub(super) unknown: i32,
    pub(super) pairing: Pairing,
    pub(super) counted: [[u64; 5]; Collector::ALL.len()],
    /// Records that were overwritten up to where the rings were read, by reason, and how many of them are counted.
    pub(super) lost: [u64; REASONS.len()],
    pub(super) lost_counted: [u64; REASONS.len()],
    /// A killed recorder drained this segment, and we have not come to its end yet.
    pub catching_up: bool,
}

/// Records taken from a ring at a time: a megabyte.
const CHUNK: usize = 32 << 10;
/// Of a segment that is not on disk before files are closed: a quarter of the largest ring that it may have. Smaller rings grow,
/// so how full they are says nothing.
const RIPE: u64 = 16;

impl Attached {
    /// `on_disk` says where the disk ends, for a segment that another recorder drained before.
    pub fn new(segment: String, reader: SegmentReader, process: i32, on_disk: &OnDisk) -> Attached {
        let ring = |number: u32| {
            let position = on_disk.slices.get(&segment, number);
            let gpu_from = on_disk.gpu.get(&segment, number);
            let allocations_from = on_disk.allocations.get(&segment, number);
            let blocks_from = on_disk.blocks.get(&segment, number);
            Ring { position, durable: position, gpu_from, allocations_from, blocks_from, ..Ring::default() }
        };
        let rings: Vec<Ring> = (0..reader.rings() as u32).map(ring).collect();
        // The killed recorder may have closed its files and not said so: a ring that is on disk is free for others.
        for (number, ring) in rings.iter().enumerate() {
            if let Some(view) = reader.ring(number).filter(|view| view.durable() < ring.durable) {
                view.set_durable(ring.durable);
            }
        }
        let of_page = |at: usize| std::array::from_fn(|each| on_disk.losses.get(&segment, counter(at, each)));
        let counted = std::array::from_fn(of_page);
        let lost_at = |covered: &Covered| std::array::from_fn(|reason| covered.get(&segment, lost(reason)));
        let (lost, lost_counted) = (lost_at(&on_disk.slices), lost_at(&on_disk.losses));
        Attached {
            phase: Phase::Living,
            who: reader.identity(),
            segment,
            process,
            reader,
            rings,
            news: Vec::new(),
            pressed: false,
            cursor: NameCursor::default(),
            names: vec![0],
            stacks: HashMap::new(),
            unknown: 0,
            pairing: Pairing::new(process),
            counted,
            lost,
            lost_counted,
            catching_up: false,
        }
    }

    pub fn reader(&self) -> &SegmentReader {
        &self.reader
    }

    pub fn reopen(&mut self, id: i32, left: Checkpoint) {
        self.pairing.reopen(id, left);
    }

    /// Reads what is new in every ring, as far as the store has room.
    pub fn drain(&mut self, sink: &mut Sink<'_>) -> Visit {
        let mut visit = Visit::default();
        self.rings.resize_with(self.reader.rings(), Ring::default);
        // Thousands of rings may be idle: they cost a load each.
        let mut news = std::mem::take(&mut self.news);
        let heads = self.reader.heads().zip(&self.rings).enumerate();
        news.extend(heads.filter(|(_, (head, ring))| *head > ring.position).map(|(number, _)| number));
        news.drain(..).for_each(|number| self.drain_ring(number, sink, &mut visit));
        self.news = news;
        let waiting = self.rings.iter().map(|ring| ring.position.saturating_sub(ring.durable));
        let waiting = waiting.fold(0, u64::saturating_add).saturating_mul(EVENT_SIZE as u64);
        visit.ripe = waiting >= self.reader.bytes() / RIPE;
        self.pressed |= self.reader.take_pressed();
        visit.pressed = self.pressed;
        // Also without records: calls that are open when the process dies have names too.
        self.read_names(sink.dictionary);
        if !visit.cut_short {
            self.catching_up = false;
            self.pairing.settle(sink.round, sink.store.batch(Table::Slices));
        }
        visit
    }

    fn drain_ring(&mut self, number: usize, sink: &mut Sink<'_>, visit: &mut Visit) {
        // Up to here and no farther: a writer that is faster than we are must not hold us for ever.
        let end = self.reader.ring(number).map_or(0, |view| view.head.load(Ordering::Acquire));
        while let Some(view) = self.reader.ring(number) {
            let ring = &mut self.rings[number];
            if ring.position >= end {
                return;
            }
            if sink.store.is_full() || sink.dictionary.is_full() {
                visit.cut_short = true;
                return;
            }
            sink.buffer.clear();
            let mut reader = Reader::new(view.head, view.slots, ring.position);
            let lost = reader.drain(sink.buffer, CHUNK);
            ring.position = reader.position();
            if lost > 0 {
                self.lost[usize::from(self.catching_up)] += lost;
                ring.forget_text();
            }
            visit.records += sink.buffer.len() as u64;
            // After the records: a name is published before the first record that uses it.
            self.read_names(sink.dictionary);
            self.convert(number, sink);
        }
    }

    fn read_names(&mut self, dictionary: &Dictionary) {
        if self.unknown == 0 {
            self.unknown = dictionary.name("(unknown)", None, None);
            self.names[0] = self.unknown;
        }
        let (names, stacks, unknown) = (&mut self.names, &mut self.stacks, self.unknown);
        self.cursor.read(self.reader.names(), |id, text| match StackFrame::read(&text) {
            // What it refers to was written before it.
            Some(frame) => {
                let parent = stacks.get(&frame.parent.0).copied().unwrap_or(0);
                let function = names.get(frame.function.0 as usize).copied().unwrap_or(unknown);
                stacks.insert(id.0, dictionary.child(parent, function, frame.line as i32));
                names.push(unknown);
            }
            None => names.push(dictionary.segment_name(&text)),
        });
    }
}
