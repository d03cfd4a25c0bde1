//! A program that records itself and has not started CUDA: the driver will load us when it does (`CUDA_INJECTION64_PATH`). One
//! that was starting it just then had asked for that name before it was there, so for a while it is looked whether CUDA runs.

use super::api::Driver;
use super::{Entry, quiet, start};
use std::ffi::{CStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trace::status::Collector;
use workload::guard;

const VARIABLE: &str = "CUDA_INJECTION64_PATH";
/// Starting CUDA takes a second for each GPU of a large machine, and longer where nothing keeps the driver awake.
const LONGEST: Duration = Duration::from_secs(60);
/// Also long enough for a driver that answers already to come to loading us.
const LOOK: Duration = Duration::from_millis(50);

/// Which wait is the current one: others end.
static WAIT: AtomicU32 = AtomicU32::new(0);

/// Leaves it to the driver to call us. The error says why it will not.
pub fn begin(driver: Driver) -> Result<(), String> {
    will_be_loaded()?;
    let mine = WAIT.fetch_add(1, Ordering::Relaxed) + 1;
    // Without a thread the driver still calls us, but for the rare case that this is about.
    let _ = quiet::thread("inferscope-wait", move || watch(mine, &driver));
    Ok(())
}

/// Nobody waits any more.
pub fn end() {
    WAIT.fetch_add(1, Ordering::Relaxed);
}

fn watch(mine: u32, driver: &Driver) {
    let since = Instant::now();
    let mut ran = false;
    while since.elapsed() < LONGEST {
        std::thread::sleep(LOOK);
        if WAIT.load(Ordering::Relaxed) != mine {
            return;
        }
        // Seen twice: in between the driver had the time to load us itself, before the program's first kernel.
        let runs = driver.runs();
        if runs && ran {
            return guard::guarded(Collector::Gpu, (), || drop(start(Entry::Package)));
        }
        ran = runs;
    }
}

/// Whether the driver loads this very library when CUDA starts.
fn will_be_loaded() -> Result<(), String> {
    let said = std::env::var_os(VARIABLE).unwrap_or_default();
    let file = |path: &Path| std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let theirs = file(Path::new(&said));
    if theirs.is_some() && theirs == own_path().as_deref().and_then(file) {
        return Ok(());
    }
    let other = if said.is_empty() { "none".to_owned() } else { said.to_string_lossy().into_owned() };
    Err(format!(
        "CUDA has not been started yet, and of libraries the driver then loads {other}, not ours: unset {VARIABLE}, or call \
         inferscope.start() when the program has started CUDA"
    ))
}

fn own_path() -> Option<std::path::PathBuf> {
    // SAFETY: plain data, filled by the call.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    let here = own_path as fn() -> Option<std::path::PathBuf> as *const c_void;
    // SAFETY: an address in this library.
    if unsafe { libc::dladdr(here, &mut about) } == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's own string.
    let name = unsafe { CStr::from_ptr(about.dli_fname) };
    Some(Path::new(std::ffi::OsStr::from_bytes(name.to_bytes())).to_owned())
}
