//! Makes frames, events, blocks and segments of the dictionaries of a snapshot as soon as each is complete, so that what is kept of them is small.

use super::heap::Heap;
use super::input::Stop;
use super::value::{Kind, Value};
use super::words::{Fields, Word};
use crate::memory::{AllocatorIndex, Block, BlockState, MemoryEvent, MemoryEventKind, Segment, StackBasis};
use crate::{Builder, NameIndex, StackIndex};
use std::collections::HashMap;

/// Frames of a stack beyond these are left out; Python's own limit is 1000.
const DEEPEST: usize = 2000;
/// A frame in the tree of stacks, with its entry in the map that finds it.
const NODE_COST: u64 = 64;

/// Not given to a device yet.
pub const NOBODY: AllocatorIndex = AllocatorIndex(u32::MAX);

#[derive(Default)]
pub struct Records {
    pub builder: Builder,
    pub frames: Vec<(NameIndex, u32)>,
    stacks: HashMap<Box<[u32]>, StackIndex>,
    pub events: Vec<MemoryEvent>,
    pub blocks: Vec<Block>,
    pub segments: Vec<(Option<u64>, Segment)>,
    /// Events that no allocator has: sizes, addresses or times beyond 64 bits, unknown actions.
    pub invalid: u64,
    pub unknown: u64,
    /// Some event has a time, or none has.
    pub timed: bool,
    pub untimed: bool,
}

impl Records {
    /// What this dictionary is in a snapshot. None: nothing that is known by itself.
    pub fn shape(&mut self, heap: &mut Heap, pairs: &[Value]) -> Result<Option<Value>, Stop> {
        let fields = Fields::of(pairs);
        if fields.has(Word::ActionKey) {
            return self.event(heap, &fields).map(Some);
        }
        if fields.has(Word::Filename) && fields.has(Word::Name) {
            return self.frame(heap, &fields).map(Some);
        }
        if fields.has(Word::TotalSize) && fields.has(Word::Blocks) {
            return self.segment(heap, &fields).map(Some);
        }
        if fields.has(Word::State) && fields.has(Word::Size) {
            return self.block(heap, &fields).map(Some);
        }
        Ok(None)
    }

    fn frame(&mut self, heap: &mut Heap, fields: &Fields) -> Result<Value, Stop> {
        heap.charge(size_of::<(NameIndex, u32)>() as u64)?;
        let said = |word| heap.said(fields.get(word)).map_or("", |text| text.as_ref());
        let file = Some(said(Word::Filename)).filter(|file| *file != "??").unwrap_or("");
        let name = self.builder.name(said(Word::Name), file, 0);
        let line = heap.unsigned(fields.get(Word::Line)).and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
        self.frames.push((name, line));
        Ok(Value::new(Kind::Frame, self.frames.len() as u32 - 1))
    }

    /// A list of frames, the innermost first.
    fn stack(&mut self, heap: &mut Heap, frames: Value) -> Result<StackIndex, Stop> {
        let settled = heap.settled(frames);
        if settled.is(Kind::Stack) {
            return Ok(StackIndex(settled.place() as u32));
        }
        let known = heap.items(frames).iter().filter(|item| item.is(Kind::Frame));
        let places: Vec<u32> = known.map(|item| item.place() as u32).take(DEEPEST).collect();
        let stack = match self.stacks.get(places.as_slice()) {
            _ if places.is_empty() => StackIndex(0),
            Some(stack) => *stack,
            None => {
                let before = self.builder.timeline.stacks.len();
                let mut stack = None;
                for place in places.iter().rev() {
                    let (name, line) = self.frames[*place as usize];
                    stack = Some(self.builder.frame(stack, name, line));
                }
                let grown = (self.builder.timeline.stacks.len() - before) as u64;
                heap.charge(NODE_COST * grown + NODE_COST + 4 * places.len() as u64)?;
                let stack = stack.unwrap_or(StackIndex(0));
                self.stacks.insert(places.into(), stack);
                stack
            }
        };
        heap.becomes(frames, Value::new(Kind::Stack, stack.0));
        Ok(stack)
    }

