//! `known-fusion-missing`: a norm or an activation is written out in several kernels, though libraries have one for it.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::compiled;
use crate::measures::confidence;
use crate::measures::fusion::OWN_OPERAND;
use crate::measures::proof;
use crate::measures::{gap, roofline};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use replay::gain::Left;
use std::collections::HashSet;
use timeline::NameIndex;

pub const CODE: RuleCode = RuleCode::new("known-fusion-missing");

pub struct KnownFusionMissing;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.03,
    Unit::Share,
    "the fused operation exists: a few percent are worth calling it",
);
const MAX_BETWEEN: Threshold = Threshold::new(
    CODE,
    "max_between",
    4.0,
    Unit::Count,
    "kernels between two of a pattern: conversions, an added constant",
);

struct FusionPattern {
    what: &'static str,
    /// Parts of names of kernels, in this order.
    parts: &'static [&'static str],
    instead: &'static str,
}

const PATTERNS: [FusionPattern; 3] = [
    FusionPattern {
        what: "RMS norm",
        parts: &["pow", "mean", "rsqrt", "mul"],
        instead: "torch.nn.functional.rms_norm(x, (width,), weight, eps), or torch.nn.RMSNorm",
    },
    FusionPattern {
        what: "GELU",
        parts: &["pow", "tanh", "mul"],
        instead: "torch.nn.functional.gelu(x, approximate=\"tanh\")",
    },
    FusionPattern {
        what: "SwiGLU",
        parts: &["silu", "mul"],
        instead: "a fused kernel: liger_kernel's LigerSiLUMulFunction, or torch.compile on the MLP",
    },
];

