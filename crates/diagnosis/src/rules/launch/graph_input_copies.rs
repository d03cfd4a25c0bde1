//! `graph-input-copies`: before each replay of a CUDA graph, inputs are copied inside the device to where the graph reads them.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::calls_in_steps::at;
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::{Graphs, windows_of};
use analysis::device::kernel_kind::{Class, Kind};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, Tally};
use replay::Change;
use std::collections::HashMap;
use timeline::gpu::detail;
use timeline::{ProcessIndex, SliceKind, WorkKind};

pub const CODE: RuleCode = RuleCode::new("graph-input-copies");

pub struct GraphInputCopies;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "writing inputs in place is a small change");

/// Copies right before a graph: no graph has more inputs.
const MAX_NEAR: usize = 4096;

impl Rule for GraphInputCopies {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Device-to-device copies right before CUDA graph launches take {min_share} of the step or more.",
            why: "A graph reads its inputs from fixed addresses. A program that computes them elsewhere copies them there before each replay: one small copy per input. Written directly where the graph reads them, or computed inside the graph, they need no copy. The gain is the recorded steps replayed without these copies and their calls; at worst the longest copy before each graph stays, because inputs that arrive together need one.",
            needs: "GPU operations with graphs, and the calls that launch them.",
            example: "9 device-to-device copies before each CUDA graph take 7.1 % of the step",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Write the inputs directly where the graph reads them, from the kernel before it."]
    }

    fn look(&self, case: &Case) -> Verdict {
        let mut streams: Vec<ProcessIndex> = case.timeline.gpu.streams.iter().map(|stream| stream.process).collect();
        streams.dedup();
        let found = streams.into_iter().filter_map(|process| look(case, process));
        found.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(Verdict::Silent, |(_, finding)| finding.into())
    }
}

