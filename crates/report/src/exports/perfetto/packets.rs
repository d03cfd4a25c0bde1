//! Writes packets one after the other, each with its length before it. Names are written with the first event that uses
//! them and referred to by number from then on.

use super::messages::*;
use crate::streams::category;
use prost::Message;
use std::io::{self, BufWriter, Write};
use timeline::{NameIndex, SliceKind, Timeline, WorkKind};

/// One writer, one sequence: interned numbers and defaults hold within it.
const SEQUENCE: u32 = 1;
/// Field 1 of `Trace`, length-delimited.
const PACKET_TAG: u8 = 0x0a;

/// Numbers of annotation names.
pub const ID: u64 = 1;
pub const PARENT: u64 = 2;
pub const NOT_CLOSED: u64 = 3;
pub const CORRELATION: u64 = 4;
pub const DEVICE: u64 = 5;
pub const STREAM: u64 = 6;
pub const CONTEXT: u64 = 7;
pub const GRID: u64 = 8;
pub const BLOCK: u64 = 9;
pub const REGISTERS: u64 = 10;
pub const STATIC_SHARED: u64 = 11;
pub const DYNAMIC_SHARED: u64 = 12;
pub const BYTES: u64 = 13;
pub const SPEED: u64 = 14;
pub const GRAPH: u64 = 15;
pub const NODE: u64 = 16;
const ANNOTATION_NAMES: [(u64, &str); 16] = [
    (ID, "scope id"),
    (PARENT, "parent scope id"),
    (NOT_CLOSED, "not closed when the recording ended"),
    (CORRELATION, "correlation"),
    (DEVICE, "device"),
    (STREAM, "stream"),
    (CONTEXT, "context"),
    (GRID, "grid"),
    (BLOCK, "block"),
    (REGISTERS, "registers per thread"),
    (STATIC_SHARED, "static shared memory"),
    (DYNAMIC_SHARED, "dynamic shared memory"),
    (BYTES, "bytes"),
    (SPEED, "GB/s"),
    (GRAPH, "graph"),
    (NODE, "graph node"),
];

/// Numbers of categories: those of slices are their kinds, below 100; these are ours.
pub const SAMPLED: u64 = 100;
pub const RECORDING: u64 = 101;
/// And above this the kinds of a device's work.
pub const WORK: u64 = 110;

pub struct Packets<'a, W: Write> {
    out: BufWriter<&'a mut W>,
    timeline: &'a Timeline,
    /// One packet, used again and again.
    bytes: Vec<u8>,
    /// Names that the reader has been told.
    told: Vec<bool>,
}

impl<'a, W: Write> Packets<'a, W> {
    /// Writes the first packet: which clock the times are on, and the names that are always needed.
    pub fn begin(timeline: &'a Timeline, out: &'a mut W) -> io::Result<Packets<'a, W>> {
        let told = vec![false; timeline.names.len()];
        let mut packets = Packets { out: BufWriter::new(out), timeline, bytes: Vec::new(), told };
        let clock = |clock_id, timestamp| Clock { clock_id: Some(clock_id), timestamp: Some(timestamp) };
        let mut clocks = vec![clock(CLOCK_MONOTONIC, timeline.start)];
        // 0 stands for a trace that does not know the time of day. The boot clock was not recorded, so it is not given:
        // the reader counts in the monotonic clock, and has no need of it.
        let offset = timeline.info.clock.unix_minus_mono_ns;
        if let Some(real) = timeline.start.checked_add_signed(offset).filter(|_| offset != 0) {
            clocks.push(clock(CLOCK_REALTIME, real));
        }
        let name = |iid: u64, name: &str| InternedName { iid: Some(iid), name: Some(name.into()) };
        let kinds = (0..SAMPLED as i32).filter_map(SliceKind::from_i32);
        let mut event_categories: Vec<InternedName> = kinds.map(|kind| name(kind as u64, kind.name())).collect();
        event_categories.extend([name(SAMPLED, "sampled"), name(RECORDING, "recording")]);
        let kinds = (0..SAMPLED as i32).filter_map(WorkKind::from_i32);
        event_categories.extend(kinds.map(|kind| name(WORK + kind as u64, category(kind))));
        packets.send(TracePacket {
            clock_snapshot: Some(ClockSnapshot { clocks, primary_trace_clock: Some(CLOCK_MONOTONIC) }),
            interned_data: Some(InternedData {
                event_categories,
                debug_annotation_names: ANNOTATION_NAMES.iter().map(|(iid, text)| name(*iid, text)).collect(),
                ..Default::default()
            }),
            trace_packet_defaults: Some(TracePacketDefaults { timestamp_clock_id: Some(CLOCK_MONOTONIC) }),
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED | SEQ_NEEDS_INCREMENTAL_STATE),
            ..Default::default()
        })?;
        Ok(packets)
    }

    pub fn describe(&mut self, track: TrackDescriptor) -> io::Result<()> {
        self.send(TracePacket { track_descriptor: Some(track), ..Default::default() })
    }

    /// An event with a recorded name.
    pub fn named(&mut self, time: u64, name: NameIndex, mut event: TrackEvent) -> io::Result<()> {
        let iid = u64::from(name.0) + 1;
        let known = self.timeline.names.get(name);
        event.name_iid = Some(iid);
        event.source_location_iid = (!known.file.is_empty()).then_some(iid);
        let told = self.told.get_mut(name.0 as usize).is_none_or(|told| std::mem::replace(told, true));
        let interned_data = (!told).then(|| InternedData {
            event_names: vec![InternedName { iid: Some(iid), name: Some(known.text.to_string()) }],
            source_locations: event.source_location_iid.map(|iid| location(iid, known)).into_iter().collect(),
            ..Default::default()
        });
        self.event(time, event, interned_data)
    }

    /// An event whose name is in it, or that has none.
    pub fn plain(&mut self, time: u64, event: TrackEvent) -> io::Result<()> {
        self.event(time, event, None)
    }

    pub fn end(&mut self, time: u64, track: u64) -> io::Result<()> {
        let r#type = Some(EventType::SliceEnd.into());
        self.event(time, TrackEvent { r#type, track_uuid: Some(track), ..Default::default() }, None)
    }

    fn event(&mut self, time: u64, event: TrackEvent, interned_data: Option<InternedData>) -> io::Result<()> {
        self.send(TracePacket {
            // Readers count in signed numbers; only a damaged trace comes near.
            timestamp: Some(time.min(i64::MAX as u64)),
            track_event: Some(event),
            interned_data,
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..Default::default()
        })
    }

    fn send(&mut self, mut packet: TracePacket) -> io::Result<()> {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
        self.bytes.clear();
        self.bytes.push(PACKET_TAG);
        packet.encode_length_delimited(&mut self.bytes).map_err(io::Error::other)?;
        self.out.write_all(&self.bytes)
    }

    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn location(iid: u64, name: &timeline::Name) -> SourceLocation {
    SourceLocation {
        iid: Some(iid),
        file_name: Some(name.file.to_string()),
        function_name: Some(name.text.to_string()),
        line_number: (name.line > 0).then_some(name.line),
    }
}
