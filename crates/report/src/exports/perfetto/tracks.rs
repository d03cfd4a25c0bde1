//! Which tracks there are: processes, their threads and devices, and under a thread its overlapping scopes, what its samples
//! saw, and its counters. A process whose pid is unknown or taken becomes a plain track, so that two are never shown as one.

use super::messages::*;
use crate::provenance;
use std::collections::HashSet;
use timeline::{Timeline, Track};

/// A track's number: what it is in the highest byte, which one below.
const PROCESS: u64 = 1 << 56;
const THREAD: u64 = 2 << 56;
const LANE: u64 = 3 << 56;
const STATE: u64 = 4 << 56;
const STACKS: u64 = 5 << 56;
const COUNTER: u64 = 6 << 56;
pub const RECORDING_TRACK: u64 = 7 << 56;
const DEVICE: u64 = 8 << 56;
const STREAM: u64 = 9 << 56;

pub fn process(index: usize) -> u64 {
    PROCESS | index as u64
}

/// The lane 0 of a thread is its own track. The others lie under it; 2²⁴ lanes for each of 2³² threads have room.
pub fn lane(thread: usize, lane: u32) -> u64 {
    match lane {
        0 => THREAD | thread as u64,
        lane => LANE | (thread as u64) << 24 | u64::from(lane & 0xff_ffff),
    }
}

pub fn state(thread: usize) -> u64 {
    STATE | thread as u64
}

pub fn stacks(thread: usize) -> u64 {
    STACKS | thread as u64
}

pub fn counter(index: usize) -> u64 {
    COUNTER | index as u64
}

/// By the first of its streams.
pub fn device(first_stream: usize) -> u64 {
    DEVICE | first_stream as u64
}

pub fn stream(index: usize, row: u32) -> u64 {
    STREAM | (index as u64) << 8 | u64::from(row)
}

/// The pid that a reader may take for each process.
pub fn pids(timeline: &Timeline) -> Vec<Option<i32>> {
    let mut taken = HashSet::new();
    let pid =
        |process: &timeline::Process| i32::try_from(process.pid).ok().filter(|pid| *pid > 0 && taken.insert(*pid));
    timeline.processes.iter().map(pid).collect()
}

pub fn describe_process(index: usize, process: &timeline::Process, pid: Option<i32>) -> TrackDescriptor {
    let mut track = TrackDescriptor { uuid: Some(self::process(index)), ..Default::default() };
    match pid {
        Some(pid) => {
            let python = (!process.python.is_empty()).then(|| format!("Python {}", process.python));
            track.process = Some(ProcessDescriptor {
                pid: Some(pid),
                process_name: Some(process.program.clone()).filter(|name| !name.is_empty()),
                process_labels: python.into_iter().collect(),
            });
        }
        None => track.name = Some(provenance::process(process)),
    }
    track
}

pub fn describe_thread(index: usize, track: &Track, pid: Option<i32>) -> TrackDescriptor {
    let mut descriptor = TrackDescriptor {
        uuid: Some(lane(index, 0)),
        parent_uuid: Some(process(track.process.0 as usize)),
        child_ordering: Some(EXPLICIT),
        ..Default::default()
    };
    match pid {
        Some(pid) if track.tid > 0 => {
            descriptor.thread = Some(ThreadDescriptor {
                pid: Some(pid),
                tid: Some(track.tid.into()),
                thread_name: Some(track.name.to_string()).filter(|name| !name.is_empty()),
            });
        }
        _ => descriptor.name = Some(provenance::thread(track)),
    }
    descriptor
}

/// A track under a thread. Perfetto draws children of one name as one track, which suits lanes.
pub fn describe_child(uuid: u64, thread: usize, rank: i32, name: &str, description: &str) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(uuid),
        parent_uuid: Some(lane(thread, 0)),
        name: Some(name.into()),
        description: Some(description.into()),
        sibling_order_rank: Some(rank),
        ..Default::default()
    }
}
