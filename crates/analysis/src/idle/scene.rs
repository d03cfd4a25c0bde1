//! What idle time is read from: the ground that all numbers of devices stand on, and what the host was seen doing.

use crate::gpu::Ground;
use crate::replay::Chosen;
use crate::rule::Case;
use crate::seen::SeenSamples;
use std::ops::Deref;

#[derive(Clone, Copy)]
pub struct Scene<'c> {
    pub ground: Ground<'c>,
    pub seen: &'c SeenSamples,
    /// Recorded calls say what the steps' threads did, not samples.
    pub by_calls: bool,
    /// The steps that are replayed.
    pub chosen: Option<&'c Chosen>,
}

impl<'c> Scene<'c> {
    pub fn new(case: &'c Case) -> Scene<'c> {
        Scene { ground: case.ground(), seen: &case.seen, by_calls: case.breakdown.by_calls, chosen: case.chosen() }
    }

    /// Whether a moment lies in a step that is replayed.
    pub fn is_replayed(&self, time: u64) -> bool {
        self.chosen.is_some_and(|chosen| chosen.has(time))
    }
}

impl<'c> Deref for Scene<'c> {
    type Target = Ground<'c>;

    fn deref(&self) -> &Ground<'c> {
        &self.ground
    }
}
