//! The block map of an allocator at one moment: what is in use, what is free and whether it can be used or given back, the largest hole, and which
//! blocks keep the memory around them from being given back.

use super::who::{Holder, by_place};
use crate::frames::Frames;
use std::cmp::Reverse;
use timeline::memory::{AllocatorState, BlockState, Segment};
use timeline::{StackIndex, Timeline};

#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockMap {
    pub segments: u64,
    pub reserved: u64,
    pub active: u64,
    /// Given back by the program; another stream may still use it.
    pub awaiting: u64,
    pub free: u64,
    /// Of what is active, not asked for: lost to rounding. None: sizes asked for are not recorded.
    pub rounding: Option<u64>,
    /// Free in segments with nothing in use: `torch.cuda.empty_cache()` gives it back.
    pub releasable: u64,
    /// Free beside blocks in use: it can only be handed out again.
    pub pinned: u64,
    pub largest_free: u64,
    pub free_blocks: u64,
    /// In pools of their own, of CUDA graphs: reserved, and in use.
    pub own_pools: u64,
    pub own_pools_active: u64,
    pub expandable: bool,
    /// Whose blocks keep free memory beside them from being given back; `bytes` is that memory.
    pub pinning: Vec<Holder>,
}

impl BlockMap {
    /// The part of the free memory that no single request can have, 0 to 1.
    pub fn fragmentation(&self) -> f64 {
        if self.free == 0 { 0.0 } else { 1.0 - self.largest_free as f64 / self.free as f64 }
    }
}

pub fn of(timeline: &Timeline, frames: &Frames, state: &AllocatorState) -> BlockMap {
    let mut map = BlockMap { segments: state.segments.len() as u64, ..BlockMap::default() };
    let mut requested = Some(0u64);
    let mut pinning: Vec<(StackIndex, u64)> = Vec::new();
    for segment in &state.segments {
        map.reserved = map.reserved.saturating_add(segment.bytes);
        map.expandable |= segment.expandable;
        let (mut used, mut free, mut active) = (0u64, 0u64, 0u64);
        for block in &segment.blocks {
            match block.state {
                BlockState::Active => {
                    active = active.saturating_add(block.bytes);
                    requested =
                        requested.zip(block.requested).map(|(all, one)| all.saturating_add(one.min(block.bytes)));
                    used += 1;
                }
                BlockState::AwaitingFree => {
                    map.awaiting = map.awaiting.saturating_add(block.bytes);
                    used += 1;
                }
                BlockState::Inactive => {
                    free = free.saturating_add(block.bytes);
                    map.largest_free = map.largest_free.max(block.bytes);
                    map.free_blocks += 1;
                }
            }
        }
        map.active = map.active.saturating_add(active);
        map.free = map.free.saturating_add(free);
        if segment.pool != 0 {
            map.own_pools = map.own_pools.saturating_add(segment.bytes);
            map.own_pools_active = map.own_pools_active.saturating_add(active);
        }
        let place = if used == 0 { &mut map.releasable } else { &mut map.pinned };
        *place = place.saturating_add(free);
        pinning.extend(holders(segment, used, free));
    }
    map.rounding = requested.map(|requested| map.active.saturating_sub(requested));
    map.pinning = by_place(timeline, frames, pinning.into_iter());
    map.pinning.sort_by_key(|holder| Reverse(holder.bytes));
    map
}

/// The free memory of a segment, in equal parts, to those whose blocks are in it.
fn holders(segment: &Segment, used: u64, free: u64) -> impl Iterator<Item = (StackIndex, u64)> {
    let in_use = segment.blocks.iter().filter(|block| block.state != BlockState::Inactive);
    in_use.filter(move |_| free > 0).map(move |block| (block.stack, free / used.max(1)))
}
