//! NVTX ranges and marks, straight from the program's calls: no CUPTI and no GPU is needed for them. NVTX has a table of
//! functions for every library that was built with it (PyTorch, NCCL, the `nvtx` package); ours go into each of them.

mod attributes;
mod calls;
mod domains;
mod names;
mod ranges;
mod record;
mod stacks;

use crate::recording;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Once;
use trace::codes::{Reason, ReasonCode};

/// NVTX's number of the table that leads to its functions.
const CALLBACKS: u32 = 1;

type GetExportTable = unsafe extern "C" fn(u32) -> *const Callbacks;

#[repr(C)]
struct Callbacks {
    size: usize,
    functions: Option<unsafe extern "C" fn(c_int, *mut *const *mut *const c_void, *mut c_uint) -> c_int>,
}

/// Takes NVTX's functions over. Always 1: what we leave alone NVTX then turns into nothing, which is the cheapest there is,
/// while after a 0 it would unload this library, which the CUDA driver may be using.
///
/// # Safety
/// `export_table` is what NVTX hands to `InitializeInjectionNvtx2`.
pub unsafe fn start(export_table: *const c_void) -> c_int {
    const CONTENT: c_int = 1;
    if export_table.is_null() {
        return CONTENT;
    }
    // No recorder, or no room: the program runs as without us.
    let Ok(session) = recording::session() else { return CONTENT };
    // SAFETY: by the caller's promise.
    let callbacks = unsafe {
        let get = std::mem::transmute::<*const c_void, GetExportTable>(export_table);
        get(CALLBACKS).as_ref()
    };
    let Some(functions) = callbacks.filter(|table| table.size >= size_of::<Callbacks>()).and_then(|it| it.functions)
    else {
        record::failed(session, "this program's NVTX has no table of functions");
        return CONTENT;
    };
    static FORKS: Once = Once::new();
    FORKS.call_once(|| {
        // SAFETY: the handler only stores to an atomic, as a handler between fork and return must.
        unsafe { libc::pthread_atfork(None, None, Some(record::in_child)) };
    });
    let mut taken = 0;
    for (module, ours) in [(calls::CORE, &calls::core()[..]), (calls::CORE2, &calls::core2()[..])] {
        let (mut table, mut size) = (std::ptr::null(), 0);
        // SAFETY: NVTX's own function, with room for its answers.
        if unsafe { functions(module, &mut table, &mut size) } == 0 || table.is_null() {
            continue;
        }
        for (id, function) in ours.iter().filter(|(id, _)| *id < size as usize) {
            // SAFETY: the table has `size` entries, each null or the place of a function's address, and nobody else
            // touches them before we return.
            unsafe {
                if let Some(place) = (*table.add(*id)).as_mut() {
                    *place = *function;
                    taken += 1;
                }
            }
        }
    }
    if taken > 0 {
        record::is_on(session);
    } else {
        record::failed(session, &Reason::new(ReasonCode::NvtxGivesNoFunctions).message());
    }
    CONTENT
}
