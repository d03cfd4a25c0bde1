//! Tells waiting for the GIL from other waiting. A thread without the GIL that sleeps in the middle of plain Python looks
//! the same from outside whether it waits for the GIL, a lock or a socket, so each line has to show more than that.

use crate::frames::{Frames, is};
use crate::seen::{Doing, SeenSamples, running_lines};
use crate::series::{Nature, Readings};
use crate::windows::Windows;
use std::collections::{HashMap, HashSet};
use timeline::{NameIndex, Timeline};

/// A thread that waits for the GIL wakes up and asks again after so long (`sys.getswitchinterval()`), so a wait of one
/// second is at least 200 voluntary switches.
const SWITCH_INTERVAL_NS: f64 = 5e6;

/// Threads are looked at one after the other, so the GIL may have changed hands in between in so many of the looks.
const LOOSE: f64 = 0.1;

#[derive(Default)]
struct Line {
    /// Waiting while another thread held the GIL, and while none did.
    held: u64,
    free: u64,
}

/// Decides for every sample that waits. `seen` comes with `Waiting` for all that native frames did not settle.
pub fn settle(timeline: &Timeline, windows: &Windows, frames: &Frames, readings: &Readings, seen: &mut SeenSamples) {
    let mut lines: HashMap<(NameIndex, u32), Line> = HashMap::new();
    let top = |sample: u32| {
        let frame = timeline.stacks.frame(timeline.samples.get(sample as usize).stack);
        (frame.name, frame.line)
    };
    let open = |sample: u32| {
        let stack = timeline.samples.get(sample as usize).stack;
        stack.0 != 0 && frames.on_top(stack) & (is::NATIVE | crate::frames::WAITS) == 0
    };
    let (mut held, mut free) = (0u64, 0u64);
    for one in seen.all.iter().filter(|one| one.doing == Doing::Waiting && open(one.sample)) {
        let line = lines.entry(top(one.sample)).or_default();
        line.held += u64::from(one.holder != 0);
        line.free += u64::from(one.holder == 0);
        held += u64::from(one.holder != 0);
        free += u64::from(one.holder == 0);
    }
    if held == 0 {
        return;
    }
    let running = running_lines(timeline);
    let threads = holding_threads(timeline).max(2);
    let usually_free = free as f64 / (held + free) as f64;
    let is_gil = |key: &(NameIndex, u32), line: &Line| {
        // The GIL is only waited for while it is held. A line that waits as often while it is free waits for something else.
        let share = line.free as f64 / (line.held + line.free) as f64;
        let other = share >= (usually_free / 2.0).max(LOOSE);
        // Plain Python that takes turns with other threads runs in its turn. A line that never does is a call that blocks.
        let runs = running.get(key).copied().unwrap_or(0) * 2 * threads >= line.held;
        (!other && runs, !other && !runs)
    };
    let gil: HashSet<_> = lines.iter().filter(|(key, line)| is_gil(key, line).0).map(|(key, _)| *key).collect();
    let maybe: HashSet<_> = lines.iter().filter(|(key, line)| is_gil(key, line).1).map(|(key, _)| *key).collect();
    let waits: Vec<usize> = (0..seen.all.len())
        .filter(|place| {
            let one = &seen.all[*place];
            one.doing == Doing::Waiting && one.holder != 0 && open(one.sample)
        })
        .collect();
    let said = waits.iter().filter(|place| gil.contains(&top(seen.all[**place].sample))).count();
    if !switches_allow(windows, readings, said as f64 * seen.period_ns as f64) {
        return;
    }
    for place in waits {
        let key = top(seen.all[place].sample);
        if gil.contains(&key) {
            seen.all[place].doing = Doing::Gil;
        } else if maybe.contains(&key) {
            seen.maybe_gil += 1;
        }
    }
}

/// Whether the threads went to sleep often enough to have waited for the GIL that long. Half is allowed for readings that
/// begin and end between steps. Without readings there is nothing against it.
fn switches_allow(windows: &Windows, readings: &Readings, waited: f64) -> bool {
    let counts = windows.tracks().filter_map(|(track, _)| {
        let counter = readings.thread(track, "voluntary_switches")?;
        readings.inside(counter, windows, track, &Nature::Count).map(|growth| growth.tally.part)
    });
    let counts: Vec<f64> = counts.collect();
    counts.is_empty() || counts.iter().sum::<f64>() * SWITCH_INTERVAL_NS >= waited / 2.0
}

/// How many threads were seen with the GIL.
fn holding_threads(timeline: &Timeline) -> u64 {
    let holds = |range: std::ops::Range<usize>| range.into_iter().any(|index| timeline.samples.get(index).gil);
    timeline.tracks.iter().filter(|track| holds(track.samples.clone())).count() as u64
}
