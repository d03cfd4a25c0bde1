//! `sync-memset`: memory of the device is set with a call that is not asynchronous.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::{calls_in_steps, gap};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use replay::Change;
use timeline::cuda_calls::CudaCall;

pub const CODE: RuleCode = RuleCode::new("sync-memset");

pub struct SyncMemset;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.01, Unit::Share, "the asynchronous call replaces it without any other change");

impl Rule for SyncMemset {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Synchronous memset calls take {min_share} of the step or more.",
            why: "cudaMemset and its variants run in the default stream, which waits for all others and blocks them; for memory that the host can access they return only when it is done. cudaMemsetAsync in the stream of the work does neither. The gain is the recorded steps replayed with these calls as short as the median launch of the recording.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`).",
            example: "Synchronous cudaMemset, 4 times per step, takes 6.2 % of it",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Use cudaMemsetAsync in the stream of the work.",
            "Skip the memset where every element is overwritten anyway.",
        ]
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let calls = calls_in_steps::find(case, CudaCall::is_blocking_memset, |_| true);
        let share = calls.tally.measured();
        let Some(first) = calls.all.first().filter(|_| share.mid >= case.threshold(MIN_SHARE)) else {
            return Verdict::Silent;
        };
        let slice = case.timeline.slices.get(*first as usize);
        let api = case.timeline.names.text(slice.name);
        let each = calls.all.len() as f64 / case.steps.count().max(1) as f64;
        // As short as a launch is here.
        let launch = case.gpu().and_then(|gpu| gpu.launch.as_ref()).map_or(0, |launch| launch.call_p50_ns) as f64;
        let left = (launch * calls.all.len() as f64 / calls.tally.part.max(1.0)).min(1.0);
        let gain = case.gain(&[Change::Calls(calls.all, left)], share.scaled(1.0 - left));
        let finding = Finding {
            code: CODE,
            title: format!(
                "Synchronous {api}, {} per step, takes {} of it",
                calls_in_steps::times(each),
                phrase::percent(share.mid)
            ),
            place: Place { api: Some(api.to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(calls.tally.repeats()),
            evidence: vec![Evidence::at("the first such call", None, slice.start, slice.end())],
            actions: vec![
                Action::torch(
                    "Set it asynchronously: tensor.zero_() or torch.zeros(n, device=\"cuda\") in Python, cudaMemsetAsync with a stream in C++.",
                ),
                Action::torch("Skip it where every element is overwritten anyway: torch.empty."),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(call: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n stream 7\n api {call} 0..1ms\n memset 900us..950us 4096\n\
             api cudaLaunchKernel 1.1ms..1.2ms\n kernel k 1.2ms..9.9ms\n end"
        )
    }

    #[test]
    fn a_memset_that_waits() {
        let found = found(&SyncMemset, &steps("cudaMemset"));
        assert_eq!(found[0].title, "Synchronous cudaMemset, once per step, takes 10 % of it");
        // The call becomes as short as a launch.
        let with = |launch: &str| {
            let text = steps("cudaMemset").replace("1.1ms..1.2ms", launch);
            crate::testing::found(&SyncMemset, &text)[0].gain.unwrap().mid
        };
        let (short, long) = (with("1.1ms..1.11ms"), with("1.1ms..1.9ms"));
        assert!(short > 3.0 && long < short, "{short} {long}");
    }

    #[test]
    fn silent_for_asynchronous_ones_and_without_a_gpu() {
        silent(&SyncMemset, &steps("cudaMemsetAsync"));
        silent(&SyncMemset, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_launches() {
        abstains(
            &SyncMemset,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