fn look(case: &Case, process: ProcessIndex) -> Option<(f64, Finding)> {
    let (timeline, work) = (case.timeline, &case.timeline.gpu.work);
    let (windows, mut kinds) = (windows_of(case, process), HashMap::<u32, bool>::new());
    let mut copies = |index: usize| match work.kind(index) {
        WorkKind::Memcpy => work.get(index).copy().direction == detail::D2D,
        WorkKind::Kernel => *kinds.entry(work.name[index]).or_insert_with(|| {
            Kind::of(timeline.names.text(timeline::NameIndex(work.name[index]))).class == Class::Copy
        }),
        _ => false,
    };
    let known = Graphs::new(timeline);
    if !known.any() {
        return None;
    }
    // The numbers that a graph's random generators begin with are filled in right before it.
    let fills = |piece: usize| timeline.names.text(timeline::NameIndex(work.name[piece])).contains("FillFunctor");
    let (mut found, mut graphs, mut parts) = (Vec::new(), 0u64, vec![0u64; windows.len()]);
    let mut but_longest = Vec::new();
    for track in timeline.tracks_of(process) {
        let mut before: Vec<u32> = Vec::new();
        for index in track.slices.clone().filter(|index| timeline.slices.kind(*index) == SliceKind::ApiCall) {
            let launched = work.of_launch(index);
            if launched.iter().any(|piece| known.has(*piece as usize)) {
                if let Some(window) = at(&windows, timeline.slices.start[index]) {
                    graphs += 1;
                    let near = &before[before.len().saturating_sub(MAX_NEAR)..];
                    parts[window] = parts[window].saturating_add(
                        near.iter().map(|piece| work.dur[*piece as usize]).fold(0, u64::saturating_add),
                    );
                    found.extend(near);
                    let longest = near.iter().max_by_key(|piece| work.dur[**piece as usize]);
                    but_longest.extend(near.iter().filter(|piece| Some(*piece) != longest));
                }
                before.clear();
            } else {
                for piece in launched.iter().filter(|piece| !fills(**piece as usize)) {
                    // Other work between: what came before it is none of the graph's.
                    if copies(*piece as usize) { before.push(*piece) } else { before.clear() }
                }
            }
        }
    }
    let mut tally = Tally::default();
    windows.iter().zip(parts).for_each(|(window, part)| {
        tally.add(part.min(window.end - window.start) as f64, (window.end - window.start) as f64)
    });
    let share = tally.measured();
    let first = *found.first().filter(|_| share.mid >= case.threshold(MIN_SHARE) && graphs > 0)? as usize;
    let each = found.len() as f64 / graphs as f64;
    let chosen = |pieces: Vec<u32>| match case.chosen() {
        Some(chosen) => pieces.into_iter().filter(|piece| chosen.has(work.start[*piece as usize])).collect(),
        None => pieces,
    };
    let gain = case.gain(&[Change::Work(chosen(found), 0.0)], share);
    let gain = case.at_worst(gain, &[Change::Work(chosen(but_longest), 0.0)], Share::default());
    let finding = Finding {
        code: CODE,
        title: format!(
            "{} device-to-device copies before each CUDA graph take {} of {}",
            crate::measures::gap::each(each),
            phrase::percent(share.mid),
            case.the_step()
        ),
        place: Place {
            kernel: Some(timeline.names.text(timeline::NameIndex(work.name[first])).to_owned()),
            ..Place::default()
        },
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
        evidence: vec![
            Evidence::at("the first such copy", None, work.start[first], work.end(first)),
            Evidence::new(format!("{} graph launches in the steps", phrase::count(graphs))),
        ],
        actions: vec![
            Action::torch(
                "Write the inputs where the graph reads them: torch.add(a, b, out=static_input), or fill the static buffer from the host with one copy_.",
            ),
            "Merge small inputs: one static tensor for all of them, copied once, with views into it inside the graph."
                .into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    };
    Some((share.mid, finding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(copy: &str) -> String {
        let mut text = String::from("track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n");
        for number in 0..4 {
            let at = number * 20;
            text += &format!(
                "api cudaMemcpyAsync {at}us..{}us\n {copy} {}us..{}us {}\n",
                at + 4,
                at + 5,
                at + 15,
                if copy.starts_with("copy") { "4096" } else { "" }
            );
        }
        text += "api cudaGraphLaunch 90us..95us\n";
        for node in 0..10 {
            text += &format!("kernel k {}us..{}us graph 3 node {}\n", 100 + node * 80, 180 + node * 80, node + 1);
        }
        text + "api cudaStreamSynchronize 96us..905us\n end"
    }

    #[test]
    fn copies_to_where_the_graph_reads() {
        for copy in ["copy d2d", "kernel direct_copy_kernel"] {
            let found = found(&GraphInputCopies, &steps(copy));
            assert_eq!(found[0].title, "4 device-to-device copies before each CUDA graph take 4.0 % of the step");
            let gain = found[0].gain.unwrap();
            assert!(gain.low <= gain.mid && found[0].actions.len() == 2, "{gain:?}");
        }
    }

    /// Older files do not number graphs, and PyTorch fills in a seed right before the launch.
    #[test]
    fn a_graph_is_known_by_its_launch_and_a_seed_is_no_other_work() {
        let text = steps("copy d2d").replace(" graph 3 node", " corr 0 node");
        let seed = "api cudaLaunchKernel 85us..88us\n kernel at::native::FillFunctor<long> 89us..90us\n api cudaGraphLaunch 90us..95us";
        let text = text.replace("api cudaGraphLaunch 90us..95us", seed);
        // The nodes have the launch's own number, and no graph's.
        let plain: String = text.lines().map(|line| line.split(" corr 0").next().unwrap().to_owned() + "\n").collect();
        let found = found(&GraphInputCopies, &plain);
        assert_eq!(found[0].title, "4 device-to-device copies before each CUDA graph take 4.0 % of the step");
        silent(&GraphInputCopies, &plain.replace("FillFunctor", "AddFunctor"));
    }

    #[test]
    fn silent_for_inputs_from_the_host_for_other_work_and_without_graphs() {
        silent(&GraphInputCopies, &steps("copy h2d"));
        silent(&GraphInputCopies, &steps("kernel add"));
        silent(&GraphInputCopies, &steps("copy d2d").replace("graph 3 node", "corr 5 node"));
        silent(&GraphInputCopies, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
