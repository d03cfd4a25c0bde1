//! `unfused-elementwise`: elementwise kernels one after the other, each of which goes over the same memory again.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::compiled;
use crate::measures::confidence;
use crate::measures::fusion::OWN_OPERAND;
use crate::measures::proof;
use crate::measures::roofline;
use crate::measures::unfused_attention::UnfusedAttention;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::{Class, Kind};
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use replay::gain::Left;

pub const CODE: RuleCode = RuleCode::new("unfused-elementwise");

pub struct UnfusedElementwise;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "compiling a model takes time and care: a twentieth of the step is worth it",
);
const MIN_KERNELS: Threshold = Threshold::new(CODE, "min_kernels", 3.0, Unit::Count, "fewer in a row save one launch");

const MAX_FUSED: Threshold = Threshold::new(
    CODE,
    "max_fused",
    10.0,
    Unit::Count,
    "a fused kernel does no more than so many: longer ones run out of registers",
);

impl Rule for UnfusedElementwise {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_KERNELS, MAX_FUSED]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "{min_kernels} or more elementwise kernels in a row could be fused into one, and would save {min_share} of the step or more.",
            why: "An elementwise kernel reads its tensors and writes one; the next reads that again. One fused kernel reads and writes once, and takes about as long as the longest of them. Kernels count by their names, in a row where nothing else runs between them in their stream; already fused ones (Triton) do not count. The gain is the recorded steps replayed with only the longest of every {max_fused} kernels in a row left; at worst a third of each of the others stays, because each may read one more tensor besides the one it reads and the one it writes.",
            needs: "GPU operations.",
            example: "Unfused elementwise kernels, 7 in a row, take 52 % of the step (model.py:19)",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Fuse them into one kernel, by hand or with the framework's compiler."]
    }

    fn look(&self, case: &Case) -> Verdict {
        let rows = case.kernels().iter().map(|device| (device, Rows::find(case, device)));
        let Some((device, rows)) = rows.max_by_key(|(_, rows)| rows.saved_ns) else { return Verdict::Silent };
        if (rows.saved_ns as f64) < case.threshold(MIN_SHARE) * device.window_ns as f64 || rows.count == 0 {
            return Verdict::Silent;
        }
        let share = rows.ns as f64 / device.window_ns.max(1) as f64;
        let each = rows.kernels as f64 / rows.count as f64;
        let work = &case.timeline.gpu.work;
        let row = device.rows.iter().find(|row| plain(&row.kind));
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let (from, to) = rows.longest;
        let fitting: std::collections::HashSet<u32> = rows.saved.iter().copied().collect();
        let confidence =
            confidence::of(&device.tally(case, |index| fitting.contains(&(index as u32))), case.threshold(MIN_SHARE));
        let gain = case.gain_of_work(device, vec![(rows.saved, Left::gone(OWN_OPERAND))]);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Unfused elementwise kernels, {each:.0} in a row, take {} of {}{}",
                phrase::percent(share),
                case.the_step(),
                roofline::launched(&place)
            ),
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(confidence),
            evidence: vec![
                Evidence::at(
                    format!(
                        "longest row, {}",
                        phrase::duration(work.end(to as usize).saturating_sub(work.start[from as usize]))
                    ),
                    None,
                    work.start[from as usize],
                    work.end(to as usize),
                ),
                Evidence::new(format!(
                    "{} rows per step, {} of kernels; fused {} at a time {} less",
                    crate::measures::gap::each(rows.count as f64 / case.steps.count().max(1) as f64),
                    phrase::duration(rows.ns / case.steps.count().max(1) as u64),
                    case.threshold_text(MAX_FUSED),
                    phrase::duration(rows.saved_ns / case.steps.count().max(1) as u64)
                )),
            ],
            actions: vec![
                Action::torch(
                    "Fuse them with a compiler: model = torch.compile(model), or @torch.compile on the function that has them.",
                )
                .needs([compiled::not_yet(case)]),
                Action::torch(
                    "Or call a fused operation: torch.nn.functional.silu, torch.addcmul, apex or liger kernels for norms and activations.",
                ),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
            place,
        };
        finding.into()
    }
}

