//! What was recorded that steps can explain: when each thread ran (or was held up by another), and when kernels were launched and ran. How much of it lies in a
//! stretch of time is told at once, and all of it takes a few megabytes whatever the recording.

use super::held::held;
use crate::stats::seek::seek;
use timeline::{ProcessIndex, Timeline, TrackIndex, WorkKind};

/// So many pieces of work settle a share to a third of a per cent; of more, one stands for its neighbours.
const MOST_WORK: usize = 1 << 17;

pub struct Evidence<'a> {
    timeline: &'a Timeline,
    /// Up to each sample: those in which a thread ran, or another of its process held it up.
    active: Vec<u32>,
    /// By process. The last is of all.
    launched: Vec<Curve>,
    ran: Vec<Curve>,
}

/// A sum that grows with time.
#[derive(Default)]
struct Curve {
    /// When, and how much up to and with it.
    points: Vec<(u64, u64)>,
}

impl Curve {
    fn of(mut points: Vec<(u64, u64)>) -> Curve {
        points.sort_unstable();
        let mut sum = 0u64;
        for point in &mut points {
            sum = sum.saturating_add(point.1);
            point.1 = sum;
        }
        Curve { points }
    }

    fn total(&self) -> u64 {
        self.points.last().map_or(0, |point| point.1)
    }

    fn between(&self, near: &mut usize, start: u64, end: u64) -> u64 {
        let mut before = |time: u64| {
            seek(&self.points, near, |point| point.0 < time);
            near.checked_sub(1).map_or(0, |last| self.points[last].1)
        };
        let from = before(start);
        before(end).saturating_sub(from)
    }
}

/// What lies in a stretch of a thread's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inside {
    /// Samples in which the thread ran or was held up.
    pub active: u64,
    /// Nanoseconds of kernels that its process launched meanwhile, and of those that ran, by their middles.
    pub launched: u64,
    pub ran: u64,
}

/// Where the last question was: the next one is close by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Near([usize; 3]);

