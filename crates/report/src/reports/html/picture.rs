//! The median step and the slow ones, as the page draws them.

use super::names::short;
use super::payload::Evidence;
use crate::gpu_words;
use crate::picture::{several, title, word};
use analysis::phrase;
use analysis::slow_steps::{Difference, slowest};
use analysis::waterfall::{Class, Lane, Total};
use diagnosis::Diagnosis;
use diagnosis::wording::slow_steps;
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::Timeline;

#[derive(Serialize)]
pub struct Picture {
    title: String,
    start: u64,
    dur: u64,
    track: Option<usize>,
    lanes: Vec<OfLane>,
}

#[derive(Serialize)]
struct OfLane {
    title: String,
    kind: &'static str,
    /// Begin after that of the step, length, place in `classes`, how full it is of it in percent, and how much lies below.
    runs: Vec<[u64; 5]>,
    classes: Vec<Sum>,
}

#[derive(Serialize)]
struct Sum {
    code: &'static str,
    word: &'static str,
    ns: u64,
    top: String,
}

#[derive(Serialize)]
pub struct Slow {
    sentence: String,
    /// From here on a step is slow. 0: none is.
    limit: u64,
    rows: Vec<Row>,
    counts: Vec<Count>,
    /// The slowest, to jump to.
    steps: Vec<Evidence>,
}

#[derive(Serialize)]
struct Row {
    side: &'static str,
    what: String,
    at: String,
    slow: u64,
    usual: u64,
}

#[derive(Serialize)]
struct Count {
    what: &'static str,
    slow: f64,
    usual: f64,
}

/// A picture of a thousand points has no finer detail.
const CELLS: u64 = 600;
const MOST_STEPS: usize = 8;

pub fn picture(timeline: &Timeline, diagnosis: &Diagnosis, shown: &[Option<usize>]) -> Option<Picture> {
    let picture = diagnosis.waterfall.as_ref()?;
    let dur = picture.end - picture.start;
    let several = several(picture);
    let lane = |lane: &Lane| OfLane {
        title: title(timeline, lane, several),
        kind: lane.kind.name(),
        runs: runs(picture.start, dur, lane),
        classes: lane.totals.iter().map(|total| sum(lane, total)).collect(),
    };
    let steps = &diagnosis.steps;
    Some(Picture {
        title: format!("Median {}", short(&steps.name)),
        start: picture.start.saturating_sub(timeline.start),
        dur,
        track: shown.get(picture.track.0 as usize).copied().flatten(),
        lanes: picture.lanes.iter().map(lane).collect(),
    })
}

fn sum(lane: &Lane, total: &Total) -> Sum {
    let top = total.top.as_ref().map(gpu_words::called).unwrap_or_default();
    Sum { code: total.class.code(), word: word(lane.kind, total.class), ns: total.ns, top: short(&top) }
}

/// Long stretches as they are. Short neighbours share a cell, one upon the other, each as high as the part of the cell that it
/// takes.
fn runs(start: u64, dur: u64, lane: &Lane) -> Vec<[u64; 5]> {
    let cell = (dur / CELLS).max(1);
    let place = |class: Class| lane.totals.iter().position(|total| total.class == class).unwrap_or(0) as u64;
    let mut runs: Vec<[u64; 5]> = Vec::new();
    let mut small: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
    for one in &lane.stretches {
        let (mut from, to) = (one.start - start, one.end - start);
        if to - from >= 2 * cell {
            runs.push([from, to - from, place(one.class), 100, 0]);
            continue;
        }
        while from < to {
            let until = to.min((from / cell + 1) * cell);
            *small.entry(from / cell).or_default().entry(place(one.class)).or_default() += until - from;
            from = until;
        }
    }
    for (at, classes) in small {
        let mut below = 0;
        for (class, ns) in classes {
            let full = (100 * ns / cell).clamp(1, 100);
            runs.push([at * cell, cell, class, full, below]);
            below += full;
        }
    }
    // What is long lies over the cells that it shares with what is short.
    runs.sort_by_key(|run| (run[1] > cell, run[0], run[4]));
    runs
}

pub fn slow(timeline: &Timeline, diagnosis: &Diagnosis, shown: &[Option<usize>]) -> Option<Slow> {
    let slow = diagnosis.slow_steps.as_ref()?;
    let row = |one: &Difference| Row {
        side: one.side.name(),
        what: slow_steps::row(one.side),
        at: short(&gpu_words::called(&one.place)),
        slow: one.slow_ns,
        usual: one.usual_ns,
    };
    let step = |step: &analysis::Step| Evidence {
        text: phrase::duration(step.dur()),
        start: step.start.saturating_sub(timeline.start),
        end: step.end.saturating_sub(timeline.start),
        track: shown.get(step.track.0 as usize).copied().flatten(),
    };
    Some(Slow {
        sentence: slow_steps::sentence(&diagnosis.steps, slow),
        limit: slowest(&diagnosis.steps, slow).map(analysis::Step::dur).min().unwrap_or(0),
        rows: slow.differences.iter().map(row).collect(),
        counts: slow
            .counts
            .iter()
            .map(|one| Count { what: slow_steps::counted(one.what), slow: one.slow, usual: one.usual })
            .collect(),
        steps: slowest(&diagnosis.steps, slow).take(MOST_STEPS).map(step).collect(),
    })
}
