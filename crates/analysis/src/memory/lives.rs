//! The life of every block: who allocated it, when it was handed out and when it was given back. What was alive before the first event is
//! known from a state of the allocator, or from its being freed.

use super::sampled;
use std::collections::{HashMap, HashSet};
use timeline::memory::{AllocatorIndex, BlockState, MemoryEvent, MemoryEventKind};
use timeline::{Memory, StackIndex};

/// What PyTorch rounds every block up to.
const ROUNDING: u64 = 512;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Life {
    pub address: u64,
    /// Rounded up as the allocator does.
    pub bytes: u64,
    pub stack: StackIndex,
    /// Places in [`Memory::events`]. No start: from before the first event; no end: alive at the end.
    pub start: Option<usize>,
    pub end: Option<usize>,
    /// In a pool of its own, of a CUDA graph.
    pub own_pool: bool,
    /// With which its stack was read, 0 to 1: blocks that have one stand for those that the sampling passed over. 0: it was passed over; 1: it
    /// stands for itself.
    pub probability: f64,
}

impl Life {
    /// Whether it is alive after this event.
    pub fn at(&self, event: usize) -> bool {
        self.start.is_none_or(|start| start <= event) && self.end.is_none_or(|end| end > event)
    }
}

#[derive(Clone, Debug, Default)]
pub struct Lives {
    pub all: Vec<Life>,
    /// Blocks handed out at an address that had not been given back: a free is missing.
    pub missing_frees: u64,
}

pub fn round(bytes: u64) -> u64 {
    bytes.checked_next_multiple_of(ROUNDING).unwrap_or(u64::MAX).max(ROUNDING)
}

/// Of one allocator.
pub fn of(memory: &Memory, allocator: AllocatorIndex) -> Lives {
    let sampled = memory.allocator(allocator).sampled_bytes;
    let mut walk = Walk { sampled, ..Walk::default() };
    // What is held after events that are missing was not there before those that are not.
    let states = memory.states.iter().filter(|state| state.allocator == allocator);
    let mut states = states.filter(|_| !memory.cut || memory.events.is_empty()).peekable();
    let events = memory.events.iter().enumerate().filter(|(_, event)| event.allocator == allocator);
    for (at, event) in events {
        // A state of the same moment is of after the event.
        while let Some(state) = states.next_if(|state| state.time < event.time) {
            walk.state(state);
        }
        walk.event(at, event);
    }
    states.for_each(|state| walk.state(state));
    walk.lives
}

#[derive(Default)]
struct Walk {
    lives: Lives,
    sampled: Option<u64>,
    /// By address: place among the lives.
    live: HashMap<u64, usize>,
    /// Given back, and not ready for others yet.
    waiting: HashSet<u64>,
}

impl Walk {
    fn event(&mut self, at: usize, event: &MemoryEvent) {
        let life = Life {
            address: event.address,
            bytes: round(event.bytes),
            stack: event.stack,
            start: Some(at),
            end: None,
            own_pool: false,
            probability: sampled::probability(event, self.sampled),
        };
        match event.kind {
            MemoryEventKind::Alloc => {
                if let Some(before) = self.live.insert(event.address, self.lives.all.len()) {
                    self.lives.all[before].end = Some(at);
                    self.lives.missing_frees += 1;
                }
                self.lives.all.push(life);
            }
            MemoryEventKind::FreeRequested | MemoryEventKind::FreeCompleted => {
                let completed = event.kind == MemoryEventKind::FreeCompleted;
                if let Some(place) = self.live.remove(&event.address) {
                    self.lives.all[place].end = Some(at);
                } else if !(completed && self.waiting.contains(&event.address)) {
                    self.lives.all.push(Life {
                        start: None,
                        end: Some(at),
                        stack: StackIndex(0),
                        probability: 1.0,
                        ..life
                    });
                }
                match completed {
                    true => self.waiting.remove(&event.address),
                    false => self.waiting.insert(event.address),
                };
            }
            _ => {}
        }
    }

    /// What it holds that no event told of is from before them; and which pool blocks are of.
    fn state(&mut self, state: &timeline::memory::AllocatorState) {
        for segment in &state.segments {
            for block in segment.blocks.iter().filter(|block| block.state == BlockState::Active) {
                let place = *self.live.entry(block.address).or_insert_with(|| {
                    self.lives.all.push(Life {
                        address: block.address,
                        bytes: block.bytes,
                        stack: block.stack,
                        start: None,
                        end: None,
                        own_pool: false,
                        probability: 1.0,
                    });
                    self.lives.all.len() - 1
                });
                self.lives.all[place].own_pool = segment.pool != 0;
            }
        }
    }
}
