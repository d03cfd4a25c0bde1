//! Samples in which a thread is held up by another one of its process: it sleeps at a line of the program's own, and the other is in one place then and hardly
//! ever at other times. That is no idleness between steps: what takes the lock has to wait for it in every step, as it has to run. Who waits for the next request
//! does so in a library (a queue, a socket, an event loop), or while nobody is in one place; that stays outside.

use crate::frames::{Frames, WAITS, is};
use std::collections::HashMap;
use timeline::{Sample, StackIndex, Timeline, Track, TrackIndex};

/// Fewer waits at a line, or looks at the other thread in them and outside of them, show no pattern: as `waits-in-step` asks of who holds a lock.
const LEAST: u64 = 10;
/// By chance it would be there as often as at other times.
const MAJORITY: f64 = 0.5;
/// How often it is there otherwise, of how often it is during the waits.
const MAX_OUTSIDE: f64 = 0.5;
/// So many samples of a thread tell whether there is a pattern; of more, one stands for its neighbours.
const MOST_SAMPLES: usize = 4000;
/// Of a server with hundreds of threads, so many are compared.
const MOST_THREADS: usize = 32;

type Line = (u32, u32);

/// For each sample of the timeline whether its thread is held up in it. Empty: none is.
pub fn held(timeline: &Timeline) -> Vec<bool> {
    let sampled = |track: &Track| !track.samples.is_empty();
    let several = timeline.tracks.iter().enumerate().any(|(place, track)| {
        sampled(track) && timeline.tracks[..place].iter().any(|other| other.process == track.process && sampled(other))
    });
    if !several {
        return Vec::new();
    }
    let looks = Looks { timeline, frames: Frames::new(timeline) };
    let mut held = Vec::new();
    for number in 0..timeline.tracks.len() as u32 {
        let lines = looks.waits(TrackIndex(number));
        for line in lines.into_iter().filter(|line| looks.is_held(TrackIndex(number), *line)) {
            held.resize(timeline.samples.len(), false);
            for index in looks.track(TrackIndex(number)).samples.clone() {
                held[index] |= looks.waits_at(&timeline.samples.get(index)) == Some(line);
            }
        }
    }
    held
}

struct Looks<'a> {
    timeline: &'a Timeline,
    frames: Frames,
}

