//! Lays the slices of one thread out in lanes, so that inside a lane every slice nests and nothing stands under a scope
//! that is not around it. Synchronous code needs one lane; scopes of asyncio tasks overlap and need more.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use timeline::{Slice, SliceKind, Timeline, Track};

/// A begin, an end or a moment; in order of time within a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    pub lane: u32,
    /// Of the slice, in [`Timeline::slices`].
    pub slice: usize,
    pub time: u64,
    pub kind: EdgeKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EdgeKind {
    Begin,
    End,
    Mark,
}

/// Calls `each` for every edge of the track. Holds what is open, not what has been.
pub fn walk<E>(timeline: &Timeline, track: &Track, mut each: impl FnMut(Edge) -> Result<(), E>) -> Result<(), E> {
    let mut lanes = Lanes::default();
    for index in track.slices.clone() {
        let slice = timeline.slices.get(index);
        let detail = timeline.slices.detail(index);
        // The number of an API call is that of its work, and of no scope.
        let id = if slice.kind == SliceKind::ApiCall { 0 } else { detail.id };
        let lane = lanes.place(&slice, id, detail.parent, &mut each)?;
        if is_mark(&slice) {
            each(Edge { lane: lane as u32, slice: index, time: slice.start, kind: EdgeKind::Mark })?;
        } else {
            each(Edge { lane: lane as u32, slice: index, time: slice.start, kind: EdgeKind::Begin })?;
            lanes.push(lane, Open { end: slice.end(), slice: index, id, scope: 0 });
        }
    }
    (0..lanes.all.len()).try_for_each(|lane| lanes.settle(lane, u64::MAX, 0, true, &mut each))
}

/// A moment: of our own, or of NVTX.
pub fn is_mark(slice: &Slice) -> bool {
    match slice.kind {
        SliceKind::Mark | SliceKind::RecordingWindow | SliceKind::Fix => true,
        kind => kind == SliceKind::Nvtx && slice.dur == 0 && !slice.open,
    }
}

#[derive(Clone, Copy)]
struct Open {
    end: u64,
    slice: usize,
    /// 0: none.
    id: u32,
    /// The innermost slice with an id, itself or below it; 0: none.
    scope: u32,
}

#[derive(Default)]
struct Lanes {
    /// What is open in each, outermost first.
    all: Vec<Vec<Open>>,
    /// Where each open scope is.
    home: HashMap<u32, usize>,
    /// When each lane will be free: the end of its outermost slice. May name a slice that has gone since.
    until: BinaryHeap<Reverse<(u64, usize)>>,
    free: BTreeSet<usize>,
}

/// Slices without an id nest by time alone. They overlap only in damaged or foreign traces, where a few lanes are worth a
/// look before a new one is opened; a look at thousands for each slice would not end.
const LOOKED_AT: usize = 8;

impl Lanes {
    /// The lane for a slice, with everything in it closed that ended before.
    fn place<E>(
        &mut self,
        slice: &Slice,
        id: u32,
        parent: u32,
        each: &mut impl FnMut(Edge) -> Result<(), E>,
    ) -> Result<usize, E> {
        if id == 0 && parent == 0 {
            for lane in 0..self.all.len().min(LOOKED_AT) {
                self.settle(lane, slice.start, 0, false, each)?;
                if self.all[lane].last().is_none_or(|top| top.end >= slice.end()) {
                    return Ok(lane);
                }
            }
            return self.free_lane(slice.start, each);
        }
        // Beside its parent's other children, and under no stranger.
        let home = self.home.get(&parent).copied().filter(|_| parent != 0);
        for (lane, scope) in home.map(|lane| (lane, parent)).into_iter().chain([(0, 0)]) {
            if lane < self.all.len() {
                self.settle(lane, slice.start, parent, false, each)?;
                let top = self.all[lane].last();
                if top.is_none_or(|top| top.end >= slice.end()) && top.map_or(0, |top| top.scope) == scope {
                    return Ok(lane);
                }
            }
        }
        self.free_lane(slice.start, each)
    }

    fn free_lane<E>(&mut self, now: u64, each: &mut impl FnMut(Edge) -> Result<(), E>) -> Result<usize, E> {
        while let Some(Reverse((_, lane))) = self.until.peek().copied().filter(|until| until.0.0 <= now) {
            self.until.pop();
            self.settle(lane, now, 0, false, each)?;
            if self.all[lane].is_empty() {
                self.free.insert(lane);
            }
        }
        while let Some(lane) = self.free.pop_first() {
            if self.all[lane].is_empty() {
                return Ok(lane);
            }
        }
        self.all.push(Vec::new());
        Ok(self.all.len() - 1)
    }

    fn push(&mut self, lane: usize, mut open: Open) {
        let below = self.all[lane].last();
        if below.is_none() {
            self.until.push(Reverse((open.end, lane)));
        }
        open.scope = if open.id != 0 { open.id } else { below.map_or(0, |below| below.scope) };
        if open.id != 0 {
            self.home.insert(open.id, lane);
        }
        self.all[lane].push(open);
    }

    /// Closes what has ended by `now`. What ends at this very moment stays open for a slice that says it is inside.
    fn settle<E>(
        &mut self,
        lane: usize,
        now: u64,
        parent: u32,
        all: bool,
        each: &mut impl FnMut(Edge) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(top) = self.all[lane].last().copied() {
            let inside = top.end == now && parent != 0 && top.id == parent;
            if !all && (top.end > now || inside) {
                break;
            }
            self.all[lane].pop();
            if top.id != 0 && self.home.get(&top.id) == Some(&lane) {
                self.home.remove(&top.id);
            }
            each(Edge { lane: lane as u32, slice: top.slice, time: top.end, kind: EdgeKind::End })?;
        }
        Ok(())
    }
}
