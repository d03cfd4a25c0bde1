//! How the library gets into a program: the CUDA driver loads it for `CUDA_INJECTION64_PATH`, NVTX for
//! `NVTX_INJECTION64_PATH`, and our own package for a process that is recorded later. Every entry is guarded.

use crate::{gpu, nvtx, recorded, torch_memory};
use std::ffi::{CStr, c_char, c_int, c_void};
use trace::status::Collector;
use workload::guard;
use workload::session;

/// Called by the driver inside the program's first `cuInit`. 1 means that we are content; whatever happens, we are.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    guard::silence();
    guard::guarded(Collector::Gpu, (), || {
        let _ = gpu::start(gpu::Entry::Driver);
    });
    // Before the program's first allocation on a device, and whether or not CUPTI can be had.
    guard::guarded(Collector::Blocks, (), torch_memory::start_with_device);
    1
}

/// Called by NVTX at the program's first NVTX call, with the table of its functions.
///
/// # Safety
/// `export_table` is NVTX's own function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(export_table: *const c_void) -> c_int {
    guard::silence();
    // 1 whatever happens: for anything else NVTX would unload the library, which may be at work for CUDA.
    // SAFETY: handed on from NVTX.
    guard::guarded(Collector::Nvtx, 1, || unsafe { nvtx::start(export_table) })
}

/// For the Python package: 0, or 1 and why in `reason`.
///
/// # Safety
/// `reason` has room for `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inferscope_gpu_start(reason: *mut c_char, room: usize) -> c_int {
    guard::silence();
    let result =
        guard::guarded(Collector::Gpu, Err("an error of our own".to_owned()), || gpu::start(gpu::Entry::Package));
    guard::guarded(Collector::Blocks, (), torch_memory::start);
    let Err(why) = result else { return 0 };
    let bytes = &why.as_bytes()[..why.len().min(room.saturating_sub(1))];
    if room > 0 {
        // SAFETY: there is room for them and the zero.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), reason, bytes.len());
            *reason.add(bytes.len()) = 0;
        }
    }
    1
}

/// For the Python package: another profiler wants CUPTI.
///
/// # Safety
/// `who` is a string with a zero at its end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn inferscope_gpu_release(who: *const c_char) {
    // SAFETY: by the caller's promise.
    let who = unsafe { CStr::from_ptr(who) }.to_string_lossy().into_owned();
    guard::guarded(Collector::Gpu, (), || gpu::release(&who));
}

/// For the Python package: recording ends, and the program goes on.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_gpu_stop() {
    guard::guarded(Collector::Blocks, (), torch_memory::check);
    guard::guarded(Collector::Gpu, (), || {
        gpu::stop();
        session::stop();
    });
}

/// For the Python package: PyTorch has been imported, after CUDA was started or where the CPU's blocks are asked for.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_memory_start() {
    guard::silence();
    guard::guarded(Collector::Blocks, (), torch_memory::start);
}

/// For the Python package: this is a forked child.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_memory_after_fork() {
    guard::guarded(Collector::Blocks, (), torch_memory::after_fork);
}

/// For the Python package, which reads it through ctypes: 0 where the GPU is not recorded, an even number while it is, an odd
/// one between two windows of the overhead budget.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_gpu_window() -> u32 {
    recorded::now()
}

/// For the Python package: waits until a window opens if the number is still `seen`. It may return for nothing. Called without
/// the interpreter's lock, which is then taken in Python's own code: an interpreter that ends meanwhile ends that thread there.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_gpu_window_wait(seen: u32, milliseconds: u32) {
    recorded::wait(seen, milliseconds);
}
