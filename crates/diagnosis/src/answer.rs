//! The answer in three sentences, for somebody who reads nothing else: how long a step takes and what it does meanwhile, what
//! costs the most and where, and what to do first.

use crate::finding::{Abstention, Finding};
use crate::health::{self, HealthLine, HealthState, MAX_LOST_SHARE};
use crate::health_topic::HealthTopic;
use crate::leading::{
    MAJORITY, MIN_GAIN, at_work, device, largest_without_gain, leading, min_gain, other_line, wanted_by_user,
};
use crate::losses::{share_without_stacks, totals};
use crate::measures::gpu_clock;
use crate::measures::own_load;
use crate::measures::pace::{MIN_PACING_SHARE, busiest};
use crate::quiet_machine;
use crate::rule::Case;
use crate::rules;
use crate::too_short::ended;
use crate::wording;
use analysis::PartKind;
use analysis::origin;
use analysis::phrase;
use analysis::steps::StepSource;
use replay::gain::Gain;
use timeline::Note;

pub fn say(case: &Case, findings: &[Finding], abstentions: &[Abstention], health: &[HealthLine]) -> [String; 3] {
    let best = leading(case, findings);
    let cut = health::cut(case).map(|cut| cut + " ").unwrap_or_default();
    // Nothing surely gains enough: what may is worth a try.
    let pace = pace(case, best);
    let may = |finding: &&Finding| finding.gain.is_some_and(|gain| gain.high >= MIN_GAIN);
    let maybe = findings.iter().filter(|_| pace.is_some()).find(may);
    let surely = findings.iter().filter_map(|finding| finding.gain).map(|gain| gain.low).fold(0.0, f64::max);
    let least = if surely < MIN_GAIN { MIN_GAIN } else { min_gain(case) };
    let what = match pace {
        Some(why) => nothing(busiest(case), &why, maybe.map(|finding| (finding, least))),
        None => what(case, best),
    };
    let what = what + &next(case, findings, best);
    [cut + &how_long(case), what, first(case, maybe.or(best), abstentions, health)]
}

/// What comes after the cause, where that is one half of the answer.
fn next(case: &Case, findings: &[Finding], best: Option<&Finding>) -> String {
    if let Some(own) = best.and_then(|best| quiet_machine::next(case, findings, best)) {
        return format!(" Next: {own}.");
    }
    let small = largest_without_gain(case, findings).and_then(|(_, small)| small);
    let wanted = wanted_by_user(findings).filter(|wanted| !best.is_some_and(|best| std::ptr::eq(best, *wanted)));
    let next = small.or_else(|| other_line(case, findings)).or(wanted);
    next.map(|finding| format!(" Next: {}.", rules::headline(finding))).unwrap_or_default()
}

fn how_long(case: &Case) -> String {
    let steps = &case.steps;
    if case.windows.total() == 0 {
        return match steps.count() {
            0 => "No timed events were recorded.".into(),
            count => format!("{} recorded, all of zero length.", phrase::counted(count as u64, "step")),
        };
    }
    let took = phrase::duration(steps.p50());
    let time = match (steps.source, steps.count()) {
        (StepSource::Whole, _) => match case.imports() {
            Some((_, ns)) => {
                let all = case.timeline.duration();
                format!("The recording lasts {}, {} of it imports", phrase::duration(all), phrase::duration(ns))
            }
            None => format!("The recording lasts {took}"),
        },
        (_, 1) => format!("The one {} takes {took}", name(&steps.name)),
        (_, count) => {
            let article = if "aeiouAEIOU".contains(steps.name.chars().next().unwrap_or('s')) { "An" } else { "A" };
            let (count, p99) = (phrase::count(count as u64), phrase::duration(steps.p99()));
            format!("{article} {} takes {took} (p50 of {count}; p99 {p99})", name(&steps.name))
        }
    };
    if let Some(said) = at_work(case).filter(|_| !case.breakdown_tells()) {
        return format!("{time}; {said}.");
    }
    if let Some(few) = case.too_few_samples() {
        return format!("{time}; {}.", few.tells_nothing());
    }
    if !case.breakdown_tells() {
        let why = case.without_samples().unwrap_or_default();
        return format!("{time}; no breakdown available: {why}.");
    }
    let verb = |kind: PartKind| match kind {
        PartKind::Unknown if case.breakdown.by_calls => "is in no recorded call",
        _ => kind.verb(),
    };
    let mut kinds = case.breakdown.kinds();
    kinds.sort_by(|a, b| b.2.total_cmp(&a.2));
    // What is less than half a percent is not worth a word.
    let some = |at: usize, share: f64| at == 0 || share >= 0.005;
    let kinds: Vec<String> = kinds
        .iter()
        .enumerate()
        .filter(|(at, kind)| some(*at, kind.2))
        .map(|(_, kind)| kind)
        .take(3)
        .map(|(kind, _, share)| format!("{} {}", phrase::percent(*share), verb(*kind)))
        .collect();
    let thread = steps
        .thread
        .as_ref()
        .map_or_else(|| " of it".to_owned(), |thread| format!(" of {}", wording::steps::thread(thread)));
    match kinds.as_slice() {
        [] => format!("{time}."),
        [one] => format!("{time}; {}.", one.replacen(" %", &format!(" %{thread}"), 1)),
        [first, rest @ .., last] => {
            let first = first.replacen(" %", &format!(" %{thread}"), 1);
            let middle: String = rest.iter().map(|kind| format!(", {kind}")).collect();
            format!("{time}; {first}{middle} and {last}.")
        }
    }
}

