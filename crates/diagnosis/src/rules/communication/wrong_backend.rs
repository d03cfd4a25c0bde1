//! `wrong-backend`: tensors of a GPU are exchanged through Gloo, which goes by way of the host.

use crate::certainty::Certainty;
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
use analysis::stats::share::Tally;
use replay::gain::Gain;
use timeline::{NameIndex, SliceKind};

pub const CODE: RuleCode = RuleCode::new("wrong-backend");

pub struct WrongBackend;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.02, Unit::Share, "NCCL is one word in the call: even a little is worth it");

impl Rule for WrongBackend {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Gloo or MPI collectives take {min_share} of the step or more in a process that uses a GPU.",
            why: "Gloo copies GPU tensors to the host, sends them over sockets and copies them back; NCCL moves them from GPU to GPU. The gain is at most this time, at least nothing (an NCCL collective takes time too, and CPU tensors belong to Gloo), and half of it in the middle.",
            needs: "Recorded calls of collectives: torch.profiler, or NVTX.",
            example: "gloo:all_reduce takes 34 % of the step although the process uses a GPU",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.timeline.gpu.is_empty() {
            return Verdict::Silent;
        }
        let names = &case.timeline.names;
        let slow: Vec<bool> = (0..names.len() as u32).map(|name| is_slow(names.text(NameIndex(name)))).collect();
        if !slow.contains(&true) {
            return Verdict::Silent;
        }
        let (mut tally, mut first) = (Tally::default(), None);
        for process in (0..case.timeline.processes.len() as u32).map(timeline::ProcessIndex) {
            let windows = windows_of(case, process);
            let mut parts = vec![0u64; windows.len()];
            for track in case.timeline.tracks_of(process) {
                let mut done = 0;
                for index in track.slices.clone().filter(|index| slow[case.timeline.slices.name[*index] as usize]) {
                    let slice = case.timeline.slices.get(index);
                    let window =
                        at(&windows, slice.start).filter(|_| slice.start >= done && slice.kind != SliceKind::ApiCall);
                    if let Some(window) = window {
                        done = slice.end();
                        parts[window] = parts[window].saturating_add(done.min(windows[window].end) - slice.start);
                        first.get_or_insert(slice);
                    }
                }
            }
            windows.iter().zip(parts).for_each(|(window, part)| {
                tally.add(part.min(window.end - window.start) as f64, (window.end - window.start) as f64)
            });
        }
        let share = tally.mid();
        let Some(first) = first.filter(|_| share >= case.threshold(MIN_SHARE)) else { return Verdict::Silent };
        let name = names.text(first.name);
        let gain = Gain::up_to(100.0 * share);
        let finding = Finding {
            code: CODE,
            title: format!(
                "{name} takes {} of {} although the process uses a GPU",
                phrase::percent(share),
                case.the_step()
            ),
            place: Place { function: Some(name.to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: vec![Evidence::at("the first such call", None, first.start, first.end())],
            actions: vec![
                "Use NCCL: dist.init_process_group(\"nccl\"), or \"cpu:gloo,cuda:nccl\" for both kinds of tensors."
                    .into(),
                "Keep exchanged tensors on the GPU: no .cpu() before dist.all_reduce(tensor).".into(),
            ],
            verify: proof::verify(case, share / 2.0),
        };
        finding.into()
    }
}

fn is_slow(name: &str) -> bool {
    name.starts_with("gloo:") || name.starts_with("mpi:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(scope: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n scope {scope} 5ms..8ms\n api cudaLaunchKernel 0..5us\n stream 7\n kernel gemm 10us..5ms\n end"
        )
    }

    #[test]
    fn collectives_over_the_host() {
        let found = found(&WrongBackend, &steps("gloo:all_reduce"));
        assert_eq!(found[0].title, "gloo:all_reduce takes 30 % of the step although the process uses a GPU");
        assert!(found[0].gain.is_some_and(|gain| gain.low == 0.0 && (gain.high - 30.0).abs() < 0.1));
    }

    #[test]
    fn silent_with_nccl_and_without_a_gpu() {
        silent(&WrongBackend, &steps("nccl:all_reduce"));
        silent(
            &WrongBackend,
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n scope gloo:all_reduce 5ms..8ms\n end",
        );
    }
}
