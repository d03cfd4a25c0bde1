//! `data-parallel`: torch.nn.DataParallel copies the model to every device in every step.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Finding, Severity};
use crate::measures::proof;
use crate::measures::{gap, on_path};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use replay::gain::Gain;
use timeline::Name;

pub const CODE: RuleCode = RuleCode::new("data-parallel");

pub struct DataParallel;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "another way to use several GPUs changes the program: a twentieth is worth it",
);

const DATA_PARALLEL_FILES: [&str; 4] = [
    "torch/nn/parallel/replicate.py",
    "torch/nn/parallel/scatter_gather.py",
    "torch/nn/parallel/comm.py",
    "torch/nn/parallel/_functions.py",
];

impl Rule for DataParallel {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "torch.nn.DataParallel spends {min_share} of the step or more copying the model and scattering the batch.",
            why: "It drives all GPUs from one process: every step it copies the weights to each of them, scatters the input and gathers the results, and its threads share one interpreter. One process per GPU does none of that. The gain is the recorded steps replayed without this time; at worst only the model copies go, and batches and results are moved as now.",
            needs: "Stack samples inside the steps (at least {stack_samples}), or recorded calls.",
            example: "DataParallel copies the model and the batch for 37 % of the step, at predict (serve.py:52)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let found =
            match on_path::find(case, case.threshold(MIN_SHARE), "copying the model or the batch", fits, |_| true) {
                Ok(found) => found,
                Err(verdict) => return verdict,
            };
        let gain = found.gain(case, 0.0);
        // The model is not copied again; at worst batches and results have to be moved as now.
        let copies = on_path::find(
            case,
            0.0,
            "copying the model",
            |name| on_path::in_file(name, DATA_PARALLEL_FILES[0]),
            |_| true,
        );
        let least = copies.map_or(0.0, |copies| copies.gain(case, 0.0).low);
        let gain = Gain { low: gain.low.min(least), ..gain };
        let finding = Finding {
            code: CODE,
            title: format!(
                "DataParallel copies the model and the batch for {} of {}{}",
                phrase::percent(found.share.mid),
                case.the_step(),
                gap::at(&found.place)
            ),
            place: found.place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(found.confidence),
            evidence: found.evidence,
            actions: vec![
                Action::torch(
                    "Run one process per GPU: torchrun --nproc-per-node=N serve.py, each with its own replica of the model.",
                ),
                "For training use DistributedDataParallel(model); for a model that does not fit, tensor parallelism."
                    .into(),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

fn fits(name: &Name) -> bool {
    DATA_PARALLEL_FILES.iter().any(|file| on_path::in_file(name, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(frame: &str) -> String {
        format!(
            "track main\n repeat 40 every 50ms\n step r 0..50ms\n samples 0..20ms every 1ms active gil predict@serve.py:52>{frame}\n\
             samples 20ms..50ms every 1ms active gil predict@serve.py:52>forward@model.py:9\n end"
        )
    }

    #[test]
    fn the_model_is_copied_in_every_step() {
        let found = found(&DataParallel, &steps("replicate@/x/site-packages/torch/nn/parallel/replicate.py:90"));
        assert_eq!(found[0].title, "DataParallel copies the model and the batch for 40 % of the step, at serve.py:52");
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 40.0).abs() < 1.0 && gain.low > 30.0, "{gain:?}");
    }

    #[test]
    fn batches_and_results_may_have_to_be_moved_in_any_case() {
        let gather = "gather@/x/site-packages/torch/nn/parallel/scatter_gather.py:70";
        let gain = found(&DataParallel, &steps(gather))[0].gain.unwrap();
        assert!((gain.mid - 40.0).abs() < 1.0 && gain.low < 1.0, "{gain:?}");
    }

    #[test]
    fn silent_without_it() {
        silent(&DataParallel, &steps("replicate@mine.py:3"));
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&DataParallel, "track main\n step r 0..1s", "not sampled");
    }
}
