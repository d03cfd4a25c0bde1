//! Hidden memory by the calls that took it: a drift over the steps, memory that comes and goes, one jump, or what is there from the start.

use super::{CODE, MIN_CALLS, MIN_GROWTH, drift, least};
use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::outside_memory::{device, drifts, held, rate, rises_again, said};
use crate::rule::Case;
use analysis::memory::attribution::DeviceAttribution;
use analysis::memory::outside::{OutsideMemory, Taken};
use analysis::{origin, phrase};
use timeline::driver_memory::MemoryPlace;

/// Other allocations that PyTorch's own may be among.
const CHANCE_IF_PYTORCHS: f64 = 0.5;
/// What comes in one window is a jump, and not one of several.
const MOST_OF_IT: f64 = 2.0 / 3.0;

pub fn finding(case: &Case, one: &OutsideMemory) -> Option<Finding> {
    let MemoryPlace::Device(ordinal) = one.place else { return None };
    let name = device(case, one.process, ordinal);
    growing(case, one, &name).or_else(|| {
        // Without PyTorch's blocks its own segments are among these, and take memory as these do.
        let known = one.blocks_recorded;
        known
            .then(|| passing(case, one, &name).or_else(|| jump(case, one, &name)).or_else(|| level(case, one, &name)))?
    })
}

/// Whether PyTorch's segments may be among the calls.
fn is_mixed(case: &Case, one: &OutsideMemory) -> bool {
    !one.blocks_recorded && !origin::without_torch(case.timeline)
}

fn growing(case: &Case, one: &OutsideMemory, name: &str) -> Option<Finding> {
    let count: u64 = one.grown.iter().map(|taken| taken.count).sum();
    let fewest = case.threshold(MIN_CALLS) * if one.course.steps > 0 { 1.0 } else { 2.0 };
    if !drifts(&one.course, &drift(case, MIN_GROWTH, one.peak_of_all)) || (count as f64) < fewest {
        return None;
    }
    let top = one.grown.first()?;
    // All that this place has taken and not given back, of the first steps too.
    let all = one.at_end.iter().find(|taken| taken.site == top.site).unwrap_or(top);
    let beside = if one.blocks_recorded { " outside PyTorch" } else { "" };
    let mut evidence = vec![
        Evidence::new(format!(
            "{} by {} taken after the start and never freed: {}",
            phrase::counted(top.count, "allocation"),
            said(top),
            phrase::bytes(top.bytes)
        ))
        .number("bytes", all.bytes as f64)
        .number("allocations", top.count as f64),
        Evidence::new(held(&one.course)).number("trend", one.course.trend),
    ];
    if let Some(bytes) = one.course.per_step() {
        evidence[1] = evidence[1].clone().number("bytes_per_step", bytes as f64);
    }
    evidence.extend(others(&one.grown[1..]));
    evidence.extend(unknown(case, one));
    let mixed = is_mixed(case, one);
    let first = match mixed {
        true => Action::new("Record with --memory-events gpu: it tells PyTorch's own segments from other allocations."),
        false => Action::new(format!("Free what {} takes: each cudaMalloc needs its cudaFree.", said(top))),
    };
    Some(Finding {
        code: CODE,
        title: format!(
            "{name} memory grows {}{beside}: {} by {}",
            rate(&one.course),
            phrase::bytes(all.bytes),
            said(all)
        ),
        place: top.site.place.clone(),
        gain: None,
        severity: Severity::High,
        certainty: Certainty::seen(rises_again(&one.course) * if mixed { CHANCE_IF_PYTORCHS } else { 1.0 }),
        evidence,
        actions: vec![
            first,
            "Take one buffer at start-up and reuse it in every step.".into(),
            "Find the owner in native code: compute-sanitizer --tool memcheck --leak-check full <command>.".into(),
        ],
        verify: "Record again: what is held after the steps is level, and this finding is gone.".into(),
    })
}

