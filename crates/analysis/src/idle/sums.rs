//! Adds up idle time: by cause and by who has it for the report, and by what a change could save for the rules, with its spread
//! over the steps.

use super::bubbles::Wait;
use super::host::Who;
use super::{Cause, IdleCause};
use crate::host::place_of;
use crate::place::Place;
use crate::stats::share::Tally;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use timeline::{NameIndex, StackIndex, Timeline, TrackIndex};

/// Where in a step: before its first work, between its works, after its last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Zone {
    Lead,
    Middle,
    Tail,
}

/// Idle time that one kind of change could save. No nanosecond is in two of the first five and the waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Measure {
    /// The host runs before a step's first work, and after its last.
    Lead,
    Tail,
    /// The host runs between two works, for long; for as long as it takes to launch something.
    HostGap,
    LaunchGap,
    /// The next work was launched already.
    QueuedGap,
    /// After a wait: as much as the wait took. One for each [`Wait`].
    SyncApi,
    ImplicitSync,
    SyncMemcpy,
    ResultToHost,
    /// In copy calls; in calls that load code.
    CopyWait,
    Loading,
}
pub const MEASURES: usize = Measure::Loading as usize + 1;

/// So many gaps settle a median.
const ENOUGH_GAPS: usize = 100_000;

#[derive(Clone, Debug, Default)]
pub struct Sums {
    pub by: Map<(Zone, Cause, Who), u64>,
    now: [u64; MEASURES],
    pub tallies: [Tally; MEASURES],
    /// The longest piece of each: start, end, thread.
    longest: [Option<(u64, u64, TrackIndex)>; MEASURES],
    /// In the steps that are replayed: what the host does in each, and the calls that wait.
    pub stretches: [Vec<(TrackIndex, u64, u64)>; MEASURES],
    pub calls: [Vec<u32>; MEASURES],
    /// The copies that those calls wait for.
    pub work: [Vec<u32>; MEASURES],
    /// Of every step: its start, its first work, the end of its last work, its end.
    pub zones: Vec<[u64; 4]>,
    /// Waits by what they are, their call and who made them: what they cost, and how many.
    pub waits: Map<(Wait, u32, Who), (u64, u64)>,
    /// Gaps after which the work was launched too late, and after which it was queued already; lengths of the latter.
    pub late: u64,
    /// Of those, the ones that a kernel ends.
    pub late_kernels: u64,
    /// The longest stretch in which launched work does not begin, and no record says why.
    pub held: Option<(u64, u64)>,
    /// In which launched work does not begin while other devices are at work, for which it may wait.
    pub others: u64,
    pub queued: u64,
    pub queued_gaps: Vec<u64>,
}

impl Sums {
    pub fn add(&mut self, zone: Zone, cause: Cause, who: Who, ns: u64) {
        *self.by.entry((zone, cause, who)).or_default() += ns;
    }

    pub fn save(&mut self, measure: Measure, ns: u64, (start, end, track): (u64, u64, TrackIndex)) {
        self.now[measure as usize] += ns;
        let longest = &mut self.longest[measure as usize];
        if ns > 0 && longest.is_none_or(|(from, to, _)| to - from < end - start) {
            *longest = Some((start, end, track));
        }
    }

    pub fn hold(&mut self, start: u64, end: u64) {
        if self.held.is_none_or(|(from, to)| to - from < end - start) {
            self.held = Some((start, end));
        }
    }

    pub fn wait(&mut self, wait: Wait, call: u32, who: Who, ns: u64) {
        let sum = self.waits.entry((wait, call, who)).or_default();
        *sum = (sum.0 + ns, sum.1 + 1);
    }

    pub fn queued(&mut self, ns: u64) {
        self.queued += 1;
        if self.queued_gaps.len() < ENOUGH_GAPS {
            self.queued_gaps.push(ns);
        }
    }

    /// What was saved since the last time.
    pub fn take_now(&mut self) -> [u64; MEASURES] {
        std::mem::take(&mut self.now)
    }

    /// A step is over in which so much was saved.
    pub fn close(&mut self, now: [u64; MEASURES], length: u64) {
        for (now, tally) in now.into_iter().zip(&mut self.tallies) {
            tally.add(now as f64, length as f64);
        }
    }

