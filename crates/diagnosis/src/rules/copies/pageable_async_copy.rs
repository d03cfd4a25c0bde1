//! `pageable-async-copy`: copies that were meant to be asynchronous are not, because the host's memory is pageable.

use crate::action::{Action, Precondition};
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::gap;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::copies_exposed;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::moved::{Copy, Moved};
use analysis::device::to_host::SMALL_BYTES;
use analysis::idle::{Cause, Who};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use replay::Change;
use replay::gain::{Gain, GainBy};
use std::collections::BTreeSet;
use timeline::NameIndex;
use timeline::gpu::detail;

pub const CODE: RuleCode = RuleCode::new("pageable-async-copy");

pub struct PageableAsyncCopy;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "pinning memory is one line, so a few percent are worth it");
const MIN_PINNED_BYTES: Threshold = Threshold::new(
    CODE,
    "min_pinned_bytes",
    1_048_576.0,
    Unit::Bytes,
    "what pinned memory reaches is taken from copies of this size: small ones take as long from any memory",
);

impl Rule for PageableAsyncCopy {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_PINNED_BYTES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Asynchronous copies from or to pageable memory take {min_share} of the step or more exposed.",
            why: "The GPU cannot read pageable memory: the driver first moves the bytes through a buffer of its own, and the call blocks the CPU, `non_blocking=True` or not. From pinned memory the call returns at once, and the copy overlaps kernels. The gain is at least the time the GPU waited for such a call plus what the copies would save at the speed of this recording's own pinned copies; at most all their exposed time.",
            needs: "GPU copies with their memory kind and calls (`--gpu-detail launch`).",
            example: "Exposed pageable copies take 18 % of the step: 4 per step, 6.1 GB/s",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[copies_exposed::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Memory)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Copy from pinned memory: cudaHostAlloc, or cudaHostRegister for an existing buffer."]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("pinned-copies")
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(gpu) = case.gpu() else { return Verdict::Silent };
        if let Some(reason) = gap::without_launches(case).filter(|_| !gpu.copies.is_empty()) {
            return Verdict::Abstain(reason);
        }
        let found = case.moved().iter().filter_map(|moved| look(case, moved));
        let most = found.max_by(|a, b| a.0.mid.total_cmp(&b.0.mid));
        most.map_or(Verdict::Silent, |(_, finding)| finding.into())
    }
}