fn plain(kind: &Kind) -> bool {
    matches!(kind.class, Class::Elementwise | Class::Copy) && !kind.fused
}

/// Rows of kernels that could be one each.
#[derive(Default)]
struct Rows {
    count: usize,
    kernels: usize,
    ns: u64,
    /// All but the longest of each row, and their time.
    saved: Vec<u32>,
    saved_ns: u64,
    /// First and last of the longest row.
    longest: (u32, u32),
    longest_ns: u64,
}

impl Rows {
    fn find(case: &Case, device: &StepKernels) -> Rows {
        let mut rows = Rows::default();
        if device.share(|row| plain(&row.kind)) < case.threshold(MIN_SHARE) {
            return rows;
        }
        let attention = UnfusedAttention::find(case, device).claimed();
        let plain = |index: usize| plain(&device.kind(case, index)) && !attention.contains(&(index as u32));
        let (mut run, mut last): (Vec<u32>, _) = (Vec::new(), (usize::MAX, usize::MAX, usize::MAX));
        let gpu = &case.timeline.gpu;
        device.each(case, |window, index| {
            let stream = gpu.streams.partition_point(|stream| stream.work.end <= index);
            // Work of another kind between two kernels is a step of the index.
            if (stream, window) != (last.0, last.1) || last.2 + 1 != index || !plain(index) {
                rows.take(case, &run);
                run.clear();
            }
            last = (stream, window, index);
            if plain(index) {
                run.push(index as u32);
            }
        });
        rows.take(case, &run);
        rows
    }

    fn take(&mut self, case: &Case, run: &[u32]) {
        let dur = |index: u32| case.timeline.gpu.work.dur[index as usize];
        if run.len() < (case.threshold(MIN_KERNELS) as usize) {
            return;
        }
        let ns: u64 = run.iter().map(|index| dur(*index)).fold(0, u64::saturating_add);
        self.count += 1;
        self.kernels += run.len();
        self.ns = self.ns.saturating_add(ns);
        for together in run.chunks(case.threshold(MAX_FUSED) as usize) {
            let Some(stays) = together.iter().max_by_key(|index| dur(**index)) else { continue };
            let others = together.iter().filter(|index| *index != stays);
            self.saved_ns =
                self.saved_ns.saturating_add(others.clone().map(|index| dur(*index)).fold(0, u64::saturating_add));
            self.saved.extend(others);
        }
        if ns > self.longest_ns {
            self.longest_ns = ns;
            self.longest = (run[0], run[run.len() - 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, kernels_in_a_row as steps, silent};

    const ADD: &str = "vectorized_elementwise_kernel<4,CUDAFunctor_add<float>>";

    #[test]
    fn a_chain_that_could_be_one_kernel() {
        let found = found(&UnfusedElementwise, &steps(&[ADD; 9]));
        assert_eq!(found[0].title, "Unfused elementwise kernels, 9 in a row, take 90 % of the step");
        let gain = found[0].gain.unwrap();
        // At worst each of the eight that go leaves a third.
        assert!((gain.mid - 80.0).abs() < 2.0 && (gain.low - 53.3).abs() < 1.0, "{gain:?}");
    }

    #[test]
    fn silent_for_two_for_fused_ones_for_single_ones_and_without_a_gpu() {
        silent(&UnfusedElementwise, &steps(&[ADD, ADD, "nvjet_tst_128x128_a", ADD, ADD]));
        silent(&UnfusedElementwise, &steps(&["triton_poi_fused_add_0"; 9]));
        silent(&UnfusedElementwise, &steps(&["nvjet_tst_128x128_a"; 9]));
        silent(&UnfusedElementwise, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