fn passing(case: &Case, one: &OutsideMemory, name: &str) -> Option<Finding> {
    let spike = one.course.spike();
    if (spike.bytes as f64) < least(case, one.peak_of_all) {
        return None;
    }
    let (end, top) = (one.course.ends[spike.window], one.at_peak.first());
    let start = one.course.ends[spike.window - 1];
    let by = top.map(|taken| format!(": {}", said(taken))).unwrap_or_default();
    let of = if one.course.steps > 0 { "step" } else { "part of the recording" };
    let mut evidence = vec![
        Evidence::at(
            format!(
                "at most {} beside PyTorch's allocator, {} when nothing comes and goes",
                phrase::bytes(one.course.peak()),
                phrase::bytes(one.course.last())
            ),
            None,
            start,
            end,
        )
        .number("bytes", spike.bytes as f64)
        .number("windows", spike.windows as f64),
    ];
    evidence.extend(others(one.at_peak.get(1..).unwrap_or_default()));
    evidence.extend(unknown(case, one));
    Some(Finding {
        code: CODE,
        title: format!(
            "{name}: {} outside PyTorch comes and goes in {}{by}",
            phrase::bytes(spike.bytes),
            phrase::counted(spike.windows, of)
        ),
        place: top.map(|taken| taken.site.place.clone()).unwrap_or_default(),
        gain: None,
        severity: Severity::Medium,
        certainty: Certainty::seen(1.0), // The calls were recorded.
        evidence,
        actions: Action::all([
            "Leave that much of the device free when you size batches or caches: PyTorch's figures do not show it.",
            "Keep the buffer between the steps, or take it from PyTorch's allocator: cudaMalloc and cudaFree wait for the device.",
        ]),
        verify: "Record again: no memory outside PyTorch comes and goes inside of steps.".into(),
    })
}

fn jump(case: &Case, one: &OutsideMemory, name: &str) -> Option<Finding> {
    let (growth, (window, rise)) = (one.course.growth(), one.course.jump());
    let top = one.grown.first()?;
    if (growth as f64) < least(case, one.peak_of_all) {
        return None;
    }
    let at_once = rise as f64 >= MOST_OF_IT * growth as f64;
    let (bytes, when) = match (at_once, one.course.steps) {
        (true, 1..) => (rise, "in one step after the first".to_owned()),
        (true, 0) => (rise, "at once after the start".to_owned()),
        (false, _) => (growth, "after the start".to_owned()),
    };
    let mut evidence = vec![
        Evidence::at(
            format!(
                "{} after the start, {} in the end",
                phrase::bytes(one.course.base()),
                phrase::bytes(one.course.last())
            ),
            None,
            one.course.ends[window.saturating_sub(1)],
            one.course.ends[window],
        )
        .number("bytes", bytes as f64),
    ];
    evidence.extend(others(&one.grown));
    evidence.extend(unknown(case, one));
    Some(Finding {
        code: CODE,
        title: format!("{name}: {} outside PyTorch taken {when}: {}", phrase::bytes(bytes), said(top)),
        place: top.site.place.clone(),
        gain: None,
        severity: Severity::Low,
        certainty: Certainty::seen(1.0), // The calls were recorded.
        evidence,
        actions: sized_actions(),
        verify: "Record again: what is taken outside PyTorch is there from the first step on.".into(),
    })
}

fn level(case: &Case, one: &OutsideMemory, name: &str) -> Option<Finding> {
    let (bytes, top) = (one.course.last(), one.at_end.first()?);
    if (bytes as f64) < least(case, one.peak_of_all) {
        return None;
    }
    let mut evidence = vec![
        Evidence::new(format!("{} of it by {}", phrase::bytes(top.bytes), said(top))).number("bytes", bytes as f64),
    ];
    evidence.extend(others(&one.at_end[1..]));
    evidence.extend(unknown(case, one));
    Some(Finding {
        code: CODE,
        title: format!(
            "{name}: {} of the {} that the process takes is outside PyTorch: {}",
            phrase::bytes(bytes),
            phrase::bytes(one.peak_of_all),
            said(top)
        ),
        place: top.site.place.clone(),
        gain: None,
        severity: Severity::Info,
        certainty: Certainty::seen(1.0), // The calls were recorded.
        evidence,
        actions: sized_actions(),
        verify: "Record again: the part outside PyTorch's allocator is smaller.".into(),
    })
}

fn sized_actions() -> Vec<Action> {
    Action::all([
        "Count it in when you size batches and caches: torch.cuda.memory_stats() does not show it.",
        "Take it at start-up, before caches are sized by what is free, or lower its own limit (a workspace or buffer size).",
    ])
}

/// The next sites.
fn others(taken: &[Taken]) -> Vec<Evidence> {
    let line = |taken: &Taken| {
        let (bytes, count) = (phrase::bytes(taken.bytes), phrase::counted(taken.count, "allocation"));
        Evidence::new(format!("{}: {bytes} in {count}", said(taken)))
    };
    taken.iter().take(3).map(line).collect()
}

/// What could not be told apart, or was not looked at.
fn unknown(case: &Case, one: &OutsideMemory) -> Vec<Evidence> {
    let mut all = Vec::new();
    if is_mixed(case, one) {
        all.push(Evidence::new(
            "PyTorch's blocks were not recorded (--memory-events none): its own segments are among these allocations",
        ));
    }
    let refused = |one: &DeviceAttribution| one.found.as_ref().err().map(crate::wording::memory::not_attributed);
    all.extend(case.attribution().iter().find_map(refused).map(|why| {
        Evidence::new(format!("only recorded calls were looked at, the driver's own count was not: {why}"))
    }));
    all
}
