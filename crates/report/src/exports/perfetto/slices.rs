//! The scopes, steps, calls, marks and pauses of a thread, with arrows from API calls to the work they asked for. What does not nest goes to tracks of its own under the thread.

use super::gpu::flow;
use super::messages::{EventType, TrackEvent};
use super::packets::Packets;
use super::waits::{End, Waits};
use super::{annotations, tracks};
use crate::lanes::{self, EdgeKind};
use std::io::{self, Write};
use timeline::{SliceKind, Timeline, Track};

const OVERLAPPING: &str = "overlapping scopes";
const WHY: &str = "Scopes that were open at the same time on this thread without one being inside the other, as the \
                   scopes of asyncio tasks are.";

pub fn write<W: Write>(
    timeline: &Timeline,
    thread: usize,
    track: &Track,
    waits: &Waits,
    packets: &mut Packets<'_, W>,
) -> io::Result<()> {
    let mut described = 0;
    lanes::walk(timeline, track, |edge| {
        let uuid = tracks::lane(thread, edge.lane);
        if edge.kind == EdgeKind::End {
            return packets.end(edge.time, uuid);
        }
        if edge.lane > described {
            packets.describe(tracks::describe_child(uuid, thread, 0, OVERLAPPING, WHY))?;
            described = edge.lane;
        }
        let slice = timeline.slices.get(edge.slice);
        let kind = if edge.kind == EdgeKind::Mark { EventType::Instant } else { EventType::SliceBegin };
        let mut event = TrackEvent {
            r#type: Some(kind.into()),
            track_uuid: Some(uuid),
            category_iid: Some(slice.kind as u64),
            ..Default::default()
        };
        if slice.kind == SliceKind::ApiCall {
            event.flow_ids = timeline.gpu.work.of_launch(edge.slice).iter().map(|work| flow(*work as usize)).collect();
            waits.join(&mut event, timeline, End::Call(edge.slice));
        }
        annotations::of_slice(timeline, edge.slice, &mut event.debug_annotations);
        packets.named(edge.time, slice.name, event)
    })
}
