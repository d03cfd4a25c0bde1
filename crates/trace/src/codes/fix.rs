//! What the package says of a fix that `inferscope verify` tries: `slices.id` where `slices.kind` is 14.

super::codes! {
    /// Moments of a process that is run with or without a fix.
    pub enum FixMoment {
        /// The program begins, and ends: what is around it is ours.
        Begin = 1, "begin";
        End = 2, "end";
        /// Something has to happen first.
        Waiting = 3, "waiting";
        /// The fix is at work.
        Applied = 4, "applied";
        /// It cannot be.
        Failed = 5, "failed";
    }
}
