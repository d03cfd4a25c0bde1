//! What a part of a device's gaps was found to be, and how parts are joined: in their order, in whole nanoseconds, so that nothing
//! depends on where they were cut.

use super::Cause;
use super::host::{Piece, Who};
use super::sums::{MEASURES, Map, Sums};
use crate::steps::windows::Window;

#[derive(Default)]
pub struct Found {
    pub idle_ns: u64,
    pub sums: Sums,
    /// By window: what each kind of change could save in it. Tallied only when all is joined: squares do not add up exactly.
    pub each: Vec<(usize, [u64; MEASURES])>,
    /// By cause and who has it: in the usual steps, and in the slow ones.
    pub groups: [Map<(Cause, Who), u64>; 2],
    /// The pieces of the median step.
    pub median: Vec<Piece>,
}

impl Found {
    /// Adds what was found in the part that follows.
    pub fn join(&mut self, later: Found) {
        self.idle_ns = self.idle_ns.saturating_add(later.idle_ns);
        self.sums.join(later.sums);
        for (place, now) in later.each {
            match self.each.last_mut() {
                Some(last) if last.0 == place => last.1.iter_mut().zip(now).for_each(|(sum, ns)| *sum += ns),
                _ => self.each.push((place, now)),
            }
        }
        for (own, later) in self.groups.iter_mut().zip(later.groups) {
            later.into_iter().for_each(|(key, ns)| *own.entry(key).or_default() += ns);
        }
        self.median.extend(later.median);
    }

    /// The sums of the whole, with their spread over the windows.
    pub fn tally(&mut self, windows: &[Window]) {
        for (place, now) in std::mem::take(&mut self.each) {
            let window = &windows[place];
            self.sums.close(now, window.end - window.start);
        }
    }
}
