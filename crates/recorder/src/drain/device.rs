//! What devices did becomes rows of its own tables; what the collector says about devices, and its notes, go to the manifest.
//! Kernels come by the million, mostly two or three records each, side by side: those are read off the chunk as they lie.

use super::attached::{Attached, Record, Sink};
use crate::store::{Cell, Columns};
use trace::NameId;
use trace::block::{Block, BlockStack};
use trace::clock::{Mapping, Ticks};
use trace::codes::{CollectorCode, LossReason, Note};
use trace::device::{Allocation, MOST_RECORDS, Numbers, Work, payload};
use trace::device_facts::DeviceFacts;
use trace::event::{Event, Kind};
use trace::gathered::Gathered;
use trace::names::NameCursor;
use trace::tables::{HOST, Table, WorkKind};

/// The work that begins with the first of these records, if all of it lies here without text: the owner, its numbers, and
/// how many records they are.
#[inline]
pub(super) fn whole_work(records: &[Record]) -> Option<(Event, [Numbers; MOST_RECORDS - 1], usize)> {
    const NUMBERS: u16 = Kind::Numbers as u16;
    let kind = |at: usize| records.get(at).map(|record: &Record| record[3] as u16);
    let owner = match (kind(0)?, kind(1)?) {
        (NUMBERS, NUMBERS) => 2,
        (NUMBERS, _) => 1,
        _ => return None,
    };
    let event = Event::from_words(*records.get(owner)?);
    work_kind(event.kind)?;
    if event.flags as usize != owner || event.name == NameId::INLINE {
        return None;
    }
    let second = if owner == 2 { payload(records[1]) } else { Numbers::default() };
    Some((event, [payload(records[0]), second], owner + 1))
}

fn work_kind(kind: u16) -> Option<WorkKind> {
    const KINDS: [(Kind, WorkKind); 5] = [
        (Kind::Kernel, WorkKind::Kernel),
        (Kind::Memcpy, WorkKind::Memcpy),
        (Kind::Memset, WorkKind::Memset),
        (Kind::Sync, WorkKind::Sync),
        (Kind::Migration, WorkKind::Migration),
    ];
    KINDS.iter().find(|(number, _)| *number as u16 == kind).map(|(_, work)| *work)
}

impl Attached {
    /// A row of work.
    pub(super) fn work(&self, event: &Event, numbers: &[Numbers], name: i32, mapping: &Mapping, sink: &mut Sink<'_>) {
        // Text in front of the owner counts in its flags, but is no number.
        let owner = Event { flags: numbers.len() as u16, ..*event };
        match (work_kind(event.kind), Work::from_records(&owner, numbers)) {
            (Some(kind), Some(work)) => {
                let in_nanos = Kind::from_u16(event.kind).is_some_and(Kind::is_in_nanos);
                let mapping = (!in_nanos).then_some(mapping);
                push_work(sink.store.batch(Table::Gpu), self.process, kind, name, &work, mapping);
            }
            _ => sink.losses.add(self.process, CollectorCode::Gpu, LossReason::IncompleteDeviceRecord, 1),
        }
    }

    /// A row of allocations.
    pub(super) fn allocation(
        &self,
        event: &Event,
        numbers: &[Numbers],
        name: i32,
        mapping: &Mapping,
        sink: &mut Sink<'_>,
    ) {
        let Some(allocation) = Allocation::from_records(event, numbers) else {
            return sink.losses.add(self.process, CollectorCode::Gpu, LossReason::IncompleteDeviceRecord, 1);
        };
        let int = |number: u32| Cell::Int(number as i32);
        let known = |known: bool, cell: Cell<'static>| if known { cell } else { Cell::Null };
        sink.store.batch(Table::Allocations).push(&[
            Cell::Long(mapping.nanos(Ticks(allocation.time)).0 as i64),
            Cell::Int(self.process),
            int(allocation.device),
            int(allocation.context),
            int(allocation.stream),
            Cell::Int(allocation.operation as i32),
            Cell::Int(i32::from(allocation.memory)),
            Cell::Long(allocation.address as i64),
            Cell::Long(allocation.bytes as i64),
            Cell::Int(name),
            Cell::Int(i32::from(allocation.pool)),
            int(allocation.correlation),
            known(allocation.handle != 0, Cell::Long(allocation.handle as i64)),
            known(allocation.error != 0, int(allocation.error)),
        ]);
    }

