//! The functions that stand in PyTorch's slots: a record of the block, then PyTorch's own. Under the allocator's lock at times: no lock
//! is taken, and nothing allocated once a thread has its ring.

use super::sampling::{self, Reserved};
use super::slots::Slot;
use super::{CPU_DELETE, CPU_NEW, OUT_OF_MEMORY, REPORT, stacks};
use crate::thread;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::block::{Block, BlockStack, Totals};
use trace::clock::now;
use trace::codes::{BlockOperation, Reason, ReasonCode};
use trace::status::Collector;
use workload::{guard, session};

/// Copies of PyTorch in a process: each has functions of its own to go on to.
const MOST_COPIES: usize = 4;
static REPORTS: [AtomicUsize; MOST_COPIES] = [const { AtomicUsize::new(0) }; MOST_COPIES];
static FAILURES: [AtomicUsize; MOST_COPIES] = [const { AtomicUsize::new(0) }; MOST_COPIES];
static NEWS: [AtomicUsize; MOST_COPIES] = [const { AtomicUsize::new(0) }; MOST_COPIES];
static DELETES: [AtomicUsize; MOST_COPIES] = [const { AtomicUsize::new(0) }; MOST_COPIES];
/// What each has reserved.
static RESERVED: [Reserved; MOST_COPIES] = [const { Reserved::unknown() }; MOST_COPIES];

/// The program begins to use devices: no allocator has reserved anything.
pub(super) fn nothing_reserved() {
    RESERVED.iter().for_each(Reserved::begin);
}

/// `c10::Device`: the type in the lower byte, 1 for CUDA (which HIP calls itself, too), the index in the upper one.
type Device = u16;
const CUDA: u8 = 1;

type Report = unsafe extern "C" fn(*mut c_void, i64, usize, usize, Device);
type Fail = unsafe extern "C" fn(i64, usize, usize, Device);
type New = unsafe extern "C" fn(*mut c_void, *mut c_void, usize);
type Delete = unsafe extern "C" fn(*mut c_void, *mut c_void);

/// Writes the record of a block into the ring of this thread, with its stack if it is to have one. `grew`: the allocator, for this block.
#[inline(always)]
fn record(block: Block, grew: bool) {
    let Some(session) = session::current() else { return };
    guard::guarded(Collector::Blocks, (), || {
        let time = now();
        let stack = match sampling::reason(&block, grew, session.settings.recording.memory_stacks_kb << 10) {
            None => BlockStack::NotAsked,
            Some(reason) => stacks::of(session, reason),
        };
        let Some(writing) = thread::writing(session, Collector::Blocks) else { return };
        writing.push_all(&Block { time, thread: writing.tid, stack, ..block }.records());
    });
}

unsafe extern "C" fn report<const COPY: usize>(
    address: *mut c_void,
    bytes: i64,
    allocated: usize,
    reserved: usize,
    device: Device,
) {
    let [kind, index] = device.to_le_bytes();
    // Of the CPU it comes only while PyTorch's profiler runs.
    if kind == CUDA {
        let operation = if bytes < 0 { BlockOperation::Free } else { BlockOperation::Alloc };
        let totals = Some(Totals { allocated: allocated as u64, reserved: reserved as u64 });
        let block = Block::new(operation, address as u64, bytes.unsigned_abs());
        record(Block { device: Some(index), totals, ..block }, RESERVED[COPY].grew(index, reserved as u64));
    }
    // SAFETY: PyTorch's function of this name, put there before this one came into the slot.
    unsafe {
        let original: Report = std::mem::transmute(REPORTS[COPY].load(Ordering::Relaxed));
        original(address, bytes, allocated, reserved, device);
    }
}

unsafe extern "C" fn fail<const COPY: usize>(bytes: i64, allocated: usize, reserved: usize, device: Device) {
    let [kind, index] = device.to_le_bytes();
    if kind == CUDA {
        let totals = Some(Totals { allocated: allocated as u64, reserved: reserved as u64 });
        let block = Block::new(BlockOperation::OutOfMemory, 0, bytes.unsigned_abs());
        record(Block { device: Some(index), totals, ..block }, false);
    }
    // SAFETY: as in `report`.
    unsafe {
        let original: Fail = std::mem::transmute(FAILURES[COPY].load(Ordering::Relaxed));
        original(bytes, allocated, reserved, device);
    }
}

unsafe extern "C" fn new<const COPY: usize>(this: *mut c_void, address: *mut c_void, bytes: usize) {
    if bytes != 0 {
        record(Block::new(BlockOperation::Alloc, address as u64, bytes as u64), false);
    }
    // SAFETY: as in `report`.
    unsafe {
        let original: New = std::mem::transmute(NEWS[COPY].load(Ordering::Relaxed));
        original(this, address, bytes);
    }
}

unsafe extern "C" fn delete<const COPY: usize>(this: *mut c_void, address: *mut c_void) {
    if !address.is_null() {
        record(Block::new(BlockOperation::Free, address as u64, 0), false);
    }
    // SAFETY: as in `report`.
    unsafe {
        let original: Delete = std::mem::transmute(DELETES[COPY].load(Ordering::Relaxed));
        original(this, address);
    }
}

/// Puts the function for its name into the slot, which goes on to what the slot led to. The error says why it cannot be.
pub(super) fn put_into(mut slot: Slot) -> Result<Slot, Reason> {
    const REPORT_COPIES: [Report; MOST_COPIES] = [report::<0>, report::<1>, report::<2>, report::<3>];
    const FAIL_COPIES: [Fail; MOST_COPIES] = [fail::<0>, fail::<1>, fail::<2>, fail::<3>];
    const NEW_COPIES: [New; MOST_COPIES] = [new::<0>, new::<1>, new::<2>, new::<3>];
    const DELETE_COPIES: [Delete; MOST_COPIES] = [delete::<0>, delete::<1>, delete::<2>, delete::<3>];
    let (originals, ours) = match slot.name {
        REPORT => (&REPORTS, REPORT_COPIES.map(|function| function as usize)),
        OUT_OF_MEMORY => (&FAILURES, FAIL_COPIES.map(|function| function as usize)),
        CPU_NEW => (&NEWS, NEW_COPIES.map(|function| function as usize)),
        CPU_DELETE => (&DELETES, DELETE_COPIES.map(|function| function as usize)),
        other => return Err(Reason::new(ReasonCode::NoHook).with(other)),
    };
    let copy = originals.iter().position(|known| {
        let known = known.load(Ordering::Relaxed);
        known == 0 || known == slot.original
    });
    let copy = copy.ok_or_else(|| Reason::new(ReasonCode::TooManyCopies).with(MOST_COPIES))?;
    originals[copy].store(slot.original, Ordering::Release);
    slot.replace(ours[copy])?;
    Ok(slot)
}
