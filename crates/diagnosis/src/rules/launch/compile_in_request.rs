//! `compile-in-request`: code is compiled or tuned inside the steps.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::{host_wait, module_loading};
use crate::rules::pipeline::preprocess_before_first_kernel;
use crate::threshold::{Threshold, Unit};
use analysis::frames::is;
use analysis::host::blame;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("compile-in-request");

pub struct CompileInRequest;

const MIN_SHARE: Threshold = Threshold::new(CODE, "min_share", 0.02, Unit::Share, "steady steps compile nothing");

impl Rule for CompileInRequest {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "torch.compile, Triton or a C++ extension compiles or tunes inside the steps, in {min_share} of their time or more, warm-up aside.",
            why: "A new shape, a new dtype or a failing guard makes torch.compile recompile, and a kernel without a cached choice is autotuned: seconds inside somebody's request. The rule looks for functions of the compilers on sampled stacks, in steps that are not warm-up. The gain is their share of step time, including unsampled time around them.",
            needs: "Stack samples inside the steps (at least 20).",
            example: "Compilation takes 12 % of the step, triggered by forward (model.py:31), in 4 of 200 steps",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[
            hot_line::CODE,
            waits_in_step::CODE,
            host_wait::CODE,
            preprocess_before_first_kernel::CODE,
            module_loading::CODE,
        ]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit {
            what: "run every shape once before the first request, or mark the varying dimension dynamic",
            whatif: None,
        })
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = case.without_samples() {
            return Verdict::Abstain(reason);
        }
        let compiles = |one: &StepSample| case.frames.on_path(case.sample(one).stack, is::COMPILES);
        let (share, tally) = case.share(compiles);
        if share.mid < case.threshold(MIN_SHARE) || share.low < case.threshold(MIN_SHARE) / 2.0 {
            return Verdict::Silent;
        }
        let blamed = blame::functions(case, compiles).into_iter().next();
        let place = blamed.and_then(|one| Some(case.place(one.lines.first()?.0))).unwrap_or_default();
        let (with, all) = proof::windows_with(case, compiles);
        // While it compiles nothing else of the step gets done. Threads of the compiler that use the device themselves, to tune kernels, look to a
        // replay like work that the step has to wait for.
        let replayed = case.gain_of_samples(compiles, share);
        let recorded = Gain::from(share);
        let gain = match recorded.mid > replayed.mid {
            true => Gain { change: replayed.change, kind: replayed.kind, ..recorded },
            false => replayed,
        };
        let title = format!(
            "Compilation takes {} of {}{}, in {} of {}",
            phrase::percent(proof::blamed(share, &gain)),
            case.the_step(),
            if place == Place::default() { String::new() } else { format!(", triggered by {}", phrase::place(&place)) },
            phrase::count(with),
            phrase::counted(all, "step")
        );
        let text = format!("{} samples have a compiler on the stack", phrase::count(tally.part as u64));
        let mut evidence = vec![Evidence::said(text).number("samples", tally.part)];
        evidence.extend(proof::unseen(share, &gain));
        evidence.extend(proof::best_step(case, "compiling", compiles));
        let finding = Finding {
            code: CODE,
            title,
            place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(share.surely_above(case.threshold(MIN_SHARE) / 2.0) * case.coverage()),
            evidence,
            actions: vec![
                Action::torch(
                    "Find what triggers recompilation: TORCH_LOGS=recompiles,guards; then use torch.compile(model, dynamic=True) or mark_dynamic for the dimension that varies.",
                ),
                "Pad inputs to a few fixed shapes and run each shape once before the first request.".into(),
                "Cache compiled code across runs: TORCHINDUCTOR_FX_GRAPH_CACHE=1, TRITON_CACHE_DIR.".into(),
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

    const SITE: &str = "/usr/lib/python3.12/site-packages/torch";

    fn steps(on_top: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n samples 0..10ms every 1ms active gil main>forward@model.py:31\n end
             repeat 5 every 10ms\n step r 200ms..210ms\n samples 200ms..210ms every 1ms active gil main>forward@model.py:31>{on_top}\n end"
        )
    }

    #[test]
    fn compiling_in_late_steps_is_said_with_the_line_that_asks_for_it() {
        let found = found(
            &CompileInRequest,
            &steps(&format!("_compile@{SITE}/_dynamo/convert_frame.py:900>lower@{SITE}/_inductor/lowering.py:4")),
        );
        assert_eq!(
            found[0].title,
            "Compilation takes 20 % of the step, triggered by forward (model.py:31), in 5 of 25 steps"
        );
        assert!(found[0].gain.unwrap().low < 20.0 && found[0].actions.len() >= 2);
    }

    #[test]
    fn silent_when_compiled_code_runs() {
        silent(
            &CompileInRequest,
            &steps(&format!(
                "_fn@{SITE}/_dynamo/eval_frame.py:700>run@{SITE}/_inductor/runtime/triton_heuristics.py:9"
            )),
        );
    }

    /// The first call of a function may import the compiler, class bodies and all, without compiling anything.
    #[test]
    fn silent_when_a_compiler_is_only_imported() {
        let import = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:1360";
        let module = format!(
            "<module>@{SITE}/fx/experimental/symbolic_shapes.py:40>ShapeEnv@{SITE}/fx/experimental/symbolic_shapes.py:90"
        );
        silent(&CompileInRequest, &steps(&format!("{import}>{module}")));
        // Compiling imports what it needs: that is part of it.
        let compile = format!("_compile@{SITE}/_dynamo/convert_frame.py:900>{import}>{module}");
        assert_eq!(found(&CompileInRequest, &steps(&compile)).len(), 1);
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&CompileInRequest, "track main\n step r 0..1s", "stacks not sampled");
    }
}