    /// A row of blocks.
    pub(super) fn block(&self, event: &Event, numbers: &[Numbers], mapping: &Mapping, sink: &mut Sink<'_>) {
        let Some(block) = Block::from_records(event, numbers) else {
            return sink.losses.add(self.process, CollectorCode::Blocks, LossReason::IncompleteDeviceRecord, 1);
        };
        let total = |total: Option<u64>| total.map_or(Cell::Null, |bytes| Cell::Long(bytes as i64));
        let (stack, reason, missing) = match block.stack {
            BlockStack::NotAsked => (Cell::Null, Cell::Null, Cell::Null),
            BlockStack::Read(reason, frame) => {
                let stack = self.stacks.get(&frame.0).map_or(Cell::Null, |stack| Cell::Int(*stack));
                (stack, Cell::Int(reason as i32), Cell::Null)
            }
            BlockStack::Missing(reason, missing) => (Cell::Null, Cell::Int(reason as i32), Cell::Int(missing as i32)),
        };
        sink.store.batch(Table::Blocks).push(&[
            Cell::Long(mapping.nanos(Ticks(block.time)).0 as i64),
            Cell::Int(self.process),
            Cell::Int(block.thread as i32),
            Cell::Int(block.device.map_or(HOST, i32::from)),
            Cell::Int(block.operation as i32),
            Cell::Long(block.address as i64),
            Cell::Long(block.bytes as i64),
            total(block.totals.map(|totals| totals.allocated)),
            total(block.totals.map(|totals| totals.reserved)),
            stack,
            reason,
            missing,
        ]);
    }

    /// A line for the report.
    pub(super) fn note(&self, event: &Event, gathered: &Gathered, sink: &mut Sink<'_>) {
        // A note without arguments has no text in front of it.
        let is_bare = event.name == NameId::INLINE && event.flags == 0;
        let text = if is_bare { Some(String::new()) } else { self.text(event, gathered) };
        match text.and_then(|text| Note::from_record(event.extra, &text)) {
            Some(note) => sink.notes.add(note),
            None => sink.losses.add(self.process, CollectorCode::Gpu, LossReason::UnknownRecord, 1),
        }
    }

    /// A device of this process.
    pub(super) fn device_facts(&self, event: &Event, gathered: &Gathered, sink: &mut Sink<'_>) {
        match DeviceFacts::from_records(event, gathered.name.clone(), gathered.numbers()) {
            Some(facts) => sink.processes.add_device(self.process, (&facts).into()),
            None => sink.losses.add(self.process, CollectorCode::Gpu, LossReason::IncompleteDeviceRecord, 1),
        }
    }

    /// The same in a segment that a library of before [`Kind::DeviceFacts`] left behind: a JSON object.
    pub(super) fn device(&self, event: &Event, gathered: &Gathered, sink: &mut Sink<'_>) {
        let text = self.text(event, gathered).unwrap_or_default();
        match serde_json::from_str(&text) {
            Ok(device) => sink.processes.add_device(self.process, device),
            Err(_) => sink.losses.add(self.process, CollectorCode::Gpu, LossReason::UnknownRecord, 1),
        }
    }

    /// The name of a record itself, not its number. Such records are few: the table is simply read again.
    fn text(&self, event: &Event, gathered: &Gathered) -> Option<String> {
        if event.name == NameId::INLINE {
            return gathered.name.clone();
        }
        let mut found = None;
        NameCursor::default().read(self.reader.names(), |id, text| {
            if id == event.name {
                found = Some(text);
            }
        });
        found
    }
}

fn push_work(rows: &mut Columns, process: i32, kind: WorkKind, name: i32, work: &Work, mapping: Option<&Mapping>) {
    let time = |ticks: u64| mapping.map_or(ticks, |mapping| mapping.nanos(Ticks(ticks)).0) as i64;
    let (start, end) = (time(work.start), time(work.start.wrapping_add(work.dur)));
    let int = |number: u32| Cell::Int(number as i32);
    let kernel = |number: u32| if kind == WorkKind::Kernel { int(number) } else { Cell::Null };
    let graph = work.graph != 0;
    let moves = matches!(kind, WorkKind::Memcpy | WorkKind::Memset | WorkKind::Migration);
    rows.push(&[
        Cell::Long(start),
        Cell::Long((end - start).max(0)),
        Cell::Int(process),
        int(work.device),
        int(work.context),
        int(work.stream),
        Cell::Int(kind as i32),
        Cell::Int(name),
        int(work.correlation),
        if moves { Cell::Long(work.bytes as i64) } else { Cell::Null },
        int(work.detail),
        kernel(work.grid[0]),
        kernel(work.grid[1]),
        kernel(work.grid[2]),
        kernel(work.block[0]),
        kernel(work.block[1]),
        kernel(work.block[2]),
        kernel(u32::from(work.registers)),
        kernel(work.shared_static),
        kernel(work.shared_dynamic),
        if graph { int(work.graph) } else { Cell::Null },
        if graph { Cell::Long(work.node as i64) } else { Cell::Null },
    ]);
}
