//! `kernel-hotspot`: one kernel takes most of the time in which a step's device works.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::compiled;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Shown, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::windows_of;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Tally;
use timeline::{NameIndex, ProcessIndex, WorkKind};

pub const CODE: RuleCode = RuleCode::new("kernel-hotspot");

pub struct KernelHotspot;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.33,
    Unit::Share,
    "a third of the step in one kernel: nothing else on the GPU can be worth more",
);

impl Rule for KernelHotspot {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "One kernel runs for {min_share} of the step or more.",
            why: "Where the GPU is the bottleneck, this is what it does. The layer and line that launch it are named where known. No gain is given: its duration does not show how fast the kernel could be.",
            needs: "GPU operations.",
            example: "One kernel takes 61 % of the step: flash_fwd_kernel (model.py:120)",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Give it less to do: a smaller dtype (BF16, FP8), fewer elements, no padding.",
            "Check whether a library has a faster one: cuBLASLt, cuDNN, CUTLASS.",
        ]
    }

    fn shows(&self) -> Option<Shown> {
        Some(Shown::DeviceWork)
    }

    fn look(&self, case: &Case) -> Verdict {
        let devices = case.idle().iter().map(|device| (device.process, device.ordinal));
        let most = devices.filter_map(|(process, ordinal)| hottest(case, process, ordinal));
        let Some((name, tally)) = most.max_by(|a, b| a.1.mid().total_cmp(&b.1.mid())) else { return Verdict::Silent };
        if tally.mid() < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let row = case.gpu().and_then(|gpu| gpu.kernels.iter().find(|row| row.name == name));
        let kernel = case.timeline.names.text(name);
        let mut place = row.and_then(|row| row.place.clone()).unwrap_or_default();
        let launched = match place.function {
            Some(_) => format!(" ({})", phrase::line(&place)),
            None => String::new(),
        };
        place = Place {
            kernel: Some(kernel.to_owned()),
            module: row.and_then(|row| row.layer.as_ref()?.path()).map(str::to_owned),
            ..place
        };
        let mut evidence = vec![Evidence::new(format!(
            "{} of {} on average",
            phrase::duration((tally.part / case.steps.count().max(1) as f64) as u64),
            case.the_step()
        ))];
        evidence.extend(row.map(|row| {
            let (mean, p95) = (phrase::duration(row.mean_ns), phrase::duration(row.p95_ns));
            Evidence::new(format!("{} times in the recording, mean {mean}, p95 {p95}", phrase::count(row.count)))
        }));
        let finding = Finding {
            code: CODE,
            title: format!(
                "One kernel takes {} of {}: {}{launched}",
                phrase::percent(tally.mid()),
                case.the_step(),
                short(kernel)
            ),
            place,
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(tally.repeats()),
            evidence,
            actions: vec![
                Action::torch("Give it less to do: a smaller dtype (torch.bfloat16, FP8), fewer tokens, no padding."),
                Action::torch("Let a compiler choose a faster kernel")
                    .by("torch.compile(model).")
                    .needs([compiled::not_yet(case)]),
                Action::torch(
                    "For attention, call the fused kernel: torch.nn.functional.scaled_dot_product_attention.",
                ),
                "Profile it with ncu --set full to see what limits it.".into(),
            ],
            verify: proof::verify(case, 0.0),
        };
        finding.into()
    }
}

/// A C++ name without its arguments, as far as a line allows.
fn short(name: &str) -> String {
    const MAX_LETTERS: usize = 45;
    let plain = name.strip_prefix("void ").unwrap_or(name);
    let end = plain.char_indices().nth(MAX_LETTERS).map_or(plain.len(), |(at, _)| at);
    if end < plain.len() { format!("{}…", &plain[..end]) } else { plain.to_owned() }
}

/// The kernel of a device that takes the most of the steps' time.
fn hottest(case: &Case, process: ProcessIndex, ordinal: u32) -> Option<(NameIndex, Tally)> {
    let (gpu, windows) = (&case.timeline.gpu, windows_of(case, process));
    let streams = || gpu.streams.iter().filter(|stream| (stream.process, stream.device) == (process, ordinal));
    let kernels = |index: &usize| gpu.work.kind(*index) == WorkKind::Kernel;
    // By place of the name, so that a million kernels need no hashing.
    let mut sums: Vec<Option<u64>> = vec![None; case.timeline.names.len()];
    for index in streams().flat_map(|stream| stream.work.clone()).filter(kernels) {
        if let Some(sum) = sums.get_mut(gpu.work.name[index] as usize) {
            *sum = Some(sum.unwrap_or(0).saturating_add(gpu.work.dur[index]));
        }
    }
    let named = (0..).zip(sums).filter_map(|(name, sum): (u32, _)| Some((name, sum?)));
    let (name, _) = named.max_by_key(|(name, ns)| (*ns, u32::MAX - name))?;
    // Now exactly, inside the steps.
    let mut parts = vec![0u64; windows.len()];
    for stream in streams() {
        let (mut at, mut done) = (0, 0);
        for index in stream.work.clone().filter(|index| gpu.work.name[*index] == name).filter(kernels) {
            let (start, end) = (gpu.work.start[index].max(done), gpu.work.end(index));
            done = done.max(end);
            while windows.get(at).is_some_and(|window| window.end <= start) {
                at += 1;
            }
            let touched = windows[at..].iter().zip(&mut parts[at..]).take_while(|(window, _)| window.start < end);
            for (window, part) in touched {
                *part += end.min(window.end).saturating_sub(start.max(window.start));
            }
        }
    }
    let mut tally = Tally::default();
    for (window, part) in windows.iter().zip(parts) {
        let length = window.end - window.start;
        tally.add(part.min(length) as f64, length as f64);
    }
    Some((NameIndex(name), tally))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    const STEPS: &str = "
        track main
        repeat 10 every 10ms
          step r 0..10ms
          api cudaLaunchKernel 100us..110us
          stream 7
          kernel flash_fwd 200us..6200us
          api cudaLaunchKernel 300us..310us
          kernel norm 6300us..8300us
          samples 0..10ms every 105us active gil main>attention@model.py:120
        end";

    #[test]
    fn the_kernel_is_named_with_the_line_that_launches_it_and_has_no_gain() {
        let found = found(&KernelHotspot, STEPS);
        assert_eq!(found[0].title, "One kernel takes 60 % of the step: flash_fwd (model.py:120)");
        assert_eq!((found[0].gain, found[0].place.kernel.as_deref()), (None, Some("flash_fwd")));
    }

    #[test]
    fn silent_when_no_kernel_stands_out_and_without_a_gpu() {
        silent(&KernelHotspot, &STEPS.replace("200us..6200us", "200us..2200us"));
        silent(&KernelHotspot, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
