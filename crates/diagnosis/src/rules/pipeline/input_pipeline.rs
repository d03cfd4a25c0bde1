//! `input-pipeline`: the step waits for the workers of a DataLoader, which do not keep up.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::{gap, on_path};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::rules::pipeline::preprocess_before_first_kernel;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use replay::gain::Gain;
use timeline::Name;

pub const CODE: RuleCode = RuleCode::new("input-pipeline");

pub struct InputPipeline;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.05, Unit::Share, "workers that keep up make the step wait for less");

impl Rule for InputPipeline {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The step waits for DataLoader workers for {min_share} of its time or more.",
            why: "A DataLoader with workers hands over batches that are ready; waiting for one means that making batches takes longer than using them. More workers, less work for each, or batches prepared once and cached help. The gain is the recorded steps replayed without this wait; at worst nothing, because more workers share the same disk and cores.",
            needs: "Stack samples inside the steps (at least {stack_samples}), or recorded calls.",
            example: "Waiting for DataLoader workers takes 41 % of the step, at serve (server.py:44)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[waits_in_step::CODE, preprocess_before_first_kernel::CODE, host_wait::CODE, hot_line::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Input)
    }

    fn look(&self, case: &Case) -> Verdict {
        let found = match on_path::find(case, case.threshold(MIN_SHARE), "waiting for a batch", waits, |_| true) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        };
        let gain = found.gain(case, 0.0);
        let gain = Gain { low: 0.0, ..gain };
        let mut evidence = found.evidence;
        let others = case.timeline.processes.len().saturating_sub(1) as u64;
        if others > 0 {
            evidence.push(Evidence::new(format!("{} besides this one", phrase::counted(others, "recorded process"))));
        }
        let finding = Finding {
            code: CODE,
            title: format!("Waiting for DataLoader workers takes {} of {}{}", phrase::percent(found.share.mid), case.the_step(), gap::at(&found.place)),
            place: found.place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(found.confidence),
            evidence,
            actions: vec![
                Action::torch("Prefetch more: DataLoader(..., num_workers=2 * now, prefetch_factor=4, persistent_workers=True)."),
                "Give workers less to do: smaller images, decoding on the GPU, batches prepared once and cached on disk.".into(),
                Action::torch("Check whether workers compete for cores: torch.set_num_threads(1) in worker_init_fn."),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

fn waits(name: &Name) -> bool {
    on_path::in_file(name, "torch/utils/data/dataloader.py")
        && (name.text.contains("_MultiProcessing") || ["_try_get_data", "_get_data"].contains(&on_path::last(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(stack: &str) -> String {
        format!(
            "track main\n repeat 40 every 50ms\n step r 0..50ms\n samples 0..20ms every 1ms serve@server.py:44>{stack}\n\
             samples 20ms..50ms every 1ms active gil serve@server.py:45>forward@model.py:9\n end"
        )
    }
    const WAIT: &str = "__next__@/x/site-packages/torch/utils/data/dataloader.py:700>_try_get_data@/x/site-packages/torch/utils/data/dataloader.py:1200>get@/usr/lib/python3.12/multiprocessing/queues.py:113";

    #[test]
    fn workers_that_do_not_keep_up() {
        let found = found(&InputPipeline, &steps(WAIT));
        assert_eq!(found[0].title, "Waiting for DataLoader workers takes 40 % of the step, at server.py:44");
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 40.0).abs() < 1.0 && gain.low < 15.0, "{gain:?}");
    }

    #[test]
    fn silent_when_batches_are_ready() {
        silent(&InputPipeline, &steps("get@/usr/lib/python3.12/queue.py:3"));
        silent(
            &InputPipeline,
            &steps(WAIT).replace("0..20ms every 1ms", "0..1ms every 1ms").replace("20ms..50ms", "1ms..50ms"),
        );
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&InputPipeline, "track main\n step r 0..1s", "not sampled");
    }
}