    /// Adds what comes later, but for what is tallied.
    pub fn join(&mut self, later: Sums) {
        later.by.into_iter().for_each(|(key, ns)| *self.by.entry(key).or_default() += ns);
        for (key, (ns, count)) in later.waits {
            let sum = self.waits.entry(key).or_default();
            *sum = (sum.0 + ns, sum.1 + count);
        }
        for (longest, later) in self.longest.iter_mut().zip(later.longest) {
            // Of those that are as long, the first.
            if let Some(later) = later.filter(|one| longest.is_none_or(|(from, to, _)| to - from < one.1 - one.0)) {
                *longest = Some(later);
            }
        }
        if let Some((start, end)) = later.held {
            self.hold(start, end);
        }
        self.stretches.iter_mut().zip(later.stretches).for_each(|(all, later)| all.extend(later));
        self.calls.iter_mut().zip(later.calls).for_each(|(all, later)| all.extend(later));
        self.work.iter_mut().zip(later.work).for_each(|(all, later)| all.extend(later));
        self.late += later.late;
        self.late_kernels += later.late_kernels;
        self.others += later.others;
        self.queued += later.queued;
        let room = ENOUGH_GAPS - self.queued_gaps.len();
        self.queued_gaps.extend(later.queued_gaps.into_iter().take(room));
    }

    pub fn tally(&self, measure: Measure) -> &Tally {
        &self.tallies[measure as usize]
    }

    pub fn longest(&self, measure: Measure) -> Option<(u64, u64, TrackIndex)> {
        self.longest[measure as usize]
    }

    /// What fits, by who has it, most first.
    pub fn tops(&self, fits: impl Fn(Zone, Cause) -> bool) -> Vec<(Who, u64)> {
        let mut all: HashMap<Who, u64> = HashMap::new();
        for ((_, _, who), ns) in self.by.iter().filter(|((zone, cause, _), _)| fits(*zone, *cause)) {
            *all.entry(*who).or_default() += ns;
        }
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|(who, ns)| (u64::MAX - ns, *who));
        all
    }

    pub fn causes(&self, timeline: &Timeline, window_ns: u64) -> Vec<IdleCause> {
        let cause = |cause: Cause| {
            let tops = self.tops(|_, one| one == cause);
            let ns = tops.iter().map(|(_, ns)| ns).sum::<u64>();
            // One line a function and place: frames of different stacks may be the same line.
            let lines = by_line(timeline, &tops);
            let top = lines.into_iter().next();
            (ns > 0).then(|| IdleCause {
                cause,
                ns,
                share: ns as f64 / window_ns.max(1) as f64,
                top_ns: top.as_ref().map_or(0, |(_, ns)| *ns),
                top: top.map(|(place, _)| place),
            })
        };
        let mut causes: Vec<IdleCause> = Cause::ALL.into_iter().filter_map(cause).collect();
        causes.sort_by_key(|one| (u64::MAX - one.ns, one.cause));
        causes
    }
}

/// Places by time, most first; those that have none are left out.
pub fn by_line(timeline: &Timeline, tops: &[(Who, u64)]) -> Vec<(Place, u64)> {
    let mut sums: HashMap<(bool, u32, u32), (u64, Who)> = HashMap::new();
    // Of frames that are the same line, the one with most time speaks for it, in whatever order they come.
    let mut tops = tops.to_vec();
    tops.sort_by_key(|(who, ns)| (u64::MAX - ns, *who));
    for (who, ns) in &tops {
        let key = match who {
            Who::Nobody | Who::Earlier => continue,
            Who::Api(name) => (true, *name, 0),
            Who::Function(name) => (false, *name, 0),
            Who::Frame(frame) => {
                let frame = timeline.stacks.frame(StackIndex(*frame));
                (false, frame.name.0, frame.line)
            }
        };
        sums.entry(key).or_insert((0, *who)).0 += ns;
    }
    let mut lines: Vec<_> = sums.into_values().collect();
    lines.sort_by_key(|(ns, who)| (u64::MAX - ns, *who));
    lines.into_iter().filter_map(|(ns, who)| Some((place(timeline, who)?, ns))).collect()
}

pub fn place(timeline: &Timeline, who: Who) -> Option<Place> {
    let names = &timeline.names;
    match who {
        Who::Nobody | Who::Earlier => None,
        Who::Api(name) => Some(Place { api: Some(names.text(NameIndex(name)).to_owned()), ..Place::default() }),
        Who::Function(name) => {
            let name = names.get(NameIndex(name));
            Some(Place {
                function: Some(name.text.to_string()),
                file: Some(name.file.to_string()).filter(|file| !file.is_empty()),
                line: Some(name.line).filter(|line| *line > 0),
                ..Place::default()
            })
        }
        Who::Frame(frame) => Some(place_of(timeline, StackIndex(frame))),
    }
}

/// Small keys, a million times: a multiplication is hash enough.
pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Small>>;

#[derive(Default)]
pub struct Small(u64);

impl Hasher for Small {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
