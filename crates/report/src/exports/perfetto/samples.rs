//! What the samples of a thread saw, as slices: a function that was seen in consecutive samples is one slice. Perfetto
//! then draws a flame chart, and a flame graph of a selection. Both tracks are labelled as sampled.

use super::messages::{EventType, TrackEvent};
use super::packets::{Packets, SAMPLED};
use super::tracks;
use crate::sampled;
use std::io::{self, Write};
use timeline::{Frame, NameIndex, Sample, StackIndex, Timeline, Track};

pub fn write<W: Write>(
    timeline: &Timeline,
    thread: usize,
    track: &Track,
    packets: &mut Packets<'_, W>,
) -> io::Result<()> {
    if track.samples.is_empty() {
        return Ok(());
    }
    let rate = timeline.info.settings.rate_hz.map_or("at an unknown rate".to_owned(), |rate| format!("at {rate} Hz"));
    let name = format!("sampled stacks ({rate})");
    let why = format!("Sampled {rate}: a slice runs from the first sample with the function to the first without.");
    packets.describe(tracks::describe_child(tracks::stacks(thread), thread, 2, &name, &why))?;
    let name = format!("sampled state ({rate})");
    let why = "Whether the thread was running, and whether it held the GIL, when it was sampled.";
    packets.describe(tracks::describe_child(tracks::state(thread), thread, 1, &name, why))?;
    states(timeline, thread, track, packets)?;
    stacks(timeline, thread, track, packets)
}

fn states<W: Write>(timeline: &Timeline, thread: usize, track: &Track, packets: &mut Packets<'_, W>) -> io::Result<()> {
    let uuid = tracks::state(thread);
    let mut open: Option<(&'static str, u64)> = None;
    for run in sampled::runs(timeline, track) {
        let now = run.seen.map(|sample| state(&sample));
        if open.map(|open| open.0) != now {
            if let Some((_, end)) = open {
                packets.end(end, uuid)?;
            }
            if let Some(name) = now {
                packets.plain(run.start, TrackEvent { name: Some(name.into()), ..begin(uuid) })?;
            }
        }
        open = now.map(|name| (name, run.end));
    }
    open.map_or(Ok(()), |(_, end)| packets.end(end, uuid))
}

fn state(sample: &Sample) -> &'static str {
    match (sample.active, sample.gil) {
        (true, true) => "running with the GIL",
        (true, false) => "running without the GIL",
        (false, true) => "waiting with the GIL",
        (false, false) => "waiting",
    }
}

fn begin(uuid: u64) -> TrackEvent {
    TrackEvent {
        r#type: Some(EventType::SliceBegin.into()),
        track_uuid: Some(uuid),
        category_iid: Some(SAMPLED),
        ..Default::default()
    }
}

fn stacks<W: Write>(timeline: &Timeline, thread: usize, track: &Track, packets: &mut Packets<'_, W>) -> io::Result<()> {
    let uuid = tracks::stacks(thread);
    let (mut open, mut frames): (Vec<NameIndex>, Vec<Frame>) = (Vec::new(), Vec::new());
    let mut last: Option<StackIndex> = None;
    let mut until = 0;
    for run in sampled::runs(timeline, track) {
        let stack = run.seen.map(|sample| sample.stack);
        if stack.is_none() || stack != last {
            match stack {
                Some(stack) => sampled::root_first(timeline, stack, &mut frames),
                None => frames.clear(),
            }
            // A stack that is missing from the trace is one frame that says so.
            let missing = (stack.is_some() && frames.is_empty()).then_some(NameIndex(0));
            let names = frames.iter().map(|frame| frame.name).chain(missing);
            let same = open.iter().zip(names.clone()).take_while(|(open, name)| **open == *name).count();
            for _ in same..open.len() {
                packets.end(until, uuid)?;
            }
            open.truncate(same);
            for name in names.skip(same) {
                packets.named(run.start, name, begin(uuid))?;
                open.push(name);
            }
            last = stack;
        }
        until = run.end;
    }
    open.iter().try_for_each(|_| packets.end(until, uuid))
}
