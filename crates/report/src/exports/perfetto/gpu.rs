//! Devices: a track for each device of a process, under it one for each stream, with what ran there. Flows lead from the API
//! call that asked for a piece of work to the work, and join a call that waited to what it waited for (`waits`).

use super::messages::{DebugAnnotation, EventType, TrackDescriptor, TrackEvent};
use super::packets::{self as names, Packets, WORK};
use super::tracks;
use super::waits::{End, Waits};
use crate::gpu_words::sides;
use crate::streams;
use std::io::{self, Write};
use timeline::gpu::{Piece, Stream};
use timeline::{Timeline, WorkKind};

pub fn write<W: Write>(timeline: &Timeline, waits: &Waits, packets: &mut Packets<'_, W>) -> io::Result<()> {
    let mut device = None;
    for (place, stream) in timeline.gpu.streams.iter().enumerate() {
        let uuid = match device {
            Some((uuid, process, ordinal)) if (process, ordinal) == (stream.process, stream.device) => uuid,
            _ => describe_device(timeline, place, stream, packets)?,
        };
        device = Some((uuid, stream.process, stream.device));
        let (rows, count) = streams::rows(&timeline.gpu.work, stream.work.clone());
        let title = streams::title(timeline, stream);
        for row in 0..count.max(1) {
            // Tracks of one name and parent are drawn as one.
            packets.describe(TrackDescriptor {
                uuid: Some(tracks::stream(place, row)),
                parent_uuid: Some(uuid),
                name: Some(title.clone()),
                sibling_order_rank: Some(place as i32),
                ..Default::default()
            })?;
        }
        // In a row nothing overlaps but in the last, where there were too many.
        let mut until = vec![0u64; count.max(1) as usize];
        for (index, row) in stream.work.clone().zip(&rows) {
            let track = tracks::stream(place, u32::from(*row));
            let piece = timeline.gpu.work.get(index);
            let start = piece.start.max(until[usize::from(*row)]);
            let end = piece.end().max(start);
            until[usize::from(*row)] = end;
            let mut event = event(timeline, stream, index, &piece, track);
            waits.join(&mut event, timeline, End::Work(index));
            packets.named(start, piece.name, event)?;
            packets.end(end, track)?;
        }
    }
    Ok(())
}

fn describe_device<W: Write>(
    timeline: &Timeline,
    place: usize,
    stream: &Stream,
    packets: &mut Packets<'_, W>,
) -> io::Result<u64> {
    let uuid = tracks::device(place);
    let known = timeline.gpu.device(stream.process, stream.device);
    packets.describe(TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: Some(tracks::process(stream.process.0 as usize)),
        name: Some(streams::device_title(stream.device, known.map_or("", |device| &*device.name))),
        description: known.map(|device| device.uuid.to_string()).filter(|uuid| !uuid.is_empty()),
        ..Default::default()
    })?;
    Ok(uuid)
}

/// The number of the arrow from a call to a piece of work.
pub fn flow(work: usize) -> u64 {
    work as u64 + 1
}

fn event(timeline: &Timeline, stream: &Stream, index: usize, piece: &Piece, track: u64) -> TrackEvent {
    TrackEvent {
        r#type: Some(EventType::SliceBegin.into()),
        track_uuid: Some(track),
        category_iid: Some(WORK + piece.kind as u64),
        terminating_flow_ids: piece.launch.map(|_| flow(index)).into_iter().collect(),
        debug_annotations: facts(timeline, stream, index, piece),
        ..Default::default()
    }
}

fn facts(timeline: &Timeline, stream: &Stream, index: usize, piece: &Piece) -> Vec<DebugAnnotation> {
    let number = |name: u64, value: u64| DebugAnnotation {
        name_iid: Some(name),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    };
    let mut facts = Vec::with_capacity(9);
    facts.extend([
        number(names::DEVICE, stream.device.into()),
        number(names::STREAM, stream.stream.into()),
        number(names::CONTEXT, stream.context.into()),
        number(names::CORRELATION, piece.correlation.into()),
    ]);
    if let Some(shape) = timeline.gpu.shape(index) {
        for (name, of) in [(names::GRID, shape.grid), (names::BLOCK, shape.block)] {
            let string_value = Some(sides(of));
            facts.push(DebugAnnotation { name_iid: Some(name), string_value, ..DebugAnnotation::default() });
        }
        facts.extend([
            number(names::REGISTERS, shape.registers.into()),
            number(names::STATIC_SHARED, shape.shared_static.into()),
            number(names::DYNAMIC_SHARED, shape.shared_dynamic.into()),
        ]);
    }
    if piece.bytes > 0 {
        facts.push(number(names::BYTES, piece.bytes));
        if piece.dur > 0 && piece.kind == WorkKind::Memcpy {
            let double_value = Some(piece.bytes as f64 / piece.dur as f64);
            facts.push(DebugAnnotation { name_iid: Some(names::SPEED), double_value, ..DebugAnnotation::default() });
        }
    }
    if piece.graph != 0 {
        facts.extend([number(names::GRAPH, piece.graph.into()), number(names::NODE, piece.node)]);
    }
    facts
}
