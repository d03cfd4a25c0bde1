//! What a CUDA call says by its parameters: what it did with memory, or was refused, and which stream it waited for. CUPTI has
//! activity records for both, but asking for those slows every launch of PyTorch by microseconds (the variants `floor-waits` and
//! `floor-memory` of benches/gpu_quick.py); a look at the parameters of the few calls that matter does not show.
//!
//! Parameters are structures of eight-byte fields, as CUPTI's generated headers define them; tests/cupti_headers checks them.

use super::calls::{DRIVER, MOST_IDS, RUNTIME};
use trace::codes::MemoryOperation;

/// `CUpti_ActivityMemoryKind`.
const PINNED: u8 = 2;
const DEVICE: u8 = 3;
const MANAGED: u8 = 5;

/// `CUpti_ActivitySynchronizationType`.
const EVENT: u32 = 1;
const STREAM_WAITS: u32 = 2;
const STREAM: u32 = 3;
const CONTEXT: u32 = 4;

/// Where the properties of memory that is created say where it is to lie.
const LOCATION_TYPE_AT: usize = 8; // CUmemAllocationProp.location.type
const LOCATION_ID_AT: usize = 12; // CUmemAllocationProp.location.id
/// `CU_MEM_LOCATION_TYPE_DEVICE`; the others are on the host.
const ON_DEVICE: u32 = 1;

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallEffect {
    Memory(MemoryChange),
    /// The stream is given where the call has one.
    Wait {
        sort: u32,
        stream: Option<Stream>,
    },
}

/// What happened to memory, or to a handle of it. What a call does not say is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryChange {
    pub operation: MemoryOperation,
    pub address: u64,
    pub bytes: u64,
    pub handle: u64,
    pub memory: u8,
    pub pool: bool,
    /// None: that of the context.
    pub device: Option<u32>,
}

/// A stream as the program names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    pub handle: usize,
    /// Without a handle, the thread's own stream is meant, not the device's.
    pub per_thread: bool,
}

/// How to read the parameters.
#[derive(Clone, Copy)]
enum Shape {
    /// Where the address was stored, and the size.
    Alloc(u8, bool),
    /// The address itself, and the size.
    Register,
    /// Where the address and the pitch were stored, the width, the height.
    AllocPitch,
    Free(u8, bool),
    /// Where the handle was stored, the size, the properties.
    Create,
    /// The handle.
    Release,
    /// The address, the size, the offset in the memory, the handle.
    Map,
    /// The address, the size.
    Unmap,
    /// Where the handle was stored, the address.
    Retain,
    /// Where the handle was stored.
    Import,
    /// Where it was exported to, the handle.
    Export,
    /// Where the address was stored, the size.
    Reserve,
    /// The address, the size.
    Unreserve,
    /// Where the address was stored; memory of another process.
    OpenShared,
    CloseShared,
    Wait(u32),
    /// The stream is the first parameter, in the form of programs that have a default stream a thread or not.
    WaitFor(u32, bool),
}

const fn shape(domain: u32, id: u32) -> Option<Shape> {
    Some(match (domain, id) {
        (RUNTIME, 20) | (DRIVER, 243) => Shape::Alloc(DEVICE, false),
        (RUNTIME, 21) | (DRIVER, 244) => Shape::AllocPitch,
        (RUNTIME, 22) | (DRIVER, 245) => Shape::Free(DEVICE, false),
        (RUNTIME, 25 | 27) | (DRIVER, 39 | 294) => Shape::Alloc(PINNED, false),
        (RUNTIME, 26 | 153) | (DRIVER, 38 | 302) => Shape::Free(PINNED, false),
        (RUNTIME, 152) | (DRIVER, 301 | 379) => Shape::Register,
        (RUNTIME, 206) | (DRIVER, 371) => Shape::Alloc(MANAGED, false),
        (RUNTIME, 373 | 374 | 391 | 392) | (DRIVER, 598 | 599 | 611 | 612) => Shape::Alloc(DEVICE, true),
        (RUNTIME, 375 | 376) | (DRIVER, 600 | 601) => Shape::Free(DEVICE, true),
        (DRIVER, 549) => Shape::Create,
        (DRIVER, 550) => Shape::Release,
        (DRIVER, 551) => Shape::Map,
        (DRIVER, 552) => Shape::Unmap,
        (DRIVER, 565) => Shape::Retain,
        (DRIVER, 555) => Shape::Import,
        (DRIVER, 554) => Shape::Export,
        (DRIVER, 547) => Shape::Reserve,
        (DRIVER, 548) => Shape::Unreserve,
        (RUNTIME, 179) | (DRIVER, 329 | 567) => Shape::OpenShared,
        (RUNTIME, 180) | (DRIVER, 330) => Shape::CloseShared,
        (RUNTIME, 131) | (DRIVER, 126) => Shape::WaitFor(STREAM, false),
        (RUNTIME, 239) | (DRIVER, 440) => Shape::WaitFor(STREAM, true),
        (RUNTIME, 147) | (DRIVER, 295) => Shape::WaitFor(STREAM_WAITS, false),
        (RUNTIME, 247) | (DRIVER, 436) => Shape::WaitFor(STREAM_WAITS, true),
        (RUNTIME, 137) | (DRIVER, 121) => Shape::Wait(EVENT),
        (RUNTIME, 126 | 165) | (DRIVER, 17 | 800) => Shape::Wait(CONTEXT),
        _ => return None,
    })
}

