//! What a device did in a group of steps: its kernels by name, copies that no kernel hid, and why it was idle.

use crate::StepAnalysis;
use crate::device::gpu::windows_of;
use crate::idle::{Cause, DeviceIdle, Who};
use crate::steps::groups::Groups;
use crate::steps::spans::Spans;
use std::collections::HashMap;
use timeline::WorkKind;

/// Sums over the steps of the group; divide by `steps`.
#[derive(Default)]
pub struct Account {
    pub steps: usize,
    pub idle: HashMap<(Cause, Who), u64>,
    /// By name: time, and how many.
    pub kernels: HashMap<u32, (u64, u64)>,
    pub exposed_ns: u64,
    pub copies: u64,
    pub copied_bytes: u64,
    pub launched: u64,
    pub allocations: u64,
}

pub fn account(case: &StepAnalysis, device: &DeviceIdle, groups: &Groups, group: usize) -> Account {
    let gpu = &case.timeline.gpu;
    let mut sum =
        Account { idle: device.groups[group].iter().map(|(key, ns)| (*key, *ns)).collect(), ..Account::default() };
    let windows = windows_of(case, device.process);
    let windows: Vec<_> = windows.iter().filter(|window| groups.of(window.step) == Some(group)).collect();
    sum.steps = windows.len();
    let (mut kernels, mut copies) = (Vec::new(), Vec::new());
    let own = gpu.streams.iter().filter(|one| (one.process, one.device) == (device.process, device.ordinal));
    for stream in own {
        let starts = &gpu.work.start[stream.work.clone()];
        for window in &windows {
            // One that began before the window may reach into it.
            let from = starts.partition_point(|start| *start < window.start).saturating_sub(1);
            let to = starts.partition_point(|start| *start < window.end);
            for index in stream.work.start + from..stream.work.start + to {
                let span = (gpu.work.start[index].max(window.start), gpu.work.end(index).min(window.end));
                if span.0 >= span.1 {
                    continue;
                }
                match gpu.work.kind(index) {
                    WorkKind::Kernel => {
                        let one = sum.kernels.entry(gpu.work.name[index]).or_default();
                        *one = (one.0 + span.1 - span.0, one.1 + 1);
                        sum.launched += 1;
                        kernels.push(span);
                    }
                    kind if kind.is_busy() => {
                        sum.copies += 1;
                        sum.copied_bytes += gpu.work.more(index).bytes;
                        copies.push(span);
                    }
                    _ => {}
                }
            }
        }
    }
    sum.exposed_ns = Spans::union(copies).minus(&Spans::union(kernels)).all().iter().map(|span| span.1 - span.0).sum();
    let mine = |one: &&timeline::gpu::Allocation| (one.process, one.device) == (device.process, device.ordinal);
    for one in gpu.allocations.iter().filter(mine).filter(|one| one.allocates()) {
        let place = windows.partition_point(|window| window.start <= one.time);
        sum.allocations += u64::from(place > 0 && one.time < windows[place - 1].end);
    }
    sum
}
