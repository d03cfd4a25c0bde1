//! The median step as a picture of text: its lanes cut into cells, a letter for each thing that a cell mostly is. Which letters,
//! words and shares all reports share is decided here.

use crate::units::{duration, percent_of};
use analysis::Cause;
use analysis::waterfall::{Class, Lane, LaneKind, Total, Waterfall};
use std::collections::HashMap;
use timeline::Timeline;

/// A cell in which there is nothing of the lane.
const NOTHING: char = '·';

fn letter(class: Class) -> char {
    match class {
        Class::Kernels | Class::Copies => '█',
        Class::Of(cause) => match cause {
            Cause::Python => 'P',
            Cause::Native => 'N',
            Cause::Waiting => 'w',
            Cause::Launch => 'L',
            Cause::Sync => 'S',
            Cause::Copy => 'C',
            Cause::Gil => 'G',
            Cause::Descheduled => 'D',
            Cause::Allocator => 'A',
            Cause::Gc => 'g',
            Cause::Compile => 'J',
            Cause::Communication => 'X',
            Cause::NoRequest => 'n',
            Cause::Overhead => 'O',
            Cause::Unknown => '?',
        },
    }
}

/// What a class is called: of a thread, what it does; of a device, why it is idle.
pub fn word(kind: LaneKind, class: Class) -> &'static str {
    match class {
        Class::Kernels => "kernels",
        Class::Copies => "copies",
        Class::Of(cause) if matches!(kind, LaneKind::Host | LaneKind::Launch) => match cause {
            Cause::Python => "Python",
            Cause::Native => "native code",
            Cause::Waiting => "waits",
            Cause::Launch => "launch calls",
            Cause::Sync => "waits for the GPU",
            Cause::Copy => "copy calls",
            Cause::Gil => "waits for the GIL",
            Cause::Descheduled => "not scheduled",
            Cause::Unknown => "unknown",
            other => other.name(),
        },
        Class::Of(cause) => cause.name(),
    }
}

pub fn title(timeline: &Timeline, lane: &Lane, several: bool) -> String {
    let Some((process, ordinal)) = lane.device else { return lane.kind.name().to_owned() };
    let of = match timeline.processes.get(process.0 as usize).filter(|_| several) {
        Some(process) if process.pid > 0 => format!("GPU {ordinal} ({})", process.pid),
        _ => format!("GPU {ordinal}"),
    };
    match lane.kind {
        LaneKind::Kernels => of,
        kind => format!("{of} {}", kind.name()),
    }
}

/// Whether devices of several processes are in the picture.
pub fn several(picture: &Waterfall) -> bool {
    let mut processes = picture.lanes.iter().filter_map(|lane| lane.device).map(|device| device.0);
    let first = processes.next();
    processes.any(|process| Some(process) != first)
}

/// The lane in so many cells: what takes most of each, nothing where that is less than half of a cell. What is too short for any
/// cell still has one.
fn cells(picture: &Waterfall, lane: &Lane, count: usize) -> Vec<Option<Class>> {
    let times = times(picture, lane, count);
    let most = |cell: &HashMap<Class, f64>| {
        let all: f64 = cell.values().sum();
        let largest = cell.iter().max_by(|a, b| a.1.total_cmp(b.1).then(a.0.code().cmp(b.0.code())));
        largest.filter(|_| all >= 0.5).map(|(class, _)| *class)
    };
    let mut cells: Vec<Option<Class>> = times.iter().map(most).collect();
    for total in &lane.totals {
        if !cells.contains(&Some(total.class)) {
            let has = |place: &usize| times[*place].get(&total.class).copied().unwrap_or(0.0);
            let free = (0..count).filter(|place| cells[*place].is_none() && has(place) > 0.0);
            if let Some(place) = free.max_by(|a, b| has(a).total_cmp(&has(b))) {
                cells[place] = Some(total.class);
            }
        }
    }
    cells
}

/// How full a cell is of the one thing that a lane has.
const SHADES: [char; 4] = ['░', '▒', '▓', '█'];

/// The lane as text: a letter for what a cell mostly is, or a shade where a lane has one thing only.
pub fn drawn(picture: &Waterfall, lane: &Lane, count: usize) -> String {
    if matches!(lane.kind, LaneKind::Host | LaneKind::Idle) {
        return cells(picture, lane, count).iter().map(|cell| cell.map_or(NOTHING, letter)).collect();
    }
    let shade = |cell: HashMap<Class, f64>| match cell.values().sum::<f64>() {
        full if full > 0.0 => SHADES[((full * 4.0) as usize).min(3)],
        _ => NOTHING,
    };
    times(picture, lane, count).into_iter().map(shade).collect()
}

/// The part of each cell that each class has.
fn times(picture: &Waterfall, lane: &Lane, count: usize) -> Vec<HashMap<Class, f64>> {
    let length = (picture.end - picture.start) as f64 / count.max(1) as f64;
    let mut times: Vec<HashMap<Class, f64>> = vec![HashMap::new(); count];
    for one in &lane.stretches {
        let (from, to) = ((one.start - picture.start) as f64 / length, (one.end - picture.start) as f64 / length);
        let first = from as usize;
        let cells = times.iter_mut().enumerate().take(to.ceil() as usize).skip(first);
        for (place, cell) in cells {
            let inside = to.min(place as f64 + 1.0) - from.max(place as f64);
            *cell.entry(one.class).or_default() += inside;
        }
    }
    times
}

/// `Python 1.21 ms (86.4 %), launch calls 180 µs (12.9 %)`: the largest few.
pub fn said(picture: &Waterfall, lane: &Lane, most: usize) -> String {
    let whole = picture.end - picture.start;
    let one = |total: &Total| {
        format!("{} {} ({})", word(lane.kind, total.class), duration(total.ns), percent_of(total.ns, whole))
    };
    let mut said: Vec<String> = lane.totals.iter().take(most).map(one).collect();
    let rest: u64 = lane.totals.iter().skip(most).map(|total| total.ns).sum();
    if rest > 0 {
        said.push(format!("other {}", duration(rest)));
    }
    said.join(", ")
}

/// What the letters of the picture stand for, in the order in which they first come.
pub fn legend(picture: &Waterfall) -> Vec<(char, &'static str)> {
    let mut all: Vec<(char, &'static str)> = Vec::new();
    for lane in picture.lanes.iter().filter(|lane| matches!(lane.kind, LaneKind::Host | LaneKind::Idle)) {
        for total in &lane.totals {
            // A thread's words and a device's are of the same causes: one of them is enough.
            let kind = if lane.kind == LaneKind::Idle { LaneKind::Host } else { lane.kind };
            let entry = (letter(total.class), word(kind, total.class));
            if !all.contains(&entry) {
                all.push(entry);
            }
        }
    }
    all
}
