//! Puts what a snapshot holds onto a timeline: the allocator of each device with its events and its segments at the end, its settings, and the
//! ranges that the program named.

use super::heap::Heap;
use super::records::{NOBODY, Records};
use super::settings;
use super::value::{Kind, Value};
use super::words::{Fields, Word};
use crate::import::markers;
use crate::memory::{Allocator, AllocatorIndex, AllocatorState, MemoryEvent, MemoryEventKind, Segment};
use crate::{Process, ProcessIndex, SliceExtra};
use std::collections::{BTreeMap, HashSet};

/// More devices than this are of no machine.
const MOST_DEVICES: u64 = 1024;
/// Times further than a week from the middle one are of a broken clock.
const REACH: u64 = 7 * 86_400_000_000_000;
/// Without times, events are in their order, and one nanosecond apart.
const APART: u64 = 1;

pub struct Loader<'a> {
    pub heap: &'a Heap,
    pub records: Records,
    pub notes: Vec<String>,
    process: ProcessIndex,
    allocators: BTreeMap<Option<u32>, AllocatorIndex>,
    settings: BTreeMap<String, String>,
}

impl<'a> Loader<'a> {
    pub fn new(heap: &'a Heap, mut records: Records) -> Loader<'a> {
        let process = records.builder.process(Process { program: "python".into(), ..Process::default() });
        let (allocators, settings) = (BTreeMap::new(), BTreeMap::new());
        Loader { heap, records, notes: Vec::new(), process, allocators, settings }
    }

    /// Takes what the pickle holds. Err: it is no snapshot; what it is instead.
    pub fn take(&mut self, top: Value) -> Result<(), String> {
        let items = self.heap.items(top);
        match self.heap.settled(top).kind() {
            // As torch before 2.0 gave it.
            Kind::List if items.iter().all(|item| item.is(Kind::Segment)) => {
                self.records.events.clear();
                self.segments(top, false);
            }
            Kind::Dict => {
                let fields = Fields::of(items);
                let known = [Word::Segments, Word::DeviceTraces, Word::HostSegments, Word::HostTraces];
                if !known.into_iter().any(|word| fields.has(word)) {
                    let keys = items.iter().step_by(2).filter_map(|key| self.heap.said(*key));
                    let keys: Vec<&str> = keys.map(|key| trace::event::cut(key, 40)).take(5).collect();
                    return Err(format!("its keys: {}", if keys.is_empty() { "none".into() } else { keys.join(", ") }));
                }
                self.settings = settings::read(self.heap, fields.get(Word::AllocatorSettings));
                self.traces(&fields);
                self.clock();
                self.segments(fields.get(Word::Segments), false);
                self.segments(fields.get(Word::HostSegments), true);
                self.annotations(fields.get(Word::ExternalAnnotations));
            }
            _ => return Err("it holds neither segments nor traces".into()),
        }
        self.note_late();
        Ok(())
    }

    fn allocator(&mut self, device: Option<u32>) -> AllocatorIndex {
        let all = &mut self.records.builder.timeline.memory.allocators;
        let (process, settings) = (self.process, &self.settings);
        *self.allocators.entry(device).or_insert_with(|| {
            let backend = if device.is_some() { "torch.cuda" } else { "torch.pinned" }.into();
            all.push(Allocator {
                process,
                device,
                backend,
                settings: settings.clone(),
                began_late: false,
                sampled_bytes: None,
            });
            AllocatorIndex(all.len() as u32 - 1)
        })
    }

    fn traces(&mut self, fields: &Fields) {
        let heap = self.heap;
        let mut last = None;
        let device = heap.items(fields.get(Word::DeviceTraces)).iter().zip(0..).map(|(list, at)| (*list, Some(at)));
        let host = heap.items(fields.get(Word::HostTraces)).iter().map(|list| (*list, None));
        for (list, device) in device.chain(host) {
            // One list twice would be the same events again.
            let first = heap.items(list).iter().find(|item| item.is(Kind::Event));
            if first.is_none() || first == last || device.is_some_and(|at: u64| at >= MOST_DEVICES) {
                continue;
            }
            last = first;
            let allocator = self.allocator(device.map(|at| at as u32));
            for item in heap.items(list).iter().filter(|item| item.is(Kind::Event)) {
                if let Some(event) = self.records.events.get_mut(item.place()) {
                    event.allocator = allocator;
                }
            }
        }
    }

    /// Gives every event a time that does not go back: the order in the file is the order in which things happened.
    fn clock(&mut self) {
        let records = &mut self.records;
        records.events.retain(|event| event.allocator != NOBODY);
        if !records.timed {
            records.events.iter_mut().zip(0..).for_each(|(event, at)| event.time = at * APART);
            records.builder.timeline.memory.ordered_only = !records.events.is_empty();
            if !records.events.is_empty() {
                self.notes.push("The snapshot has no times (torch before 2.1): events are in order only.".into());
            }
            return;
        }
        let mut times: Vec<u64> = records.events.iter().map(|event| event.time).filter(|time| *time != 0).collect();
        let Some(at) = times.len().checked_div(2).filter(|at| *at < times.len()) else { return };
        let middle = *times.select_nth_unstable(at).1;
        let near = |time: u64| time.abs_diff(middle) <= REACH;
        let first = times.iter().copied().filter(|time| near(*time)).min().unwrap_or(middle);
        let mut last: BTreeMap<AllocatorIndex, u64> = BTreeMap::new();
        let mut moved = 0u64;
        for event in &mut records.events {
            let last = last.entry(event.allocator).or_insert(first);
            moved += u64::from(!near(event.time));
            *last = if near(event.time) { event.time.max(*last) } else { *last };
            event.time = *last;
        }
        if moved > 0 {
            self.notes.push(format!("{moved} events with an invalid timestamp, placed after the one before."));
        }
    }

    fn segments(&mut self, list: Value, host: bool) {
        let mut by_device: BTreeMap<Option<u32>, Vec<Segment>> = BTreeMap::new();
        let heap = self.heap;
        let mut seen = HashSet::new();
        for item in heap.items(list).iter().filter(|item| item.is(Kind::Segment) && seen.insert(item.place())) {
            let Some((device, segment)) = self.records.segments.get_mut(item.place()) else { continue };
            let device = device.unwrap_or(0);
            if device >= MOST_DEVICES {
                self.records.invalid += 1;
                continue;
            }
            let blocks = std::mem::take(&mut segment.blocks);
            let segment = Segment { blocks, ..segment.clone() };
            by_device.entry((!host).then_some(device as u32)).or_default().push(segment);
        }
        let end = self.records.events.iter().map(|event| event.time).max().unwrap_or(0);
        for (device, mut segments) in by_device {
            let allocator = self.allocator(device);
            segments.sort_by_key(|segment| segment.address);
            let state = AllocatorState { time: end, allocator, segments };
            self.records.builder.timeline.memory.states.push(state);
        }
    }

    /// Ranges of `torch.profiler.record_function`, which a program that asks for it has in its snapshot.
    fn annotations(&mut self, list: Value) {
        let mut open: Vec<(Value, u64)> = Vec::new();
        let mut track = None;
        for item in self.heap.items(list) {
            let fields = Fields::of(self.heap.items(*item));
            let (stage, name) = (fields.get(Word::Stage), fields.get(Word::Name));
            let time = self.heap.unsigned(fields.get(Word::TimeUs)).and_then(|time| time.checked_mul(1000));
            let (Some(time), Some(said)) = (time, self.heap.said(name)) else { continue };
            if Word::Start.is(stage) && open.len() < 1000 {
                open.push((name, time));
            } else if Word::End.is(stage)
                && let Some(at) = open.iter().rposition(|(began, _)| *began == name)
            {
                let (_, start) = open.remove(at);
                let builder = &mut self.records.builder;
                let (kind, name) = markers::annotation(builder, said);
                let track = *track.get_or_insert_with(|| builder.track(self.process, 0, "annotations"));
                builder.slice(track, kind, name, start, time.saturating_sub(start), SliceExtra::default());
            }
        }
    }

    /// Says of each allocator whether it held memory before the first event.
    fn note_late(&mut self) {
        let memory = &mut self.records.builder.timeline.memory;
        let mut live: Vec<HashSet<u64>> = vec![HashSet::new(); memory.allocators.len()];
        for event in &self.records.events {
            let at = event.allocator.0 as usize;
            match event.kind {
                MemoryEventKind::Alloc => drop(live[at].insert(event.address)),
                MemoryEventKind::FreeRequested => memory.allocators[at].began_late |= !live[at].remove(&event.address),
                _ => {}
            }
        }
        for state in &memory.states {
            let at = state.allocator.0 as usize;
            let mut active = state.segments.iter().flat_map(|segment| &segment.blocks);
            let before = active
                .any(|block| block.state == crate::memory::BlockState::Active && !live[at].contains(&block.address));
            memory.allocators[at].began_late |= before;
        }
    }

    /// The notes, the rows, and how many events there are.
    pub fn finish(mut self) -> (Records, Vec<String>, u64) {
        let counted = [
            (self.records.invalid, "events, blocks or segments with an address or size beyond 64 bits, skipped."),
            (self.records.unknown, "events with an unknown action, skipped."),
        ];
        self.notes
            .extend(counted.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
        let events: Vec<MemoryEvent> = std::mem::take(&mut self.records.events);
        let count = events.len() as u64;
        self.records.builder.timeline.memory.events = events;
        (self.records, self.notes, count)
    }
}