impl Rule for KnownFusionMissing {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_BETWEEN]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "An RMS norm, GELU or SwiGLU run as several kernels could save {min_share} of the step or more as one.",
            why: "They are recognised by the order of their kernel names: power, mean, reciprocal root, product; power, tanh, product; SiLU, product. Each kernel goes over the same memory; the fused one goes over it once and takes about as long as the longest of them. The gain is the recorded steps replayed with that one left; at worst a third of each of the others stays, because each may read one more tensor besides the one it reads and the one it writes.",
            needs: "GPU operations whose kernel names say what they compute, as PyTorch's do.",
            example: "Unfused RMS norm: 6 kernels, 65 times per step, take 18 % of it",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let found = case.kernels().iter().flat_map(|device| {
            PATTERNS.iter().map(move |known| (device, known, FusionTally::find(case, device, known)))
        });
        let Some((device, known, found)) = found.max_by_key(|(_, _, found)| found.saved_ns) else {
            return Verdict::Silent;
        };
        if (found.saved_ns as f64) < case.threshold(MIN_SHARE) * device.window_ns as f64 || found.saved.is_empty() {
            return Verdict::Silent;
        }
        let work = &case.timeline.gpu.work;
        let first = found.saved[0] as usize;
        let row = device.rows.iter().find(|row| row.name.0 == work.name[first]);
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let those: HashSet<u32> = found.saved.iter().copied().collect();
        let confidence =
            confidence::of(&device.tally(case, |index| those.contains(&(index as u32))), case.threshold(MIN_SHARE));
        let gain = case.gain_of_work(device, vec![(found.saved, Left::gone(OWN_OPERAND))]);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Unfused {}: {} kernels, {} per step, take {} of it{}",
                known.what,
                gap::each(found.kernels as f64 / found.count.max(1) as f64),
                crate::measures::calls_in_steps::times(found.count as f64 / case.steps.count().max(1) as f64),
                phrase::percent(found.ns as f64 / device.window_ns.max(1) as f64),
                roofline::launched(&place)
            ),
            place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(confidence),
            evidence: vec![Evidence::at("the first occurrence", None, work.start[first], work.end(first))],
            actions: vec![
                format!("Use the fused kernel: {}.", known.instead).into(),
                Action::torch("Or let a compiler fuse it: @torch.compile on the module's forward.")
                    .needs([compiled::not_yet(case)]),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

#[derive(Default)]
struct FusionTally {
    count: usize,
    kernels: usize,
    ns: u64,
    saved: Vec<u32>,
    saved_ns: u64,
}

impl FusionTally {
    fn find(case: &Case, device: &StepKernels, known: &FusionPattern) -> FusionTally {
        let mut found = FusionTally::default();
        // Which part of the pattern a name is.
        let has = |part: &str| device.rows.iter().any(|row| is(case.timeline.names.text(row.name), part));
        if !known.parts.iter().all(|part| has(part)) {
            return found;
        }
        let gpu = &case.timeline.gpu;
        let (mut run, mut last): (Vec<u32>, _) = (Vec::new(), (usize::MAX, usize::MAX));
        device.each(case, |window, index| {
            let stream = gpu.streams.partition_point(|stream| stream.work.end <= index);
            let class = device.kind(case, index).class;
            if (stream, window) != last || !matches!(class, Class::Elementwise | Class::Copy | Class::Reduction) {
                found.take(case, &run, known);
                run.clear();
            }
            last = (stream, window);
            if matches!(class, Class::Elementwise | Class::Copy | Class::Reduction) {
                run.push(index as u32);
            }
        });
        found.take(case, &run, known);
        found
    }

    /// A row of kernels with nothing else between.
    fn take(&mut self, case: &Case, run: &[u32], known: &FusionPattern) {
        let work = &case.timeline.gpu.work;
        let between = case.threshold(MAX_BETWEEN) as usize;
        let name = |place: usize| case.timeline.names.text(NameIndex(work.name[run[place] as usize]));
        let mut place = 0;
        while place < run.len() {
            let mut at = place;
            let fits = is(name(place), known.parts[0])
                && known.parts[1..].iter().all(|part| {
                    let next = (at + 1..run.len().min(at + 2 + between)).find(|next| is(name(*next), part));
                    at = next.unwrap_or(at);
                    next.is_some()
                });
            if !fits {
                place += 1;
                continue;
            }
            let all = &run[place..=at];
            place = at + 1;
            let dur = |index: u32| work.dur[index as usize];
            let Some(longest) = all.iter().max_by_key(|index| dur(**index)) else { continue };
            let ns: u64 = all.iter().map(|index| dur(*index)).fold(0, u64::saturating_add);
            self.count += 1;
            self.kernels += all.len();
            self.ns = self.ns.saturating_add(ns);
            self.saved_ns = self.saved_ns.saturating_add(ns - dur(*longest));
            self.saved.extend(all.iter().filter(|index| *index != longest));
        }
    }
}

fn is(name: &str, part: &str) -> bool {
    match part {
        "mul" => name.contains("MulFunctor"),
        "mean" => name.contains("MeanOps"),
        // GELU and SiLU that are fused already have their own kernels; what is written out has PyTorch's.
        part => name.contains(&format!("{part}_")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, kernels_in_a_row as steps, silent};

    const NORM: [&str; 6] = [
        "elementwise_kernel<pow_tensor_scalar>",
        "reduce_kernel<MeanOps>",
        "elementwise_kernel<CUDAFunctor_add>",
        "elementwise_kernel<rsqrt_kernel_cuda>",
        "elementwise_kernel<MulFunctor>",
        "nvjet_tst_128x128_a",
    ];

    #[test]
    fn a_norm_that_is_written_out() {
        let found = found(&KnownFusionMissing, &steps(&NORM));
        assert_eq!(found[0].title, "Unfused RMS norm: 5 kernels, once per step, take 50 % of it");
        assert!(
            found[0].actions[0].contains("rms_norm") && (found[0].gain.unwrap().mid - 40.0).abs() < 2.0,
            "{:?}",
            found[0].gain
        );
    }

    #[test]
    fn silent_when_it_is_fused_or_in_another_order() {
        silent(&KnownFusionMissing, &steps(&["rms_norm_kernel", "nvjet_tst_128x128_a"]));
        silent(&KnownFusionMissing, &steps(&[NORM[4], NORM[3], NORM[1], NORM[0]]));
        silent(&KnownFusionMissing, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