impl<'a> Evidence<'a> {
    pub fn new(timeline: &'a Timeline) -> Evidence<'a> {
        let (mut active, mut sum) = (Vec::with_capacity(timeline.samples.len() + 1), 0);
        active.push(0);
        let held = held(timeline);
        for index in 0..timeline.samples.len() {
            let held = held.get(index).is_some_and(|held| *held);
            sum += u32::from(timeline.samples.get(index).active || held);
            active.push(sum);
        }
        // Weights are copied before the first step: kernels tell what steps do. Where there are none, copies are all there is.
        let kernels = work(timeline, MOST_WORK, |kind| kind == WorkKind::Kernel);
        let all = if kernels.is_empty() { work(timeline, MOST_WORK, WorkKind::is_busy) } else { kernels };
        let curves = |when: fn(&Piece) -> u64| {
            let mut by_process = vec![Vec::new(); timeline.processes.len()];
            all.iter().for_each(|piece| by_process[piece.process.0 as usize].push((when(piece), piece.dur)));
            let whole = all.iter().map(|piece| (when(piece), piece.dur)).collect();
            by_process.into_iter().chain([whole]).map(Curve::of).collect()
        };
        Evidence { timeline, active, launched: curves(|piece| piece.launched), ran: curves(|piece| piece.middle) }
    }

    /// All kernels of the recording, in nanoseconds.
    pub fn kernels(&self) -> u64 {
        self.launched.last().map_or(0, Curve::total)
    }

    pub fn inside(&self, near: &mut Near, track: TrackIndex, start: u64, end: u64) -> Inside {
        let Near([sample, launch, run]) = near;
        let of = &self.timeline.tracks[track.0 as usize];
        // A process that launches nothing waits for one that does.
        let own = of.process.0 as usize;
        let process = if self.launched[own].points.is_empty() { self.launched.len() - 1 } else { own };
        let times = &self.timeline.samples.time[of.samples.clone()];
        let mut before = |time: u64| {
            seek(times, sample, |at| *at < time);
            self.active[of.samples.start + *sample]
        };
        let from = before(start);
        Inside {
            active: u64::from(before(end).saturating_sub(from)),
            launched: self.launched[process].between(launch, start, end),
            ran: self.ran[process].between(run, start, end),
        }
    }
}

#[derive(Clone, Copy)]
struct Piece {
    process: ProcessIndex,
    launched: u64,
    /// Where half of it has run.
    middle: u64,
    dur: u64,
}

/// Every piece that fits, or one of so many neighbours that no more than `most` are left, with the weight of all.
fn work(timeline: &Timeline, most: usize, fits: impl Fn(WorkKind) -> bool) -> Vec<Piece> {
    let (work, slices) = (&timeline.gpu.work, &timeline.slices);
    let stride = work.len().div_ceil(most).max(1);
    let mut all = Vec::with_capacity(work.len().div_ceil(stride));
    for stream in &timeline.gpu.streams {
        for first in stream.work.clone().step_by(stride) {
            // Any of its neighbours alike: every tenth of a step of ten kernels would always be the same one.
            let place = first + scattered(first as u64) as usize % stride;
            if place >= stream.work.end || !fits(work.kind(place)) {
                continue;
            }
            let start = work.start[place];
            let launched = work.launch(place).map_or(start, |slice| slices.start[slice]);
            let middle = start.saturating_add(work.dur[place] / 2);
            let dur = work.dur[place].max(1).saturating_mul(stride as u64);
            all.push(Piece { process: stream.process, launched, middle, dur });
        }
    }
    all
}

/// The finalizer of splitmix64: a number without a pattern, and the same every time.
fn scattered(number: u64) -> u64 {
    let mixed = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred steps of ten kernels; the last of each takes as long as nothing else.
    fn steps() -> Timeline {
        let mut text = "track main\n repeat 100 every 1ms\n".to_owned();
        for kernel in 0..10 {
            let (at, dur) = (10 * kernel, if kernel == 9 { 91 } else { 1 });
            text += &format!(
                "api cudaLaunchKernel {at}us..{}us\n stream 7\n kernel k {}us..{}us\n",
                at + 1,
                500 + at,
                500 + at + dur
            );
        }
        Timeline::from_text(
            &(text + "end\n samples 0..100ms every 1ms active gil main:1\n samples 500us..100ms every 1ms main:2"),
        )
        .unwrap()
    }

    #[test]
    fn what_lies_in_a_stretch_of_time() {
        let timeline = steps();
        let evidence = Evidence::new(&timeline);
        assert_eq!(evidence.kernels(), 100 * 100_000);
        let mut near = Near::default();
        let mut inside = |start: u64, end: u64| evidence.inside(&mut near, TrackIndex(0), 1000 * start, 1000 * end);
        assert_eq!(inside(0, 1000), Inside { active: 1, launched: 100_000, ran: 100_000 });
        assert_eq!(inside(2000, 2090), Inside { active: 1, launched: 9_000, ran: 0 });
        // Back again: the last one runs from 590 to 681 µs, and half of it before 636.
        assert_eq!(inside(500, 635), Inside { active: 0, launched: 0, ran: 9_000 });
        assert_eq!(inside(500, 636), Inside { active: 0, launched: 0, ran: 100_000 });
        assert_eq!(inside(900, 900), Inside::default());
    }

    #[test]
    fn of_many_pieces_one_stands_for_its_neighbours_whatever_their_rhythm() {
        let timeline = steps();
        let all = work(&timeline, 1000, |kind| kind == WorkKind::Kernel);
        let some = work(&timeline, 100, |kind| kind == WorkKind::Kernel);
        assert_eq!((all.len(), some.len()), (1000, 100));
        let sum = |all: &[Piece]| all.iter().map(|piece| piece.dur).sum::<u64>() as f64;
        // Every tenth would always be the short or always the long one: a tenth, or nine times as much.
        assert!((0.5..1.5).contains(&(sum(&some) / sum(&all))), "{}", sum(&some) / sum(&all));
    }

    #[test]
    fn copies_count_only_where_there_are_no_kernels() {
        let of = |more: &str| {
            let text = format!("track main\n api cudaMemcpyAsync 0..1us\n stream 7\n copy h2d 1us..9us 4096\n {more}");
            Evidence::new(&Timeline::from_text(&text).unwrap()).kernels()
        };
        assert_eq!((of(""), of("api cudaLaunchKernel 9us..10us\n kernel k 10us..12us")), (8_000, 2_000));
    }
}
