//! Records become rows. Plain calls, which come by the million, go a column at a time; everything else one by one.

use super::attached::{Attached, Record, Sink};
use super::losses::DAMAGED;
use super::pairing::{Begun, push};
use crate::store::CallFields;
use trace::NameId;
use trace::clock::{Mapping, Ticks};
use trace::event::{Event, Kind};
use trace::tables::{SliceKind, Table};

impl Attached {
    /// Turns the records in the buffer into rows. Runs of plain calls go a column at a time.
    pub(super) fn convert(&mut self, number: usize, sink: &mut Sink<'_>) {
        let records = std::mem::take(sink.buffer);
        let mapping = sink.clock.mapping(self.reader.source());
        let mut rest = records.as_slice();
        while !rest.is_empty() {
            let calls = rest.iter().position(|record| !is_plain_call(record)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(calls);
            let fields = Fields { mapping, names: &self.names, unknown: self.unknown };
            if !run.is_empty() {
                self.rings[number].forget_text();
                sink.store.batch(Table::Slices).push_calls(run, self.process, &fields);
            }
            let others = after.iter().position(is_plain_call).unwrap_or(after.len());
            let (run, after) = after.split_at(others);
            run.iter().for_each(|record| self.convert_one(number, record, mapping, sink));
            rest = after;
        }
        *sink.buffer = records;
    }

    fn convert_one(&mut self, number: usize, record: &Record, mapping: &Mapping, sink: &mut Sink<'_>) {
        let event = Event::from_words(*record);
        let ring = &mut self.rings[number];
        let Some(kind) = Kind::from_u16(event.kind) else {
            return sink.losses.add(self.process, "recorder", DAMAGED, 1);
        };
        if kind == Kind::Text {
            ring.pending += 1;
            return ring.texts.add(*record);
        }
        ring.pending = 0;
        let (name, args) = ring.texts.take(&event);
        let name = match (event.name, name) {
            (NameId::INLINE, Some(name)) => sink.dictionary.segment_name(&name),
            (id, _) => self.names.get(id.0 as usize).copied().unwrap_or(self.unknown),
        };
        let time = |ticks: u64| mapping.nanos(Ticks(ticks)).0 as i64;
        let parent = |id: u64| (id as u32 != 0).then_some(id as u32 as i32);
        let (slice, start, parent, end) = match kind {
            Kind::ScopeBegin => (SliceKind::Scope, event.time, parent(event.value), None),
            Kind::StepBegin => (SliceKind::Step, event.time, parent(event.value), None),
            Kind::ScopeEnd => (SliceKind::Scope, event.value, None, Some(event.time)),
            Kind::StepEnd => (SliceKind::Step, event.value, None, Some(event.time)),
            Kind::Mark => (SliceKind::Mark, event.time, parent(event.value), Some(event.time)),
            Kind::Call => (SliceKind::Call, event.time, None, Some(event.time.wrapping_add(event.value))),
            Kind::CCall => (SliceKind::CCall, event.time, None, Some(event.time.wrapping_add(event.value))),
            _ => (SliceKind::Gc, event.time, None, Some(event.time.wrapping_add(event.value))),
        };
        let args = if kind == Kind::Gc { Some(format!("{{\"generation\":{}}}", event.extra)) } else { args };
        let begun = Begun { start: time(start), thread: event.thread as i32, kind: slice, name, parent, args };
        let (id, rows) = (event.extra as i32, sink.store.batch(Table::Slices));
        match (kind, end) {
            (Kind::ScopeBegin | Kind::StepBegin, _) => self.pairing.begin(id, begun, rows),
            (Kind::ScopeEnd | Kind::StepEnd, Some(end)) => self.pairing.end(id, begun, time(end), sink.round, rows),
            (_, end) => push(rows, self.process, None, &begun, end.map(time)),
        }
    }
}

/// A whole call without text in front of it.
fn is_plain_call(record: &Record) -> bool {
    // Kind and flags (the count of text records) are the lower half of the last word.
    let word = record[3] as u32;
    word == Kind::Call as u32 || word == Kind::CCall as u32
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
        if record[3] as u32 == Kind::Call as u32 { SliceKind::Call as i32 } else { SliceKind::CCall as i32 }
    }

    #[inline]
    fn name(&self, record: &Record) -> i32 {
        self.names.get((record[2] >> 32) as usize).copied().unwrap_or(self.unknown)
    }
}
