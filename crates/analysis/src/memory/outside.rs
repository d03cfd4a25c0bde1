//! What a process takes of the driver beside a framework's allocator: how that goes over the steps, and which places took it. Pinned memory of the host
//! is among it; what no recorded call took is left to `attribution`.

use super::course::{Course, Windows};
use super::owners::framework_calls;
use super::sites::{Site, Sites};
use crate::frames::Frames;
use crate::origin;
use crate::steps::Steps;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use timeline::driver_memory::{DriverLife, MemoryPlace, TakenAs, driver_memory_beside};
use timeline::{ProcessIndex, Timeline};

/// One place of memory as one process uses it.
#[derive(Clone, PartialEq, Debug)]
pub struct OutsideMemory {
    pub process: ProcessIndex,
    pub place: MemoryPlace,
    /// Whether blocks of a framework's allocator were recorded: else what that took is among this.
    pub blocks_recorded: bool,
    pub course: Course,
    /// The most that the process took of the place, its framework's allocator included.
    pub peak_of_all: u64,
    /// By site, most first: what was taken after the first window and is there in the end; what is there in the end; what is there at most.
    pub grown: Vec<Taken>,
    pub at_end: Vec<Taken>,
    pub at_peak: Vec<Taken>,
}

/// What a site has taken.
#[derive(Clone, PartialEq, Debug)]
pub struct Taken {
    pub site: Site,
    pub bytes: u64,
    /// Allocations or handles.
    pub count: u64,
    /// Of the first and the last of them.
    pub first: u64,
    pub last: u64,
}

/// Of each process and place of which a recorded call took memory.
pub fn measure(timeline: &Timeline, frames: &Frames, steps: &Steps) -> Vec<OutsideMemory> {
    let calls = &timeline.gpu.allocations;
    if origin::is_snapshot(timeline) || calls.is_empty() {
        return Vec::new();
    }
    let driver = driver_memory_beside(calls, &framework_calls(timeline));
    let counts = |life: &&DriverLife| matches!(life.taken_as, TakenAs::Direct | TakenAs::Pooled);
    let lives: Vec<DriverLife> = driver.lives.iter().filter(counts).copied().collect();
    let sites = Sites::find(timeline, frames, &lives);
    let mut all = Vec::new();
    for place in &driver.places {
        let own: Vec<(&DriverLife, usize)> = lives
            .iter()
            .zip(sites.of.iter().copied())
            .filter(|(life, _)| (life.process, life.place) == (place.process, place.place))
            .collect();
        let Some(first) = own.iter().map(|(life, _)| life.start).min() else { continue };
        let windows = Windows::of(timeline, steps, place.process, first);
        let points = place.points.iter().map(|point| (point.time, point.direct.saturating_add(point.pooled)));
        let course = Course::of(&windows, &points.clone().collect::<Vec<_>>());
        let (Some(base), Some(end)) = (course.ends.first().copied(), course.ends.last().copied()) else { continue };
        let peak = points.filter(|(time, _)| *time <= end).max_by_key(|(time, bytes)| (*bytes, Reverse(*time)));
        let by_site = |at: u64, since: u64| taken(&sites, own.iter().filter(|(life, _)| alive(life, at, since)));
        all.push(OutsideMemory {
            process: place.process,
            place: place.place,
            blocks_recorded: blocks_recorded(timeline, place.process),
            grown: by_site(end, base + 1),
            at_end: by_site(end, 0),
            at_peak: peak.map_or_else(Vec::new, |(time, _)| by_site(time, 0)),
            peak_of_all: place.peak().map_or(0, |peak| peak.own()),
            course,
        });
    }
    all
}

fn alive(life: &DriverLife, at: u64, since: u64) -> bool {
    life.start >= since && life.start <= at && life.end.is_none_or(|end| end > at)
}

fn taken<'a>(sites: &Sites, lives: impl Iterator<Item = &'a (&'a DriverLife, usize)>) -> Vec<Taken> {
    let mut by_site: BTreeMap<usize, Taken> = BTreeMap::new();
    for (life, site) in lives {
        let none = || Taken { site: sites.all[*site].clone(), bytes: 0, count: 0, first: u64::MAX, last: 0 };
        let sum = by_site.entry(*site).or_insert_with(none);
        sum.bytes = sum.bytes.saturating_add(life.bytes);
        sum.count += 1;
        (sum.first, sum.last) = (sum.first.min(life.start), sum.last.max(life.start));
    }
    let mut all: Vec<Taken> = by_site.into_values().collect();
    all.sort_by_key(|one| (Reverse(one.bytes), one.first));
    all
}

/// Whether a framework said which blocks it handed out in this process.
pub fn blocks_recorded(timeline: &Timeline, process: ProcessIndex) -> bool {
    timeline.memory.allocators.iter().any(|one| one.process == process && one.device.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const STEPS: &str = "device 0 GPU memory 80G\n track main\n repeat 16 every 10ms\n step request 0..9ms\n";

    fn of(text: &str) -> Vec<OutsideMemory> {
        let timeline = Timeline::from_text(text).unwrap();
        measure(&timeline, &Frames::new(&timeline), &Steps::find(&timeline, None))
    }

    #[test]
    fn what_is_taken_beside_the_allocator_has_a_course_and_a_site() {
        let text = format!(
            "{STEPS} api cudaMalloc 1ms..2ms\n alloc 2ms {} at 7 each\n end\n segment alloc 0us 64M at 1G\n
            alloc 0us {} at 1073741824\n block alloc 1us 32M at 1G",
            32 * MIB,
            64 * MIB
        );
        let found = of(&text);
        assert_eq!((found.len(), found[0].place, found[0].blocks_recorded), (1, MemoryPlace::Device(0), true));
        let one = &found[0];
        assert_eq!(
            (one.course.base(), one.course.growth(), one.course.per_step()),
            (32 * MIB, 480 * MIB, Some(32 * MIB))
        );
        assert_eq!((one.grown.len(), one.grown[0].count, one.grown[0].bytes), (1, 15, 480 * MIB));
        assert_eq!((one.at_end[0].count, one.peak_of_all), (16, 576 * MIB));
        assert_eq!(one.grown[0].site.place.api.as_deref(), Some("cudaMalloc"));
    }

    #[test]
    fn pinned_memory_has_a_place_of_its_own() {
        let found = of(&format!("{STEPS} alloc 2ms 4096 at 7 each pinned\n free 3ms 0 at 7 each\n end"));
        assert_eq!((found[0].place, found[0].course.growth(), found[0].course.peak()), (MemoryPlace::Pinned, 0, 4096));
        assert!(found[0].grown.is_empty() && found[0].at_peak[0].count == 1);
    }

    #[test]
    fn nothing_is_made_of_a_recording_without_calls() {
        assert!(of("track main\n step request 0..9ms").is_empty());
    }
}
