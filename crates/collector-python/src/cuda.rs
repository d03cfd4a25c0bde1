//! The way from Python to the CUDA library, which is a file beside this one: for a process that uses CUDA before it is
//! recorded, and for another profiler that wants CUPTI.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;

/// Starts recording the GPU. Returns why it cannot.
pub fn start(package: &str) -> Option<String> {
    let Some(library) = open(package, libc::RTLD_NOW | libc::RTLD_LOCAL) else {
        return Some("the CUDA library is not beside the package, or does not load".to_owned());
    };
    let Some(start) = find(library, c"inferscope_gpu_start") else {
        return Some("the CUDA library is of another version".to_owned());
    };
    // SAFETY: the function has this signature in `injection.rs` of collector-cuda.
    let start: unsafe extern "C" fn(*mut c_char, usize) -> c_int = unsafe { std::mem::transmute(start) };
    let mut reason = [0u8; 512];
    // SAFETY: it writes at most that many bytes, with a zero at the end.
    let code = unsafe { start(reason.as_mut_ptr().cast(), reason.len()) };
    if code == 0 {
        return None;
    }
    let reason = CStr::from_bytes_until_nul(&reason).map(CStr::to_string_lossy).unwrap_or_default();
    Some(reason.into_owned())
}

/// Recording ends: what CUPTI still has is handed over, if the CUDA library is in this process at all.
pub fn stop(package: &str) {
    call(package, libc::RTLD_NOW | libc::RTLD_NOLOAD, c"inferscope_gpu_stop");
}

/// Gives CUPTI up, if the CUDA library is in this process at all.
pub fn release(package: &str, who: &str) {
    let Some(library) = open(package, libc::RTLD_NOW | libc::RTLD_NOLOAD) else { return };
    let (Some(release), Ok(who)) = (find(library, c"inferscope_gpu_release"), CString::new(who)) else { return };
    // SAFETY: the function has this signature in `injection.rs` of collector-cuda.
    let release: unsafe extern "C" fn(*const c_char) = unsafe { std::mem::transmute(release) };
    // SAFETY: a string with a zero at its end.
    unsafe { release(who.as_ptr()) };
}

/// PyTorch is there: its blocks are recorded. Only those of the CPU are a reason to bring the CUDA library in.
pub fn memory_start(package: &str, load: bool) {
    let flags = libc::RTLD_NOW | if load { libc::RTLD_LOCAL } else { libc::RTLD_NOLOAD };
    call(package, flags, c"inferscope_memory_start");
}

/// A forked child allocates, too.
pub fn memory_after_fork(package: &str) {
    call(package, libc::RTLD_NOW | libc::RTLD_NOLOAD, c"inferscope_memory_after_fork");
}

/// Calls a function of the library that takes nothing and returns nothing, if both are there.
fn call(package: &str, flags: c_int, name: &CStr) {
    let Some(function) = open(package, flags).and_then(|library| find(library, name)) else { return };
    // SAFETY: a function of `injection.rs` of collector-cuda with this signature.
    let function: unsafe extern "C" fn() = unsafe { std::mem::transmute(function) };
    // SAFETY: as above.
    unsafe { function() };
}

/// The library stays loaded for ever: threads of it may be at work.
fn open(package: &str, flags: c_int) -> Option<*mut c_void> {
    let path = CString::new(path(package)?.into_os_string().into_encoded_bytes()).ok()?;
    // SAFETY: a path with a zero at its end.
    let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
    (!library.is_null()).then_some(library)
}

fn path(package: &str) -> Option<PathBuf> {
    let files = std::fs::read_dir(package).ok()?.flatten();
    files.map(|file| file.path()).find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("_cuda") && name.ends_with(".so")
    })
}

fn find(library: *mut c_void, name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the handle is of a library that stays loaded.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!symbol.is_null()).then_some(symbol)
}
