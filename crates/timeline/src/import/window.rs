//! Lets go of events whose clock cannot be right: one event at the year 1970 would make a recording of fifty years.

use crate::Builder;
use crate::builder::Mark;

/// Events further than this from the middle one are of a broken clock.
const REACH: u64 = 7 * 86_400_000_000_000;

/// Said of the events that were let go.
pub const FAR: &str = "events more than a week from all others, skipped: their clock is wrong";

/// Drops what since the mark lies far from the middle event, and says how many those were.
pub fn drop_far(builder: &mut Builder, mark: Mark) -> u64 {
    let mut first_last = (u64::MAX, 0);
    builder.moments_since(mark).for_each(|time| first_last = (first_last.0.min(*time), first_last.1.max(*time)));
    if first_last.1.saturating_sub(first_last.0) <= REACH {
        return 0;
    }
    let mut times: Vec<u64> = builder.moments_since(mark).map(|time| *time).collect();
    let at = times.len() / 2;
    let middle = *times.select_nth_unstable(at).1;
    builder.keep_since(mark, &(middle.saturating_sub(REACH)..=middle.saturating_add(REACH)))
}
