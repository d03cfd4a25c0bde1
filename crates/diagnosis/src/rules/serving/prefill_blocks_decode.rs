//! `prefill-blocks-decode`: long prefill steps run between the decode steps of other requests, which wait meanwhile.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::engine_steps;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use analysis::stats::share::again;
use timeline::EnginePhase;

pub const CODE: RuleCode = RuleCode::new("prefill-blocks-decode");

pub struct PrefillBlocksDecode;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "of the time from the first step to the last: less is a request now and then",
);
const MIN_RATIO: Threshold =
    Threshold::new(CODE, "min_ratio", 3.0, Unit::Times, "shorter prefills delay a token by less than anybody notices");
const MIN_STEPS: Threshold =
    Threshold::new(CODE, "min_steps", 5.0, Unit::Count, "with fewer decode steps there is no telling what is typical");

impl Rule for PrefillBlocksDecode {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_RATIO, MIN_STEPS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Prefill steps {min_ratio} times as long as a decode step run between decode steps, and take {min_share} of the time or more.",
            why: "During a prefill, running requests get no token: their users see the answer stop. Chunked prefill, batched with decode steps, makes every step a little longer and none much longer. Steps are told apart by the engine's own markers. No gain is given: the same work is computed; what shrinks is the longest time between two tokens.",
            needs: "Steps with markers of vLLM or SGLang (torch.profiler, NVTX).",
            example: "14 prefill steps block decoding for 310 ms each, 22 times a decode step",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let (track, steps) = engine_steps::find(case);
        let mut decode: Vec<u64> =
            steps.iter().filter(|step| step.phase == EnginePhase::Decode).map(|step| step.ns()).collect();
        decode.sort_unstable();
        let usual = percentile(&decode, 50);
        let (Some(first), Some(last), true) =
            (steps.first(), steps.last(), decode.len() >= (case.threshold(MIN_STEPS) as usize))
        else {
            return Verdict::Silent;
        };
        let span = last.end.saturating_sub(first.start);
        let from = steps.iter().position(|step| step.phase == EnginePhase::Decode).unwrap_or(0);
        let to = steps.iter().rposition(|step| step.phase == EnginePhase::Decode).unwrap_or(0);
        let long = |step: &&engine_steps::EngineStep| {
            step.phase != EnginePhase::Decode && step.ns() as f64 >= case.threshold(MIN_RATIO) * usual as f64
        };
        let blocks: Vec<_> = steps[from..=to].iter().filter(long).collect();
        let held: u64 = blocks.iter().map(|step| step.ns()).fold(0, u64::saturating_add);
        let Some(longest) = blocks
            .iter()
            .max_by_key(|step| step.ns())
            .filter(|_| held as f64 >= case.threshold(MIN_SHARE) * span as f64)
        else {
            return Verdict::Silent;
        };
        let mut times: Vec<u64> = blocks.iter().map(|step| step.ns()).collect();
        times.sort_unstable();
        let median = percentile(&times, 50);
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} block decoding for {} each, {} times a decode step",
                phrase::counted(blocks.len() as u64, "prefill step"),
                phrase::duration(median),
                crate::measures::gap::each(median as f64 / usual.max(1) as f64)
            ),
            place: Place::default(),
            gain: None,
            severity: Severity::Medium,
            certainty: Certainty::seen(again(blocks.len())),
            evidence: vec![
                Evidence::at(format!("longest, {}", phrase::duration(longest.ns())), Some(track), longest.start, longest.end),
                Evidence::new(format!("a decode step takes {} (median); prefill between decode steps takes {} of the time", phrase::duration(usual), phrase::percent(held as f64 / span.max(1) as f64))),
            ],
            actions: vec![
                "Enable chunked prefill: vLLM --enable-chunked-prefill --max-num-batched-tokens 2048; SGLang --chunked-prefill-size 2048.".into(),
                "Run prefill and decode on separate GPUs (disaggregated serving).".into(),
            ],
            verify: "Record again: the p99 time between two tokens should fall towards that of a decode step.".into(),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn marked(phase: &str) -> String {
        format!(" phase {phase}")
    }

    fn steps(prefill_ms: u64, said: impl Fn(&str) -> String) -> String {
        let mut text = String::from("track engine\n");
        let mut at = 0;
        for number in 0..20 {
            let (name, ms) = if number % 7 == 3 { ("prefill", prefill_ms) } else { ("decode", 10) };
            text += &format!("step execute~({name}) {at}ms..{}ms{}\n", at + ms, said(name));
            at += ms;
        }
        text
    }

    #[test]
    fn long_prompts_between_decode_steps() {
        let found = found(&PrefillBlocksDecode, &steps(200, marked));
        assert_eq!(found[0].title, "3 prefill steps block decoding for 200 ms each, 20 times a decode step");
        assert!(found[0].gain.is_none() && found[0].actions.len() == 2);
    }

    #[test]
    fn a_program_that_names_its_steps_like_an_engine_says_nothing_by_it() {
        silent(&PrefillBlocksDecode, &steps(200, |_| String::new()));
    }

    #[test]
    fn silent_for_short_prompts_and_for_programs_without_markers() {
        silent(&PrefillBlocksDecode, &steps(12, marked));
        silent(&PrefillBlocksDecode, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
