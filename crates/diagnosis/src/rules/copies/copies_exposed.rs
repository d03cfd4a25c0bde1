//! `copies-exposed`: the device copies to or from the host while no kernel runs. Copies of pageable memory are left to the rule that
//! says why those are slow, small ones to the rule that counts them.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::pageable_async_copy;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::moved::{Copy, Moved};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use analysis::steps::StepSource;
use replay::Change;
use std::collections::HashMap;
use timeline::NameIndex;
use timeline::gpu::detail;

pub const CODE: RuleCode = RuleCode::new("copies-exposed");

pub struct CopiesExposed;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "overlapping copies with kernels needs a second stream, which is real work",
);
const MIN_BYTES: Threshold = Threshold::new(
    CODE,
    "min_bytes",
    1_048_576.0,
    Unit::Bytes,
    "smaller copies cost their start-up time and cannot be overlapped one by one",
);

impl Rule for CopiesExposed {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BYTES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Copies of {min_bytes} or more between host and device take {min_share} of the step or more without overlapping kernels.",
            why: "A GPU can copy and compute at the same time, if the copy is in a stream of its own and its data is not needed yet. During an exposed copy (no kernel running beside it) it computes nothing: weights that are brought in again for every step, a batch that is sent only when its turn has come. The gain is at most a step without them (the data stays on the GPU), at least nothing (there is nothing to compute at that time), and half of it in the middle. Pageable memory is covered by `{rule}`.",
            needs: "GPU copies and kernels.",
            example: "Exposed copies take 46 % of the step: 2.10 GiB per step, host → device, pinned, at 27.7 GB/s",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Memory)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Copy the next batch while this one is computed: a second stream, pinned memory and cudaMemcpyAsync."]
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[pageable_async_copy::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        let found = case.moved().iter().filter_map(|moved| Some((exposed(case, moved)?, moved)));
        let Some((share, moved)) = found.max_by(|a, b| a.0.mid.total_cmp(&b.0.mid)) else { return Verdict::Silent };
        if case.gpu().is_none_or(|gpu| gpu.kernels.is_empty()) {
            return Verdict::Abstain("no kernels recorded: overlap with copies is unknown".into());
        }
        finding(case, moved, share).into()
    }
}

fn fits(case: &Case, copy: &Copy) -> bool {
    copy.piece.bytes >= (case.threshold(MIN_BYTES) as u64) && copy.host_memory() != detail::PAGEABLE
}

/// The share of the steps' time. A copy may outlast the step it begins in, so the sum counts; copies that run at once count once: no
/// more than all that the device copies under no kernel.
fn exposed(case: &Case, moved: &Moved) -> Option<Share> {
    let device = case.gpu()?.devices.iter().find(|one| (one.process, one.ordinal) == (moved.process, moved.ordinal))?;
    let sum = moved.all.iter().filter(|copy| fits(case, copy)).map(|copy| copy.exposed_ns).fold(0, u64::saturating_add);
    let mid = sum.min(device.exposed_copy_ns) as f64 / device.window_ns.max(1) as f64;
    let spread = moved.tally(|copy| fits(case, copy).then_some(copy.exposed_ns)).measured();
    let share = Share { low: spread.low.min(mid), mid, high: spread.high.max(mid) };
    (mid >= case.threshold(MIN_SHARE)).then_some(share)
}

/// What is copied from where to where: how often, how much, and how long under no kernel.
#[derive(Default)]
struct CopyDirection {
    count: u64,
    bytes: u64,
    ns: u64,
    exposed_ns: u64,
}

/// By direction and kind of memory, most exposed first.
fn ways(case: &Case, moved: &Moved) -> Vec<(String, CopyDirection)> {
    let mut ways: HashMap<(u8, u8, u8), CopyDirection> = HashMap::new();
    for copy in moved.all.iter().filter(|copy| fits(case, copy)) {
        let kind = copy.piece.copy();
        let way = ways.entry((kind.direction, kind.source, kind.target)).or_default();
        way.count += 1;
        way.bytes = way.bytes.saturating_add(copy.piece.bytes);
        way.ns = way.ns.saturating_add(copy.piece.dur);
        way.exposed_ns = way.exposed_ns.saturating_add(copy.exposed_ns);
    }
    let rows = || case.gpu().into_iter().flat_map(|gpu| &gpu.copies);
    let label = |key: &(u8, u8, u8)| rows().find(|row| (row.direction, row.source, row.target) == *key);
    let mut ways: Vec<_> = ways
        .into_iter()
        .map(|(key, way)| (label(&key).map_or_else(String::new, |row| row.label.clone()), way))
        .collect();
    ways.sort_by(|a, b| (b.1.exposed_ns, &a.0).cmp(&(a.1.exposed_ns, &b.0)));
    ways
}