/// A name that could be misread is quoted.
fn name(name: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "_-.".contains(letter);
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { format!("\"{name}\"") }
}

/// Why there is nothing to fix, where the device sets the pace and nothing surely gains enough.
fn pace(case: &Case, best: Option<&Finding>) -> Option<String> {
    let Some(finding) = best else { return device(case) };
    let healthy = finding.gain.is_none() && busiest(case) > MAJORITY && rules::finds_health(finding.code);
    healthy.then(|| lower(finding.title.trim_end_matches('.')))
}

fn what(case: &Case, best: Option<&Finding>) -> String {
    if let Some(finding) = best {
        let title = rules::headline(finding);
        let title = title.trim_end_matches('.');
        let Some(gain) = finding.gain else { return format!("{title}.") };
        return format!("{title}; {}.", without(case, gain));
    }
    let largest = case.breakdown.functions().into_iter().next();
    let imports = case.imports().filter(|(share, _)| share.mid > MAJORITY);
    match largest {
        _ if case.too_few_samples().is_some() => {
            let ended = ended(case.timeline.info.exit).map(|ended| ended + " ").unwrap_or_default();
            format!("{ended}Not enough data to identify a cause.")
        }
        _ if case.windows.total() == 0 => "There is nothing to analyse.".into(),
        _ if imports.is_some() => "Most of it is start-up, and nothing after that stands out.".into(),
        Some(part) if case.breakdown_tells() => {
            let line = case.breakdown.hottest_line(&part);
            let share = format!("{} of {}", phrase::percent(part.share), case.the_step());
            format!(
                "No single cause found; {} is the largest part.",
                phrase::takes(&part.place(), &share, part.share, line)
            )
        }
        _ => "Not enough data to identify a cause.".into(),
    }
}

/// What remains. A gain is of all steps together, so it is taken from their mean; where that is not what the first sentence says a
/// step takes, it is said.
fn without(case: &Case, gain: Gain) -> String {
    let (mean, p50) = (phrase::duration(case.steps.mean()), phrase::duration(case.steps.p50()));
    let left = phrase::duration((case.steps.mean() as f64 * (1.0 - gain.mid / 100.0)) as u64);
    match case.steps.source {
        // How long a recording lasts says nothing: somebody may have ended it.
        StepSource::Whole => {
            format!("fixing it saves {}", phrase::saving_of(gain.share(), "the time", gain.by.proviso()))
        }
        _ => {
            let step = if mean == p50 { "step" } else { "mean step" };
            format!("{step} {mean} → {left} ({})", phrase::less(gain.share(), gain.by.proviso()))
        }
    }
}

/// No fix surely gains so many percent, for the reason given; one may.
fn nothing(busy: f64, why: &str, maybe: Option<(&Finding, f64)>) -> String {
    let Some((finding, gain, least)) = maybe.and_then(|(finding, least)| Some((finding, finding.gain?, least))) else {
        // A device that idles for long has a cause for that, even where no rule can name it.
        return match busy >= MIN_PACING_SHARE {
            true => format!("Nothing to fix found: {why}."),
            false => format!("No single cause found: {why}."),
        };
    };
    let range = phrase::less(gain.share(), gain.by.proviso());
    let title = finding.title.trim_end_matches('.');
    format!("No fix is certain to gain {least:.0} % of a step: {why}. Try first ({range}): {title}.")
}

