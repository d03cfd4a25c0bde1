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
use analysis::frames::{DEEP, is};
use analysis::host::blame;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Gain;
use std::collections::HashSet;
use timeline::StackIndex;

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
            summary: "torch.compile, Triton, JAX or a C++ extension compiles or tunes inside the steps, in {min_share} of their time or more, warm-up aside.",
            why: "A new shape, a new dtype or a failing guard makes torch.compile recompile, and a kernel without a cached choice is autotuned: seconds inside somebody's request. The rule looks for functions of the compilers on sampled stacks, in steps that are not warm-up. The gain is their share of step time, including unsampled time around them.",
            needs: "Stack samples inside the steps (at least {stack_samples}).",
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
        let mut evidence = vec![Evidence::new(text).number("samples", tally.part)];
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
            actions: Compilers::of(case, compiles).actions(),
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

/// The compilers that the samples that fit are in, each by the settings that it has.
#[derive(Default)]
struct Compilers {
    torch: bool,
    triton: bool,
    jax: bool,
    extension: bool,
}

impl Compilers {
    fn of(case: &Case, fits: impl Fn(&StepSample) -> bool) -> Compilers {
        let mut compilers = Compilers::default();
        let fitting = case.samples.all.iter().filter(|one| fits(one));
        let stacks: HashSet<StackIndex> = fitting.map(|one| case.sample(one).stack).collect();
        for stack in stacks {
            for (_, frame) in case.timeline.stacks.walk(stack).take(DEEP) {
                let name = case.timeline.names.get(frame.name);
                if case.frames.bits(frame.name) & is::COMPILES != 0 {
                    compilers.add(&name.file);
                }
            }
        }
        compilers
    }

    fn add(&mut self, file: &str) {
        let below = |folder: &str| file.starts_with(folder) || file.contains(&format!("/{folder}"));
        if file.ends_with("torch/utils/cpp_extension.py") {
            self.extension = true;
        } else if below("torch/") {
            self.torch = true;
        } else if below("triton/") {
            self.triton = true;
        } else if below("jax/") {
            self.jax = true;
        }
    }

    fn actions(&self) -> Vec<Action> {
        let of_shapes = self.torch || self.triton || self.jax;
        let mut caches = Vec::new();
        caches.extend(self.torch.then_some("TORCHINDUCTOR_FX_GRAPH_CACHE=1"));
        // Inductor compiles what it makes by Triton.
        caches.extend((self.torch || self.triton).then_some("TRITON_CACHE_DIR"));
        caches.extend(self.jax.then_some("jax.config.update(\"jax_compilation_cache_dir\", FOLDER)"));
        caches.extend(self.extension.then_some("TORCH_EXTENSIONS_DIR"));
        let triggers = self.torch.then(|| {
            Action::torch(
                "Find what triggers recompilation: TORCH_LOGS=recompiles,guards; then use torch.compile(model, dynamic=True) or mark_dynamic for the dimension that varies.",
            )
        });
        let pad =
            of_shapes.then_some("Pad inputs to a few fixed shapes and run each shape once before the first request.");
        let build = self
            .extension
            .then_some("Build the extension before the first request: import it, or call load() at start-up.");
        let traced = self.jax.then_some(
            "Find what triggers recompilation: JAX_LOG_COMPILES=1; pass what varies as an array, not as a static argument.",
        );
        let cache = (!caches.is_empty()).then(|| format!("Cache compiled code across runs: {}.", caches.join(", ")));
        let plain = [pad, build, traced].into_iter().flatten().map(Action::from);
        triggers.into_iter().chain(plain).chain(cache.map(Action::from)).collect()
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

    /// A program of JAX has none of the settings of torch.compile, and the other way round.
    #[test]
    fn the_settings_are_those_of_the_compiler_that_runs() {
        let of = |on_top: &str| found(&CompileInRequest, &steps(on_top)).remove(0).actions;
        let says = |actions: &[Action], text: &str| actions.iter().any(|action| action.contains(text));
        let jax = of("backend_compile@/usr/lib/python3.12/site-packages/jax/_src/compiler.py:9");
        assert!(jax[0].starts_with("Pad inputs") && says(&jax, "jax_compilation_cache_dir"), "{jax:?}");
        assert!(!says(&jax, "TORCH") && !says(&jax, "TRITON"), "{jax:?}");
        let torch = of(&format!("_compile@{SITE}/_dynamo/convert_frame.py:900"));
        assert!(
            torch[0].contains("TORCH_LOGS") && says(&torch, "TRITON_CACHE_DIR") && !says(&torch, "jax"),
            "{torch:?}"
        );
        let triton = of("make_ir@/usr/lib/python3.12/site-packages/triton/compiler/compiler.py:9");
        assert!(!says(&triton, "TORCH") && says(&triton, "TRITON_CACHE_DIR"), "{triton:?}");
        let extension = of(&format!("load@{SITE}/utils/cpp_extension.py:9"));
        assert!(extension[0].starts_with("Build the extension") && !says(&extension, "Pad"), "{extension:?}");
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
