//! `created-on-cpu-then-moved`: tensors are made on the host and copied to the device right away.

mod recorded;
mod stretches;

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::calls_in_steps::at;
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::{copies_exposed, pageable_async_copy};
use crate::rules::host::hot_line;
use crate::rules::launch::host_wait;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::windows_of;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, Tally};
use replay::Change;
use timeline::gpu::detail;
use timeline::{NameIndex, ProcessIndex, SliceKind, WorkKind};

pub const CODE: RuleCode = RuleCode::new("created-on-cpu-then-moved");

pub struct CreatedOnCpu;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.02, Unit::Share, "creating a tensor on the GPU is one argument");
const MAX_DELAY_NS: Threshold =
    Threshold::new(CODE, "max_delay_ns", 200_000.0, Unit::Nanoseconds, "a later copy may be of something else");

const CREATING_OPERATORS: [&str; 13] = [
    "zeros",
    "ones",
    "full",
    "arange",
    "rand",
    "randn",
    "randint",
    "linspace",
    "eye",
    "tril",
    "triu",
    "zeros_like",
    "ones_like",
];

impl Rule for CreatedOnCpu {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_DELAY_NS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Tensors created on the CPU and copied to the GPU at once take {min_share} of the step or more.",
            why: "torch.zeros(n).to(\"cuda\") fills host memory and copies it; torch.zeros(n, device=\"cuda\") is one short kernel. In a recording with operators it is a tensor that operators make on the CPU from nothing but constants, ranges and random numbers, and that one moves to the GPU in the same step. Where no step with recorded operators shows that, samples do: PyTorch's CPU code fills memory, and the next work of the thread is a copy from pageable memory. In a file of torch.profiler it is an operator that creates a tensor, followed within {max_delay_ns} by a copy to the GPU as the next work of the same thread. The gain is the recorded steps replayed without these copies, their calls, and the CPU time at these lines around them, less what the GPU takes to write as many bytes; at worst only the copies go.",
            needs: "GPU copies with their calls, and operators (`--ops`, or torch.profiler) or stack samples with native frames.",
            example: "Creating 16.0 MiB on the CPU and copying it to the GPU takes 37 % of the step (model.py:90)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[pageable_async_copy::CODE, copies_exposed::CODE, host_wait::CODE, hot_line::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let recorded = recorded::find(case);
        if !recorded.is_empty() {
            return Verdict::Found(recorded);
        }
        let timeline = case.timeline;
        let makes: Vec<bool> =
            (0..timeline.names.len() as u32).map(|name| is_maker(timeline.names.text(NameIndex(name)))).collect();
        let operators =
            (0..timeline.names.len() as u32).any(|name| timeline.names.text(NameIndex(name)).starts_with("aten::"));
        if !operators {
            let copies = case.gpu().is_some_and(|gpu| gpu.copies.iter().any(|row| row.direction == detail::H2D));
            return if copies {
                Verdict::NeedsTorch("operators not recorded (`--ops` and torch.profiler record them)".into())
            } else {
                Verdict::Silent
            };
        }
        let mut processes: Vec<ProcessIndex> = timeline.gpu.streams.iter().map(|stream| stream.process).collect();
        processes.dedup();
        let found = processes.into_iter().filter_map(|process| look(case, process, &makes));
        found.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Verdict::Silent, |(_, finding)| finding.into())
    }
}

fn is_maker(name: &str) -> bool {
    name.strip_prefix("aten::").is_some_and(|plain| CREATING_OPERATORS.contains(&plain))
}

