//! `python-loop-over-tensors`: a Python loop launches the same few short kernels again and again, once for each element.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::{gap, roofline, rounds};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::Graphs;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::stats::share::{Share, Tally};
use replay::Change;
use timeline::TrackIndex;

pub const CODE: RuleCode = RuleCode::new("python-loop-over-tensors");

pub struct PythonLoopOverTensors;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "rewriting a loop is work: a tenth of the step is worth it");
const MAX_KERNEL_NS: Threshold = Threshold::new(
    CODE,
    "max_kernel_ns",
    20_000.0,
    Unit::Nanoseconds,
    "longer kernels hide the loop that launches them",
);
const MIN_ROUNDS: Threshold =
    Threshold::new(CODE, "min_rounds", 24.0, Unit::Count, "layers of a model repeat less often");
const MAX_BODY: usize = 5;
const MAX_KERNELS: Threshold =
    Threshold::new(CODE, "max_kernels", MAX_BODY as f64, Unit::Count, "a longer body does enough work in each round");

impl Rule for PythonLoopOverTensors {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_KERNEL_NS, MIN_ROUNDS]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MAX_KERNELS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "At most {max_kernels} kernels, each shorter than {max_kernel_ns}, are launched {min_rounds} times or more in a row, and that takes {min_share} of the step or more.",
            why: "A Python loop over rows, experts or tokens pays per iteration what one batched operation pays once. Layers of a model repeat too, fewer times and with more kernels each; a deep chain of small layers looks the same. Kernels do not tell the two apart, the operators that launched them do (`--ops`): where they show that each iteration reads what the one before wrote, batching is not advised and no gain is given; where they show that none does, it is advised without a condition; without operators, or where values go to the CPU in between, the advice says what to check and is half as sure. The gain is the recorded steps replayed with the kernels of one iteration left, and one iteration's share of the CPU time between the first and the last launch; at worst all kernels stay, because one batched kernel may take as long as they do.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`); operators (`--ops`) to know whether iterations depend on each other.",
            example: "Loop launches the same 4 kernels 48 times in a row: 63 % of the step, at route (moe.py:31)",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Launch)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Batch all iterations into one operation over stacked arrays: a batched product, a mask instead of an if."]
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let found = case.kernels().iter().map(|device| (device, Loops::find(case, device)));
        let Some((device, loops)) = found.max_by(|a, b| a.1.tally.mid().total_cmp(&b.1.tally.mid())) else {
            return Verdict::Silent;
        };
        let share = loops.tally.measured();
        let Some((first, body, rounds)) = loops.longest.filter(|_| share.mid >= case.threshold(MIN_SHARE)) else {
            return Verdict::Silent;
        };
        let work = &case.timeline.gpu.work;
        let row = device.rows.iter().find(|row| row.name.0 == work.name[first as usize]);
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let count = loops.count as f64 / case.steps.count().max(1) as f64;
        let independent = rounds::independent(case, &loops.again);
        let mut changes = vec![Change::Work(case.chosen_work(loops.again), 0.0)];
        let stretches: Vec<_> =
            loops.stretches.into_iter().filter(|one| case.chosen().is_none_or(|chosen| chosen.has(one.1))).collect();
        changes.push(Change::Stretches(stretches, 1.0 / rounds as f64));
        let gain = case.gain(&changes, share.scaled(1.0 - 1.0 / rounds as f64));
        let gain = case.at_worst(gain, &changes[1..], Share::default());
        let finding = Finding {
            code: CODE,
            title: format!(
                "Loop launches the same {} {rounds} times in a row: {} of {}{}",
                if body == 1 { "kernel".into() } else { format!("{body} kernels") },
                phrase::percent(share.mid),
                case.the_step(),
                gap::at(&place)
            ),
            place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(confidence::of(&loops.tally, case.threshold(MIN_SHARE))),
            evidence: vec![
                Evidence::at(
                    "the first iteration of the longest loop",
                    None,
                    work.start[first as usize],
                    work.end(first as usize),
                ),
                Evidence::new(format!("{} such loops per step", gap::each(count))),
            ],
            actions: vec![
                Action::torch("Batch all iterations into one operation")
                    .by("torch.bmm or torch.baddbmm over stacked tensors, torch.stack, a mask instead of an if.")
                    .needs([independent.clone()]),
                Action::torch("Vectorise it")
                    .by("torch.vmap(function)(tensors); torch._foreach_add_(list, other) for lists of tensors.")
                    .needs([independent]),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

#[derive(Default)]
struct Loops {
    count: usize,
    /// All work but that of each loop's first round.
    again: Vec<u32>,
    /// From the first launch of a loop to its last.
    stretches: Vec<(TrackIndex, u64, u64)>,
    tally: Tally,
    /// First work, kernels a round, rounds.
    longest: Option<(u32, usize, usize)>,
}

impl Loops {
    fn find(case: &Case, device: &StepKernels) -> Loops {
        let (gpu, mut loops) = (&case.timeline.gpu, Loops::default());
        let graphs = Graphs::new(case.timeline);
        let mut parts = vec![0u64; device.windows.len()];
        let (mut run, mut at): (Vec<u32>, _) = (Vec::new(), (usize::MAX, usize::MAX));
        device.each(case, |window, index| {
            let stream = gpu.streams.partition_point(|stream| stream.work.end <= index);
            if (stream, window) != at {
                loops.take(case, &run, at.1, &mut parts);
                run.clear();
                at = (stream, window);
            }
            // Kernels of a graph are launched at once.
            if !graphs.has(index) {
                run.push(index as u32);
            }
        });
        loops.take(case, &run, at.1, &mut parts);
        for (window, part) in device.windows.iter().zip(parts) {
            loops.tally.add(part.min(window.end - window.start) as f64, (window.end - window.start) as f64);
        }
        loops
    }

    /// One stream in one step.
    fn take(&mut self, case: &Case, run: &[u32], window: usize, parts: &mut [u64]) {
        let work = &case.timeline.gpu.work;
        let name = |place: usize| work.name[run[place] as usize];
        let mut place = 0;
        while place < run.len() {
            // The shortest body that repeats from here for long enough.
            let rounds = |body: usize| {
                let same = (place + body..run.len()).take_while(|at| name(*at) == name(*at - body)).count();
                same / body + 1
            };
            let Some((body, rounds)) = (1..=MAX_BODY)
                .map(|body| (body, rounds(body)))
                .find(|(_, rounds)| *rounds >= (case.threshold(MIN_ROUNDS) as usize))
            else {
                place += 1;
                continue;
            };
            let all = &run[place..place + body * rounds];
            place += body * rounds;
            let ns: u64 = all.iter().map(|index| work.dur[*index as usize]).fold(0, u64::saturating_add);
            if ns / all.len() as u64 > (case.threshold(MAX_KERNEL_NS) as u64) {
                continue;
            }
            let (Some(first), Some(last)) = (work.launch(all[0] as usize), work.launch(all[all.len() - 1] as usize))
            else {
                continue;
            };
            let slices = &case.timeline.slices;
            let (from, to) = (slices.start[first], slices.get(last).end());
            let track = case.timeline.tracks.partition_point(|track| track.slices.end <= first);
            self.stretches.push((TrackIndex(track as u32), from, to));
            parts[window] = parts[window].saturating_add(to.saturating_sub(from));
            self.count += 1;
            self.again.extend(&all[body..]);
            if self.longest.is_none_or(|(_, _, most)| rounds > most) {
                self.longest = Some((all[0], body, rounds));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(names: &[&str], rounds: usize, us: u64) -> String {
        let mut text = String::from("track main\n repeat 10 every 20ms\n step r 0..10ms\n stream 7\n");
        let mut at = 10;
        for name in std::iter::repeat_n(names, rounds).flatten() {
            text +=
                &format!("api cudaLaunchKernel {at}us..{}us\n kernel {name} {}us..{}us\n", at + 5, at + 8, at + 8 + us);
            at += 40.max(us + 5);
        }
        text + &format!("samples 0..{at}us every 100us active gil main>route@moe.py:31\n end")
    }

    #[test]
    fn a_loop_over_experts() {
        let found = found(&PythonLoopOverTensors, &steps(&["gemm", "add", "relu", "sum"], 48, 3));
        assert_eq!(
            found[0].title,
            "Loop launches the same 4 kernels 48 times in a row: 76 % of the step, at moe.py:31"
        );
        let gain = found[0].gain.unwrap();
        assert!(gain.mid > 60.0 && gain.low < gain.mid && gain.high < 80.0, "{gain:?}");
        // The kernels take 3 of every 40 µs: at worst they stay.
        assert!(gain.low > gain.mid - 12.0, "{gain:?}");
    }

    #[test]
    fn silent_for_layers_of_a_model_for_long_kernels_and_without_a_gpu() {
        silent(
            &PythonLoopOverTensors,
            &steps(&["norm", "qkv", "attention", "out", "add", "norm", "up", "gelu", "down", "add"], 24, 3),
        );
        silent(&PythonLoopOverTensors, &steps(&["gemm", "relu"], 12, 3));
        silent(&PythonLoopOverTensors, &steps(&["gemm"], 40, 100));
        silent(&PythonLoopOverTensors, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    /// Layers that feed each other launch the same kernels in a row, too: without their data, batching is said with its condition and is half as sure.
    #[test]
    fn batching_is_advised_only_for_rounds_that_do_not_depend_on_each_other() {
        let found = found(&PythonLoopOverTensors, &steps(&["gemm", "relu"], 200, 3));
        for action in &found[0].actions {
            assert_eq!(action.unknown().collect::<Vec<_>>(), ["the iterations are independent of each other"]);
            assert_eq!(action.applies(), 0.5);
        }
    }

    /// Steps of 40 rounds of two kernels, the last of which was looked at; `reads` says what the first operator of a round reads.
    fn looked_at(reads: impl Fn(u64) -> u64) -> String {
        let op = |name: &str, at: u64, from: u64, to: u64| {
            format!(
                "op aten::{name} {at}us..{}us args {{\"Input~Dims\":[[8]],\"device\":\"cuda:0\",\"in\":[{from}],\"out\":[{to}],\"at\":\"moe.py:31~route\",\"turn\":[0,0]}}\n",
                at + 15
            )
        };
        let round = |at: u64| {
            op("mm", 400_010 + 80 * at, reads(at), 100 + 2 * at)
                + &op("relu", 400_050 + 80 * at, 100 + 2 * at, 101 + 2 * at)
        };
        let ops: String = (0..40).map(round).collect();
        steps(&["gemm", "relu"], 40, 3).replace("repeat 10 every 20ms", "repeat 21 every 20ms") + "\n" + &ops
    }

    #[test]
    fn operators_tell_whether_iterations_depend_on_each_other() {
        let of = |reads: &dyn Fn(u64) -> u64| found(&PythonLoopOverTensors, &looked_at(reads)).remove(0).actions;
        assert!(of(&|_| 1).iter().all(|action| action.applies() == 1.0));
        let chain = of(&|at| 99 + 2 * at);
        assert!(chain.iter().all(|action| action.fails() == Some("each round uses what the one before it computed")));
        // A value that nobody knows says nothing.
        assert!(of(&|_| 0).iter().all(|action| action.applies() == 0.5));
    }

    #[test]
    fn abstains_without_launches() {
        abstains(
            &PythonLoopOverTensors,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
