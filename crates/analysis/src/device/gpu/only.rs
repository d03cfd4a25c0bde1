//! What is open in a process while only one of its threads has anything of a kind open: a thread that has nothing of that kind works for
//! it. Where several threads have, or one has two that lie across each other, nobody can say for which.

use timeline::{SliceKind, Timeline, Track};

pub const KINDS: [SliceKind; 3] = [SliceKind::Step, SliceKind::Scope, SliceKind::Nvtx];

/// Nested deeper than this, only the outermost are known: a damaged trace must not cost the square of its slices.
const DEEPEST: usize = 256;
/// Not nested.
const ACROSS: u32 = u32::MAX;

/// Of one process and one kind.
#[derive(Default)]
pub struct Only {
    ranges: Vec<OpenRange>,
    /// From when on, and the innermost that is open then: its place plus one, or 0.
    turns: Vec<(u64, u32)>,
}

struct OpenRange {
    slice: usize,
    end: u64,
    /// The one that was open when it began, which may end before it: its place plus one, or 0.
    around: u32,
}

impl Only {
    /// For each of [`KINDS`], from the tracks of a process.
    pub fn of(timeline: &Timeline, tracks: &[Track]) -> [Only; 3] {
        let mut all: [Only; 3] = Default::default();
        let mut turns: [Vec<Turn>; 3] = Default::default();
        for (thread, track) in tracks.iter().enumerate() {
            let mut walks = [(); 3].map(|()| Walk { thread, open: Vec::new() });
            for index in track.slices.clone() {
                let Some(kind) = KINDS.iter().position(|kind| *kind == timeline.slices.kind(index)) else { continue };
                walks[kind].begin(timeline, index, &mut all[kind], &mut turns[kind]);
            }
            for (walk, turns) in walks.iter_mut().zip(&mut turns) {
                walk.close(u64::MAX, turns);
            }
        }
        for (only, turns) in all.iter_mut().zip(turns) {
            only.turns = joined(turns, tracks.len());
        }
        all
    }

    /// What is open at a moment, as slices. `near` is where the last moment was: the calls of a thread come in order.
    pub fn at<'o>(&'o self, time: u64, near: &mut usize) -> impl Iterator<Item = usize> + 'o {
        if near.checked_sub(1).is_some_and(|last| self.turns.get(last).is_none_or(|turn| turn.0 > time)) {
            *near = self.turns.partition_point(|turn| turn.0 <= time);
        }
        while self.turns.get(*near).is_some_and(|turn| turn.0 <= time) {
            *near += 1;
        }
        let mut place = near.checked_sub(1).map_or(0, |last| self.turns[last].1);
        let chain = std::iter::from_fn(move || {
            let range = &self.ranges[(place as usize).checked_sub(1)?];
            place = range.around;
            Some(range)
        });
        chain.filter(move |range| range.end > time).map(|range| range.slice)
    }
}

/// What a thread has open from a moment on.
struct Turn {
    time: u64,
    thread: usize,
    innermost: u32,
}

/// The ranges of one kind on one track.
struct Walk {
    thread: usize,
    /// End and place plus one, by begin.
    open: Vec<(u64, u32)>,
}

impl Walk {
    fn begin(&mut self, timeline: &Timeline, slice: usize, only: &mut Only, turns: &mut Vec<Turn>) {
        let (time, end) = (timeline.slices.start[slice], timeline.slices.get(slice).end());
        self.close(time, turns);
        if end == time || self.open.len() == DEEPEST {
            return;
        }
        only.ranges.push(OpenRange { slice, end, around: self.open.last().map_or(0, |last| last.1) });
        self.open.push((end, only.ranges.len() as u32));
        turns.push(self.turn(time));
    }

    /// Ends what ends by then.
    fn close(&mut self, until: u64, turns: &mut Vec<Turn>) {
        while let Some(end) = self.open.iter().map(|range| range.0).min().filter(|end| *end <= until) {
            self.open.retain(|range| range.0 > end);
            turns.push(self.turn(end));
        }
    }

    fn turn(&self, time: u64) -> Turn {
        let nested = self.open.is_sorted_by(|outer, inner| outer.0 >= inner.0);
        let innermost = self.open.last().map_or(0, |last| last.1);
        Turn { time, thread: self.thread, innermost: if nested { innermost } else { ACROSS } }
    }
}

/// The turns of all threads as those of the only one that has something open.
fn joined(mut turns: Vec<Turn>, threads: usize) -> Vec<(u64, u32)> {
    // Stable: each thread's turns keep their order.
    turns.sort_by_key(|turn| turn.time);
    let mut now = vec![0u32; threads];
    // The sum is what the only one has.
    let (mut open, mut sum) = (0, 0u64);
    let mut all: Vec<(u64, u32)> = Vec::with_capacity(turns.len());
    for turn in turns {
        let before = std::mem::replace(&mut now[turn.thread], turn.innermost);
        open = open + usize::from(turn.innermost > 0) - usize::from(before > 0);
        sum = sum + u64::from(turn.innermost) - u64::from(before);
        let only = if open == 1 && sum != u64::from(ACROSS) { sum as u32 } else { 0 };
        match all.last_mut() {
            Some(last) if last.0 == turn.time => last.1 = only,
            Some(last) if last.1 == only => {}
            _ => all.push((turn.time, only)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is open of scopes, in microseconds.
    fn open(text: &str, times: &[u64]) -> Vec<String> {
        let timeline = Timeline::from_text(text).unwrap();
        let [_, scopes, _] = Only::of(&timeline, &timeline.tracks);
        let name = |slice: usize| timeline.names.text(timeline.slices.get(slice).name);
        let mut near = 0;
        times.iter().map(|time| scopes.at(time * 1000, &mut near).map(name).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn what_one_thread_has_open_and_nothing_where_two_have() {
        let text = "track a\n scope out 10us..90us\n scope in 20us..40us\n scope last 95us..99us\n track b\n scope other 60us..70us\n step s 0..1ms";
        assert_eq!(
            open(text, &[5, 10, 25, 40, 59, 60, 69, 70, 90, 96, 99, 30]),
            ["", "out", "in out", "out", "out", "", "", "out", "", "last", "", "in out"]
        );
    }

    #[test]
    fn ranges_that_lie_across_each_other_are_told_apart_only_when_one_is_left() {
        assert_eq!(open("track a\n scope x 10us..30us\n scope y 20us..50us", &[15, 25, 35, 55]), ["x", "", "y", ""]);
    }
}
