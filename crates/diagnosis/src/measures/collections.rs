//! What the garbage collections inside the steps did: how much of their time went into old generations, and how much into freeing what they found. Old
//! traces have the generation alone, and some not even that.

use crate::action::Precondition;
use crate::rule::Case;
use analysis::phrase;
use std::collections::{HashMap, HashSet};
use timeline::{ProcessIndex, Slice, SliceKind};

/// Freeing an object took 0.1 to 0.5 µs where it was measured (CPython 3.12), ten times as long as passing a live one: with the larger figure, what is
/// said to be spent on freeing is at most too much.
const FREED_NS: f64 = 500.0;

const MIDDLE_GENERATION: u64 = 1;
const FULL_GENERATION: u64 = 2;

/// One alone may be the end of the program, or a record that was lost before it.
const MIN_ASKED: u64 = 2;

/// More than this of the time is most of it.
const MAJORITY: f64 = 0.5;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Collections {
    pub count: u64,
    ns: f64,
    /// In generations that hold what lives long. None: not known of any.
    old_ns: Option<f64>,
    /// Objects that were freed. None: not recorded.
    collected: Option<u64>,
    old_collected: u64,
    /// Full ones that the program asked for, and the time in them.
    asked: u64,
    asked_ns: f64,
}

pub fn inside(case: &Case) -> Collections {
    let mut all = Collections::default();
    let asked = asked_for(case);
    for (track, range) in case.windows.tracks() {
        let windows = &case.windows.all()[range];
        let process = case.timeline.tracks[track.0 as usize].process;
        let old = oldest(&case.timeline.processes[process.0 as usize].python);
        for index in case.timeline.tracks[track.0 as usize].slices.clone() {
            let slice = case.timeline.slices.get(index);
            let place = windows.partition_point(|window| window.end <= slice.start);
            let inside = windows.get(place).is_some_and(|window| window.start < slice.end());
            if slice.kind == SliceKind::Gc && inside {
                all.add(&slice, case.timeline.slices.args(index).unwrap_or_default(), old);
                if asked.contains(&index) {
                    all.asked += 1;
                    all.asked_ns += slice.dur as f64;
                }
            }
        }
    }
    all
}

/// The slices of full collections that Python did not begin by itself. It begins one only when a collection of the middle generation has just made that
/// one due, whatever the thresholds are: any other collection before a full one, and the program called `gc.collect()`. Since Python 3.14 it may pass old
/// objects only in parts (then there are no young collections), and no full one is its own.
fn asked_for(case: &Case) -> HashSet<usize> {
    let slices = &case.timeline.slices;
    let mut pauses: HashMap<ProcessIndex, Vec<(u64, usize, u64)>> = HashMap::new();
    for track in &case.timeline.tracks {
        for index in track.slices.clone().filter(|index| slices.kind(*index) == SliceKind::Gc) {
            let generation = number(slices.args(index).unwrap_or_default(), "generation");
            if let Some(generation) = generation {
                pauses.entry(track.process).or_default().push((slices.start[index], index, generation));
            }
        }
    }
    let mut asked = HashSet::new();
    for (process, mut pauses) in pauses {
        pauses.sort_unstable();
        let in_parts = oldest(&case.timeline.processes[process.0 as usize].python) < FULL_GENERATION;
        let in_parts = in_parts && pauses.iter().all(|(_, _, generation)| *generation > 0);
        // What was before the first is not known.
        let full =
            pauses.windows(2).filter(|two| two[1].2 >= FULL_GENERATION && (in_parts || two[0].2 != MIDDLE_GENERATION));
        asked.extend(full.map(|two| two[1].1));
    }
    asked
}

/// The least generation of what lives long. Since Python 3.14 the collector passes the old ones in parts, which it calls 1.
fn oldest(python: &str) -> u64 {
    let minor = python.strip_prefix("3.").and_then(|rest| rest.split('.').next()?.parse::<u64>().ok());
    if minor.is_some_and(|minor| minor >= 14) { 1 } else { 2 }
}

impl Collections {
    fn add(&mut self, slice: &Slice, args: &str, old: u64) {
        self.count += 1;
        self.ns += slice.dur as f64;
        let Some(generation) = number(args, "generation") else { return };
        let is_old = generation >= old;
        *self.old_ns.get_or_insert(0.0) += if is_old { slice.dur as f64 } else { 0.0 };
        if let Some(collected) = number(args, "collected") {
            *self.collected.get_or_insert(0) += collected;
            self.old_collected += if is_old { collected } else { 0 };
        }
    }

    /// The part of their time that at most went into freeing what the program threw away: it stays, whatever is set.
    pub fn freeing(&self) -> Option<f64> {
        let collected = self.collected? as f64;
        Some((collected * FREED_NS / self.ns.max(1.0)).min(1.0))
    }

    /// How many full collections the program asked for (`gc.collect()`), where most of the time is theirs.
    pub fn asked(&self) -> Option<u64> {
        (self.asked >= MIN_ASKED && self.asked_ns > MAJORITY * self.ns).then_some(self.asked)
    }

