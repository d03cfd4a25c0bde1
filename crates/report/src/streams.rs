//! Streams of devices as tracks: what they are called, and in which row each piece of work stands, so that in a row
//! nothing overlaps. Kernels of a stream may run side by side (nodes of a graph); waits stand in rows of their own.

use std::ops::Range;
use timeline::gpu::{Stream, Work};
use timeline::{Timeline, WorkKind};

/// More rows than this are not opened: what still overlaps then stands in the last.
pub const MOST_ROWS: u32 = 8;

/// The rows of a stream's work, in the order of the work, and how many there are.
pub fn rows(work: &Work, range: Range<usize>) -> (Vec<u8>, u32) {
    let (mut busy, mut waiting) = (Vec::new(), Vec::new());
    let mut rows: Vec<u8> = Vec::with_capacity(range.len());
    for index in range.clone() {
        let (start, end) = (work.start[index], work.end(index));
        rows.push(free(if is_wait(work, index) { &mut waiting } else { &mut busy }, start, end));
    }
    let first = busy.len() as u8;
    for (row, index) in rows.iter_mut().zip(range) {
        if is_wait(work, index) {
            *row += first;
        }
    }
    (rows, (busy.len() + waiting.len()) as u32)
}

fn is_wait(work: &Work, index: usize) -> bool {
    work.kind(index) == WorkKind::Sync
}

/// The first row that is free at `start`. Ends are kept by row.
fn free(ends: &mut Vec<u64>, start: u64, end: u64) -> u8 {
    let row = ends.iter().position(|end| *end <= start).unwrap_or(ends.len());
    if row == ends.len() && row < MOST_ROWS as usize {
        ends.push(end);
        return row as u8;
    }
    let row = row.min(ends.len() - 1);
    ends[row] = ends[row].max(end);
    row as u8
}

/// `GPU 0 · NVIDIA H200`; the number alone where the name was not recorded.
pub fn device_title(ordinal: u32, name: &str) -> String {
    if name.is_empty() { format!("GPU {ordinal}") } else { format!("GPU {ordinal} · {name}") }
}

/// `stream 7`, with its context where the process has more than one on the device.
pub fn title(timeline: &Timeline, stream: &Stream) -> String {
    let same = |other: &&Stream| other.process == stream.process && other.device == stream.device;
    let contexts = timeline.gpu.streams.iter().filter(same).any(|other| other.context != stream.context);
    let waits = stream.work.clone().all(|index| is_wait(&timeline.gpu.work, index));
    let name = match stream.stream {
        // CUPTI's mark for a wait that is for no stream alone.
        u32::MAX if waits => "waits for the device".to_owned(),
        // The timeline's own mark for streams beyond those that have a track.
        u32::MAX => "further streams".to_owned(),
        number => format!("stream {number}"),
    };
    if contexts { format!("{name} · context {}", stream.context) } else { name }
}

/// `kernel`, `gpu_memcpy` and so on: the categories that readers of Chrome's format know.
pub fn category(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::Kernel => "kernel",
        WorkKind::Memcpy => "gpu_memcpy",
        WorkKind::Memset => "gpu_memset",
        WorkKind::Sync => "cuda_sync",
        WorkKind::Migration => "gpu_migration",
    }
}

/// What a counter of a device is of: `thread` is the device's number, and 0 was read as "the whole".
pub fn counted_device(counter: &timeline::Counter) -> Option<i32> {
    counter.name.starts_with("gpu_").then(|| counter.tid.unwrap_or(0))
}
