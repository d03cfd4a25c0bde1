//! The lines of the small text that say what a framework's allocator did:
//!
//! ```text
//! allocator expandable_segments=True                # settings, where they matter
//! block alloc 10us 4M at 1 main>decode@serve.py:44  # K, M and G are bytes; `each` makes the address another one in every round of a `repeat`
//! block free 20us 4M at 1
//! sampled 512K                                      # from here on a small block without a stack was passed over by sampling
//! segment alloc 9us 20M at 1                        # from the driver; also `free`, `map`, `unmap`
//! oom 30us 8G free 100M
//! kept 20 80M at 1 [each] list~in~cache             # so many tensors, of which one is at 1, by what
//! reserved 20M at 1 [small] [pool 7] [expandable]   # a segment of the state at the end, with its blocks below it:
//! holds 4M active main>decode@serve.py:44           # active, waits or free
//! ```

use super::{Reader, frames, place, time};
use crate::StackIndex;
use crate::memory::{
    Allocator, AllocatorIndex, AllocatorState, Block, BlockState, MemoryEvent, MemoryEventKind, Retainer, Segment,
    StackBasis,
};
use trace::block::LARGE_BLOCK;

/// Rounds of a `repeat` are apart by less than this.
pub(super) const EACH: u32 = 44;

impl Reader {
    pub(super) fn memory_line(&mut self, verb: &str, rest: &[&str], offset: u64) -> Result<(), String> {
        let allocator = self.allocator();
        let place = allocator.0 as usize;
        match (verb, rest) {
            ("allocator", settings) => {
                let pairs = settings.iter().filter_map(|one| one.split_once('='));
                let all = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
                self.builder.timeline.memory.allocators[place].settings.extend(all);
            }
            ("sampled", [apart]) => {
                self.builder.timeline.memory.allocators[place].sampled_bytes = Some(bytes(apart)?);
            }
            ("block" | "segment", [what, at, size, words @ ..]) => {
                let kind = match (verb, *what) {
                    ("block", "alloc") => MemoryEventKind::Alloc,
                    ("block", "free") => MemoryEventKind::FreeRequested,
                    ("segment", "alloc") => MemoryEventKind::SegmentAlloc,
                    ("segment", "free") => MemoryEventKind::SegmentFree,
                    ("segment", "map") => MemoryEventKind::SegmentMap,
                    ("segment", "unmap") => MemoryEventKind::SegmentUnmap,
                    (_, other) => return Err(format!("no such event: {other}")),
                };
                let stack = self.stack_of(words);
                let address = address(words, offset)?;
                let event = event(offset + time(at)?, allocator, kind, address, bytes(size)?, stack);
                let is_sampled = self.builder.timeline.memory.allocators[place].sampled_bytes.is_some();
                let stack_basis = match (kind, stack.0) {
                    (MemoryEventKind::Alloc, 0) if is_sampled => StackBasis::PassedOver,
                    (MemoryEventKind::Alloc, _) if is_sampled && event.bytes < LARGE_BLOCK => StackBasis::Sampled,
                    (MemoryEventKind::Alloc, _) if is_sampled => StackBasis::Always,
                    _ => StackBasis::Own,
                };
                let event = MemoryEvent { track: self.track, stack_basis, ..event };
                self.builder.timeline.memory.events.push(event);
                if kind == MemoryEventKind::FreeRequested {
                    let completed = MemoryEvent { kind: MemoryEventKind::FreeCompleted, ..event };
                    self.builder.timeline.memory.events.push(completed);
                }
            }
            ("kept", [tensors, size, words @ ..]) => {
                let retainer = Retainer {
                    process: self.last_process(),
                    kept_by: words.last().copied().unwrap_or("").replace('~', " ").into(),
                    file: None,
                    line: None,
                    device: "cuda:0".into(),
                    tensors: bytes(tensors)?,
                    bytes: bytes(size)?,
                    addresses: vec![address(words, offset)?],
                };
                self.builder.timeline.memory.retainers.push(retainer);
            }
            ("oom", [at, size, "free", free]) => {
                let (kind, stack) = (MemoryEventKind::OutOfMemory, StackIndex(0));
                let event = event(offset + time(at)?, allocator, kind, bytes(free)?, bytes(size)?, stack);
                self.builder.timeline.memory.events.push(event);
            }
            ("reserved", [size, words @ ..]) => {
                let segment = Segment {
                    address: address(words, offset)?,
                    bytes: bytes(size)?,
                    stream: 0,
                    pool: after(words, "pool").map(bytes).transpose()?.unwrap_or(0),
                    large: !words.contains(&"small"),
                    expandable: words.contains(&"expandable"),
                    stack: StackIndex(0),
                    blocks: Vec::new(),
                };
                let memory = &mut self.builder.timeline.memory;
                if memory.states.is_empty() {
                    memory.states.push(AllocatorState { time: 0, allocator, segments: Vec::new() });
                }
                memory.states[0].segments.push(segment);
            }
            ("holds", [size, state, words @ ..]) => {
                let state = match *state {
                    "active" => BlockState::Active,
                    "waits" => BlockState::AwaitingFree,
                    "free" => BlockState::Inactive,
                    other => return Err(format!("no such state: {other}")),
                };
                let (stack, bytes) = (self.stack_of(words), bytes(size)?);
                let states = &mut self.builder.timeline.memory.states;
                let segment = states.first_mut().and_then(|state| state.segments.last_mut());
                let segment = segment.ok_or("`holds` before `reserved`")?;
                let end = segment.blocks.last().map_or(segment.address, |block| block.address + block.bytes);
                segment.blocks.push(Block { address: end, bytes, requested: Some(bytes), state, stack });
            }
            _ => return Err("not understood".into()),
        }
        Ok(())
    }

