//! What the steps are bound by where a device was recorded: by the device itself where it works for more than half of them, else by
//! what keeps it waiting.

use super::MAJORITY;
use crate::bottleneck_kind::BottleneckKind;
use crate::finding::Finding;
use crate::rule::Case;
use crate::rules;
use analysis::device::kernel_kind::{Class, Kind};
use analysis::idle::{Cause, DeviceIdle};
use analysis::phrase;

/// A finding with less to gain does not decide.
const LEAST_GAIN: f64 = 10.0;

/// What the finding's rule stands for.
pub fn bottleneck_of(finding: &Finding) -> Option<(BottleneckKind, f64)> {
    let kind = rules::find(finding.code)?.bottleneck()?;
    Some((kind, finding.confidence()))
}

/// Kind and confidence. None: no device was recorded, or what keeps it waiting is not known. `cause` is what is said to be the cause.
pub fn of(case: &Case, findings: &[Finding], cause: Option<&Finding>) -> Option<(BottleneckKind, f64)> {
    let device = busiest(case)?;
    // However busy the device is: where the cause is what keeps it waiting, it is not bound by itself.
    if let Some(kind) = cause.filter(|finding| finding.gain.is_some()).and_then(bottleneck_of) {
        return Some(kind);
    }
    let repeats = case.windows.repeats();
    let share = |ns: u64| ns as f64 / device.window_ns as f64;
    if share(device.busy_ns) > MAJORITY {
        let metrics =
            case.gpu()?.devices.iter().find(|one| (one.process, one.ordinal) == (device.process, device.ordinal));
        let kind = match metrics {
            Some(metrics) if share(metrics.exposed_copy_ns) > MAJORITY => BottleneckKind::Memory,
            _ if communicates(case) > MAJORITY => BottleneckKind::Comm,
            _ => BottleneckKind::Gpu,
        };
        return Some((kind, repeats));
    }
    let gains = |finding: &&Finding| finding.gain.is_some_and(|gain| gain.mid >= LEAST_GAIN);
    if let Some(kind) = findings.iter().filter(gains).find_map(bottleneck_of) {
        return Some(kind);
    }
    // What holds launched work back is on the device's side, whatever it is.
    if let Some(sure) = at_work(case) {
        return Some((BottleneckKind::Gpu, sure * repeats));
    }
    let groups = [
        (
            BottleneckKind::Cpu,
            &[Cause::Python, Cause::Native, Cause::Gc, Cause::Descheduled, Cause::Compile, Cause::Allocator][..],
        ),
        (BottleneckKind::Launch, &[Cause::Launch]),
        (BottleneckKind::Sync, &[Cause::Sync, Cause::Gil]),
        (BottleneckKind::Memory, &[Cause::Copy]),
        (BottleneckKind::Comm, &[Cause::Communication]),
        (BottleneckKind::Input, &[Cause::NoRequest]),
    ];
    let sum = |causes: &[Cause]| causes.iter().map(|cause| share(device.ns(*cause))).sum::<f64>();
    let most = groups.iter().map(|(kind, causes)| (*kind, sum(causes))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    // A handful of samples says little of what the host did; recorded calls say what they say.
    let sampled = matches!(most.0, BottleneckKind::Cpu | BottleneckKind::Input);
    let seen = !sampled || case.breakdown.by_calls || case.without_samples().is_none();
    (most.1 > MAJORITY && seen).then_some((most.0, repeats))
}

/// Whether a device works, waits for another that does, or holds launched work back for a reason that was not recorded, for more than half of the time, and how
/// sure it is that it works: of such holes, half.
pub fn at_work(case: &Case) -> Option<f64> {
    let devices = case.idle().iter().filter(|device| device.window_ns > 0);
    let parts = devices.map(|device| (device.paced_ns() as f64 / device.window_ns as f64, device.held()));
    let (busy, held) = parts.max_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)))?;
    (busy + held > MAJORITY).then(|| (busy + held / 2.0) / (busy + held))
}

fn busiest<'a>(case: &'a Case) -> Option<&'a DeviceIdle> {
    let devices = case.idle().iter().filter(|device| device.window_ns > 0);
    devices.max_by_key(|device| (u128::from(device.busy_ns) << 32) / u128::from(device.window_ns))
}

/// The share of collectives in the time of all kernels.
fn communicates(case: &Case) -> f64 {
    let class = |kernel: &analysis::device::gpu::KernelRow| Kind::of(case.timeline.names.text(kernel.name)).class;
    let collective = |kernel: &&analysis::device::gpu::KernelRow| class(kernel) == Class::Collective;
    case.gpu().map_or(0.0, |gpu| gpu.kernels.iter().filter(collective).map(|kernel| kernel.share).sum())
}

/// One line for the device that is busiest: how busy it is, and what keeps it waiting most.
pub fn evidence(case: &Case) -> Option<String> {
    let device = busiest(case)?;
    let busy = phrase::percent(device.busy_ns as f64 / device.window_ns as f64);
    let held = device.held();
    Some(match device.causes.first() {
        Some(most) if held > most.share / 2.0 && most.cause == Cause::Unknown => format!(
            "GPU {}: busy {busy} of {}; for {} more, launched work does not start, for an unrecorded reason",
            device.ordinal,
            case.steps_time(),
            phrase::percent(held)
        ),
        Some(most) => format!(
            "GPU {}: busy {busy} of {}; main cause of idle time: {}, {}",
            device.ordinal,
            case.steps_time(),
            most.cause.name(),
            phrase::percent(most.share)
        ),
        None => format!("GPU {}: busy {busy} of {}", device.ordinal, case.steps_time()),
    })
}
