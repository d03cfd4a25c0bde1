//! What the garbage collections inside the steps did: how much of their time went into old generations, and how much into freeing what they found. Old
//! traces have the generation alone, and some not even that.

use crate::action::Precondition;
use crate::rule::Case;
use analysis::phrase;
use timeline::{Slice, SliceKind};

/// Freeing an object took 0.1 to 0.5 µs where it was measured (CPython 3.12), ten times as long as passing a live one: with the larger figure, what is
/// said to be spent on freeing is at most too much.
const FREED_NS: f64 = 500.0;

/// More than this of the time is most of it.
const MOST: f64 = 0.5;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Collections {
    pub count: u64,
    ns: f64,
    /// In generations that hold what lives long. None: not known of any.
    old_ns: Option<f64>,
    /// Objects that were freed. None: not recorded.
    collected: Option<u64>,
    old_collected: u64,
}

pub fn inside(case: &Case) -> Collections {
    let mut all = Collections::default();
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
            }
        }
    }
    all
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

    /// What `gc.freeze()` needs: that the time goes into objects that live on, and not into garbage.
    pub fn freezing(&self) -> Precondition {
        let Some(old) = self.old_ns else {
            return Precondition::Unknown("most of this time goes through objects that live long".into());
        };
        let young = 1.0 - old / self.ns.max(1.0);
        if young > MOST {
            let why = "{} of this time goes through young objects, which freezing leaves as they are";
            return Precondition::Fails(why.replace("{}", &phrase::percent(young)));
        }
        if self.collected.is_none() {
            return Precondition::Unknown("these collections free little".into());
        }
        match self.old_collected as f64 * FREED_NS > MOST * old {
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
