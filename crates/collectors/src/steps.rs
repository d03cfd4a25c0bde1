//! How long the steps take that the program itself marks, so that a window of the overhead budget holds a whole one. The
//! extension, which records them, remembers the longest; the library that records the GPU, in the same process, asks it.

#[cfg(feature = "python")]
pub use told::ended;

#[cfg(feature = "python")]
mod told {
    use std::sync::atomic::{AtomicU64, Ordering};

    static LONGEST: AtomicU64 = AtomicU64::new(0);

    /// A step took so many ticks. Under the GIL; to lose one to who asks just now does no harm.
    #[inline(always)]
    pub fn ended(ticks: u64) {
        if ticks > LONGEST.load(Ordering::Relaxed) {
            LONGEST.store(ticks, Ordering::Relaxed);
        }
    }

    /// For the other library: ticks of the longest step that has ended since it last asked, 0 where none has.
    #[unsafe(no_mangle)]
    pub extern "C" fn inferscope_longest_step() -> u64 {
        LONGEST.swap(0, Ordering::Relaxed)
    }
}

#[cfg(not(feature = "python"))]
pub use asked::Steps;

#[cfg(not(feature = "python"))]
mod asked {
    use crate::cost;
    use crate::gpu::dynamic::{Library, mapped_files};

    type Longest = unsafe extern "C" fn() -> u64;

    /// The extension of this process, if it is a Python program that is recorded.
    pub struct Steps(Option<Longest>);

    impl Steps {
        pub fn find() -> Steps {
            // Others may call a library so, too: only ours has the function.
            let found = mapped_files("_native").iter().find_map(|path| {
                let symbol = Library::mapped(path)?.symbol(c"inferscope_longest_step")?;
                // SAFETY: the function above, which has this signature, in a library that stays loaded.
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
}
