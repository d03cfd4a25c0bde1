//! The median step and the slow ones, in the analysis JSON.

use super::times::Micros;
use analysis::Place;
use analysis::slow_steps::{Difference, slowest};
use analysis::waterfall::{Lane, Stretch, Total};
use diagnosis::Diagnosis;
use diagnosis::wording::slow_steps;
use serde::Serialize;
use timeline::Timeline;

/// Times are after the start of the recording.
#[derive(Serialize)]
pub struct Waterfall<'a> {
    step: u32,
    start_us: Micros,
    end_us: Micros,
    pid: Option<i64>,
    tid: i32,
    lanes: Vec<OfLane<'a>>,
}

#[derive(Serialize)]
struct OfLane<'a> {
    lane: &'static str,
    device: Option<u32>,
    pid: Option<i64>,
    totals: Vec<Sum<'a>>,
    /// Begin, end, what.
    stretches: Vec<(Micros, Micros, &'static str)>,
}

#[derive(Serialize)]
struct Sum<'a> {
    category: &'static str,
    duration_us: Micros,
    percentage: f64,
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    api: Option<&'a str>,
}

#[derive(Serialize)]
pub struct Slow<'a> {
    sentence: String,
    /// How many are slow, and how many steps there are.
    count: usize,
    of: usize,
    /// So many of each were compared.
    compared_slow: usize,
    compared_usual: usize,
    slow_us: Option<Micros>,
    usual_us: Option<Micros>,
    differences: Vec<Differs<'a>>,
    counts: Vec<Counted>,
    slowest: Vec<One>,
}

#[derive(Serialize)]
struct Differs<'a> {
    side: &'static str,
    what: String,
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    kernel: Option<&'a str>,
    api: Option<&'a str>,
    slow_us: Micros,
    usual_us: Micros,
    more_us: f64,
}

#[derive(Serialize)]
struct Counted {
    what: &'static str,
    slow: f64,
    usual: f64,
}

#[derive(Serialize)]
struct One {
    step: u32,
    start_us: Micros,
    duration_us: Micros,
    pid: Option<i64>,
    tid: i32,
}

/// Slow steps that are named.
const MOST: usize = 20;

fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

pub fn waterfall<'a>(timeline: &Timeline, diagnosis: &'a Diagnosis) -> Option<Waterfall<'a>> {
    let picture = diagnosis.waterfall.as_ref()?;
    let since = |time: u64| Micros::of(time.saturating_sub(timeline.start));
    let whole = (picture.end - picture.start).max(1) as f64;
    let known = |pid: i64| Some(pid).filter(|pid| *pid > 0);
    let sum = |total: &'a Total| {
        let place = total.top.as_ref();
        Sum {
            category: total.class.code(),
            duration_us: Micros::of(total.ns),
            percentage: thousandths(100.0 * total.ns as f64 / whole),
            function: place.and_then(|place| place.function.as_deref()),
            file: place.and_then(|place| place.file.as_deref()),
            line: place.and_then(|place| place.line),
            api: place.and_then(|place| place.api.as_deref()),
        }
    };
    let stretch = |one: &Stretch| (since(one.start), since(one.end), one.class.code());
    let lane = |lane: &'a Lane| OfLane {
        lane: lane.kind.name(),
        device: lane.device.map(|device| device.1),
        pid: lane.device.and_then(|device| known(timeline.processes[device.0.0 as usize].pid)),
        totals: lane.totals.iter().map(sum).collect(),
        stretches: lane.stretches.iter().map(stretch).collect(),
    };
    let track = &timeline.tracks[picture.track.0 as usize];
    Some(Waterfall {
        step: picture.step,
        start_us: since(picture.start),
        end_us: since(picture.end),
        pid: known(timeline.process(track).pid),
        tid: track.tid,
        lanes: picture.lanes.iter().map(lane).collect(),
    })
}

pub fn slow<'a>(timeline: &Timeline, diagnosis: &'a Diagnosis) -> Option<Slow<'a>> {
    let slow = diagnosis.slow_steps.as_ref()?;
    let time = |ns: u64| (!slow.slow.is_empty()).then(|| Micros::of(ns));
    let differs = |one: &'a Difference| {
        let Place { function, file, line, kernel, api, .. } = &one.place;
        Differs {
            side: one.side.name(),
            what: slow_steps::row(one.side),
            function: function.as_deref(),
            file: file.as_deref(),
            line: *line,
            kernel: kernel.as_deref(),
            api: api.as_deref(),
            slow_us: Micros::of(one.slow_ns),
            usual_us: Micros::of(one.usual_ns),
            more_us: one.more_ns() as f64 / 1e3,
        }
    };
    let one = |step: &analysis::Step| {
        let track = &timeline.tracks[step.track.0 as usize];
        One {
            step: step.index,
            start_us: Micros::of(step.start.saturating_sub(timeline.start)),
            duration_us: Micros::of(step.dur()),
            pid: Some(timeline.process(track).pid).filter(|pid| *pid > 0),
            tid: track.tid,
        }
    };
    Some(Slow {
        sentence: slow_steps::sentence(&diagnosis.steps, slow),
        count: slow.all_slow,
        of: diagnosis.steps.count(),
        compared_slow: slow.slow.len(),
        compared_usual: slow.usual,
        slow_us: time(slow.slow_ns),
        usual_us: time(slow.usual_ns),
        differences: slow.differences.iter().map(differs).collect(),
        counts: slow
            .counts
            .iter()
            .map(|one| Counted {
                what: slow_steps::counted(one.what),
                slow: thousandths(one.slow),
                usual: thousandths(one.usual),
            })
            .collect(),
        slowest: slowest(&diagnosis.steps, slow).take(MOST).map(one).collect(),
    })
}
