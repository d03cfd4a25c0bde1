//! Which recorded slice of a thread is the innermost, when. Millions of calls are looked at in stretches between which none is
//! open, each by a thread of its own.

use super::Cause;
use super::blocks::Blocks;
use super::host::Who;
use std::ops::Range;
use timeline::parallel::{self, Task};
use timeline::{SliceKind, Slices};

/// A part of a recorded slice in which nothing shorter is recorded.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    pub start: u64,
    pub end: u64,
    pub cause: Cause,
    pub who: Who,
    pub slice: u32,
}

/// Fewer slices are done before a thread has started.
const WORTH_A_STRETCH: usize = 50_000;
const MOST: usize = 32;
/// So far a place is looked for at which nothing is open.
const LOOK: usize = 1_000;

/// How many stretches so many slices are worth.
pub fn worth(slices: usize) -> usize {
    (slices / WORTH_A_STRETCH).clamp(1, MOST)
}

/// The innermost of those slices of a track that `part` takes. All others than these kinds it leaves.
pub fn find(
    slices: &Slices,
    track: Range<usize>,
    stretches: usize,
    kinds: &[SliceKind],
    part: impl Fn(usize) -> Option<Part> + Sync,
) -> Blocks<Part> {
    let ranges = cut(slices, track.clone(), stretches, kinds);
    let mut blocks: Vec<Vec<Part>> = ranges.iter().map(|_| Vec::new()).collect();
    let tasks = ranges.into_iter().zip(&mut blocks).map(|(range, block)| {
        let part = &part;
        Box::new(move || *block = innermost(range.filter_map(part))) as Task
    });
    parallel::run(track.len(), tasks.collect(), || ());
    Blocks::new(blocks)
}

/// Cuts a track where no slice of the kinds is open, into as many stretches or fewer.
fn cut(slices: &Slices, track: Range<usize>, stretches: usize, kinds: &[SliceKind]) -> Vec<Range<usize>> {
    let each = track.len().div_ceil(stretches).max(1);
    let end = |index: usize| match kinds.contains(&slices.kind(index)) {
        true => slices.start[index].saturating_add(slices.dur[index]),
        false => 0,
    };
    let nominal: Vec<Range<usize>> = track.clone().step_by(each).map(|from| from..track.end.min(from + each)).collect();
    let mut ends = vec![0; nominal.len()];
    if nominal.len() > 1 {
        let tasks = nominal.iter().zip(&mut ends).map(|(range, last)| {
            let end = &end;
            Box::new(move || *last = range.clone().map(end).max().unwrap_or(0)) as Task
        });
        parallel::run(track.len(), tasks.collect(), || ());
    }
    let mut all = Vec::with_capacity(nominal.len());
    let (mut from, mut open) = (track.start, 0);
    for (range, last) in nominal.iter().skip(1).zip(ends) {
        open = last.max(open);
        let mut until = open;
        let free = |index: &usize| {
            let free = until <= slices.start[*index];
            until = until.max(end(*index));
            free
        };
        if let Some(place) = range.clone().take(LOOK).find(free) {
            all.push(from..place);
            from = place;
        }
    }
    all.push(from..track.end);
    all
}

/// Of slices in the order of their starts: who is the innermost, when. What compiles or speaks to others does so in all that it calls.
fn innermost(slices: impl Iterator<Item = Part>) -> Vec<Part> {
    // Room for all, most of which is never touched where few are kept: growing would copy them again and again.
    let (mut all, mut open) = (Vec::with_capacity(slices.size_hint().1.unwrap_or(0)), Vec::<Part>::new());
    let mut at = 0;
    let mut close = |open: &mut Vec<Part>, until: u64| {
        while let Some(last) = open.last() {
            let end = last.end.min(until);
            if at < end {
                all.push(Part { start: at.max(last.start), end, ..*last });
                at = end;
            }
            if last.end > until {
                break;
            }
            open.pop();
        }
        at = at.max(until);
    };
    for mut slice in slices.filter(|slice| slice.start < slice.end) {
        close(&mut open, slice.start);
        if let Some(around) = open.last().filter(|one| matches!(one.cause, Cause::Compile | Cause::Communication)) {
            slice.cause = around.cause;
        }
        open.push(slice);
    }
    close(&mut open, u64::MAX);
    all.shrink_to_fit();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    #[test]
    fn the_innermost_has_the_time_and_compiling_is_inherited() {
        let part = |start, end, cause| Part { start, end, cause, who: Who::Nobody, slice: 0 };
        let all = innermost(
            [
                part(0, 100, Cause::Python),
                part(10, 30, Cause::Native),
                part(20, 25, Cause::Waiting),
                part(50, 80, Cause::Compile),
                part(60, 90, Cause::Native),
                part(95, 95, Cause::Gc),
            ]
            .into_iter(),
        );
        let said: Vec<_> = all.iter().map(|part| (part.start, part.end, part.cause)).collect();
        assert_eq!(
            said,
            [
                (0, 10, Cause::Python),
                (10, 20, Cause::Native),
                (20, 25, Cause::Waiting),
                (25, 30, Cause::Native),
                (30, 50, Cause::Python),
                (50, 60, Cause::Compile),
                (60, 90, Cause::Compile),
                (90, 100, Cause::Python),
            ]
        );
    }

    #[test]
    fn cuts_lie_where_nothing_is_open_and_change_nothing() {
        // The first half is inside one call, and later some calls make others.
        let mut text = String::from("track main\n call main 0..1000us\n");
        for place in 0..200u64 {
            let at = place * 10;
            text += &format!("call one@a.py:{} {at}us..{}us\n", place % 5, at + 9);
            if place % 3 == 0 {
                text += &format!("ccall inner {}us..{}us\n", at + 2, at + 4);
            }
            text += &format!("gc 2 {}us..{}us\n", at + 5, at + 30);
        }
        let timeline = Timeline::from_text(&text).unwrap();
        let (slices, track) = (&timeline.slices, timeline.tracks[0].slices.clone());
        let kinds = [SliceKind::Call, SliceKind::CCall];
        let find = |stretches| {
            let found = super::find(slices, track.clone(), stretches, &kinds, |index| {
                let (start, slice) = (slices.start[index], index as u32);
                let end = start + slices.dur[index];
                let part = Part { start, end, cause: Cause::Python, who: Who::Nobody, slice };
                kinds.contains(&slices.kind(index)).then_some(part)
            });
            found.iter().map(|part| (part.start, part.end, part.slice)).collect::<Vec<_>>()
        };
        let whole = find(1);
        assert!(whole.len() > 250);
        for stretches in [2, 7, 16, 1_000] {
            let cuts = cut(slices, track.clone(), stretches, &kinds);
            assert!(cuts.len() > 1 && cuts.len() <= stretches, "{cuts:?}");
            assert!(cuts[1..].iter().all(|range| slices.start[range.start] >= 1_000_000), "{cuts:?}");
            assert_eq!(find(stretches), whole, "{stretches}");
        }
    }
}
