//! `gpu-shared`: another process uses the same device.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Tally, again};
use analysis::steps::spans::Spans;
use replay::gain::Gain;
use timeline::{Counter, counters as counter_names};

pub const CODE: RuleCode = RuleCode::new("gpu-shared");

pub struct GpuShared;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.05, Unit::Share, "of step time: less is a process that starts or ends");
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 3_221_225_472.0, Unit::Bytes, "more than a driver takes for itself");

impl Rule for GpuShared {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BYTES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Another recorded process runs kernels on the same GPU for {min_share} of the step or more, or other processes hold {min_bytes} of its memory or more.",
            why: "Two processes take turns on a GPU: while the kernels of one run, those of the other wait. For a recorded process this is known exactly, by the GPU's own id; it costs at most the time in which both have work. Of other processes only their memory is visible, as the memory in use that no recorded process holds: no gain is given for that.",
            needs: "Several recorded processes with GPU operations, or GPU counters (`gpu_memory_used_bytes`, `gpu_process_memory_bytes`) on a machine with one GPU.",
            example: "Process 4711 runs kernels on the same GPU during 34 % of the step of process 12",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let both = case.kernels().iter().filter_map(|device| Some((device, rival(case, device)?)));
        let most = both.max_by(|a, b| a.1.1.mid().total_cmp(&b.1.1.mid()));
        if let Some((device, (other, tally))) = most.filter(|one| one.1.1.mid() >= case.threshold(MIN_SHARE)) {
            let share = tally.mid();
            let pid = |process: timeline::ProcessIndex| {
                case.timeline.processes.get(process.0 as usize).map_or(0, |process| process.pid)
            };
            let gain = Gain::up_to(100.0 * share);
            let title = format!(
                "Process {} runs kernels on the same GPU during {} of {} of process {}",
                pid(other.process),
                phrase::percent(share),
                case.the_step(),
                pid(device.process)
            );
            return finding(
                case,
                title,
                Some(gain),
                confidence::of(&tally, case.threshold(MIN_SHARE)),
                Evidence::new("both were recorded, and report the same GPU"),
            )
            .into();
        }
        let Some((used, own, readings)) = memory(case) else {
            return if case.kernels().is_empty() {
                Verdict::Silent
            } else {
                Verdict::Abstain("GPU memory by process not recorded, or the machine has several GPUs".into())
            };
        };
        let others = used.saturating_sub(own);
        if others < (case.threshold(MIN_BYTES) as i64) {
            return Verdict::Silent;
        }
        let title = format!("Other processes hold {} of GPU memory", phrase::bytes(others as u64));
        let text = format!(
            "{} in use, {} of it by the recorded processes",
            phrase::bytes(used as u64),
            phrase::bytes(own as u64)
        );
        finding(case, title, None, again(readings), Evidence::new(text)).into()
    }
}

fn finding(case: &Case, title: String, gain: Option<Gain>, confidence: f64, evidence: Evidence) -> Finding {
    Finding {
        code: CODE,
        title,
        place: Place::default(),
        gain,
        severity: gain.as_ref().map_or(Severity::Low, Severity::of_gain),
        certainty: Certainty::seen(confidence),
        evidence: vec![evidence],
        actions: vec![
            "Find the other process: nvidia-smi, or nvidia-smi pmon -c 1; measure again with the GPU to yourself.".into(),
            "Give each its own GPU (CUDA_VISIBLE_DEVICES), its own slice (MIG), or share it with MPS (nvidia-cuda-mps-control -d).".into(),
        ],
        verify: proof::verify(case, gain.map_or(0.0, |gain| gain.mid / 100.0)),
    }
}

/// Another process on the same device, and the part of the steps in which it has work there.
fn rival<'a>(case: &'a Case, device: &StepKernels) -> Option<(&'a StepKernels, Tally)> {
    let uuid = |one: &StepKernels| one.device(case).map(|device| device.uuid.clone()).filter(|uuid| !uuid.is_empty());
    let mine = uuid(device)?;
    let work = |one: &StepKernels| {
        let mut all = Vec::new();
        one.each(case, |_, index| all.push((case.timeline.gpu.work.start[index], case.timeline.gpu.work.end(index))));
        Spans::union(all)
    };
    let others = case.kernels().iter().filter(|one| one.process != device.process && uuid(one).as_ref() == Some(&mine));
    let shares = others.map(|other| {
        let theirs = work(other);
        let mut tally = Tally::default();
        for window in &device.windows {
            tally.add(theirs.overlap(window.start, window.end) as f64, (window.end - window.start) as f64);
        }
        (other, tally)
    });
    shares.max_by(|a, b| a.1.mid().total_cmp(&b.1.mid()))
}

/// Bytes in use, and bytes that recorded processes hold, at the most of the steps' time; and how often that was read.
fn memory(case: &Case) -> Option<(i64, i64, usize)> {
    let named = |name: &'static str| case.timeline.counters.iter().filter(move |one| &*one.name == name);
    let most = |counter: &Counter| counter.value.iter().copied().max();
    let mut used = named(counter_names::GPU_MEMORY_USED_BYTES);
    let (first, None) = (used.next()?, used.next()) else { return None };
    let own: Vec<i64> = named(counter_names::GPU_PROCESS_MEMORY_BYTES).filter_map(most).collect();
    let held = own.iter().copied().fold(0, i64::saturating_add);
    most(first).filter(|_| !own.is_empty()).map(|used| (used, held, first.value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn two(uuid: &str) -> String {
        let one = |uuid: &str, span: &str| {
            format!(
                "process p\n device 0 NVIDIA_H200 uuid {uuid}\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..5us\n stream 7\n kernel k {span}\n end\n"
            )
        };
        one("GPU-a", "1ms..9ms") + &one(uuid, "1ms..4ms")
    }

    #[test]
    fn two_processes_on_one_device() {
        let found = found(&GpuShared, &two("GPU-a"));
        assert!(
            found[0].title.contains("on the same GPU during 80 % of the step")
                || found[0].title.contains("during 30 % of the step"),
            "{}",
            found[0].title
        );
        assert!(found[0].gain.is_some_and(|gain| gain.low == 0.0 && gain.high > 20.0));
        assert!((found[0].confidence() - 21.0 / 22.0).abs() < 1e-6, "{}", found[0].confidence());
    }

    #[test]
    fn memory_that_no_recorded_process_holds() {
        let text = "track main\n step r 0..1ms\n api cudaLaunchKernel 0..1us\n stream 7\n kernel k 2us..9us\n counter host gpu_memory_used_bytes 0=20000000000\n counter process gpu_process_memory_bytes 0=4000000000";
        let found = found(&GpuShared, text);
        assert_eq!(found[0].title, "Other processes hold 14.9 GiB of GPU memory");
        assert!(found[0].gain.is_none());
        // Read once.
        assert!((found[0].confidence() - 2.0 / 3.0).abs() < 1e-9, "{}", found[0].confidence());
        silent(&GpuShared, &text.replace("=20000000000", "=5000000000"));
    }

    #[test]
    fn abstains_where_nothing_tells_and_silent_without_a_gpu() {
        abstains(&GpuShared, &two("GPU-b"), "not recorded");
        silent(&GpuShared, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
