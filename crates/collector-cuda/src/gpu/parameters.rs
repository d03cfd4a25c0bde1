//! What a finished CUDA call says by its parameters: which memory it allocated or freed, and which stream it waited for. CUPTI has
//! activity records for both, but asking for those slows every launch of PyTorch by microseconds (the variants `floor-waits` and
//! `floor-memory` of benches/gpu_quick.py); a look at the parameters of the few calls that matter does not show.
//!
//! Parameters are structures of eight-byte fields, as CUPTI's generated headers define them; tests/cupti_headers checks them.

use super::calls::{DRIVER, RUNTIME};

/// `CUpti_ActivityMemoryKind`.
const PINNED: u8 = 2;
const DEVICE: u8 = 3;
const MANAGED: u8 = 5;

/// `CUpti_ActivitySynchronizationType`.
const EVENT: u32 = 1;
const STREAM_WAITS: u32 = 2;
const STREAM: u32 = 3;
const CONTEXT: u32 = 4;

/// What a call did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallEffect {
    Alloc {
        address: u64,
        bytes: u64,
        memory: u8,
        pool: bool,
    },
    Free {
        address: u64,
        memory: u8,
        pool: bool,
    },
    /// The stream is given where the call has one.
    Wait {
        sort: u32,
        stream: Option<Stream>,
    },
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
    Wait(u32),
    /// The stream is the first parameter, in the form of programs that have a default stream a thread or not.
    WaitFor(u32, bool),
}

fn shape(domain: u32, id: u32) -> Option<Shape> {
    Some(match (domain, id) {
        (RUNTIME, 20) | (DRIVER, 243 | 549) => Shape::Alloc(DEVICE, false),
        (RUNTIME, 21) | (DRIVER, 244) => Shape::AllocPitch,
        (RUNTIME, 22) | (DRIVER, 245 | 550) => Shape::Free(DEVICE, false),
        (RUNTIME, 25 | 27) | (DRIVER, 39 | 294) => Shape::Alloc(PINNED, false),
        (RUNTIME, 26 | 153) | (DRIVER, 38 | 302) => Shape::Free(PINNED, false),
        (RUNTIME, 152) | (DRIVER, 301 | 379) => Shape::Register,
        (RUNTIME, 206) | (DRIVER, 371) => Shape::Alloc(MANAGED, false),
        (RUNTIME, 373 | 374 | 391 | 392) | (DRIVER, 598 | 599 | 611 | 612) => Shape::Alloc(DEVICE, true),
        (RUNTIME, 375 | 376) | (DRIVER, 600 | 601) => Shape::Free(DEVICE, true),
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

/// Reads what a call did. None: nothing of that kind, or nothing at all.
///
/// # Safety
/// `parameters` is null or what CUPTI gave at the end of a successful call with this id.
pub unsafe fn read(domain: u32, id: u32, parameters: *const u64) -> Option<CallEffect> {
    let shape = shape(domain, id)?;
    if let Shape::Wait(sort) = shape {
        return Some(CallEffect::Wait { sort, stream: None });
    }
    if parameters.is_null() {
        return None;
    }
    // SAFETY: each of these calls has at least so many parameters, of eight bytes each.
    let field = |at: usize| unsafe { *parameters.add(at) };
    // SAFETY: the call succeeded, so it stored something where it was told to.
    let stored = |at: usize| unsafe { (field(at) as *const u64).as_ref() }.copied();
    Some(match shape {
        Shape::Alloc(memory, pool) => CallEffect::Alloc { address: stored(0)?, bytes: field(1), memory, pool },
        Shape::AllocPitch => {
            let bytes = stored(1)?.saturating_mul(field(3));
            CallEffect::Alloc { address: stored(0)?, bytes, memory: DEVICE, pool: false }
        }
        Shape::Register => CallEffect::Alloc { address: field(0), bytes: field(1), memory: PINNED, pool: false },
        Shape::Free(memory, pool) => CallEffect::Free { address: field(0), memory, pool },
        Shape::WaitFor(sort, per_thread) => {
            CallEffect::Wait { sort, stream: Some(Stream { handle: field(0) as usize, per_thread }) }
        }
        Shape::Wait(sort) => CallEffect::Wait { sort, stream: None },
    })
}
