//! What the busiest threads and the streams of the devices did in a window, as rows of cells.

use crate::model::Track;
use analysis::{Metrics, phrase};
use timeline::{SliceKind, Timeline, TrackIndex};

/// As many cells as a wide screen has columns, two of them for each.
pub const CELLS: usize = 240;
const MOST_THREADS: usize = 16;
const MOST_STREAMS: usize = 16;

pub fn tracks(timeline: &Timeline, metrics: &Metrics) -> Vec<Track> {
    if timeline.duration() == 0 {
        return Vec::new();
    }
    let threads = metrics.threads.iter().take(MOST_THREADS).map(|thread| of_thread(timeline, thread.track));
    let streams = timeline.gpu.streams.iter().take(MOST_STREAMS).map(|stream| {
        let work = &timeline.gpu.work;
        let mut cells = Cells::new(timeline);
        let busy = stream.work.clone().filter(|index| work.kind(*index).is_busy());
        busy.for_each(|index| cells.add(work.start[index], work.end(index)));
        Track { name: format!("GPU {} stream {}", stream.device, stream.stream), cells: cells.percent() }
    });
    threads.chain(streams).filter(|track| track.cells.iter().any(|cell| *cell > 0)).collect()
}

/// By its samples where it has some, else by its outermost slices.
fn of_thread(timeline: &Timeline, track: TrackIndex) -> Track {
    let name = phrase::thread(timeline, track);
    let track = &timeline.tracks[track.0 as usize];
    let mut cells = Cells::new(timeline);
    if track.samples.is_empty() {
        let mut until = 0;
        for index in track.slices.clone() {
            let slice = timeline.slices.get(index);
            if slice.kind == SliceKind::RecordingWindow || slice.start < until {
                continue;
            }
            until = slice.end();
            cells.add(slice.start, slice.end());
        }
        return Track { name, cells: cells.percent() };
    }
    let (mut seen, mut active) = (vec![0u32; CELLS], vec![0u32; CELLS]);
    for index in track.samples.clone() {
        let sample = timeline.samples.get(index);
        let cell = cells.cell(sample.time);
        seen[cell] += 1;
        active[cell] += u32::from(sample.active);
    }
    let percent = seen.iter().zip(&active).map(|(seen, active)| (100 * active).checked_div(*seen).unwrap_or(0) as u8);
    Track { name, cells: percent.collect() }
}

struct Cells {
    start: u64,
    width: u64,
    busy: Vec<u64>,
}

impl Cells {
    fn new(timeline: &Timeline) -> Cells {
        Cells { start: timeline.start, width: timeline.duration() / CELLS as u64 + 1, busy: vec![0; CELLS] }
    }

    fn cell(&self, time: u64) -> usize {
        ((time.saturating_sub(self.start) / self.width) as usize).min(CELLS - 1)
    }

    fn add(&mut self, start: u64, end: u64) {
        let start = start.max(self.start);
        for cell in self.cell(start)..=self.cell(end.max(start)) {
            let from = self.start.saturating_add((cell as u64).saturating_mul(self.width));
            let inside = end.min(from.saturating_add(self.width)).saturating_sub(start.max(from));
            self.busy[cell] = self.busy[cell].saturating_add(inside);
        }
    }

    fn percent(&self) -> Vec<u8> {
        self.busy.iter().map(|busy| (busy.saturating_mul(100) / self.width).min(100) as u8).collect()
    }
}