fn look(case: &Case, process: ProcessIndex, makes: &[bool]) -> Option<(f64, Finding)> {
    let (timeline, work, windows) = (case.timeline, &case.timeline.gpu.work, windows_of(case, process));
    let slices = &timeline.slices;
    let (mut copies, mut stretches, mut parts, mut first) = (Vec::new(), Vec::new(), vec![0u64; windows.len()], None);
    for (number, track) in timeline.tracks.iter().enumerate().filter(|(_, track)| track.process == process) {
        // The last tensor that was made: its slice, and its end.
        let mut made: Option<(usize, u64)> = None;
        for index in track.slices.clone() {
            let (start, end) = (slices.start[index], slices.get(index).end());
            match slices.kind(index) {
                SliceKind::CCall if makes[slices.name[index] as usize] && made.is_none_or(|(_, end)| start >= end) => {
                    made = Some((index, end))
                }
                SliceKind::ApiCall if made.is_some() => {
                    let Some(piece) = work.of_launch(index).first().map(|piece| *piece as usize) else { continue };
                    let moved = work.kind(piece) == WorkKind::Memcpy && work.get(piece).copy().direction == detail::H2D;
                    let soon = made.take().filter(|(_, end)| {
                        moved && start >= *end && start - end <= (case.threshold(MAX_DELAY_NS) as u64)
                    });
                    if let (Some((maker, _)), Some(window)) = (soon, at(&windows, start)) {
                        first.get_or_insert(maker);
                        copies.push(piece as u32);
                        stretches.push((
                            timeline::TrackIndex(number as u32),
                            slices.start[maker],
                            slices.get(maker).end(),
                        ));
                        parts[window] = parts[window]
                            .saturating_add(slices.dur[maker].saturating_add((end - start).max(work.dur[piece])));
                    }
                }
                _ => {}
            }
        }
    }
    let mut tally = Tally::default();
    windows.iter().zip(parts).for_each(|(window, part)| {
        tally.add(part.min(window.end - window.start) as f64, (window.end - window.start) as f64)
    });
    let share = tally.measured();
    let maker = slices.get(first.filter(|_| share.mid >= case.threshold(MIN_SHARE))?);
    let each = copies.len() as f64 / case.steps.count().max(1) as f64;
    let copied = Change::Work(copies, 0.0);
    let gain = case.gain(&[copied.clone(), Change::Stretches(stretches, 0.0)], share);
    let gain = case.at_worst(gain, &[copied], Share::default());
    let name = timeline.names.text(maker.name);
    let finding = Finding {
        code: CODE,
        title: format!(
            "{name} creates a tensor on the CPU and copies it to the GPU {} per step: {} of {}",
            crate::measures::calls_in_steps::times(each),
            phrase::percent(share.mid),
            case.the_step()
        ),
        place: Place { function: Some(name.to_owned()), ..Place::default() },
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
        evidence: vec![Evidence::at("the first such copy", None, maker.start, maker.end())],
        actions: vec![
            Action::torch(format!(
                "Create it on the GPU: torch.{}(n, device=\"cuda\").",
                name.trim_start_matches("aten::")
            )),
            "If it never changes, create it once and keep it: self.register_buffer(\"mask\", ...).".into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    };
    Some((share.mid, finding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(op: &str, copy: &str) -> String {
        format!(
            "track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n ccall {op} 0..80us\n ccall aten::to 90us..130us\n api cudaMemcpyAsync 95us..125us\n\
             copy {copy} 110us..120us 4096 pageable\n api cudaLaunchKernel 140us..150us\n kernel k 160us..990us\n end"
        )
    }

    #[test]
    fn made_on_the_host_and_moved() {
        let found = found(&CreatedOnCpu, &steps("aten::zeros", "h2d"));
        assert_eq!(
            found[0].title,
            "aten::zeros creates a tensor on the CPU and copies it to the GPU once per step: 11 % of the step"
        );
        let gain = found[0].gain.unwrap();
        // At worst the copy goes with its call, and the operator's time stays.
        assert!((gain.mid - 11.0).abs() < 0.5 && (gain.low - 2.5).abs() < 0.5, "{gain:?}");
        assert_eq!(found[0].actions[0], "Create it on the GPU: torch.zeros(n, device=\"cuda\").");
    }

    #[test]
    fn silent_for_other_operators_and_other_copies() {
        silent(&CreatedOnCpu, &steps("aten::view", "h2d"));
        silent(&CreatedOnCpu, &steps("aten::zeros", "d2h"));
        silent(&CreatedOnCpu, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    /// Twenty steps of 10 ms: 3 ms that `line` takes, a copy of 2 ms, 1 ms after it, and a kernel.
    fn sampled(top: &str, between: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n stream 7\n api cudaLaunchKernel 0..10us\n kernel first 11us..20us\n\
             samples 100us..3ms every 500us active main>request@m.py:90>{top}\n {between}\n\
             api cudaMemcpyAsync 3ms..5ms\n copy h2d 3.1ms..4.9ms 16777216 pageable\n api cudaStreamSynchronize 5ms..5.01ms\n\
             samples 5.1ms..6ms every 500us active main>request@m.py:90\n api cudaLaunchKernel 6ms..6.01ms\n kernel k 6.02ms..9.9ms\n\
             samples 6.1ms..9.9ms every 500us active gil main>request@m.py:94\n api cudaStreamSynchronize 6.1ms..9.95ms\n end"
        )
    }

    const FILL: &str = "at::native::fill_kernel@/v/site-packages/torch/lib/libtorch_cpu.so";

    #[test]
    fn samples_that_fill_memory_before_a_copy() {
        let found = found(&CreatedOnCpu, &sampled(FILL, ""));
        assert_eq!(
            found[0].title,
            "Creating 16.0 MiB on the CPU and copying it to the GPU takes 58 % of the step (m.py:90)"
        );
        let gain = found[0].gain.unwrap();
        // At worst the copy goes with its call.
        assert!((gain.mid - 59.0).abs() < 2.0 && (gain.low - 20.0).abs() < 2.0, "{gain:?}");
        assert_eq!(found[0].place.line, Some(90));
    }

    #[test]
    fn silent_where_the_copy_is_of_something_else() {
        // Other code, other work of the thread in between, memory that is kept.
        let silent = |text: String| abstains(&CreatedOnCpu, &text, "operators not recorded");
        silent(sampled("at::native::sort@/v/site-packages/torch/lib/libtorch_cpu.so", ""));
        silent(sampled("at::native::fill_kernel@/v/site-packages/torch/lib/libtorch_cuda.so", ""));
        silent(sampled(FILL, "api cudaLaunchKernel 2.9ms..2.95ms\n kernel other 2.96ms..2.99ms"));
        silent(sampled(FILL, "").replace("pageable", "pinned"));
        // Most of the time before the copy goes into another line: it writes what is copied.
        silent(sampled(FILL, "samples 130us..2.9ms every 100us active main>request@m.py:91"));
    }

    /// Twenty steps of 10 ms and one that was looked at, with what operators made and moved.
    fn looked(maker: &str, reads: &str, also: &str) -> String {
        let step = |at: u64, more: &str| {
            format!(
                "repeat 1 every 1s\n step r {at}ms..{}ms\n stream 7\n {more} api cudaMemcpyAsync {}ms..{}ms\n copy h2d {}ms..{}ms 4096 pageable\n {also}\n\
                 api cudaLaunchKernel {}ms..{}ms\n kernel k {}ms..{}ms\n end\n",
                at + 100,
                at + 40,
                at + 60,
                at + 42,
                at + 58,
                at + 61,
                at + 62,
                at + 63,
                at + 99
            )
        };
        let ops = format!(
            "op {maker} 10ms..40ms args {{\"Input~Dims\":[[]],\"Output~Dims\":[[32,32]],\"device\":\"cpu\",\"in\":[{reads}],\"out\":[5],\"at\":\"m.py:3~mask\",\"turn\":[0,0]}}\n\
             op aten::_to_copy 40ms..60ms args {{\"Input~Dims\":[[32,32]],\"Output~Dims\":[[32,32]],\"device\":\"cuda:0\",\"in\":[5],\"out\":[6],\"at\":\"m.py:4~mask\",\"turn\":[0,0]}}\n"
        );
        let others: String = (1..=20).map(|number| step(number * 100, "")).collect();
        format!("track main\n {}{others}", step(0, &ops))
    }

    #[test]
    fn operators_that_make_a_tensor_and_move_it() {
        let found = found(&CreatedOnCpu, &looked("aten::arange", "", ""));
        assert_eq!(
            found[0].title,
            "Creating 4.00 KiB on the CPU and copying it to the GPU takes 46 % of the step (m.py:3)"
        );
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 50.0).abs() < 5.0 && gain.low > 10.0, "{gain:?}");
        assert!(found[0].evidence[0].text.starts_with("aten::arange creates it"), "{:?}", found[0].evidence);
        assert!(
            found[0].evidence[1].text.starts_with("a tensor of [32, 32], once per step: "),
            "{:?}",
            found[0].evidence
        );
    }

    #[test]
    fn silent_for_data_and_where_copies_are_not_told_apart() {
        silent(&CreatedOnCpu, &looked("aten::mul", "9", ""));
        silent(
            &CreatedOnCpu,
            &looked("aten::arange", "", "").replacen(
                "copy h2d 42ms",
                "api cudaMemcpyAsync 30ms..31ms\n copy h2d 32ms..33ms 4096 pageable\n copy h2d 42ms",
                1,
            ),
        );
    }

    #[test]
    fn abstains_without_operators() {
        abstains(&CreatedOnCpu, &steps("zeros", "h2d").replace("aten::to", "to"), "operators not recorded");
    }
}
