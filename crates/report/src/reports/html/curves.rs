//! Counters as curves: those that people look at, with the unit and the top that they are read by.

use super::pack;
use serde::Serialize;
use timeline::{Counter, ProcessIndex, Timeline, counters as counter_names};

const MOST_POINTS: usize = 1500;

#[derive(Serialize)]
pub struct Curve {
    pub title: String,
    unit: &'static str,
    time: String,
    value: String,
    /// The top of the scale where it is not the highest value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<f64>,
    /// A value is that of the time up to the next.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

impl Curve {
    pub fn held(mut self) -> Curve {
        self.held = true;
        self
    }

    pub fn up_to(mut self, top: Option<f64>) -> Curve {
        self.top = top;
        self
    }
}

pub type Points = Vec<(u64, f64)>;

/// The curves that people look at, of one process or of the machine.
pub fn curves(timeline: &Timeline, process: Option<ProcessIndex>) -> Vec<(&'static str, &'static str, Points)> {
    let of = |name: &'static str| {
        timeline.counters.iter().filter(move |c| c.process == process && &*c.name == name && c.tid.is_none())
    };
    let mut curves: Vec<(&'static str, &'static str, Points)> = Vec::new();
    for (name, title, unit) in [
        (counter_names::RSS_BYTES, "memory (RSS)", "bytes"),
        (counter_names::PSS_BYTES, "memory (PSS)", "bytes"),
        (counter_names::SWAP_BYTES, "swapped out", "bytes"),
    ] {
        curves.extend(
            of(name)
                .map(|counter| (title, unit, level(counter)))
                .filter(|(_, _, points)| points.iter().any(|p| p.1 > 0.0)),
        );
    }
    for (name, title) in [
        (counter_names::MAJOR_FAULTS, "major faults a second"),
        (counter_names::PSI_MEMORY_SOME_US, "memory pressure, µs a second"),
        (counter_names::PSI_CPU_SOME_US, "CPU pressure, µs a second"),
    ] {
        curves.extend(
            of(name)
                .map(|counter| (title, "", rate(counter)))
                .filter(|(_, _, points)| points.iter().any(|p| p.1 > 0.0)),
        );
    }
    curves
}

/// What was measured in buckets, `times` as much; each bucket stands at its middle.
pub fn buckets(timeline: &Timeline, curve: &analysis::Curve, times: f64) -> Points {
    let at = |bucket: usize| timeline.start + bucket as u64 * curve.bucket_ns + curve.bucket_ns / 2;
    let known = curve.buckets.iter().enumerate().filter_map(|(bucket, value)| Some((bucket, (*value)?)));
    known.map(|(bucket, value)| (at(bucket), value * times)).collect()
}

/// What was measured in buckets, each at its begin, for a curve that is held; where a stretch without any begins, [`NOTHING`] stands.
pub fn with_gaps(timeline: &Timeline, curve: &analysis::Curve) -> Points {
    let at = |bucket: usize| timeline.start.saturating_add((bucket as u64).saturating_mul(curve.bucket_ns));
    let mut points: Points = Vec::new();
    for (bucket, value) in curve.buckets.iter().enumerate() {
        let value = value.unwrap_or(NOTHING);
        if value != NOTHING || points.last().is_some_and(|last| last.1 != NOTHING) {
            points.push((at(bucket), value));
        }
    }
    points
}

/// Where the scale should end when few values stand far above all others: the first launches load modules, and take a hundred
/// times as long. None: the highest may be its top.
pub fn usual_top(points: &[(u64, f64)]) -> Option<f64> {
    let mut values: Vec<f64> = points.iter().map(|point| point.1).filter(|value| *value >= 0.0).collect();
    values.sort_by(f64::total_cmp);
    let usual = *values.get(values.len() * 19 / 20)?;
    let highest = *values.last()?;
    (highest > 4.0 * usual && usual > 0.0).then_some(2.0 * usual)
}

/// Below all that is measured: the page draws it as nothing, and says so.
const NOTHING: f64 = -1.0;

pub fn level(counter: &Counter) -> Points {
    counter.time.iter().copied().zip(counter.value.iter().map(|value| *value as f64)).collect()
}

/// A cumulative count as a rate a second.
fn rate(counter: &Counter) -> Points {
    let pairs = counter.time.windows(2).zip(counter.value.windows(2));
    pairs
        .filter(|(time, _)| time[1] > time[0])
        .map(|(time, value)| (time[1], (value[1] - value[0]).max(0) as f64 * 1e9 / (time[1] - time[0]) as f64))
        .collect()
}

/// At most a screenful of points: the largest of each group, so that no peak is lost.
pub fn curve(timeline: &Timeline, title: &str, unit: &'static str, points: &[(u64, f64)]) -> Curve {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let kept: Vec<(u64, f64)> =
        points.chunks(every).filter_map(|chunk| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))).collect();
    Curve {
        title: title.to_owned(),
        unit,
        time: pack::delta(kept.iter().map(|(time, _)| time.saturating_sub(timeline.start) as i64)),
        value: pack::delta(kept.iter().map(|(_, value)| *value as i64)),
        top: None,
        held: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_high_values_do_not_flatten_the_others() {
        let points = |values: &[f64]| values.iter().map(|value| (0, *value)).collect::<Points>();
        let mut values = vec![7.0; 100];
        assert_eq!(usual_top(&points(&values)), None);
        values[3] = 347.0;
        values[4] = NOTHING;
        assert_eq!(usual_top(&points(&values)), Some(14.0));
        assert_eq!((usual_top(&[]), usual_top(&points(&[NOTHING]))), (None, None));
    }

    #[test]
    fn a_stretch_in_which_nothing_was_measured_is_a_gap() {
        let timeline = Timeline::from_text("track main\n scope a 0..50us\n end 50us").unwrap();
        let buckets = vec![None, Some(5.0), None, None, Some(6.0)];
        let peak = analysis::Peak { value: 6.0, at: 40_000 };
        let curve = analysis::Curve { bucket_ns: 10_000, buckets, mean: 5.5, peak };
        let points: Points = with_gaps(&timeline, &curve).into_iter().map(|(at, v)| (at - timeline.start, v)).collect();
        assert_eq!(points, [(10_000, 5.0), (20_000, NOTHING), (40_000, 6.0)]);
    }
}
