//! The thread that a recording without steps is looked at by: the one that ran most, imports aside. A thread that ran most while it
//! started and has waited since (the master of a pre-forking server, a main thread that only joins others) makes way for the one
//! that has run most meanwhile.

use crate::frames::Frames;
use crate::phrase;
use crate::stats::curve::growth;
use std::collections::HashMap;
use std::ops::Range;
use timeline::{ProcessIndex, Timeline, Track, TrackIndex, counters as counter_names};

/// Which thread a recording without steps is looked at by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusiestThread {
    /// Another was busier while the program started.
    pub after_startup: bool,
    /// Where there are several.
    pub name: Option<String>,
}

pub struct Busiest {
    pub track: TrackIndex,
    pub thread: BusiestThread,
    /// The part that it has of the time in which any thread ran, imports aside. None: none was seen to run.
    pub share: Option<f64>,
}

/// None: nothing has a track.
pub fn find(timeline: &Timeline) -> Option<Busiest> {
    let threads = Threads::new(timeline);
    let mut ran: Vec<(TrackIndex, u64)> = threads.candidates().map(|track| (track, threads.ran(track).all())).collect();
    let most = |(track, ran): &&(TrackIndex, u64)| {
        let of = threads.track(*track);
        (*ran, of.samples.len(), of.slices.len(), u32::MAX - track.0)
    };
    let (busiest, its) = *ran.iter().max_by_key(most)?;
    let together: f64 = ran.iter().map(|(_, ran)| *ran as f64).sum();
    ran.retain(|(track, _)| *track != busiest);
    let later = threads.waits(busiest, its).then(|| threads.runs_meanwhile(busiest, &ran)).flatten();
    let after_startup = later.is_some();
    let track = later.unwrap_or(busiest);
    let share = (together > 0.0).then(|| threads.ran(track).all() as f64 / together);
    let alone = timeline.tracks.iter().filter(|track| !track.samples.is_empty()).count() < 2;
    let name = (!alone).then(|| phrase::thread(timeline, track));
    Some(Busiest { track, thread: BusiestThread { after_startup, name }, share })
}

/// From, to, and by how much.
type Grown = (u64, u64, u64);

struct Threads<'a> {
    timeline: &'a Timeline,
    frames: Frames,
    /// CPU time by thread, as spans over which it grew.
    cpu: HashMap<(ProcessIndex, i32), Vec<Grown>>,
    /// What a sample stands for where CPU time was not read.
    period: u64,
}

impl<'a> Threads<'a> {
    fn new(timeline: &'a Timeline) -> Threads<'a> {
        let of_thread = timeline.counters.iter().filter(|counter| &*counter.name == counter_names::CPU_NS);
        let cpu = of_thread.filter_map(|counter| Some(((counter.process?, counter.tid?), growth(timeline, counter))));
        let rate = timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0);
        Threads {
            timeline,
            frames: Frames::new(timeline),
            cpu: cpu.collect(),
            // Without a rate only counts are compared, and any unit does.
            period: rate.map_or(1, |rate| (1e9 / rate) as u64).max(1),
        }
    }

    fn track(&self, track: TrackIndex) -> &'a Track {
        &self.timeline.tracks[track.0 as usize]
    }

    /// Where stacks were sampled, threads without any are native code's own: nothing can be said of their lines.
    fn candidates(&self) -> impl Iterator<Item = TrackIndex> + use<'a> {
        let sampled = !self.timeline.samples.is_empty();
        let tracks = self.timeline.tracks.iter().zip(0..);
        tracks.filter(move |(track, _)| !sampled || !track.samples.is_empty()).map(|(_, number)| TrackIndex(number))
    }

    fn ran(&self, track: TrackIndex) -> Ran<'_> {
        let of = self.track(track);
        let (mut active, mut working) = (vec![0], vec![0]);
        for index in of.samples.clone() {
            let sample = self.timeline.samples.get(index);
            let works = sample.active && !self.frames.imports(sample.stack);
            active.push(active[active.len() - 1] + u64::from(sample.active));
            working.push(working[working.len() - 1] + u64::from(works));
        }
        let times = &self.timeline.samples.time[of.samples.clone()];
        let cpu = self.cpu.get(&(of.process, of.tid)).map(Vec::as_slice);
        Ran { times, active, working, cpu, period: self.period }
    }

    /// From the first to the last sample.
    fn life(&self, track: TrackIndex) -> Range<u64> {
        let times = &self.timeline.samples.time[self.track(track).samples.clone()];
        times.first().copied().unwrap_or(0)..times.last().copied().unwrap_or(0)
    }

    fn waits(&self, track: TrackIndex, ran: u64) -> bool {
        ran < length(&self.life(track)) / 2
    }

    /// Of the threads of the same process and of those that it started, the one that ran most, if it was there for most of the
    /// waiting one's life and ran more in its own life than the waiting one did meanwhile.
    fn runs_meanwhile(&self, waiting: TrackIndex, others: &[(TrackIndex, u64)]) -> Option<TrackIndex> {
        let (own, life) = (self.ran(waiting), self.life(waiting));
        let started = self.started_by(self.track(waiting).process);
        let fits = |(track, ran): &&(TrackIndex, u64)| {
            let its = self.life(*track);
            started[self.track(*track).process.0 as usize]
                && length(&its) > length(&life) / 2
                && *ran > own.within(&its)
        };
        others.iter().filter(fits).max_by_key(|(track, ran)| (*ran, u32::MAX - track.0)).map(|(track, _)| *track)
    }

    /// For each process whether it is this one or was started by it, at any remove.
    fn started_by(&self, process: ProcessIndex) -> Vec<bool> {
        let all = &self.timeline.processes;
        let places: HashMap<i64, usize> = all.iter().enumerate().map(|(place, one)| (one.pid, place)).collect();
        // 0: not known.
        let parent = |place: usize| places.get(&all[place].parent_pid).copied().filter(|_| all[place].parent_pid > 0);
        let is_started = |place: usize| {
            let mut at = Some(place);
            // No line of parents is longer than there are processes, but a damaged one may go round.
            (0..=all.len()).any(|_| {
                let here = at;
                at = at.and_then(parent);
                here == Some(process.0 as usize)
            })
        };
        (0..all.len()).map(is_started).collect()
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// How long one thread ran, imports aside.
struct Ran<'a> {
    times: &'a [u64],
    /// Up to each sample: those in which it ran, and in which that was not an import.
    active: Vec<u64>,
    working: Vec<u64>,
    cpu: Option<&'a [Grown]>,
    period: u64,
}

