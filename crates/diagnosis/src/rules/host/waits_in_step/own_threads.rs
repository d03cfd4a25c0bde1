//! A library's own threads at work while the step waits in it: a call of XLA, TensorFlow or ONNX Runtime gives the work to threads that run no Python and sleeps
//! until they are done. The thread is blocked and the program computes: that is the work itself, and no wait that could go.

use crate::measures::thread_load;
use crate::rule::Case;
use analysis::frames::is;
use analysis::host::step_samples::StepSample;
use analysis::host::waits::For;
use analysis::stats::share::Share;
use std::collections::HashSet;
use timeline::{ProcessIndex, counters};

/// With more of a core than this at work meanwhile, it is mostly computed and not waited.
const MAJORITY: f64 = 0.5;

/// How many cores threads without Python ran on, for the time of these waits. None: the step does not wait inside a library, its threads do something else, or what
/// threads ran was not recorded.
pub fn cores(case: &Case, wait: For, share: Share, waits: impl Fn(&StepSample) -> bool) -> Option<f64> {
    let known = case.timeline.counters.iter().any(|counter| &*counter.name == counters::CPU_NS);
    if wait != For::Unknown || !known {
        return None;
    }
    let (mut inside, mut all, mut processes) = (0u64, 0u64, HashSet::<ProcessIndex>::new());
    for one in case.samples.all.iter().filter(|one| waits(one)) {
        let top = case.timeline.stacks.frame(case.frames.python(case.sample(one).stack)).name;
        inside += u64::from(case.frames.bits(top) & is::LIBRARY != 0);
        all += 1;
        processes.insert(case.timeline.tracks[case.track(one).0 as usize].process);
    }
    let steps = case.windows.across(|_| true);
    let sampled: HashSet<(ProcessIndex, i32)> = case
        .timeline
        .tracks
        .iter()
        .filter(|track| !track.samples.is_empty())
        .map(|track| (track.process, track.tid))
        .collect();
    let threads = thread_load::threads(case, &steps).into_iter();
    let native = threads.filter(|one| processes.contains(&one.process) && !sampled.contains(&(one.process, one.tid)));
    let cores = native.map(|one| one.ran).sum::<f64>() / (share.mid * case.windows.total() as f64).max(1.0);
    (2 * inside > all && cores > MAJORITY).then_some(cores)
}
