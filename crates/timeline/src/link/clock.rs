//! How well device times fit the host's, from what must be true: no work starts before the call that asked for it, and a wait
//! does not return before the work that it waited for has ended.

use super::returns;
use crate::Timeline;
use crate::gpu::{GpuClock, WorkKind};

/// What some of the work says.
#[derive(Default)]
pub struct ClockEvidence {
    pub sum: GpuClock,
    /// Of work without a launch: how long after its start the only call with its number begins.
    pub early: Vec<u64>,
}

/// One piece of work and when the call that asked for it began, if that is known.
#[inline]
pub fn add(clock: &mut GpuClock, kind: WorkKind, call: Option<u64>, start: u64) {
    match call {
        _ if !is_asked_for(kind) => {}
        Some(call) => {
            let way = signed(call, start);
            clock.linked += 1;
            clock.violations += u64::from(way < 0);
            less(&mut clock.shortest_launch_ns, way);
        }
        None => clock.unlinked += 1,
    }
}

/// Nobody asks for a migration, and a wait is the host's own.
pub fn is_asked_for(kind: WorkKind) -> bool {
    !matches!(kind, WorkKind::Sync | WorkKind::Migration)
}

/// From what was added piece by piece; the waits are looked at here.
pub fn measure(timeline: &Timeline, sums: Vec<ClockEvidence>) -> GpuClock {
    let mut clock = GpuClock::default();
    for sum in sums.iter().map(|seen| &seen.sum) {
        clock.linked += sum.linked;
        clock.unlinked += sum.unlinked;
        clock.violations += sum.violations;
        sum.shortest_launch_ns.into_iter().for_each(|way| less(&mut clock.shortest_launch_ns, way));
    }
    (clock.early, clock.early_ns) = early(sums);
    returns::measure(timeline, &mut clock);
    let states = timeline.processes.iter().flat_map(|process| &process.collectors);
    let device = states.map(|state| state.residual_ns).max().unwrap_or(0);
    // Calls carry the host's counter, which was mapped with an error of its own.
    let host = if device == 0 { 0 } else { timeline.info.clock.residual_ns };
    clock.residual_ns = device.saturating_add(host);
    clock
}

/// How much work seems to be there before the only call that can have asked for it, and by how much in the median. That is the clock
/// only where it is most of the work without a launch: of the rest the launch was not recorded, and a number may come again.
fn early(sums: Vec<ClockEvidence>) -> (u64, Option<u64>) {
    let unlinked: u64 = sums.iter().map(|seen| seen.sum.unlinked).sum();
    let mut all: Vec<u64> = sums.into_iter().flat_map(|seen| seen.early).collect();
    let (count, middle) = (all.len() as u64, all.len() / 2);
    if count * 2 <= unlinked {
        return (0, None);
    }
    (count, (count > 0).then(|| *all.select_nth_unstable(middle).1))
}

pub fn less(shortest: &mut Option<i64>, now: i64) {
    *shortest = Some(shortest.map_or(now, |before| before.min(now)));
}

pub fn signed(from: u64, to: u64) -> i64 {
    i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causality_bounds_the_clock_from_both_sides() {
        let timeline = Timeline::from_text(
            "track main
             api cudaLaunchKernel 0..3us corr 1
             api cudaLaunchKernel 4us..5us corr 2
             api cudaStreamSynchronize 6us..50us corr 3
             api cudaLaunchKernel 51us..52us corr 4
             stream 7
             kernel a 8us..20us corr 1
             kernel b 20us..46us corr 2
             sync stream 6us..50us corr 3
             kernel c 60us..90us corr 4",
        )
        .unwrap();
        let clock = timeline.gpu.clock;
        assert_eq!((clock.shortest_launch_ns, clock.shortest_return_ns), (Some(8_000), Some(4_000)));
        assert_eq!((clock.linked, clock.violations), (3, 0));
    }

    #[test]
    fn a_wait_for_the_whole_context_is_for_all_of_its_streams() {
        let timeline = Timeline::from_text(
            "clock residual 40ns
             collector gpu on residual 300ns
             track main
             api cudaLaunchKernel 0..3us corr 1
             api cudaLaunchKernel 4us..5us corr 2
             api cudaDeviceSynchronize 6us..50us corr 3
             stream 7
             kernel a 8us..49us corr 1
             stream 8
             kernel b 9us..20us corr 2
             stream 0
             sync context 6us..50us corr 3",
        )
        .unwrap();
        assert_eq!(timeline.gpu.clock.shortest_return_ns, Some(1_000));
        assert_eq!(timeline.gpu.clock.residual_ns, 340, "the device's clock and the host's");
    }

    #[test]
    fn work_that_seems_to_end_after_its_wait_shows_as_a_negative_bound() {
        let timeline = Timeline::from_text(
            "track main
             api cudaLaunchKernel 0..3us corr 1
             api cudaStreamSynchronize 6us..50us corr 3
             stream 7
             kernel a 8us..52us corr 1
             sync stream 6us..50us corr 3",
        )
        .unwrap();
        assert_eq!(timeline.gpu.clock.shortest_return_ns, Some(-2_000));
    }
}