fn look(case: &Case, moved: &Moved) -> Option<(Share, Finding)> {
    let asynchronous = |name: NameIndex| case.timeline.names.call(name).is_async();
    let fits = |copy: &Copy| {
        let call = copy.piece.launch.map(|launch| NameIndex(case.timeline.slices.name[launch]));
        // Small copies take as long from any memory.
        let large = copy.piece.bytes > SMALL_BYTES;
        large && copy.host_memory() == detail::PAGEABLE && call.is_some_and(asynchronous)
    };
    let tally = moved.tally(|copy| fits(copy).then_some(copy.exposed_ns));
    let exposed = tally.measured();
    // The device waits for calls that copy: as far as those are asynchronous ones.
    let device = case.idle().iter().find(|one| (one.process, one.ordinal) == (moved.process, moved.ordinal))?;
    let held: u64 = device
        .sums
        .tops(|_, cause| cause == Cause::Copy)
        .iter()
        .map(|(who, ns)| match who {
            Who::Api(name) if asynchronous(NameIndex(*name)) => *ns,
            _ => 0,
        })
        .sum();
    let held = if tally.part > 0.0 { held as f64 / device.window_ns.max(1) as f64 } else { 0.0 };
    if exposed.mid + held < case.threshold(MIN_SHARE) {
        return None;
    }
    let speed = moved.speed(fits).unwrap_or(0.0);
    let large = |copy: &Copy| copy.piece.bytes as f64 >= case.threshold(MIN_PINNED_BYTES);
    let pinned = moved.speed(|copy| copy.host_memory() == detail::PINNED && large(copy));
    let faster = pinned.map_or(0.0, |pinned| (1.0 - speed / pinned).max(0.0));
    let (low, high) = (held + exposed.low * faster, (held + exposed.high).min(1.0));
    let gain = Share { low, mid: low.midpoint(high), high };
    let those = || moved.all.iter().filter(|copy| fits(copy));
    let each = those().count() as f64 / case.steps.count().max(1) as f64;
    let bytes: u64 = those().map(|copy| copy.piece.bytes).fold(0, u64::saturating_add);
    let title = format!(
        "Exposed pageable copies take {} of {}: {} per step, {speed:.1} GB/s",
        phrase::percent(exposed.mid + held),
        case.the_step(),
        gap::each(each)
    );
    let longest = those().max_by_key(|copy| copy.exposed_ns);
    let mut evidence = vec![
        Evidence::new(format!(
            "{} over all steps, {} of it exposed",
            phrase::bytes(bytes),
            phrase::duration(tally.part as u64)
        ))
        .number("bytes", bytes as f64),
        Evidence::new(format!("the GPU waits for such a call for {} of step time", phrase::percent(held)))
            .number("held", held),
    ];
    evidence.push(Evidence::new(match pinned {
        Some(pinned) => format!("pinned copies in this recording reach {pinned:.1} GB/s"),
        None => {
            format!(
                "no pinned copy of {} or more in this recording to compare with",
                case.threshold_text(MIN_PINNED_BYTES)
            )
        }
    }));
    evidence.extend(longest.map(|copy| Evidence::at("the longest", None, copy.piece.start, copy.piece.end())));
    let api = longest.and_then(|copy| copy.piece.launch).map(|launch| NameIndex(case.timeline.slices.name[launch]));
    let recorded = gain;
    let gain = case.gain(&[Change::PinCopies], recorded);
    let by = match pinned {
        _ if !case.replayed(&gain) => GainBy::Bounded,
        Some(_) => gain.by,
        None => GainBy::Prior,
    };
    let gain = Gain { by, ..gain };
    if by == GainBy::Prior {
        evidence.push(Evidence::new(
            "measured elsewhere: pinned copies reached 52 of 63 GB/s (83 % of the link) on an H200",
        ));
    }
    let sizes: BTreeSet<u64> = those().map(|copy| copy.piece.bytes).collect();
    // One size for each copy of a step: the buffers can be the same in every step.
    let reused = match sizes.len() as f64 <= each.ceil().max(1.0) {
        true => Precondition::Holds,
        false => Precondition::Unknown("the inputs, whose sizes differ, fit into one buffer that is kept".into()),
    };
    let finding = Finding {
        code: CODE,
        title,
        place: Place { api: api.map(|api| case.timeline.names.text(api).to_owned()), ..Place::default() },
        gain: Some(gain),
        severity: Severity::of_gain(&gain),
        certainty: Certainty::seen(tally.repeats()),
        evidence,
        actions: vec![
            Action::torch("Pin one buffer, reuse it in every step and copy with non_blocking=True")
                .by("buffer = torch.empty(size, pin_memory=True), or DataLoader(pin_memory=True).")
                .needs([reused]),
            Action::torch(
                "Where the input is new in every step, tensor.pin_memory() costs a copy on the CPU each time: let another thread do it, or write into the pinned buffer directly.",
            ),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    };
    Some((recorded, finding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "
        track main
        repeat 30 every 10ms
          step r 0..10ms
          stream 7
          api cudaMemcpyAsync 10us..1.9ms
          copy h2d 1ms..2ms 6000000 pageable
          api cudaLaunchKernel 1.91ms..1.92ms
          kernel forward 2ms..9ms
          api cudaStreamSynchronize 1.93ms..9.01ms
        end";

    #[test]
    fn pageable_copies_that_nothing_hides() {
        let found = found(&PageableAsyncCopy, STEPS);
        assert_eq!(found[0].title, "Exposed pageable copies take 20 % of the step: 1 per step, 6.0 GB/s");
        let gain = found[0].gain.unwrap();
        assert!((gain.low - 9.9).abs() < 0.1 && (gain.high - 19.9).abs() < 0.1, "{gain:?}");
        assert_eq!(gain.by, GainBy::Bounded);
    }

    #[test]
    fn the_link_alone_gives_a_prior() {
        // A small one shows how short the call can be.
        let small = "api cudaMemcpyAsync 9.1ms..9.12ms\n copy h2d 9.2ms..9.21ms 64 pageable\n end";
        let steps = STEPS.replace("end", small);
        let text = format!("{steps}\n counter host gpu_pcie_link_gen 0=5\n counter host gpu_pcie_link_width 0=16");
        let finding = found(&PageableAsyncCopy, &text).remove(0);
        let gain = finding.gain.unwrap();
        assert!(gain.by == GainBy::Prior && gain.low < 1.0 && gain.mid > 10.0, "{gain:?}");
        assert!(finding.evidence.iter().any(|one| one.text.contains("on an H200")), "{:?}", finding.evidence);
    }

    #[test]
    fn pinned_copies_of_the_recording_say_what_is_possible() {
        let both = STEPS.replace(
            "end",
            "api cudaMemcpyAsync 9.1ms..9.12ms\n stream 8\n copy h2d 9.2ms..9.7ms 12000000 pinned\n end",
        );
        let gain = found(&PageableAsyncCopy, &both)[0].gain.unwrap();
        // The call takes 20 µs instead of 1.89 ms, and the copy a quarter of its millisecond.
        assert!((gain.mid - 16.9).abs() < 1.5 && gain.low < gain.mid && gain.by == GainBy::Replay, "{gain:?}");
    }

    #[test]
    fn silent_when_pinned_when_hidden_when_synchronous_and_without_a_gpu() {
        silent(&PageableAsyncCopy, &STEPS.replace("pageable", "pinned"));
        let hidden = STEPS
            .replace("10us..1.9ms", "10us..20us")
            .replace("kernel forward 2ms..9ms", "kernel forward 2ms..9ms\n stream 8\n kernel other 0..9ms");
        silent(&PageableAsyncCopy, &hidden);
        silent(&PageableAsyncCopy, &STEPS.replace("cudaMemcpyAsync", "cudaMemcpy"));
        silent(&PageableAsyncCopy, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_the_calls() {
        abstains(
            &PageableAsyncCopy,
            "track main\n step r 0..1ms\n stream 7\n copy h2d 0..1us 10 pageable corr 0",
            "launch calls not recorded",
        );
    }
}
