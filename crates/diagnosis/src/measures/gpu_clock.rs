//! How far the times of devices can be trusted: what contradicts them, else how wrong they can be at the most. What the timeline saw of both is
//! in its `GpuClock`.

use crate::rule::Case;
use analysis::phrase;

/// One, and several of them.
const STARTS_TOO_EARLY: [&str; 2] =
    ["starts before the call that launched it", "start before the calls that launched them"];
const STARTS_LONG: [&str; 2] = [
    "starts long before the only call that can have launched it",
    "start long before the only calls that can have launched them",
];
const RETURNS_TOO_EARLY: [&str; 2] =
    ["returns before the work it waited for has ended", "return before the work they waited for has ended"];

/// What cannot be, and so shows that device times are wrong.
pub struct ClockFault {
    pub off_ns: u64,
    /// "GPU timestamps are too late by 30.0 µs at least".
    pub by: String,
    /// What shows it.
    pub seen: String,
}

/// None: nothing contradicts the device's times. Of several contradictions the largest.
pub fn wrong(case: &Case) -> Option<ClockFault> {
    let clock = &case.timeline.gpu.clock;
    let seem = |count: u64, all: String, [one, many]: [&str; 2]| {
        let does = if count == 1 { one } else { many };
        format!("{} of {all} {does}", phrase::count(count))
    };
    let pieces = |count: u64| phrase::counted(count, "GPU operation");
    let wrong = |off_ns: u64, way: &str, how: &str, seen: String| ClockFault {
        off_ns,
        by: format!("GPU timestamps are too {way} by {}{how}", phrase::duration(off_ns)),
        seen,
    };
    let starts = clock.shortest_launch_ns.filter(|way| *way < 0).map(|way| {
        let seen = seem(clock.violations, pieces(clock.linked), STARTS_TOO_EARLY);
        wrong(way.unsigned_abs(), "early", " at least", seen)
    });
    let early = clock.early_ns.map(|off| {
        let all = pieces(clock.linked.saturating_add(clock.unlinked));
        let seen = seem(clock.early, all, STARTS_LONG);
        wrong(off, "early", " (median)", seen)
    });
    // Both clocks were read with an error, and a wait returns at once where all is done: within it nothing is proved.
    let late = clock.shortest_return_ns.filter(|way| *way < 0 && way.unsigned_abs() > clock.residual_ns);
    let returns = late.map(|way| {
        let waits = phrase::counted(clock.waits, "wait");
        let seen = seem(clock.early_returns, waits, RETURNS_TOO_EARLY);
        wrong(way.unsigned_abs(), "late", " at least", seen)
    });
    [starts, early, returns].into_iter().flatten().max_by_key(|wrong| wrong.off_ns)
}

/// How far off device times can be: by what the collector measured, and no further than causality allows. Where causality is
/// broken, how far they are off at least. None: unknown.
pub fn error_bar(case: &Case) -> Option<u64> {
    if let Some(wrong) = wrong(case) {
        return Some(wrong.off_ns);
    }
    let clock = &case.timeline.gpu.clock;
    let measured = Some(clock.residual_ns).filter(|residual| *residual > 0);
    // Too late by at most the shortest way from a call to its work, too early by at most the shortest way back.
    let proved = match (clock.shortest_launch_ns, clock.shortest_return_ns) {
        (Some(launch), Some(back)) => Some(launch.max(back).max(0).unsigned_abs()),
        _ => None,
    };
    [measured, proved].into_iter().flatten().min()
}
