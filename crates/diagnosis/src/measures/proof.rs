//! Evidence that several rules give: the step that shows it best, and the longest stretch in which it lasted.

use crate::finding::Evidence;
use crate::rule::Case;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::stats::share::Share;
use analysis::steps::StepSource;
use replay::gain::Gain;

/// The window with the most samples that fit, as a range to jump to.
pub fn best_step(case: &Case, what: &str, fits: impl Fn(&StepSample) -> bool) -> Option<Evidence> {
    let stretches = case.samples.all.chunk_by(|a, b| a.window == b.window);
    let counted = stretches.map(|all| (all.iter().filter(|one| fits(one)).count(), all.len(), all[0].window));
    let (count, of, window) = counted.max_by_key(|(count, _, window)| (*count, u32::MAX - window))?;
    if count == 0 {
        return None;
    }
    let window = &case.windows.all()[window as usize];
    let text = format!(
        "{what} in {count} of {of} samples of this {}, which takes {}",
        if case.steps.count() > 1 && !case.windows.overlapping { "step" } else { "stretch" },
        phrase::duration(window.end - window.start)
    );
    Some(Evidence::at(text, Some(window.track), window.start, window.end).number("samples", count as f64))
}

/// How many windows have a sample that fits, and how many have samples at all.
pub fn windows_with(case: &Case, fits: impl Fn(&StepSample) -> bool) -> (u64, u64) {
    let stretches = case.samples.all.chunk_by(|a, b| a.window == b.window);
    stretches.fold((0, 0), |(with, all), stretch| (with + u64::from(stretch.iter().any(&fits)), all + 1))
}

/// The share of the steps that a gain is made of: a replay gives time that no sample saw to the samples around it, and gains that too.
pub fn blamed(share: Share, gain: &Gain) -> f64 {
    share.mid.max(gain.mid / 100.0)
}

/// Why that is more than samples show.
pub fn unseen(share: Share, gain: &Gain) -> Option<Evidence> {
    let more = blamed(share, gain) >= share.mid + 0.02;
    let text = "{} of the time by samples alone; the rest is unsampled time around them";
    more.then(|| Evidence::new(text.replace("{}", &phrase::percent(share.mid))).number("share", share.mid))
}

/// The time that would remain, for the sentence that says how to verify. Gains are of all steps together: so are these times.
pub fn verify(case: &Case, saved: f64) -> String {
    if saved <= 0.0 && case.steps.source == StepSource::Whole {
        return format!("Record the same work again and compare: it takes {} now.", phrase::duration(case.steps.p50()));
    }
    if saved <= 0.0 {
        return format!("Record again and compare the p50: {} now.", phrase::duration(case.steps.p50()));
    }
    let before = case.steps.mean();
    let after = (before as f64 * (1.0 - saved.clamp(0.0, 1.0))) as u64;
    let (before, after) = (phrase::duration(before), phrase::duration(after));
    match case.steps.source {
        StepSource::Whole => {
            format!("Record the same work again: it should take about {after} instead of {before}.")
        }
        _ => format!("Record again: the mean of \"{}\" should fall from {before} to about {after}.", case.steps.name),
    }
}
