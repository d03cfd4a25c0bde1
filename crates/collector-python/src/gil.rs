//! State that the GIL guards. The library does not load into free-threaded interpreters (their ABI differs), so
//! holding the GIL is holding the only lock there is.

use std::cell::UnsafeCell;

pub struct Gil<T>(UnsafeCell<T>);

// SAFETY: reached only by `get`, whose callers hold the GIL.
unsafe impl<T> Sync for Gil<T> {}

impl<T> Gil<T> {
    pub const fn new(value: T) -> Gil<T> {
        Gil(UnsafeCell::new(value))
    }

    /// # Safety
    /// The GIL is held, and no other reference from here is in use: Python is not called meanwhile.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub unsafe fn get(&self) -> &mut T {
        // SAFETY: exclusive by the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}
