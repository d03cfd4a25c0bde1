//! `module-loading`: device code is loaded inside the steps, long after the start.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap::{self, GapWords};
use crate::measures::recorded;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::idle::{Cause, Measure};
use analysis::phrase;
use analysis::place::Place;
use timeline::cuda_calls::ApiClass;
use timeline::{Slice, SliceKind};

pub const CODE: RuleCode = RuleCode::new("module-loading");

pub struct ModuleLoading;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.01,
    Unit::Share,
    "loading belongs to start-up: even a hundredth of steady steps is too much",
);

impl Rule for ModuleLoading {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Loading device code stalls the GPU for {min_share} of step time or more, warm-up aside.",
            why: "CUDA loads a module when one of its kernels is first used. Inside a request that is a pause for whoever sends the first one of its shape. Counted is the time the GPU was idle during a call that loads code, or during the first launch of a kernel where that takes a millisecond or more.",
            needs: "GPU operations with CUDA calls (`--gpu-detail launch`).",
            example: "Loading device code (cuLibraryLoadData) stalls the GPU for 4.2 % of the step, in 3 of 200 steps",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn fix(&self) -> Option<&'static str> {
        Some("eager-loading")
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let Some(gap) = gap::most(case, Measure::Loading).filter(|gap| gap.share.mid >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let loads = |slice: &Slice| {
            slice.kind == SliceKind::ApiCall && case.timeline.names.call(slice.name).class() == ApiClass::Compile
        };
        let recorded = recorded::inside(case, loads);
        let (place, _) = gap.top(case, |_, cause| cause == Cause::Compile).unwrap_or_default();
        let call = place
            .api
            .clone()
            .or_else(|| recorded.longest.first().map(|(_, one)| case.timeline.names.text(one.name).to_owned()));
        let call = call.unwrap_or_else(|| "a load".into());
        let steps = || phrase::counted(case.windows.all().len() as u64, "step");
        let title = format!(
            "Loading device code ({call}) stalls the GPU for {} of {}{}",
            phrase::percent(gap.share.mid),
            case.the_step(),
            match recorded.windows {
                0 => String::new(),
                some => format!(", in {} of {}", phrase::count(some), steps()),
            }
        );
        let words = GapWords {
            title,
            place: Place { api: Some(call), ..Place::default() },
            evidence: gap.evidence(case, "code is loaded while the GPU has nothing to do"),
            actions: Action::all([
                "Load all modules at start-up: CUDA_MODULE_LOADING=EAGER.",
                "Run every shape and batch size once before the first request.",
            ]),
        };
        gap.finding(case, CODE, gap.gain(case, gap.share), words).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(load: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..8ms\n stream 7\n api cudaLaunchKernel 10us..20us\n kernel k 30us..8ms\n end
             repeat 2 every 10ms\n step r 400ms..408ms\n api {load} 400ms..407ms\n api cudaLaunchKernel 407ms..407.1ms\n kernel k 407.2ms..408ms\n end"
        )
    }

    #[test]
    fn loading_in_a_late_step_is_said() {
        let found = found(&ModuleLoading, &steps("cuLibraryLoadData"));
        assert!(
            found[0].title.starts_with(
                "Loading device code (cuLibraryLoadData) stalls the GPU for 8.0 % of the step, in 2 of 22 steps"
            ),
            "{}",
            found[0].title
        );
        assert!((found[0].gain.unwrap().mid - 7.95).abs() < 0.1);
    }

    /// CUDA loads lazily, inside the launch.
    #[test]
    fn the_first_launch_of_a_kernel_may_load_its_code() {
        let late = steps("cudaMalloc")
            .replace("407ms..407.1ms", "400.1ms..407.1ms")
            .replace("api cudaMalloc 400ms..407ms", "");
        silent(&ModuleLoading, &late);
        let found = found(&ModuleLoading, &late.replace("kernel k 407.2ms", "kernel new 407.2ms"));
        assert!(found[0].title.starts_with("Loading device code (cudaLaunchKernel)"), "{}", found[0].title);
    }

    #[test]
    fn silent_for_other_calls_for_the_time_before_the_steps_and_without_a_gpu() {
        silent(&ModuleLoading, &steps("cudaMalloc"));
        silent(&ModuleLoading, &format!("{}\n api cuModuleLoadData 300ms..350ms", steps("cudaMalloc")));
        silent(&ModuleLoading, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_the_calls_of_the_host() {
        abstains(
            &ModuleLoading,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
