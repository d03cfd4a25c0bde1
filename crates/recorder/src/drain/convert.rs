//! Records become rows. Plain calls, which come by the million, go a column at a time; everything else one by one. What
//! devices did is left to [`super::device`].

use super::attached::{Attached, Record, Sink};
use super::device::whole_work;
use super::pairing::{Begun, push};
use crate::store::CallFields;
use trace::NameId;
use trace::clock::{Mapping, Ticks};
use trace::codes::{CollectorCode, FixMoment, LossReason, OverheadKind, RecordingWindow};
use trace::event::{Event, Kind};
use trace::gc_pause::{Found, GcPause};
use trace::tables::{SliceKind, Table};

impl Attached {
    /// Turns the records in the buffer into rows. Runs of plain calls go a column at a time, work as it lies.
    pub(super) fn convert(&mut self, number: usize, sink: &mut Sink<'_>) {
        let records = std::mem::take(sink.buffer);
        let mapping = sink.clock.mapping(self.reader.source());
        // The ring's number of the first record.
        let first = self.rings[number].position - records.len() as u64;
        let mut at = 0;
        while let Some(rest) = records.get(at..).filter(|rest| !rest.is_empty()) {
            let calls = rest.iter().position(|record| !is_plain_call(record)).unwrap_or(rest.len());
            if calls > 0 {
                self.rings[number].forget_text();
                let fields = Fields { mapping, names: &self.names, unknown: self.unknown };
                sink.store.batch(Table::Slices).push_calls(&rest[..calls], self.process, &fields);
                at += calls;
                continue;
            }
            let ring = &self.rings[number];
            match whole_work(rest).filter(|_| ring.pending == 0) {
                Some((event, numbers, count)) => {
                    at += count;
                    if first + at as u64 > ring.gpu_from {
                        let name = self.names.get(event.name.0 as usize).copied().unwrap_or(self.unknown);
                        self.work(&event, &numbers[..count - 1], name, mapping, sink);
                    }
                }
                None => {
                    at += 1;
                    self.convert_one(number, first + at as u64, &rest[0], mapping, sink);
                }
            }
        }
        *sink.buffer = records;
    }

    /// `after` is the ring's number of the next record.
    fn convert_one(&mut self, number: usize, after: u64, record: &Record, mapping: &Mapping, sink: &mut Sink<'_>) {
        let event = Event::from_words(*record);
        let ring = &mut self.rings[number];
        let Some(kind) = Kind::from_u16(event.kind) else {
            return sink.losses.add(self.process, CollectorCode::Recorder, LossReason::UnknownRecord, 1);
        };
        if matches!(kind, Kind::Text | Kind::Numbers) {
            ring.pending += 1;
            return ring.texts.add(*record);
        }
        ring.pending = 0;
        let (new_work, new_memory) = (after > ring.gpu_from, after > ring.allocations_from);
        let new_block = after > ring.blocks_from;
        let gathered = ring.texts.take(&event);
        match kind {
            Kind::Note => return self.note(&event, &gathered, sink),
            Kind::Device => return self.device(&event, &gathered, sink),
            Kind::DeviceFacts => return self.device_facts(&event, &gathered, sink),
            Kind::Block if new_block => return self.block(&event, gathered.numbers(), mapping, sink),
            Kind::Block => return,
            Kind::RecordingWindow => return self.recording_window(&event, mapping, sink),
            Kind::Fix if FixMoment::from_i32(event.extra as i32).is_none() => {
                return sink.losses.add(self.process, CollectorCode::Recorder, LossReason::UnknownRecord, 1);
            }
            _ => {}
        }
        let name = match (event.name, &gathered.name) {
            (NameId::INLINE, Some(name)) => sink.dictionary.segment_name(name),
            (id, _) => self.names.get(id.0 as usize).copied().unwrap_or(self.unknown),
        };
        match kind {
            Kind::Kernel | Kind::Memcpy | Kind::Memset | Kind::Sync | Kind::Migration => {
                if new_work {
                    self.work(&event, gathered.numbers(), name, mapping, sink);
                }
            }
            Kind::Allocation => {
                if new_memory {
                    self.allocation(&event, gathered.numbers(), name, mapping, sink);
                }
            }
            _ => self.slice(kind, &event, name, gathered.args, mapping, sink),
        }
    }

    /// A turn of recording in windows. Its name is for people who look at the table; readers go by the id.
    fn recording_window(&self, event: &Event, mapping: &Mapping, sink: &mut Sink<'_>) {
        let Some(window) = i32::try_from(event.value).ok().and_then(RecordingWindow::from_i32) else {
            return sink.losses.add(self.process, CollectorCode::Recorder, LossReason::UnknownRecord, 1);
        };
        let start = mapping.nanos(Ticks(event.time)).0 as i64;
        let (thread, name) = (event.thread as i32, sink.dictionary.segment_name(window.said()));
        let begun = Begun { start, thread, kind: SliceKind::RecordingWindow, name, parent: None, args: None };
        push(sink.store.batch(Table::Slices), self.process, Some(window as i32), &begun, Some(start));
    }