/// A sentence after a colon.
fn lower(title: &str) -> String {
    let mut letters = title.chars();
    // An acronym stays: GPU.
    if title.chars().nth(1).is_some_and(char::is_uppercase) {
        return title.to_owned();
    }
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn first(case: &Case, best: Option<&Finding>, abstentions: &[Abstention], health: &[HealthLine]) -> String {
    let full = |text: &str| format!("{}.", text.trim_end_matches('.'));
    let device_tells = best.is_some() && at_work(case).is_some();
    if let Some(few) = case.too_few_samples().filter(|_| best.is_none()) {
        return few.next_step(case);
    }
    // A condition of the user stands on what it names.
    let wanted = best.is_some_and(|best| rules::find(best.code).is_none());
    if case.windows.total() > 0 && !case.breakdown_tells() && !device_tells && !wanted {
        // Another recording like this one would tell no more.
        if let Some(wrong) = gpu_clock::wrong(case).filter(|_| case.gpu().is_some()) {
            return full(&format!("Caution: GPU clock: {}: {}", wrong.by, wrong.seen));
        }
        return match case.timeline.samples.is_empty() {
            true if origin::samples_damaged(case.timeline) => {
                "Record again: the stack samples of this trace are damaged.".into()
            }
            true => case
                .timeline
                .info
                .recorded_by
                .choose(
                    match origin::is_python(case.timeline) {
                        true => "Record with stack samples (the default of `inferscope run`).",
                        false => "Add NVTX ranges to see what this program does: only Python stacks are sampled.",
                    },
                    "Profile with with_stack=True, or record with `inferscope run`, which samples stacks.",
                    "Record with `inferscope run`, which samples stacks.",
                )
                .into(),
            false => own_load::more_samples(case),
        };
    }
    // Few samples, and lost ones, do not matter where the device tells.
    let only_stacks = || share_without_stacks(case.timeline, &totals(case.timeline)) < MAX_LOST_SHARE;
    let of_samples =
        |line: &HealthLine| line.topic == HealthTopic::Samples || line.topic == HealthTopic::Losses && only_stacks();
    let matters = |line: &&HealthLine| line.topic != HealthTopic::Recording && !(device_tells && of_samples(line));
    // That stacks were lost tells less than how many are left.
    let mut all: Vec<&HealthLine> = health.iter().filter(matters).collect();
    all.sort_by_key(|line| line.topic == HealthTopic::Losses && only_stacks());
    let bad = all.into_iter().find(|line| line.state == HealthState::Bad);
    let bad = bad.map(|bad| full(&format!("Caution: {}: {}", bad.label(), bad.text)));
    let action =
        best.and_then(|finding| finding.actions.first()).map(|action| full(&format!("First: {}", action.text())));
    match (action, bad) {
        (Some(action), Some(bad)) => return format!("{action} {bad}"),
        (Some(one), None) | (None, Some(one)) => return one,
        (None, None) => (),
    }
    if case.windows.total() == 0 {
        let note = case.timeline.notes.first().map(Note::said);
        let again = "Record a longer run";
        let ours = "Record a longer run: inferscope run -- <command>";
        return full(note.as_deref().unwrap_or(case.timeline.info.recorded_by.choose(ours, again, again)));
    }
    match abstentions.first() {
        Some(one) => full(&format!(
            "{} skipped, first {}: {}",
            phrase::counted(abstentions.len() as u64, "rule"),
            one.code,
            one.reason
        )),
        None => "No rule was skipped.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certainty::Certainty;
    use crate::finding::Severity;
    use analysis::place::Place;

    #[test]
    fn what_may_gain_is_named_where_nothing_surely_does() {
        let finding = Finding {
            code: crate::rules::communication::comm_exposed::CODE,
            title: "Exposed collectives take 9.8 % of the step".into(),
            place: Place::default(),
            gain: Some(Gain::recorded(0.0, 2.0, 10.0)),
            severity: Severity::Low,
            certainty: Certainty::seen(0.9),
            evidence: Vec::new(),
            actions: Vec::new(),
            verify: String::new(),
        };
        assert_eq!(nothing(0.9, "the GPU sets the pace", None), "Nothing to fix found: the GPU sets the pace.");
        assert_eq!(nothing(0.6, "the GPU is idle", None), "No single cause found: the GPU is idle.");
        assert_eq!(
            nothing(0.9, "the GPU sets the pace", Some((&finding, MIN_GAIN))),
            "No fix is certain to gain 3 % of a step: the GPU sets the pace. \
             Try first (−2.0 %, range 0–10): Exposed collectives take 9.8 % of the step."
        );
    }
}
