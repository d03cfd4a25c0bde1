//! Hidden memory that only the driver's count of the device shows: growth by no recorded call, large contexts, and other processes.

use super::{CODE, MIN_CONTEXT, MIN_OTHERS, MIN_SHARE, MIN_UNRECORDED, drift, least};
use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::outside_memory::{drifts, held, of, rate, rises_again};
use crate::rule::Case;
use analysis::memory::attribution::{Attribution, DeviceAttribution, Level, Part, PartKind};
use analysis::memory::course::{Course, Windows};
use analysis::phrase;
use timeline::ProcessIndex;

/// Where the driver does not tell processes apart, another one may have taken it.
const CHANCE_IF_OTHERS: f64 = 0.5;

pub fn findings(case: &Case, one: &DeviceAttribution) -> Vec<Finding> {
    let Ok(found) = &one.found else { return Vec::new() };
    let parts = |kind: PartKind| found.parts.iter().filter(move |part| part.kind == kind);
    let name =
        |part: &Part| format!("GPU {}{}", one.device, part.process.map_or(String::new(), |process| of(case, process)));
    let mut all: Vec<Finding> = Vec::new();
    all.extend(parts(PartKind::Hidden).filter_map(|part| unrecorded(case, found, part, &name(part))));
    all.extend(parts(PartKind::Context).filter_map(|part| context(case, found, part, &name(part))));
    all.extend(others(case, found, &format!("GPU {}", one.device)));
    all
}

/// All of this process, or of all where they are not told apart, at most.
fn process_peak(found: &Attribution, process: Option<ProcessIndex>) -> u64 {
    let own = |part: &&Part| part.process == process || process.is_none() && part.process.is_some();
    let sum = |at: usize| found.parts.iter().filter(own).map(|part| part.bytes[at]).fold(0, u64::saturating_add);
    (0..found.times.len()).map(sum).max().unwrap_or(0)
}

fn unrecorded(case: &Case, found: &Attribution, part: &Part, name: &str) -> Option<Finding> {
    let process = part.process.or_else(|| found.parts.iter().find_map(|part| part.process))?;
    let windows = Windows::of(case.timeline, &case.steps, process, found.times.first().copied()?);
    let points: Vec<(u64, u64)> = found.times.iter().copied().zip(part.bytes.iter().copied()).collect();
    let (course, peak) = (Course::of(&windows, &points), process_peak(found, part.process));
    let is_drift = drifts(&course, &drift(case, MIN_UNRECORDED, peak));
    if !is_drift && (course.growth() as f64) < least(case, peak) {
        return None;
    }
    let whose = match found.level {
        Level::Process => "by no recorded call",
        Level::Device => "by no recorded call, or by other processes",
    };
    let title = match is_drift {
        true => format!("{name} memory grows {} {whose}: {}", rate(&course), phrase::bytes(part.end())),
        false => format!("{name}: {} taken after the first step {whose}", phrase::bytes(course.growth())),
    };
    let seen = if is_drift { rises_again(&course) } else { 1.0 };
    Some(Finding {
        code: CODE,
        title,
        place: analysis::place::Place::default(),
        gain: None,
        severity: if is_drift { Severity::High } else { Severity::Low },
        certainty: Certainty::seen(seen * if found.level == Level::Device { CHANCE_IF_OTHERS } else { 1.0 }),
        evidence: vec![
            Evidence::new(held(&course)).number("bytes", part.end() as f64).number("trend", course.trend),
            Evidence::new(format!("{} of the driver", phrase::counted(found.times.len() as u64, "reading"))),
        ],
        actions: Action::all([
            "Run every kernel and shape once before the first request: code that is loaded then does not come later.",
            "Look for graphs, streams and modules that are made in each step: each keeps memory of the context.",
        ]),
        verify: "Record again: what the driver counts beyond recorded calls is level after the first step.".into(),
    })
}

fn context(case: &Case, found: &Attribution, part: &Part, name: &str) -> Option<Finding> {
    let peak = process_peak(found, part.process);
    let share = part.peak as f64 / peak.max(1) as f64;
    if (part.peak as f64) < case.threshold(MIN_CONTEXT) || share < case.threshold(MIN_SHARE) {
        return None;
    }
    Some(Finding {
        code: CODE,
        title: format!(
            "{name}: the CUDA context and libraries take {} before any allocation",
            phrase::bytes(part.peak)
        ),
        place: analysis::place::Place::default(),
        gain: None,
        severity: Severity::Info,
        certainty: Certainty::seen(1.0), // The driver counts it.
        evidence: vec![
            Evidence::new(format!("{} of what the process takes of the device at most", phrase::percent(share)))
                .number("bytes", part.peak as f64),
        ],
        actions: Action::all([
            "Load kernels when they are first used: unset CUDA_MODULE_LOADING=EAGER.",
            "Serve several models from one process: each process has a context of its own.",
        ]),
        verify: "Record again: the context takes less.".into(),
    })
}

fn others(case: &Case, found: &Attribution, name: &str) -> Option<Finding> {
    let theirs = [PartKind::OtherProcesses, PartKind::Unlisted, PartKind::Before];
    let at = |at: usize| {
        let parts = found.parts.iter().filter(|part| theirs.contains(&part.kind));
        parts.map(|part| part.bytes[at]).fold(0, u64::saturating_add)
    };
    let bytes = (0..found.times.len()).map(at).max()?;
    let used = found.used.iter().copied().max().unwrap_or(0);
    let share = bytes as f64 / used.max(1) as f64;
    if (bytes as f64) < case.threshold(MIN_OTHERS) || share < case.threshold(MIN_SHARE) {
        return None;
    }
    let listed = found.parts.iter().any(|part| part.kind == PartKind::OtherProcesses);
    let whose = if listed { "held by other processes" } else { "in use before the program began" };
    Some(Finding {
        code: CODE,
        title: format!("{name}: {} of {} in use is {whose}", phrase::bytes(bytes), phrase::bytes(used)),
        place: analysis::place::Place::default(),
        gain: None,
        severity: Severity::Low,
        certainty: Certainty::seen(1.0), // The driver counts it.
        evidence: vec![
            Evidence::new(format!("{} of what is in use on the device", phrase::percent(share)))
                .number("bytes", bytes as f64),
        ],
        actions: Action::all([
            "See whose it is: nvidia-smi --query-compute-apps=pid,used_memory --format=csv.",
            "Choose a device that is free: CUDA_VISIBLE_DEVICES=<number>.",
        ]),
        verify: "Record again: other processes hold less of the device.".into(),
    })
}