impl Ran<'_> {
    fn all(&self) -> u64 {
        self.within(&(0..u64::MAX))
    }

    /// Readings of the CPU time are rarer than samples: in between, samples say when it ran, and at what.
    fn within(&self, range: &Range<u64>) -> u64 {
        let Some(cpu) = self.cpu else {
            return self.count(&self.working, range.start, range.end).saturating_mul(self.period);
        };
        let mut sum = 0.0;
        for (from, to, grown) in cpu {
            let (start, end) = (range.start.max(*from), range.end.min(*to));
            if start >= end {
                continue;
            }
            let part = match self.count(&self.active, *from, *to) {
                0 => (end - start) as f64 / (to - from) as f64,
                active => self.count(&self.working, start, end) as f64 / active as f64,
            };
            sum += *grown as f64 * part;
        }
        sum as u64
    }

    fn count(&self, sums: &[u64], from: u64, to: u64) -> u64 {
        let place = |time: u64| self.times.partition_point(|at| *at < time);
        sums[place(to)] - sums[place(from).min(place(to))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After start-up, or over all; and which thread.
    fn busiest(text: &str) -> (bool, String) {
        let thread = find(&Timeline::from_text(text).unwrap()).unwrap().thread;
        (thread.after_startup, thread.name.unwrap_or_default())
    }

    const WAIT: &str = "main>wait_for_workers:9";

    /// Loads for a second, then waits; its workers run a tenth of the time each.
    fn server(load: &str, workers: &str) -> String {
        let worker = |name: &str, at: &str| {
            format!(
                "process {name} of 1000\n track MainThread\n samples {workers} every 100ms active gil serve:{at}\n samples {workers} every 10ms accept:5\n"
            )
        };
        format!(
            "rate 100\n process serve.py of 1\n track MainThread\n {load}\n samples 1s..10s every 10ms {WAIT}\n{}{}",
            worker("serve.py:~worker", "3"),
            worker("serve.py:~worker", "4")
        )
    }

    #[test]
    fn a_master_that_waits_makes_way_for_its_busiest_worker() {
        let text = server("samples 0..1s every 5ms active gil main>load:2", "1s..10s");
        assert_eq!(busiest(&text), (true, "MainThread of serve.py: worker, pid 2000".into()));
    }

    #[test]
    fn one_that_works_itself_does_not_nor_for_a_child_of_a_moment() {
        let works =
            "samples 0..1s every 5ms active gil main>load:2\n samples 1s..10s every 15ms active gil main>train:7";
        let master = (false, "MainThread of serve.py, pid 1000".to_owned());
        assert_eq!(busiest(&server(works, "1s..10s")), master);
        assert_eq!(busiest(&server("samples 0..1s every 5ms active gil main>load:2", "8s..10s")), master);
    }

    #[test]
    fn imports_are_not_what_a_thread_runs() {
        let import = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:9";
        let text = format!(
            "rate 100\n process app.py of 1\n track MainThread\n samples 0..1s every 10ms active gil main:1>{import}\n samples 1s..2s every 10ms main:5\n \
             track worker\n samples 1s..2s every 20ms active gil work:3"
        );
        assert_eq!(busiest(&text), (false, "worker".into()));
    }

    #[test]
    fn cpu_time_that_was_read_decides_over_how_often_a_thread_was_seen_running() {
        let of = |name: &str, cpu: &str| {
            format!(
                "track {name}\n samples 0..1s every 10ms active gil {name}:1\n counter cpu_ns 0..1s every 100ms grows {cpu}\n"
            )
        };
        let text = format!("process app.py of 1\n{}{}", of("first", "1ms"), of("second", "90ms"));
        assert_eq!(busiest(&text), (false, "second".into()));
    }
}
