//! What is to be said of the program where others use the machine: that the step waits for a core comes first, for it is true and the most; but it is no news of the
//! program, so what that itself could save comes right after it, as a part of the step that nobody disturbs.

use crate::finding::Finding;
use crate::leading::MIN_GAIN;
use crate::rank::is_of_others;
use crate::rule::Case;
use crate::rules;
use analysis::phrase;
use analysis::stats::share::Share;
use analysis::steps::StepSource;

/// The first finding of the program itself, and what it would gain of a step without the waits for a core. None: the first is of the program, or nothing else
/// is worth a word.
pub fn next(case: &Case, findings: &[Finding], best: &Finding) -> Option<String> {
    let others = best.gain.filter(|_| is_of_others(best))?.mid / 100.0;
    let worth = |one: &&Finding| !is_of_others(one) && one.gain.is_some_and(|gain| gain.mid >= MIN_GAIN);
    let own = findings.iter().find(worth)?;
    let gain = own.gain?;
    let share = undisturbed(gain.share(), others, rules::find(own.code).is_some_and(|rule| rule.sleeps()));
    let title = rules::headline(own);
    let title = title.trim_end_matches('.');
    let less = phrase::less(share, gain.by.proviso());
    Some(match case.steps.source {
        StepSource::Whole => format!("{title}; on cores of its own that is {less}"),
        _ => {
            let step = case.steps.mean() as f64 * (1.0 - others);
            let [step, left] = [step, step * (1.0 - share.mid)].map(|ns| phrase::duration(ns as u64));
            format!("{title}; on cores of its own the mean step would go {step} \u{2192} {left} ({less})")
        }
    })
}

/// A part of the recorded step as a part of the step without the waits for a core. What runs is stretched by those waits as the whole step is, and keeps its share; what
/// sleeps is not, and its share grows.
fn undisturbed(gain: Share, others: f64, sleeps: bool) -> Share {
    let left = (1.0 - others).max(f64::MIN_POSITIVE);
    let of = |part: f64| if sleeps { (part / left).min(1.0) } else { part };
    Share { low: of(gain.low), mid: of(gain.mid), high: of(gain.high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sleeps_takes_more_of_a_shorter_step_and_what_runs_as_much() {
        let gain = Share { low: 0.1, mid: 0.2, high: 0.6 };
        assert_eq!(undisturbed(gain, 0.5, false), gain);
        assert_eq!(undisturbed(gain, 0.5, true), Share { low: 0.2, mid: 0.4, high: 1.0 });
        assert_eq!(undisturbed(gain, 1.0, true).high, 1.0);
    }

    /// Half of each step without a core, and a line of the program that has most of the rest.
    #[test]
    fn both_are_said_the_machine_first() {
        let answer = |waits: &str| {
            let text = format!(
                "track main\n repeat 40 every 100ms\n step request 0..80ms\n samples 0..60ms every 5ms active gil serve>work:5\n \
                 samples 60ms..80ms every 5ms active gil serve>forward:9\n end\n counter runqueue_wait_ns 0..4s every 100ms grows {waits}"
            );
            let timeline = timeline::Timeline::from_text(&text).unwrap();
            crate::diagnose(&timeline, &crate::Options::default()).answer[1].clone()
        };
        let busy = answer("76ms");
        assert!(busy.starts_with("Runnable but not scheduled for 95 % of the step"), "{busy}");
        assert!(busy.contains(" Next: work takes 73 % of the step") && busy.contains("on cores of its own"), "{busy}");
        let quiet = answer("0ms");
        assert!(quiet.starts_with("work takes 73 % of the step") && !quiet.contains("Next"), "{quiet}");
    }
}
