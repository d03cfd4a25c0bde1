//! Which finding says most about where the time goes, and what sets the pace where none does.

use crate::finding::{Finding, Severity};
use crate::losses::lacks_most;
use crate::measures::pace::{MIN_PACING_SHARE, busiest};
use crate::rank::sets_pace;
use crate::rule::{Case, Shown};
use crate::rules;
use analysis::device::kernel_name;
use analysis::{Cause, phrase};

/// What gains the most, if that is worth it; else what is known to set the pace.
pub fn leading<'a>(case: &Case, findings: &'a [Finding]) -> Option<&'a Finding> {
    if let Some((hot, _)) = largest_without_gain(case, findings) {
        return Some(hot);
    }
    let without =
        |what: Shown| findings.iter().find(|finding| finding.gain.is_none() && rules::shown(finding) == Some(what));
    // A device of which most is not in the recording: nothing else is more telling, nor surer.
    let lacks = lacks_most(case).is_some_and(|device| device.held() > MAJORITY);
    if let Some(missing) = without(Shown::MissingWork).filter(|_| lacks) {
        return Some(missing);
    }
    let least = min_gain(case);
    let gains = findings.iter().find(|finding| finding.gain.is_some_and(|gain| gain.mid >= least));
    // Where a device sets the pace, the line that feeds it is not what takes the time.
    let hot = without(Shown::HostCode).filter(|_| busiest(case) <= MAJORITY);
    // What sets the pace says more than which kernel runs meanwhile.
    let pace = findings.iter().find(|finding| finding.gain.is_none() && sets_pace(finding));
    let device = pace.or_else(|| without(Shown::DeviceWork)).filter(|_| busiest(case) > MAJORITY);
    // Waiting for a device that works says less than what it works on.
    let device = device.or_else(|| without(Shown::WaitForDevice).filter(|_| busiest(case) <= MAJORITY));
    gains.or_else(|| wanted_by_user(findings)).or(device).or(hot)
}

/// What the user's own rule found, where its file calls that severe: it is what they asked to be told.
pub fn wanted_by_user(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| finding.severity == Severity::High && rules::find(finding.code).is_none())
}

/// The finding of another line of the same function, by the same rule: of a function that waits in two places, one is half the answer.
pub fn other_line<'a>(case: &Case, findings: &'a [Finding]) -> Option<&'a Finding> {
    let best = leading(case, findings)?;
    let (place, least) = (&best.place, min_gain(case));
    findings.iter().find(|other| {
        let same = (other.code, &other.place.function, &other.place.file) == (best.code, &place.function, &place.file);
        same && other.place.line != place.line && other.gain.is_some_and(|gain| gain.mid >= least)
    })
}

/// Percent of a step that a fix must gain to be named as the cause: what is less is not worth changing code for, or cannot be told from
/// how much the steps differ by themselves.
pub fn min_gain(case: &Case) -> f64 {
    let (count, mean) = (case.steps.count() as f64, case.steps.mean() as f64);
    let squares: f64 = case.steps.measured().map(|step| (step.dur() as f64 - mean).powi(2)).sum();
    let error = (squares / (count - 1.0).max(1.0) / count.max(1.0)).sqrt();
    let noise = if mean > 0.0 { 100.0 * 2.0 * error / mean } else { 0.0 };
    noise.clamp(MIN_GAIN, MAX_NOISE)
}

/// However alike they are. The suite's judge (tests/suite/judge.py) takes it for blame from the same gain on.
pub const MIN_GAIN: f64 = 3.0;
/// However much steps differ: a fifth of a step is worth naming.
const MAX_NOISE: f64 = 20.0;

/// A device that is busy for more than this has more of the step than the host.
pub const MAJORITY: f64 = 0.5;
/// A gain is small beside a place that has so many times as much of the step.
const MIN_TIMES_THE_GAIN: f64 = 4.0;

/// The place that has most of the step, where what of it could be saved is not known and what is known to be saved is little beside
/// it: that little is no answer to where the time goes. With it, the little, if that is worth a word.
pub fn largest_without_gain<'a>(case: &Case, findings: &'a [Finding]) -> Option<(&'a Finding, Option<&'a Finding>)> {
    let unmeasured = |finding: &Finding| finding.gain.is_none() && rules::shown(finding) == Some(Shown::HostCode);
    let small = findings.iter().find(|finding| !unmeasured(finding)).filter(|finding| finding.gain.is_some())?;
    let gain = small.gain.map_or(0.0, |gain| gain.mid);
    let functions = case.breakdown.functions();
    let share = |finding: &Finding| {
        let (function, file) = (finding.place.function.as_deref(), finding.place.file.as_deref());
        // Comprehensions and functions inside it have rows of their own there.
        let belongs = |label: &str| {
            let rest = function.and_then(|function| label.strip_prefix(function));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(".<locals>."))
        };
        let same = |label: &str, of: &str| belongs(label) && of == file.unwrap_or_default();
        functions.iter().filter(|part| same(&part.label, &part.file)).map(|part| part.share).sum::<f64>()
    };
    let hot = findings.iter().filter(|finding| unmeasured(finding));
    let hot = hot.filter(|_| busiest(case) <= MAJORITY).find(|finding| share(finding) > MAJORITY)?;
    (MIN_TIMES_THE_GAIN * gain < 100.0 * share(hot)).then_some((hot, Some(small).filter(|_| gain >= MIN_GAIN)))
}

/// The findings with such a place first: what the answer names stands at the top of the list, too.
pub fn leading_first(case: &Case, mut findings: Vec<Finding>) -> Vec<Finding> {
    let hot = largest_without_gain(case, &findings)
        .and_then(|(hot, _)| findings.iter().position(|one| std::ptr::eq(one, hot)));
    if let Some(at) = hot {
        findings[..=at].rotate_right(1);
    }
    findings
}

/// What the busiest device does meanwhile, where the thread was not seen.
pub fn at_work(case: &Case) -> Option<String> {
    let device = case.idle().iter().filter(|device| device.window_ns > 0).max_by_key(|device| device.busy_ns)?;
    let busy = phrase::percent(device.busy_ns as f64 / device.window_ns as f64);
    let most = device.causes.first().filter(|one| one.cause != Cause::Unknown && one.share >= 0.05);
    Some(match most {
        None => format!("GPU busy {busy} of it"),
        Some(one) => {
            let top = one.top.as_ref().map(|place| place.api.clone().unwrap_or_else(|| phrase::place(place)));
            let top = top.map(|top| format!(", mostly {top}")).unwrap_or_default();
            let share = phrase::percent(one.share);
            format!("GPU busy {busy} of it; top idle cause ({share}): {}{top}", one.cause.name())
        }
    })
}

/// The device has most of the step, and no rule found fault with that.
pub fn device(case: &Case) -> Option<String> {
    let busy = busiest(case);
    let kernel = case.gpu()?.kernels.first().filter(|_| busy > MAJORITY)?;
    let name = kernel_name::brief(case.timeline.names.text(kernel.name));
    let said = match busy >= MIN_PACING_SHARE {
        true => format!("the GPU is the bottleneck, busy {} of it", phrase::percent(busy)),
        false => at_work(case)?,
    };
    Some(format!("{said}; its hottest kernel is {name} ({} of kernel time)", phrase::percent(kernel.share)))
}
