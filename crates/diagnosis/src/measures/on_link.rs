//! Copies that the step waits for, and the link that they go over: the device that has most of them, how fast they are, and what the link can do.

use crate::finding::Evidence;
use crate::rule::{Case, Verdict};
use crate::wording;
use crate::wording::device::link_unknown;
use analysis::device::gpu::moved::{Copy, Moved};
use analysis::device::link::Link;
use analysis::phrase;
use analysis::stats::share::Tally;

pub struct OnLink<'a> {
    pub moved: &'a Moved,
    /// The time in which such copies are exposed.
    pub tally: Tally,
    pub link: Link,
    /// GB/s; 0 where it is not known.
    pub speed: f64,
}

impl<'a> OnLink<'a> {
    /// Of the device whose copies that `fit` are exposed longest. Else what its rule says: silent below `level`, and an abstention
    /// where the link is not known.
    pub fn most(case: &'a Case, fits: impl Fn(&Copy) -> bool, level: f64) -> Result<OnLink<'a>, Verdict> {
        let exposed = |moved: &&Moved| {
            moved.all.iter().filter(|copy| fits(copy)).map(|copy| copy.exposed_ns).fold(0, u64::saturating_add)
        };
        let moved = case.moved().iter().max_by_key(exposed).ok_or(Verdict::Silent)?;
        let tally = moved.tally(|copy| fits(copy).then_some(copy.exposed_ns));
        if tally.mid() < level || !moved.all.iter().any(&fits) {
            return Err(Verdict::Silent);
        }
        let link = Link::of(case.timeline).map_err(|why| Verdict::Abstain(link_unknown(case.timeline, why)))?;
        let speed = moved.speed(fits).unwrap_or(0.0);
        Ok(OnLink { moved, tally, link, speed })
    }
}

/// What the link can do, and where the longest copy over it is.
pub fn evidence(link: &Link, longest: Option<&Copy>) -> Vec<Evidence> {
    let mut evidence = vec![Evidence::new(wording::device::link(link)).number("gb_per_s", link.gb_per_s)];
    evidence.extend(longest.map(|copy| {
        let text = format!("longest, {}", phrase::bytes(copy.piece.bytes));
        Evidence::at(text, None, copy.piece.start, copy.piece.end())
    }));
    evidence
}
