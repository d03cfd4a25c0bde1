//! How fast the host launches: what is slower than that by far is something else than launching.

use crate::gpu::percentile;
use crate::rule::Case;

/// A host that keeps a device waiting for longer than this does something else than launching the next kernel: PyTorch takes
/// 5 to 50 µs for an operation, with Python and all.
const USUAL_NS: u64 = 100_000;
/// Slower hosts, and programs that are recorded call by call, have their own pace: a gap of a few launches is still launching.
const FEW: u64 = 4;
/// No operation takes this long to launch.
pub const LONGEST_NS: u64 = 1_000_000;
/// No device takes this long from one work to the next that is launched already: some microseconds, with an event between them.
pub const QUEUED_NS: u64 = 100_000;

/// The median time between two launches of a thread that follow each other inside the steps. 0: there are none.
pub fn between_launches(case: &Case) -> u64 {
    let (timeline, work) = (case.timeline, &case.timeline.gpu.work);
    let mut spaces: Vec<u64> = Vec::new();
    let mut last: Option<(usize, u64)> = None;
    for launch in work.linked().iter().filter_map(|index| work.launch(*index as usize)) {
        let start = timeline.slices.start[launch];
        if let Some((before, then)) = last.filter(|(before, _)| *before != launch) {
            // Launches of another thread begin again, earlier or much later; so do those of the next step.
            let space = start.saturating_sub(then);
            if launch > before && space > 0 && space < LONGEST_NS {
                spaces.push(space);
            }
        }
        last = Some((launch, start));
    }
    spaces.sort_unstable();
    percentile(&spaces, 50)
}

/// Gaps up to this are those of launching.
pub fn launch_ns(case: &Case) -> u64 {
    (FEW * between_launches(case)).clamp(USUAL_NS, LONGEST_NS)
}
