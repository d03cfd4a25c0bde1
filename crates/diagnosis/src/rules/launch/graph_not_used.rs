//! `graph-not-used`: some steps replay a CUDA graph, others do the same work launch by launch.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::Graphs;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use analysis::stats::share::Tally;
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("graph-not-used");

pub struct GraphNotUsed;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.02,
    Unit::Share,
    "adding a graph is one line of configuration, so even a small gain pays",
);
const MIN_LAUNCHES: Threshold =
    Threshold::new(CODE, "min_launches", 10.0, Unit::Count, "with fewer launches a graph saves next to nothing");
const MIN_STEPS: Threshold =
    Threshold::new(CODE, "min_steps", 2.0, Unit::Count, "a single step with or without a graph may be an exception");
const MAX_RATIO: Threshold = Threshold::new(
    CODE,
    "max_ratio",
    1.5,
    Unit::Times,
    "kernel count and kernel time may differ by this factor and still be the same work",
);

impl Rule for GraphNotUsed {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_LAUNCHES, MIN_STEPS, MAX_RATIO]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Steps that launch kernels one by one, while other steps replay the same work as a CUDA graph, lose {min_share} of step time or more.",
            why: "Servers capture graphs for some batch sizes. A batch of another size, or a longer one, runs without a graph. A step counts as the same work if it has as many kernels, and they take as long, as in the graph steps, within a factor of {max_ratio}. The gain is what such a step takes beyond its kernels, minus the median of that in graph steps; its range is the spread over the steps.",
            needs: "Steps, and GPU operations with graphs.",
            example: "12 of 200 steps run without the CUDA graph (412 separate launches): 9.10 ms instead of 4.20 ms",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let found = case.kernels().iter().filter_map(|device| look(case, device));
        found.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Verdict::Silent, |(_, finding)| finding.into())
    }
}

#[derive(Clone, Copy, Default)]
struct Step {
    graph: u64,
    eager: u64,
    busy_ns: u64,
    ns: u64,
}

impl Step {
    fn beyond(&self) -> u64 {
        self.ns.saturating_sub(self.busy_ns)
    }
}

fn look(case: &Case, device: &StepKernels) -> Option<(f64, Finding)> {
    let (work, graphs) = (&case.timeline.gpu.work, Graphs::new(case.timeline));
    let mut steps: Vec<Step> =
        device.windows.iter().map(|window| Step { ns: window.end - window.start, ..Step::default() }).collect();
    device.each(case, |window, index| {
        let step = &mut steps[window];
        let count = if graphs.has(index) { &mut step.graph } else { &mut step.eager };
        *count += 1;
        step.busy_ns = step.busy_ns.saturating_add(work.dur[index]);
    });
    let with: Vec<&Step> = steps.iter().filter(|step| step.graph > step.eager).collect();
    let median = |value: &dyn Fn(&Step) -> u64, of: &[&Step]| {
        let mut all: Vec<u64> = of.iter().map(|step| value(step)).collect();
        all.sort_unstable();
        percentile(&all, 50)
    };
    let kernels = median(&|step| step.graph + step.eager, &with) as f64;
    let busy = median(&|step| step.busy_ns, &with) as f64;
    let alike = |a: f64, b: f64| a <= case.threshold(MAX_RATIO) * b && b <= case.threshold(MAX_RATIO) * a;
    let same = |step: &&Step| {
        step.graph == 0
            && step.eager >= (case.threshold(MIN_LAUNCHES) as u64)
            && alike(step.eager as f64, kernels)
            && alike(step.busy_ns as f64, busy)
    };
    let without: Vec<&Step> = steps.iter().filter(same).collect();
    if with.len() < (case.threshold(MIN_STEPS) as usize) || without.len() < (case.threshold(MIN_STEPS) as usize) {
        return None;
    }
    let usual = median(&Step::beyond, &with);
    let mut tally = Tally::default();
    for step in &steps {
        let saved = if same(&step) { step.beyond().saturating_sub(usual) } else { 0 };
        tally.add(saved as f64, step.ns as f64);
    }
    let share = tally.mid();
    let (slow, fast) = (median(&|step| step.ns, &without), median(&|step| step.ns, &with));
    if share < case.threshold(MIN_SHARE) {
        return None;
    }
    let gain = Gain::from(tally.measured());
    let worst = device.windows.iter().zip(&steps).filter(|(_, step)| same(step)).max_by_key(|(_, step)| step.ns);
    let mut evidence = vec![Evidence::new(format!(
        "{} steps replay a graph of {} kernels",
        phrase::count(with.len() as u64),
        phrase::count(kernels as u64)
    ))];
    evidence.extend(
        worst.map(|(window, _)| Evidence::at("the slowest step without a graph", None, window.start, window.end)),
    );
    let finding = Finding {
        code: CODE,
        title: format!(
            "{} of {} steps run without the CUDA graph ({} separate launches): {} instead of {}",
            phrase::count(without.len() as u64),
            phrase::count(steps.len() as u64),
            phrase::count(median(&|step| step.eager, &without)),
            phrase::duration(slow),
            phrase::duration(fast)
        ),
        place: Place::default(),
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
        evidence,
        actions: vec![
            "Capture graphs for these batch sizes too (vLLM: --compilation-config '{\"cudagraph_capture_sizes\": [...]}'; SGLang: --cuda-graph-bs).".into(),
            "Pad the batch to the next size that has a graph: a padded row costs less than a step of separate launches.".into(),
        ],
        verify: proof::verify(case, share),
    };
    Some((share, finding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(eager_every: u64, kernel_us: u64) -> String {
        let mut text = String::from("track main\n stream 7\n");
        for step in 0..20u64 {
            let at = step * 5000;
            let eager = step % eager_every == eager_every - 1;
            let gap = if eager { 100 } else { 20 };
            text += &format!("step r {at}us..{}us\n", at + 40 * gap);
            for kernel in 0..40 {
                let start = at + kernel * gap + 10;
                let graph = if eager { String::new() } else { format!("graph 3 node {}", kernel + 1) };
                if eager || kernel == 0 {
                    text += &format!(
                        "api {} {}us..{}us\n",
                        if eager { "cudaLaunchKernel" } else { "cudaGraphLaunch" },
                        start - 9,
                        start - 5
                    );
                }
                text += &format!("kernel k {start}us..{}us {graph}\n", start + if eager { kernel_us } else { 10 });
            }
        }
        text
    }

    #[test]
    fn the_same_work_with_and_without_a_graph() {
        let found = found(&GraphNotUsed, &steps(4, 10));
        assert_eq!(
            found[0].title,
            "5 of 20 steps run without the CUDA graph (40 separate launches): 4.00 ms instead of 800 µs"
        );
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 50.0).abs() < 1.0 && gain.low < gain.mid && gain.high > gain.mid, "{gain:?}");
    }

    #[test]
    fn silent_when_it_is_other_work_when_all_are_alike_and_without_a_gpu() {
        silent(&GraphNotUsed, &steps(4, 60));
        silent(&GraphNotUsed, &steps(1, 10));
        silent(&GraphNotUsed, &steps(100, 10));
        silent(&GraphNotUsed, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