/// Whether the parameters of this call say something.
pub fn is_read(domain: u32, id: u32) -> bool {
    shape(domain, id).is_some()
}

/// By domain, a bit for each call that does something with memory: asked at the begin of every call, these stay in the nearest cache.
const OF_MEMORY: [[u64; MOST_IDS / 64]; 2] = [of_memory(DRIVER), of_memory(RUNTIME)];

const fn of_memory(domain: u32) -> [u64; MOST_IDS / 64] {
    let (mut bits, mut id) = ([0; MOST_IDS / 64], 0);
    while id < MOST_IDS {
        if !matches!(shape(domain, id as u32), None | Some(Shape::Wait(_) | Shape::WaitFor(..))) {
            bits[id / 64] |= 1 << (id % 64);
        }
        id += 1;
    }
    bits
}

/// Whether this call does something with memory. The domain is one of the two, the id is less than [`MOST_IDS`].
#[inline]
pub fn is_of_memory(domain: u32, id: u32) -> bool {
    OF_MEMORY[usize::from(domain != DRIVER)][id as usize / 64] >> (id % 64) & 1 != 0
}

/// Reads what a call did, or, if it failed, what memory it was to give. None: nothing of that kind, or nothing at all.
///
/// # Safety
/// `parameters` is null or what CUPTI gave at the end of a call with this id, which `failed` or not.
pub unsafe fn read(domain: u32, id: u32, parameters: *const u64, failed: bool) -> Option<CallEffect> {
    use MemoryOperation as Op;
    let shape = shape(domain, id)?;
    if let Shape::Wait(sort) = shape {
        return (!failed).then_some(CallEffect::Wait { sort, stream: None });
    }
    if parameters.is_null() {
        return None;
    }
    // SAFETY: each of these calls has at least so many parameters, of eight bytes each.
    let field = |at: usize| unsafe { *parameters.add(at) };
    if failed {
        return refused(shape, field).map(CallEffect::Memory);
    }
    // SAFETY: the call succeeded, so it stored something where it was told to.
    let stored = |at: usize| unsafe { (field(at) as *const u64).as_ref() }.copied();
    let (operation, address, bytes, handle) = match shape {
        Shape::Alloc(..) => (Op::Alloc, stored(0)?, field(1), 0),
        Shape::AllocPitch => (Op::Alloc, stored(0)?, stored(1)?.saturating_mul(field(3)), 0),
        Shape::Register => (Op::Alloc, field(0), field(1), 0),
        Shape::Free(..) => (Op::Free, field(0), 0, 0),
        Shape::Create => (Op::Create, 0, field(1), stored(0)?),
        Shape::Release => (Op::Release, 0, 0, field(0)),
        Shape::Map => (Op::Map, field(0), field(1), field(3)),
        Shape::Unmap => (Op::Unmap, field(0), field(1), 0),
        Shape::Retain => (Op::Retain, field(1), 0, stored(0)?),
        Shape::Import => (Op::Import, 0, 0, stored(0)?),
        Shape::Export => (Op::Export, 0, 0, field(1)),
        Shape::Reserve => (Op::Reserve, stored(0)?, field(1), 0),
        Shape::Unreserve => (Op::Unreserve, field(0), field(1), 0),
        Shape::OpenShared => (Op::OpenShared, stored(0)?, 0, 0),
        Shape::CloseShared => (Op::CloseShared, field(0), 0, 0),
        Shape::WaitFor(sort, per_thread) => {
            let stream = Some(Stream { handle: field(0) as usize, per_thread });
            return Some(CallEffect::Wait { sort, stream });
        }
        Shape::Wait(_) => return None,
    };
    // Freeing nothing is allowed, and does nothing.
    if operation == Op::Free && address == 0 {
        return None;
    }
    let (memory, pool, device) = place(shape, field);
    Some(CallEffect::Memory(MemoryChange { operation, address, bytes, handle, memory, pool, device }))
}

/// What memory was asked for in vain. Other calls that fail change nothing.
fn refused(shape: Shape, field: impl Fn(usize) -> u64) -> Option<MemoryChange> {
    let bytes = match shape {
        Shape::Alloc(..) | Shape::Register | Shape::Create => field(1),
        Shape::AllocPitch => field(2).saturating_mul(field(3)),
        _ => return None,
    };
    let (memory, pool, device) = place(shape, field);
    let operation = MemoryOperation::Failed;
    Some(MemoryChange { operation, address: 0, bytes, handle: 0, memory, pool, device })
}

/// The kind of memory, whether it is of a pool, and the device where the call names one.
fn place(shape: Shape, field: impl Fn(usize) -> u64) -> (u8, bool, Option<u32>) {
    match shape {
        Shape::Alloc(memory, pool) | Shape::Free(memory, pool) => (memory, pool, None),
        Shape::Register => (PINNED, false, None),
        Shape::Create => {
            let properties = field(2) as *const u8;
            if properties.is_null() {
                return (DEVICE, false, None);
            }
            // SAFETY: the program gave properties, which the driver has read at the same places.
            let part = |at: usize| unsafe { properties.add(at).cast::<u32>().read_unaligned() };
            match part(LOCATION_TYPE_AT) {
                ON_DEVICE => (DEVICE, false, Some(part(LOCATION_ID_AT))),
                _ => (PINNED, false, None),
            }
        }
        _ => (DEVICE, false, None),
    }
}
