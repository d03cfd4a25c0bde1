//! `scheduler-gap`: between two steps of a serving engine the device has nothing to do while the engine decides what comes next.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::engine_steps;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::again;
use analysis::steps::spans::Spans;

pub const CODE: RuleCode = RuleCode::new("scheduler-gap");

pub struct SchedulerGap;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "of the time of steps and gaps together: a scheduler that keeps up takes less",
);
const MIN_STEPS: Threshold =
    Threshold::new(CODE, "min_steps", 5.0, Unit::Count, "with fewer steps there are too few gaps");
const MAX_RATIO: Threshold = Threshold::new(
    CODE,
    "max_ratio",
    3.0,
    Unit::Times,
    "a gap longer than this many steps is a pause without requests",
);
const MIN_HIGH_SHARE: Threshold = Threshold::new(
    CODE,
    "min_high_share",
    0.2,
    Unit::Share,
    "a fifth of the time is worth a day of work: high severity",
);

impl Rule for SchedulerGap {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_STEPS, MAX_RATIO, MIN_HIGH_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Between the steps of a serving engine the GPU is idle for {min_share} of the time or more.",
            why: "After each step the engine takes in new requests, schedules the next batch, builds its inputs and hands out tokens. If it starts that only when the step is done, the GPU waits. Gaps count where no GPU is busy, between steps that follow each other within {max_ratio} steps' time: longer ones are a lack of requests. No gain in percent of a step is given, because it lies outside the steps; the finding gives its share of total time.",
            needs: "Steps with markers of vLLM or SGLang (torch.profiler, NVTX), and GPU operations.",
            example: "GPU idle 4.20 ms between engine steps, 31 % of the time",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let (track, steps) = engine_steps::find(case);
        if steps.len() < (case.threshold(MIN_STEPS) as usize) || case.timeline.gpu.is_empty() {
            return Verdict::Silent;
        }
        let work = &case.timeline.gpu.work;
        let busy = Spans::union(
            (0..work.len())
                .filter(|index| work.kind(*index).is_busy())
                .map(|index| (work.start[index], work.end(index)))
                .collect(),
        );
        let (mut idle, mut all, mut count, mut widest) = (0u64, steps[0].ns(), 0u64, (0, 0));
        for two in steps.windows(2) {
            all = u64::saturating_add(all, two[1].ns());
            let gap = two[1].start.saturating_sub(two[0].end);
            if gap == 0 || gap as f64 > case.threshold(MAX_RATIO) * two[0].ns().max(two[1].ns()) as f64 {
                continue;
            }
            let free = gap - busy.overlap(two[0].end, two[1].start).min(gap);
            (idle, all, count) = (u64::saturating_add(idle, free), all.saturating_add(gap), count + 1);
            if free > widest.1 - widest.0 {
                widest = (two[0].end, two[1].start);
            }
        }
        let share = idle as f64 / all.max(1) as f64;
        if share < case.threshold(MIN_SHARE) || count == 0 {
            return Verdict::Silent;
        }
        let finding = Finding {
            code: CODE,
            title: format!("GPU idle {} between engine steps, {} of the time", phrase::duration(idle / count), phrase::percent(share)),
            place: Place::default(),
            gain: None,
            severity: if share >= case.threshold(MIN_HIGH_SHARE) { Severity::High } else { Severity::Medium },
            certainty: Certainty::seen(again(count as usize)),
            evidence: vec![Evidence::at("the longest", Some(track), widest.0, widest.1).number("share", share)],
            actions: vec![
                "Schedule the next batch while this one runs: vLLM --async-scheduling; SGLang's overlap scheduler is on unless --disable-overlap-schedule.".into(),
                "Do less between steps: several decode steps per schedule (--num-scheduler-steps), detokenising and responding in another process.".into(),
            ],
            verify: "Record again: the time from the end of one step to the start of the next should fall.".into(),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(gap_ms: u64) -> String {
        let mut text = String::from("track engine\n stream 7\n");
        for number in 0..20 {
            let at = number * (10 + gap_ms);
            text += &format!(
                "step execute~(decode) {at}ms..{}ms phase decode\n api cudaGraphLaunch {at}ms..{at}.1ms\n kernel k {at}.2ms..{}ms\n",
                at + 10,
                at + 10
            );
        }
        text
    }

    #[test]
    fn the_engine_decides_while_the_device_waits() {
        let found = found(&SchedulerGap, &steps(5));
        assert_eq!(found[0].title, "GPU idle 5.00 ms between engine steps, 32 % of the time");
        assert_eq!((found[0].gain, found[0].severity), (None, Severity::High));
    }

    #[test]
    fn silent_without_gaps_without_requests_and_without_markers() {
        silent(&SchedulerGap, &steps(0));
        silent(&SchedulerGap, &steps(90));
        silent(&SchedulerGap, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
