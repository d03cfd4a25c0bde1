//! How this process asks the system for memory while it reads a trace. The recorder, which must stay small, leaves the
//! allocator as it is.

/// The columns of a large trace and what is computed from them come and go by the hundred megabytes. Given back to the system
/// each time, they would cost a fault for every page again: a tenth of the time that a diagnosis takes. Kept, they are used again,
/// by whichever thread: one arena for all takes a tenth less memory than one for each, and large columns are no contention.
pub fn keep_what_is_freed() {
    #[cfg(target_env = "gnu")]
    for (option, number) in [
        (libc::M_MMAP_THRESHOLD, 1 << 30),
        (libc::M_TRIM_THRESHOLD, 1 << 28),
        (libc::M_TOP_PAD, 1 << 24),
        (libc::M_ARENA_MAX, 1),
    ] {
        // SAFETY: mallopt sets a number of the allocator, under the allocator's own lock; it takes no pointer.
        unsafe { libc::mallopt(option, number) };
    }
}
