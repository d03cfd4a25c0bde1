//! How long the steps' thread was ready to run without a core, from a counter that is read now and then: between which bounds, and where it grew most.

use crate::finding::Evidence;
use crate::rule::Case;
use analysis::host::series::Growth;
use analysis::phrase;
use analysis::stats::share::Share;

/// The share of the steps' time, between the bounds that hold wherever the counter grew.
pub fn bounds(growth: &Growth) -> Share {
    let whole = growth.tally.whole.max(1.0);
    Share { low: growth.low / whole, mid: growth.tally.mid(), high: growth.high / whole }
}

/// How likely the share is above the level when all between the bounds is as likely.
pub fn above(share: Share, level: f64) -> f64 {
    let width = share.high - share.low;
    if width > 0.0 { ((share.high - level) / width).clamp(0.0, 1.0) } else { f64::from(share.mid > level) }
}

/// The stretches between two readings in which it grew most, as ranges to jump to.
pub fn stretches(case: &Case, growth: &Growth, what: &str) -> Vec<Evidence> {
    let track = case.windows.all().first().map(|window| window.track);
    let only = case.windows.tracks().count() == 1;
    let evidence = |(start, end, grown): &(u64, u64, u64)| {
        let text = format!("{what} for {} of {}", phrase::duration(*grown), phrase::duration(end - start));
        Evidence::at(text, track.filter(|_| only), *start, *end).number("ns", *grown as f64)
    };
    growth.most.iter().map(evidence).collect()
}