    /// The state is of the end.
    pub(super) fn finish_memory(&mut self) {
        let memory = &mut self.builder.timeline.memory;
        let end = memory.events.iter().map(|event| event.time).max().unwrap_or(0);
        memory.states.iter_mut().for_each(|state| state.time = end);
    }

    fn allocator(&mut self) -> AllocatorIndex {
        let process = self.last_process();
        let all = &mut self.builder.timeline.memory.allocators;
        let place = all.iter().position(|one| one.process == process).unwrap_or_else(|| {
            let (device, backend, settings) = (Some(0), "torch.cuda".into(), Default::default());
            all.push(Allocator { process, device, backend, settings, began_late: false, sampled_bytes: None });
            all.len() - 1
        });
        AllocatorIndex(place as u32)
    }

    fn stack_of(&mut self, words: &[&str]) -> StackIndex {
        let Some(stack) = words.iter().find(|word| word.contains('>') || word.contains('@')) else {
            return StackIndex(0);
        };
        let mut last = None;
        for frame in frames(stack) {
            let (name, file, line) = place(frame, "");
            let name = self.builder.name(name, file, 0);
            last = Some(self.builder.frame(last, name, line));
        }
        last.unwrap_or(StackIndex(0))
    }
}

fn event(
    time: u64,
    allocator: AllocatorIndex,
    kind: MemoryEventKind,
    address: u64,
    bytes: u64,
    stack: StackIndex,
) -> MemoryEvent {
    let (stream, track, stack_basis, allocated, reserved) = (0, None, StackBasis::Own, None, None);
    MemoryEvent { time, allocator, kind, address, bytes, stream, track, stack, stack_basis, allocated, reserved }
}

fn after<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied()
}

fn address(words: &[&str], offset: u64) -> Result<u64, String> {
    let address = bytes(after(words, "at").ok_or("no address: `at 1`")?)?;
    Ok(if words.contains(&"each") { address << EACH | offset } else { address })
}

pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().map(|number| number << shift).map_err(|_| format!("{text} is no number of bytes"))
}