    fn event(&mut self, heap: &mut Heap, fields: &Fields) -> Result<Value, Stop> {
        let action = fields.get(Word::ActionKey);
        let kinds = [
            (Word::Alloc, MemoryEventKind::Alloc),
            (Word::FreeRequested, MemoryEventKind::FreeRequested),
            (Word::FreeCompleted, MemoryEventKind::FreeCompleted),
            (Word::SegmentAlloc, MemoryEventKind::SegmentAlloc),
            (Word::SegmentFree, MemoryEventKind::SegmentFree),
            (Word::SegmentMap, MemoryEventKind::SegmentMap),
            (Word::SegmentUnmap, MemoryEventKind::SegmentUnmap),
            (Word::Oom, MemoryEventKind::OutOfMemory),
        ];
        let Some((_, kind)) = kinds.into_iter().find(|(word, _)| word.is(action)) else {
            // A snapshot that was taken and a note on a block change nothing.
            self.unknown += u64::from(!Word::Snapshot.is(action) && !Word::Annotate.is(action));
            return Ok(Value::OPAQUE);
        };
        heap.charge(size_of::<MemoryEvent>() as u64)?;
        let stack = self.stack(heap, fields.get(Word::Frames))?;
        let place = if kind == MemoryEventKind::OutOfMemory { Word::DeviceFree } else { Word::Addr };
        // Versions without a key, or without a value for it.
        let number = |word| match fields.get(word).kind() {
            Kind::Missing | Kind::None => Some(0),
            _ => heap.unsigned(fields.get(word)),
        };
        let time = number(Word::TimeUs).and_then(|time| time.checked_mul(1000));
        let numbers = (number(place), number(Word::Size), time);
        let (Some(address), Some(bytes), Some(time)) = numbers else {
            self.invalid += 1;
            return Ok(Value::OPAQUE);
        };
        if time == 0 {
            self.untimed = true;
        } else {
            self.timed = true;
        }
        let stream = heap.unsigned(fields.get(Word::Stream)).unwrap_or(0);
        let (allocated, reserved) = (None, None);
        self.events.push(MemoryEvent {
            time,
            allocator: NOBODY,
            kind,
            address,
            bytes,
            stream,
            track: None,
            stack,
            stack_basis: StackBasis::Own,
            allocated,
            reserved,
        });
        Ok(Value::new(Kind::Event, self.events.len() as u32 - 1))
    }

    fn block(&mut self, heap: &mut Heap, fields: &Fields) -> Result<Value, Stop> {
        heap.charge(size_of::<Block>() as u64)?;
        let state = fields.get(Word::State);
        let state = match () {
            () if Word::ActiveAllocated.is(state) => BlockState::Active,
            () if Word::ActiveAwaitingFree.is(state) || Word::ActivePendingFree.is(state) => BlockState::AwaitingFree,
            () => BlockState::Inactive,
        };
        let Some(bytes) = heap.unsigned(fields.get(Word::Size)) else {
            self.invalid += 1;
            return Ok(Value::OPAQUE);
        };
        // torch 1.13 and 2.0 keep the last owners of a block; the first of them has it now.
        let owner = heap.items(fields.get(Word::History)).first().copied().unwrap_or(Value::MISSING);
        let owner = Fields::of(heap.items(owner));
        let frames = if fields.has(Word::Frames) { fields.get(Word::Frames) } else { owner.get(Word::Frames) };
        let requested = match fields.has(Word::RequestedSize) {
            true => heap.unsigned(fields.get(Word::RequestedSize)),
            false => heap.unsigned(owner.get(Word::RealSize)),
        };
        let stack = self.stack(heap, frames)?;
        // Versions that do not say where a block is have them one behind the other: see `segment`.
        let address = heap.unsigned(fields.get(Word::Address)).unwrap_or(u64::MAX);
        self.blocks.push(Block { address, bytes, requested, state, stack });
        Ok(Value::new(Kind::Block, self.blocks.len() as u32 - 1))
    }

    fn segment(&mut self, heap: &mut Heap, fields: &Fields) -> Result<Value, Stop> {
        heap.charge(size_of::<(Option<u64>, Segment)>() as u64)?;
        let (address, bytes) = (heap.unsigned(fields.get(Word::Address)), heap.unsigned(fields.get(Word::TotalSize)));
        let (Some(address), Some(bytes)) = (address, bytes) else {
            self.invalid += 1;
            return Ok(Value::OPAQUE);
        };
        // One list of blocks may be in many segments: each has its own copy.
        heap.charge((heap.items(fields.get(Word::Blocks)).len() * size_of::<Block>()) as u64)?;
        let items = heap.items(fields.get(Word::Blocks));
        let mut blocks: Vec<Block> = Vec::with_capacity(items.len());
        let mut next = address;
        for item in items.iter().filter(|item| item.is(Kind::Block)) {
            let mut block = self.blocks[item.place()];
            if block.address == u64::MAX {
                block.address = next;
            }
            next = block.address.saturating_add(block.bytes);
            blocks.push(block);
        }
        blocks.sort_by_key(|block| block.address);
        let device = heap.unsigned(fields.get(Word::Device));
        let segment = Segment {
            address,
            bytes,
            stream: heap.unsigned(fields.get(Word::Stream)).unwrap_or(0),
            pool: pool(heap, fields.get(Word::SegmentPoolId)),
            large: Word::Large.is(fields.get(Word::SegmentType)),
            expandable: fields.get(Word::IsExpandable) == Value::bool(true),
            stack: self.stack(heap, fields.get(Word::Frames))?,
            blocks,
        };
        self.segments.push((device, segment));
        Ok(Value::new(Kind::Segment, self.segments.len() as u32 - 1))
    }
}

/// Two numbers, of which both are 0 for the pool of everybody.
fn pool(heap: &Heap, id: Value) -> u64 {
    let part = |at: usize| heap.items(id).get(at).and_then(|part| heap.unsigned(*part)).unwrap_or(0);
    part(0) << 32 | part(1) & 0xffff_ffff
}