fn finding(case: &Case, moved: &Moved, share: Share) -> Finding {
    let ways = ways(case, moved);
    let whole = case.steps.source == StepSource::Whole;
    let each = |bytes: u64| match whole {
        true => phrase::bytes(bytes),
        false => format!("{} per step", phrase::bytes(bytes / case.steps.count().max(1) as u64)),
    };
    let speed = |way: &CopyDirection| way.bytes as f64 / way.ns.max(1) as f64;
    let most = ways.first().map(|(label, way)| format!(": {}, {label}, at {:.1} GB/s", each(way.bytes), speed(way)));
    let chosen = |copy: &&Copy| case.chosen().is_some_and(|chosen| chosen.has(copy.piece.start));
    let those = || moved.all.iter().filter(|copy| fits(case, copy));
    let without = case.gain(&[Change::Work(those().filter(chosen).map(|copy| copy.work).collect(), 0.0)], share);
    let gain = without.at_most();
    let mut evidence: Vec<Evidence> = ways
        .iter()
        .map(|(label, way)| {
            let text = format!(
                "{label}: {}, {} at {:.1} GB/s, {} of {} exposed",
                phrase::counted(way.count, "copy"),
                phrase::bytes(way.bytes),
                speed(way),
                phrase::duration(way.exposed_ns),
                phrase::duration(way.ns)
            );
            Evidence::new(text).number("ns", way.exposed_ns as f64)
        })
        .collect();
    let longest = those().max_by_key(|copy| copy.exposed_ns);
    evidence.extend(longest.map(|copy| {
        let text = format!("longest, {}", phrase::bytes(copy.piece.bytes));
        Evidence::at(text, None, copy.piece.start, copy.piece.end())
    }));
    let api = longest.and_then(|copy| copy.piece.launch).map(|launch| NameIndex(case.timeline.slices.name[launch]));
    Finding {
        code: CODE,
        title: format!(
            "Exposed copies take {} of {}{}",
            phrase::percent(share.mid),
            case.the_step(),
            most.unwrap_or_default()
        ),
        place: Place { api: api.map(|api| case.timeline.names.text(api).to_owned()), ..Place::default() },
        gain: Some(gain),
        severity: Severity::of_gain(&gain),
        certainty: Certainty::seen(moved.tally(|copy| fits(case, copy).then_some(copy.exposed_ns)).repeats()),
        evidence,
        actions: vec![
            "Keep reused data on the GPU: weights, caches and tables moved in for every step (CPU offload) pay this each time.".into(),
            Action::torch("Copy the next batch while this one is computed: a second torch.cuda.Stream(), pinned memory and non_blocking=True."),
            "Send fewer bytes: uint8 images and token ids as they are (convert on the GPU), weights in half precision.".into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(copy: &str, kernel: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n stream 7\n api cudaMemcpyAsync 0..10us\n copy {copy}\n\
             api cudaLaunchKernel 20us..30us\n stream 8\n {kernel}\n api cudaStreamSynchronize 40us..9.95ms\n end"
        )
    }
    const COPY: &str = "h2d 20us..4020us 108000000 pinned";
    const AFTER: &str = "kernel k 4.1ms..9.9ms";

    #[test]
    fn copies_that_nothing_hides_by_direction_and_memory() {
        let found = found(&CopiesExposed, &steps(COPY, AFTER));
        assert_eq!(
            found[0].title,
            "Exposed copies take 40 % of the step: 103 MiB per step, host → device, pinned, at 27.0 GB/s"
        );
        let gain = found[0].gain.unwrap();
        assert!(gain.low == 0.0 && gain.high > 0.0 && gain.high <= 41.0 && gain.mid == gain.high / 2.0, "{gain:?}");
        assert!(found[0].evidence[0].text.contains("20 copies"), "{:?}", found[0].evidence);
        assert_eq!(found[0].actions.len(), 3);
    }

    #[test]
    fn a_recording_without_steps_is_its_own_measure() {
        let text = "track main\n api cudaMemcpyAsync 0..10us\n stream 7\n copy h2d 0..970us 27000000 pinned\n api cudaLaunchKernel 20us..30us\n kernel k 970us..1ms\n api cudaStreamSynchronize 40us..1ms";
        let title = &found(&CopiesExposed, text)[0].title;
        assert!(title.starts_with("Exposed copies take 97 % of the recording: 25.7 MiB, host"), "{title}");
    }

    #[test]
    fn silent_under_kernels_and_for_what_other_rules_name_and_without_a_gpu() {
        silent(&CopiesExposed, &steps(COPY, "kernel k 0..9.9ms"));
        silent(&CopiesExposed, &steps("h2d 20us..4020us 108000000 pageable", AFTER));
        silent(&CopiesExposed, &steps("h2d 20us..4020us 4096 pinned", AFTER));
        silent(&CopiesExposed, &steps("h2d 20us..520us 13500000 pinned", AFTER));
        silent(&CopiesExposed, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_where_no_kernel_was_recorded() {
        abstains(&CopiesExposed, &steps(COPY, ""), "no kernels recorded");
    }
}