    /// What collecting less often by itself needs.
    pub fn by_thresholds(&self) -> Precondition {
        match self.asked() {
            Some(_) => Precondition::Fails("gc.collect() collects whatever the thresholds are".into()),
            None => Precondition::Holds,
        }
    }

    /// What `gc.freeze()` needs: that the time goes into objects that live on, and not into garbage.
    pub fn freezing(&self) -> Precondition {
        let Some(old) = self.old_ns else {
            return Precondition::Unknown("most of this time goes through objects that live long".into());
        };
        let young = 1.0 - old / self.ns.max(1.0);
        if young > MAJORITY {
            let why = "{} of this time goes through young objects, which freezing leaves as they are";
            return Precondition::Fails(why.replace("{}", &phrase::percent(young)));
        }
        if self.collected.is_none() {
            return Precondition::Unknown("these collections free little".into());
        }
        match self.old_collected as f64 * FREED_NS > MAJORITY * old {
            true => Precondition::Fails(format!(
                "they free {} each, which has to be done",
                phrase::counted(self.old_collected / self.count.max(1), "object")
            )),
            false => Precondition::Holds,
        }
    }
}

/// A number of the arguments, which are JSON of our own.
fn number(args: &str, key: &str) -> Option<u64> {
    let start = args.find(&format!("\"{key}\":"))? + key.len() + 3;
    args[start..].split([',', '}']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    fn of(args: &str) -> Collections {
        let args = if args.is_empty() { String::new() } else { format!("args {args}") };
        let text =
            format!("track main\n repeat 10 every 50ms\n step r 0..40ms\n gc 2 10ms..14ms {args}\n end\n gc 2 1s..2s");
        inside(&Case::new(&Timeline::from_text(&text).unwrap(), None))
    }

    #[test]
    fn old_generations_that_free_little_can_be_frozen() {
        let little = of(r#"{"generation":2,"collected":100,"uncollectable":0}"#);
        assert_eq!((little.count, little.freezing()), (10, Precondition::Holds));
        assert!((little.freeing().unwrap() - 0.0125).abs() < 1e-9);
    }

    #[test]
    fn garbage_and_young_objects_cannot() {
        let garbage = of(r#"{"generation":2,"collected":50000,"uncollectable":0}"#);
        assert_eq!(
            garbage.freezing(),
            Precondition::Fails("they free 50,000 objects each, which has to be done".into())
        );
        assert_eq!(garbage.freeing(), Some(1.0));
        for young in [r#"{"generation":0,"collected":5,"uncollectable":0}"#, r#"{"generation":1}"#] {
            assert!(matches!(of(young).freezing(), Precondition::Fails(why) if why.starts_with("100 %")));
        }
    }

    /// Ten steps with the pauses of these generations in each.
    fn with(python: &str, generations: &[u64]) -> Option<u64> {
        let pause = |(at, generation): (usize, &u64)| {
            let (at, took) = (5 + 3 * at, if *generation == 2 { 2000 } else { 10 });
            format!("gc 0 {at}ms..{}us args {{\"generation\":{generation}}}\n", 1000 * at + took)
        };
        let pauses: String = generations.iter().enumerate().map(pause).collect();
        let text = format!("track main\n repeat 10 every 50ms\n step r 0..40ms\n {pauses} end");
        let mut timeline = Timeline::from_text(&text).unwrap();
        timeline.processes[0].python = python.into();
        inside(&Case::new(&timeline, None)).asked()
    }

    #[test]
    fn full_collections_without_those_that_make_them_due_were_asked_for() {
        // The first one of all: what was before it is not known.
        assert_eq!(with("3.12.1", &[2]), Some(9));
        assert_eq!(with("3.12.1", &[0, 0, 2]), Some(10));
        // Eleven young ones make the middle one due, as many of these the full one: with other thresholds, other numbers.
        assert_eq!(with("3.12.1", &[0, 0, 1, 2]), None);
        assert_eq!(with("3.14.0", &[1, 2]), Some(10));
        assert_eq!(with("3.14.0", &[0, 0, 1, 2]), None);
        assert_eq!(with("3.12.1", &[0, 1]), None);
    }

    #[test]
    fn what_an_old_trace_does_not_have_is_not_known() {
        assert!(
            matches!(of(r#"{"generation":2}"#).freezing(), Precondition::Unknown(what) if what.contains("free little"))
        );
        assert!(matches!(of("").freezing(), Precondition::Unknown(what) if what.contains("live long")));
        assert_eq!((of("").freeing(), of(r#"{"generation":2}"#).freeing()), (None, None));
        assert_eq!(["3.12.1", "3.14.0", "3.9", "", "4"].map(oldest), [2, 1, 2, 2, 2]);
        assert_eq!(
            [number("{\"collected\":x}", "collected"), number("", "a"), number("{\"a\":7}", "a")],
            [None, None, Some(7)]
        );
    }
}
