//! How fast the host launches: what is slower than that by far is something else than launching.

use timeline::Timeline;
use timeline::parallel::{self, Task};

/// A host that keeps a device waiting for longer than this does something else than launching the next kernel: PyTorch takes
/// 5 to 50 µs for an operation, with Python and all.
pub const USUAL_NS: u64 = 100_000;
/// Slower hosts, and programs that are recorded call by call, have their own pace: a gap of a few launches is still launching.
const FEW: u64 = 4;
/// No operation takes this long to launch.
pub const LONGEST_NS: u64 = 1_000_000;
/// No device takes this long from one work to the next that is launched already: some microseconds, with an event between them.
pub const QUEUED_NS: u64 = 100_000;

/// Fewer launches are done before a thread has started.
const WORTH_A_PART: usize = 50_000;
const MOST: usize = 16;

/// The median time between two launches of a thread that follow each other inside the steps. 0: there are none.
pub fn between_launches(timeline: &Timeline, parts: Option<usize>) -> u64 {
    let linked = timeline.gpu.work.linked();
    let parts = parts.unwrap_or(linked.len() / WORTH_A_PART).clamp(1, MOST);
    let each = linked.len().div_ceil(parts).max(1);
    let mut counts: Vec<Counts> = (0..linked.len()).step_by(each).map(|_| Counts::default()).collect();
    let tasks = counts.iter_mut().enumerate().map(|(part, counts)| {
        let (before, rest) = linked.split_at(part * each);
        Box::new(move || counts.add(timeline, before, &rest[..each.min(rest.len())])) as Task
    });
    parallel::run(linked.len(), tasks.collect(), || ());
    let all: usize = counts.iter().map(|counts| counts.all).sum();
    let mut left = all.div_ceil(2);
    // Most spaces are short: the lists are walked only up to the median.
    let reached = |space: &usize| {
        let here: usize = counts.iter().filter_map(|counts| counts.by.get(*space)).map(|count| *count as usize).sum();
        left = left.saturating_sub(here);
        left == 0
    };
    if all == 0 { 0 } else { (1..LONGEST_NS as usize).find(reached).unwrap_or(0) as u64 }
}

/// How many spaces between launches there are of each length: counting takes less than sorting millions of them.
#[derive(Default)]
struct Counts {
    by: Vec<u32>,
    all: usize,
}

impl Counts {
    /// `before` are the launches before these.
    fn add(&mut self, timeline: &Timeline, before: &[u32], these: &[u32]) {
        let launch = |index: &u32| {
            let launch = timeline.gpu.work.launch(*index as usize)?;
            Some((launch, timeline.slices.start[launch]))
        };
        self.by = vec![0; LONGEST_NS as usize];
        let mut last = before.iter().rev().find_map(launch);
        for (launch, start) in these.iter().filter_map(launch) {
            if let Some((before, then)) = last.filter(|(before, _)| *before != launch) {
                // Launches of another thread begin again, earlier or much later; so do those of the next step.
                let space = start.saturating_sub(then);
                if launch > before && space > 0 && space < LONGEST_NS {
                    self.by[space as usize] += 1;
                    self.all += 1;
                }
            }
            last = Some((launch, start));
        }
    }
}

/// Gaps up to this are those of launching.
pub fn launch_ns(between: u64) -> u64 {
    (FEW * between).clamp(USUAL_NS, LONGEST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_that_of_all_launches_wherever_they_are_cut() {
        // Spaces of 1, 2, 3 ... µs, and one that is too long for launching.
        for count in [1u64, 2, 3, 16, 17, 100] {
            let mut text = String::from("track main\n stream 7\n");
            let mut at = 0;
            for launch in 0..=count {
                at += if launch == count { 2_000 } else { launch };
                let end = at * 1_000 + 500;
                text += &format!(
                    "api cudaLaunchKernel {at}us..{end}ns corr {0}\nkernel k {end}ns..{1}ns corr {0}\n",
                    launch + 1,
                    end + 10
                );
            }
            let timeline = Timeline::from_text(&text).unwrap();
            assert_eq!(timeline.gpu.work.linked().len() as u64, count + 1);
            for parts in [Some(1), Some(2), Some(7), Some(16), None] {
                let median = (count - 1).div_ceil(2) * 1_000;
                assert_eq!(between_launches(&timeline, parts), median, "of {count} in {parts:?}");
            }
        }
    }
}
