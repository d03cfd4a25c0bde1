//! `created-on-cpu-then-moved`: tensors are made on the host and copied to the device right away.

use crate::finding::{Evidence, Finding, Severity};
use crate::measures::calls_in_steps::at;
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
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

const MAKES: [&str; 13] = [
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
            why: "torch.zeros(n).to(\"cuda\") fills host memory and copies it; torch.zeros(n, device=\"cuda\") is one short kernel. Counted is an operator that creates a tensor, followed within {max_delay_ns} by a copy to the GPU as the next work of the same thread. The gain is the recorded steps replayed without these copies and operators; at worst only the copies go, because creating a tensor on the GPU takes the CPU some time too.",
            needs: "Operators (torch.profiler) and GPU copies with their calls.",
            example: "aten::zeros creates a tensor on the CPU and copies it to the GPU 3 times per step: 11 % of the step",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let timeline = case.timeline;
        let makes: Vec<bool> =
            (0..timeline.names.len() as u32).map(|name| is_maker(timeline.names.text(NameIndex(name)))).collect();
        let operators =
            (0..timeline.names.len() as u32).any(|name| timeline.names.text(NameIndex(name)).starts_with("aten::"));
        if !operators {
            let copies = case.gpu().is_some_and(|gpu| gpu.copies.iter().any(|row| row.direction == detail::H2D));
            return if copies {
                Verdict::Abstain("operators not recorded (torch.profiler records them)".into())
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
    name.strip_prefix("aten::").is_some_and(|plain| MAKES.contains(&plain))
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
        confidence: confidence::of(&tally, case.threshold(MIN_SHARE)),
        evidence: vec![Evidence::at("the first such copy", None, maker.start, maker.end())],
        actions: vec![
            format!("Create it on the GPU: torch.{}(n, device=\"cuda\").", name.trim_start_matches("aten::")),
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

    #[test]
    fn abstains_without_operators() {
        abstains(&CreatedOnCpu, &steps("zeros", "h2d").replace("aten::to", "to"), "operators not recorded");
    }
}
