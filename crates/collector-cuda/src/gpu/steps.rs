//! How long the steps take that the program itself marks, so that a window of the overhead budget holds a whole one: the Python
//! extension, in the same process, remembers the longest.

use super::dynamic::{Library, mapped_files};
use workload::cost;

type Longest = unsafe extern "C" fn() -> u64;

/// The extension of this process, if it is a Python program that is recorded.
pub struct Steps(Option<Longest>);

impl Steps {
    pub fn find() -> Steps {
        // Others may call a library so, too: only ours has the function.
        let found = mapped_files("_native").iter().find_map(|path| {
            let symbol = Library::mapped(path)?.symbol(c"inferscope_longest_step")?;
            // SAFETY: the extension's function, which has this signature, in a library that stays loaded.
            Some(unsafe { std::mem::transmute::<*mut std::ffi::c_void, Longest>(symbol) })
        });
        Steps(found)
    }

    /// Nanoseconds of the longest step that has ended since this was last asked, 0 where none has.
    pub fn longest(&self) -> u64 {
        // SAFETY: it touches nothing but its own number.
        self.0.map_or(0, |longest| cost::nanos(unsafe { longest() }))
    }
}
