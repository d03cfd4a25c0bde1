//! The recorded calls of a function in the steps: how many, how long they are, in how many steps, and whether they ask the device for anything.

use super::{MIN_CALLS, MIN_COMPUTING_CALL, MIN_LONG_CALL};
use crate::rule::Case;
use analysis::host::breakdown::Part;
use analysis::steps::windows::Window;
use std::collections::BTreeSet;
use timeline::{NameIndex, SliceKind, TrackIndex};

/// What the calls of an operator say about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Habit {
    /// It takes long in most steps, and asks the device for nothing.
    OnHost,
    /// It takes far longer than a launch in most steps, with calls of the driver in it.
    LongInMost,
    /// Neither, or not known.
    #[default]
    Other,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Calls {
    /// 0: not known.
    pub count: u64,
    /// What one takes of its own. 0: not known.
    pub each_ns: u64,
    pub habit: Habit,
}

/// Of a function in those stretches, as its time is.
pub fn of(case: &Case, part: &Part, stretches: &[(TrackIndex, Vec<Window>)]) -> Calls {
    let names = &case.timeline.names;
    let fits = |name: u32| {
        let name = names.get(NameIndex(name));
        *name.text == part.label && *name.file == part.file && (name.line == part.line || name.line == 0)
    };
    let named: Vec<bool> = (0..names.len() as u32).map(fits).collect();
    let mut starts: Vec<u64> = case.windows.all().iter().map(|window| window.start).collect();
    starts.sort_unstable();
    let mut seen = CallTally::default();
    for (track, windows) in stretches {
        seen.add(case, *track, windows, &named, &starts);
    }
    let each_ns = part.total_ns.checked_div(seen.count).unwrap_or(0);
    Calls { count: seen.count, each_ns, habit: seen.habit(case, each_ns) }
}

#[derive(Default)]
struct CallTally {
    count: u64,
    /// Calls of the driver in them.
    asks: u64,
    /// That take long enough to compute, and that are far longer than a launch: how many, and the steps that have them.
    computes: (u64, BTreeSet<usize>),
    long: (u64, BTreeSet<usize>),
}

impl CallTally {
    fn add(&mut self, case: &Case, track: TrackIndex, windows: &[Window], named: &[bool], starts: &[u64]) {
        let slices = &case.timeline.slices;
        let (computes, long) = (case.threshold(MIN_COMPUTING_CALL), case.threshold(MIN_LONG_CALL));
        // Until when a call of it is open: what begins before then is inside.
        let mut open = 0;
        for index in case.timeline.tracks[track.0 as usize].slices.clone() {
            let slice = slices.get(index);
            self.asks += u64::from(slice.kind == SliceKind::ApiCall && slice.start < open);
            if named.get(slices.name[index] as usize) != Some(&true) {
                continue;
            }
            let place = windows.partition_point(|window| window.end <= slice.start);
            let ends = slice.end().max(slice.start.saturating_add(1));
            let Some(window) = windows.get(place).filter(|window| window.start < ends) else { continue };
            self.count += 1;
            open = open.max(slice.end());
            let step = starts.partition_point(|start| *start <= slice.start.max(window.start));
            for (least, (count, steps)) in [(computes, &mut self.computes), (long, &mut self.long)] {
                if slice.dur as f64 >= least {
                    *count += 1;
                    steps.insert(step);
                }
            }
        }
    }

    fn habit(&self, case: &Case, each_ns: u64) -> Habit {
        let most = |(count, steps): &(u64, BTreeSet<usize>)| {
            *count as f64 >= case.threshold(MIN_CALLS)
                && 2 * *count > self.count
                && 2 * steps.len() > case.windows.all().len()
        };
        // Where launches were not recorded, none is seen in it either.
        let launches = !case.timeline.gpu.work.linked().is_empty();
        match () {
            () if self.asks == 0
                && launches
                && each_ns as f64 >= case.threshold(MIN_COMPUTING_CALL)
                && most(&self.computes) =>
            {
                Habit::OnHost
            }
            () if self.asks > 0 && each_ns as f64 >= case.threshold(MIN_LONG_CALL) && most(&self.long) => {
                Habit::LongInMost
            }
            () => Habit::Other,
        }
    }
}