impl<'a> Looks<'a> {
    fn track(&self, track: TrackIndex) -> &'a Track {
        &self.timeline.tracks[track.0 as usize]
    }

    /// The line of the program's own that a thread sleeps at, with no library's wait around it.
    fn waits_at(&self, sample: &Sample) -> Option<Line> {
        let top = self.frames.python(sample.stack);
        let frame = self.timeline.stacks.frame(top);
        let of_a_library = self.frames.bits(frame.name) & (WAITS | is::LIBRARY) != 0;
        (!sample.active && top.0 != 0 && !of_a_library).then_some((frame.name.0, frame.line))
    }

    /// The lines at which it sleeps often.
    fn waits(&self, track: TrackIndex) -> Vec<Line> {
        let mut lines: HashMap<Line, u64> = HashMap::new();
        for index in self.track(track).samples.clone() {
            if let Some(line) = self.waits_at(&self.timeline.samples.get(index)) {
                *lines.entry(line).or_default() += 1;
            }
        }
        let mut often: Vec<Line> =
            lines.into_iter().filter(|(_, count)| *count >= LEAST).map(|(line, _)| line).collect();
        often.sort_unstable();
        often
    }

    /// Whether some other thread is in one place while this one sleeps there, and hardly otherwise.
    fn is_held(&self, track: TrackIndex, line: Line) -> bool {
        let own = self.track(track);
        let others = self.timeline.tracks.iter().zip(0..).filter(|(other, number)| {
            TrackIndex(*number) != track && other.process == own.process && !other.samples.is_empty()
        });
        others.take(MOST_THREADS).any(|(other, _)| self.holds(own, line, other))
    }

    fn holds(&self, own: &Track, line: Line, other: &Track) -> bool {
        let (mut places, mut all): (HashMap<StackIndex, [u64; 2]>, [u64; 2]) = (HashMap::new(), [0; 2]);
        let times = &self.timeline.samples.time[other.samples.clone()];
        let tolerance = self.tolerance(own);
        for index in own.samples.clone().step_by(own.samples.len().div_ceil(MOST_SAMPLES).max(1)) {
            let sample = self.timeline.samples.get(index);
            let next = times.partition_point(|time| *time < sample.time);
            let near = [next.checked_sub(1), Some(next)].into_iter().flatten().filter(|place| *place < times.len());
            let nearest = near.min_by_key(|place| times[*place].abs_diff(sample.time));
            let Some(place) = nearest.filter(|place| times[*place].abs_diff(sample.time) <= tolerance) else {
                continue;
            };
            let stack = self.timeline.samples.get(other.samples.start + place).stack;
            let when = usize::from(self.waits_at(&sample) != Some(line));
            all[when] += 1;
            places.entry(self.frames.home(stack)).or_default()[when] += 1;
        }
        let part = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        all.iter().all(|count| *count >= LEAST)
            && places.values().any(|there| {
                let (inside, outside) = (part(there[0], all[0]), part(there[1], all[1]));
                inside > MAJORITY && outside <= MAX_OUTSIDE * inside
            })
    }

    /// Threads are read one after the other: half the usual time between two samples of this one.
    fn tolerance(&self, own: &Track) -> u64 {
        let times = &self.timeline.samples.time[own.samples.clone()];
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).take(MOST_SAMPLES).collect();
        crate::stats::median(gaps).unwrap_or(0) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the main thread's samples, those in which it is held up. It waits twenty times, during which another thread is where it is told to be.
    fn count(waits: &str, during: &str, otherwise: &str) -> usize {
        let text = format!(
            "track main\n repeat 20 every 100ms\n samples 0..50ms every 10ms {waits}\n samples 50ms..100ms every 10ms active gil serve:3>forward:9\n end\n\
             track reloader\n repeat 20 every 100ms\n samples 0..50ms every 10ms {during}\n samples 50ms..100ms every 10ms {otherwise}\n end"
        );
        let timeline = Timeline::from_text(&text).unwrap();
        let own = timeline.tracks.iter().find(|track| &*track.name == "main").unwrap().samples.clone();
        held(&timeline).into_iter().enumerate().filter(|(index, held)| *held && own.contains(index)).count()
    }

    const WAIT: &str = "run:1>wait@/usr/lib/python3.12/threading.py:5";

    #[test]
    fn who_sleeps_while_another_is_in_one_place_is_held_up_by_it() {
        assert_eq!(count("serve:3>size:7", "run:2>load:4", WAIT), 100);
        // Whether the one that holds it sleeps there or runs does not matter.
        assert_eq!(count("serve:3>size:7", "active run:2>load:4", WAIT), 100);
    }

    #[test]
    fn waiting_for_the_next_request_or_beside_a_thread_that_is_always_there_is_not() {
        assert_eq!(count("serve:3>get@/usr/lib/python3.12/queue.py:7", "run:2>load:4", WAIT), 0);
        assert_eq!(count("serve:3>size:7", WAIT, WAIT), 0);
        assert_eq!(count("serve:3>size:7", "run:2>load:4", "run:2>load:4"), 0);
        assert_eq!(count("active gil serve:3>size:7", "run:2>load:4", WAIT), 0);
    }

    #[test]
    fn a_few_waits_and_a_thread_alone_show_nothing() {
        let few = "track main\n samples 0..90ms every 10ms serve:3>size:7\n samples 90ms..1s every 10ms active gil serve:3\n\
                   track other\n samples 0..90ms every 10ms run:2>load:4\n samples 90ms..1s every 10ms run:1";
        assert!(!held(&Timeline::from_text(few).unwrap()).contains(&true));
        assert!(held(&Timeline::from_text(few.split("track other").next().unwrap()).unwrap()).is_empty());
    }
}
