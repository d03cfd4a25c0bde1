//! Counters as counter tracks, under the thread, the process or the machine they were read of. The unit is in the end of
//! a counter's name.

use super::messages::{CounterDescriptor, EventType, TrackDescriptor, TrackEvent, Unit};
use super::packets::Packets;
use super::tracks;
use crate::streams::counted_device;
use std::collections::HashMap;
use std::io::{self, Write};
use timeline::{Counter, Timeline};

pub fn write<W: Write>(timeline: &Timeline, packets: &mut Packets<'_, W>) -> io::Result<()> {
    let threads: HashMap<(u32, i32), usize> =
        timeline.tracks.iter().enumerate().map(|(index, track)| ((track.process.0, track.tid), index)).collect();
    for (index, counter) in timeline.counters.iter().enumerate() {
        let uuid = tracks::counter(index);
        packets.describe(describe(uuid, counter, &threads))?;
        for (time, value) in counter.time.iter().zip(&counter.value) {
            let r#type = Some(EventType::Counter.into());
            let event =
                TrackEvent { r#type, track_uuid: Some(uuid), counter_value: Some(*value), ..Default::default() };
            packets.plain(*time, event)?;
        }
    }
    Ok(())
}

fn describe(uuid: u64, counter: &Counter, threads: &HashMap<(u32, i32), usize>) -> TrackDescriptor {
    let process = counter.process.map(|process| process.0);
    let thread = process.zip(counter.tid).and_then(|key| threads.get(&key));
    let of_thread = || match counter.tid.filter(|_| thread.is_none()) {
        Some(tid) => format!("{} of thread {tid}", counter.name),
        None => counter.name.to_string(),
    };
    let of_device = |device| format!("GPU {device}: {}", counter.name);
    let name = counted_device(counter).map_or_else(of_thread, of_device);
    TrackDescriptor {
        uuid: Some(uuid),
        name: Some(name),
        parent_uuid: thread
            .map(|index| tracks::lane(*index, 0))
            .or(process.map(|index| tracks::process(index as usize))),
        counter: Some(unit(&counter.name)),
        sibling_order_rank: Some(3),
        ..Default::default()
    }
}

fn unit(name: &str) -> CounterDescriptor {
    let (unit, unit_multiplier, unit_name) = match name.rsplit_once('_').map_or("", |(_, end)| end) {
        "bytes" => (Unit::SizeBytes, None, None),
        "ns" => (Unit::TimeNs, None, None),
        "us" => (Unit::TimeNs, Some(1000), None),
        "percent" => (Unit::Unspecified, None, Some("%".to_owned())),
        _ => (Unit::Count, None, None),
    };
    CounterDescriptor { unit: Some(unit.into()), unit_multiplier, unit_name }
}
