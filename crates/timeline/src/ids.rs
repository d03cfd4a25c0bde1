//! What tables refer to each other by: a process and a track, by their places in the timeline.

/// Index into [`crate::Timeline::processes`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ProcessIndex(pub u32);

/// Index into [`crate::Timeline::tracks`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TrackIndex(pub u32);
