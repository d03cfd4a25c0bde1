//! A trace for ui.perfetto.dev and its trace processor: processes, threads, devices, slices, marks, samples, counters,
//! and what was lost. Written packet by packet, so memory grows with tracks, names and waits
//! and not with events.

mod annotations;
mod counters;
mod gpu;
pub mod messages;
mod packets;
mod samples;
mod slices;
mod tracks;
mod waits;

use crate::provenance;
use messages::{DebugAnnotation, EventType, TrackDescriptor, TrackEvent};
use packets::{Packets, RECORDING};
use std::io::{self, Write};
use timeline::Timeline;

pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut packets = Packets::begin(timeline, out)?;
    recording(timeline, &mut packets)?;
    let pids = tracks::pids(timeline);
    for (index, process) in timeline.processes.iter().enumerate() {
        packets.describe(tracks::describe_process(index, process, pids[index]))?;
    }
    let waits = waits::Waits::find(timeline);
    for (index, track) in timeline.tracks.iter().enumerate() {
        packets.describe(tracks::describe_thread(index, track, pids[track.process.0 as usize]))?;
        slices::write(timeline, index, track, &waits, &mut packets)?;
        samples::write(timeline, index, track, &mut packets)?;
    }
    gpu::write(timeline, &waits, &mut packets)?;
    counters::write(timeline, &mut packets)?;
    packets.finish()
}

/// A track about the recording itself: what it is, what is missing, and each loss where it happened.
fn recording<W: Write>(timeline: &Timeline, packets: &mut Packets<'_, W>) -> io::Result<()> {
    packets.describe(TrackDescriptor {
        uuid: Some(tracks::RECORDING_TRACK),
        name: Some("InferScope: about this recording".into()),
        ..Default::default()
    })?;
    for line in provenance::lines(timeline) {
        packets.plain(timeline.start, instant(line, Vec::new()))?;
    }
    let mut losses: Vec<&timeline::Loss> = timeline.losses.iter().collect();
    losses.sort_by_key(|loss| loss.time);
    for loss in losses {
        let facts = vec![
            annotations::named("collector", &*loss.collector),
            annotations::named("reason", loss.reason.name()),
            annotations::named("count", loss.count),
            annotations::named(
                "process",
                loss.process.map_or(-1, |process| timeline.processes[process.0 as usize].pid),
            ),
        ];
        // One of an unknown time would stretch the view back to the machine's start.
        let time = loss.time.max(timeline.start);
        packets.plain(time, instant(format!("lost: {}", loss.reason.said(loss.count)), facts))?;
    }
    Ok(())
}

fn instant(name: String, debug_annotations: Vec<DebugAnnotation>) -> TrackEvent {
    TrackEvent {
        r#type: Some(EventType::Instant.into()),
        track_uuid: Some(tracks::RECORDING_TRACK),
        category_iid: Some(RECORDING),
        name: Some(name),
        debug_annotations,
        ..Default::default()
    }
}