    fn slice(
        &mut self,
        kind: Kind,
        event: &Event,
        name: i32,
        args: Option<String>,
        mapping: &Mapping,
        sink: &mut Sink<'_>,
    ) {
        let in_nanos = kind.is_in_nanos();
        let time = |ticks: u64| if in_nanos { ticks } else { mapping.nanos(Ticks(ticks)).0 } as i64;
        let parent = |id: u64| (id as u32 != 0).then_some(id as u32 as i32);
        let whole = Some(event.time.wrapping_add(event.value));
        let (slice, start, parent, end) = match kind {
            Kind::ScopeBegin => (SliceKind::Scope, event.time, parent(event.value), None),
            Kind::StepBegin => (SliceKind::Step, event.time, parent(event.value), None),
            Kind::LayerBegin => (SliceKind::Layer, event.time, parent(event.value), None),
            Kind::EntryBegin => (SliceKind::Entry, event.time, parent(event.value), None),
            Kind::ScopeEnd => (SliceKind::Scope, event.value, None, Some(event.time)),
            Kind::StepEnd => (SliceKind::Step, event.value, None, Some(event.time)),
            Kind::LayerEnd => (SliceKind::Layer, event.value, None, Some(event.time)),
            Kind::EntryEnd => (SliceKind::Entry, event.value, None, Some(event.time)),
            Kind::Mark => (SliceKind::Mark, event.time, parent(event.value), Some(event.time)),
            Kind::Fix => (SliceKind::Fix, event.time, None, Some(event.time)),
            Kind::Call => (SliceKind::Call, event.time, None, whole),
            Kind::CCall => (SliceKind::CCall, event.time, None, whole),
            Kind::Gc => (SliceKind::Gc, event.time, None, whole),
            Kind::ApiCall => (SliceKind::ApiCall, event.time, None, whole),
            Kind::Nvtx => (SliceKind::Nvtx, event.time, None, whole),
            Kind::Overhead => (SliceKind::Overhead, event.time, None, whole),
            Kind::Op => (SliceKind::Op, event.time, None, whole),
            _ => return sink.losses.add(self.process, CollectorCode::Recorder, LossReason::UnknownRecord, 1),
        };
        let args = if kind == Kind::Gc { Some(gc_args(GcPause::unpack(event.extra))) } else { args };
        let begun = Begun { start: time(start), thread: event.thread as i32, kind: slice, name, parent, args };
        let (id, rows) = (event.extra as i32, sink.store.batch(Table::Slices));
        match (kind, end) {
            (Kind::ScopeBegin | Kind::StepBegin | Kind::LayerBegin | Kind::EntryBegin, _) => {
                self.pairing.begin(id, begun, rows)
            }
            (Kind::ScopeEnd | Kind::StepEnd | Kind::LayerEnd | Kind::EntryEnd, Some(end)) => {
                self.pairing.end(id, begun, time(end), sink.round, rows);
            }
            (Kind::ApiCall, end) => push(rows, self.process, (id != 0).then_some(id), &begun, end.map(time)),
            (Kind::Overhead, end) => {
                let id = OverheadKind::from_cupti(event.extra) as i32;
                push(rows, self.process, Some(id), &begun, end.map(time));
            }
            (Kind::Fix, end) => push(rows, self.process, Some(id), &begun, end.map(time)),
            (_, end) => push(rows, self.process, None, &begun, end.map(time)),
        }
    }
}

fn gc_args(pause: GcPause) -> String {
    let generation = pause.generation;
    match pause.found {
        Some(Found { collected, uncollectable }) => {
            format!("{{\"generation\":{generation},\"collected\":{collected},\"uncollectable\":{uncollectable}}}")
        }
        None => format!("{{\"generation\":{generation}}}"),
    }
}

/// A whole call without text in front of it.
fn is_plain_call(record: &Record) -> bool {
    // Kind and flags (the count of text records) are the lower half of the last word.
    let word = record[3] as u32;
    word == Kind::Call as u32 || word == Kind::CCall as u32 || word == Kind::ApiCall as u32
}

struct Fields<'a> {
    mapping: &'a Mapping,
    names: &'a [i32],
    unknown: i32,
}

impl CallFields<Record> for Fields<'_> {
    #[inline]
    fn start(&self, record: &Record) -> i64 {
        self.mapping.nanos(Ticks(record[0])).0 as i64
    }

    /// The difference of two mapped times, so that a call ends no later than the one around it.
    #[inline]
    fn duration(&self, record: &Record) -> i64 {
        (self.mapping.nanos(Ticks(record[0].wrapping_add(record[1]))).0 as i64 - self.start(record)).max(0)
    }

    #[inline]
    fn thread(&self, record: &Record) -> i32 {
        record[2] as i32
    }

    #[inline]
    fn kind(&self, record: &Record) -> i32 {
        const CALL: u32 = Kind::Call as u32;
        const API: u32 = Kind::ApiCall as u32;
        match record[3] as u32 {
            CALL => SliceKind::Call as i32,
            API => SliceKind::ApiCall as i32,
            _ => SliceKind::CCall as i32,
        }
    }

    /// The correlation of an API call; other calls carry their depth there.
    #[inline]
    fn id(&self, record: &Record) -> Option<i32> {
        let extra = (record[3] >> 32) as i32;
        (extra != 0 && record[3] as u32 == Kind::ApiCall as u32).then_some(extra)
    }

    #[inline]
    fn name(&self, record: &Record) -> i32 {
        self.names.get((record[2] >> 32) as usize).copied().unwrap_or(self.unknown)
    }
}
