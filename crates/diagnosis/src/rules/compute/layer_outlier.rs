//! `layer-outlier`: one of many layers of the same sort takes far longer than the others.

use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::LayerRow;
use analysis::origin::Recorder;
use analysis::origin::not_recorded;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use analysis::stats::share::again;
use replay::gain::Gain;
use std::collections::HashMap;

pub const CODE: RuleCode = RuleCode::new("layer-outlier");

pub struct LayerOutlier;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.02, Unit::Share, "of kernel time, above the median: less is noise");
const MIN_RATIO: Threshold =
    Threshold::new(CODE, "min_ratio", 1.5, Unit::Times, "layers of one kind vary by less on their own");
const MIN_STEP_SHARE: Threshold =
    Threshold::new(CODE, "min_step_share", 0.01, Unit::Share, "less than a hundredth of the step is not worth it");
const MIN_LAYERS: Threshold = Threshold::new(
    CODE,
    "min_layers",
    4.0,
    Unit::Count,
    "with fewer layers of one kind there is no telling what is typical",
);

impl Rule for LayerOutlier {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_RATIO, MIN_STEP_SHARE, MIN_LAYERS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A layer takes {min_ratio} times as long as the median of more than {min_layers} of the same kind, and {min_share} of kernel time and {min_step_share} of the step or more above it.",
            why: "Layers whose names differ only in the block number do the same: layers.0.mlp.2 and layers.1.mlp.2, but not layers.0.mlp.0. One that takes longer runs another kernel (an unfavourable shape, a cache miss), was left out of a fusion, or has extra work. The gain is what it takes above the median of its siblings, as a share of the step; at least above the longest of them, at most above the shortest.",
            needs: "GPU operations with layers (`--layers`, or torch.profiler with modules).",
            example: "layers.17.mlp takes 3.2 times as long as its 31 siblings: 410 µs per step instead of 128 µs",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(gpu) = case.gpu() else { return Verdict::Silent };
        if gpu.layers.is_empty() {
            let plain = format!("layers not recorded; {}", Recorder::of(case.timeline).for_layers());
            return Verdict::Abstain(not_recorded(case.timeline, "layers", &plain));
        }
        let sorts = sorts(&gpu.layers, |row| case.timeline.names.text(row.name));
        let all: u64 = gpu.kernels.iter().map(|row| row.total_ns).fold(0, u64::saturating_add);
        let outliers =
            sorts.values().filter(|rows| rows.len() > (case.threshold(MIN_LAYERS) as usize)).filter_map(|rows| {
                let mut times: Vec<u64> = rows.iter().map(|row| row.total_ns).collect();
                times.sort_unstable();
                let (usual, row) = (percentile(&times, 50), rows.iter().max_by_key(|row| row.total_ns)?);
                let (shortest, longest) = (times[0], times[times.len() - 2]);
                (row.total_ns as f64 >= case.threshold(MIN_RATIO) * usual as f64)
                    .then(|| (row.total_ns - usual, usual, *row, rows.len() - 1, [longest, shortest]))
            });
        let Some((above, usual, row, sisters, [longest, shortest])) = outliers.max_by_key(|one| one.0) else {
            return Verdict::Silent;
        };
        if (above as f64) < case.threshold(MIN_SHARE) * all as f64 {
            return Verdict::Silent;
        }
        let busy = case.kernels().iter().map(|device| case.kernels_busy(device)).fold(0.0, f64::max);
        let share_of = |above: u64| above as f64 / all.max(1) as f64 * busy;
        let share = share_of(above);
        if share < case.threshold(MIN_STEP_SHARE) {
            return Verdict::Silent;
        }
        let beyond = |sister: u64| 100.0 * share_of(row.total_ns.saturating_sub(sister));
        let gain = Gain::recorded(beyond(longest), 100.0 * share, beyond(shortest));
        let name = case.timeline.names.text(row.name);
        let each = |ns: u64| phrase::duration(ns / case.steps.steps.len().max(1) as u64);
        let finding = Finding {
            code: CODE,
            title: format!(
                "{name} takes {:.1} times as long as its {sisters} siblings: {} per step instead of {}",
                row.total_ns as f64 / usual.max(1) as f64,
                each(row.total_ns),
                each(usual)
            ),
            place: Place { module: Some(name.to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::Low,
            confidence: again(sisters),
            evidence: vec![Evidence::said(format!(
                "{} of its kernels, {} in total",
                phrase::count(row.kernels),
                phrase::duration(row.total_ns)
            ))],
            actions: vec![
                "Compare its kernels with a sibling's: a scope around each, or the kernel table by layer.".into(),
                "Check its shapes: print(layer.weight.shape, layer.weight.dtype, layer.weight.is_contiguous()).".into(),
            ],
            verify: proof::verify(case, share),
        };
        finding.into()
    }
}

/// Layers by their name without one of its numbers: the first that others have another of.
fn sorts<'a>(layers: &'a [LayerRow], name: impl Fn(&'a LayerRow) -> &'a str) -> HashMap<String, Vec<&'a LayerRow>> {
    let mut alike: HashMap<String, u32> = HashMap::new();
    for row in layers {
        without_one_number(name(row)).for_each(|sort| *alike.entry(sort).or_default() += 1);
    }
    let mut sorts: HashMap<String, Vec<&LayerRow>> = HashMap::new();
    for row in layers {
        let sort = without_one_number(name(row)).find(|sort| alike[sort] > 1);
        sort.into_iter().for_each(|sort| sorts.entry(sort).or_default().push(row));
    }
    sorts
}

/// `layers.*.mlp.2`, `layers.0.mlp.*`.
fn without_one_number(name: &str) -> impl Iterator<Item = String> {
    let parts: Vec<&str> = name.split('.').collect();
    let number = |part: &&str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_digit());
    let places: Vec<usize> = (0..parts.len()).filter(|place| number(&parts[*place])).collect();
    places.into_iter().map(move |place| {
        let mut parts = parts.clone();
        parts[place] = "*";
        parts.join(".")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(slow: u64) -> String {
        let mut text = String::from("track main\n repeat 10 every 10ms\n step r 0..9ms\n stream 7\n");
        for layer in 0..8u64 {
            let at = layer * 1000;
            let us = if layer == 5 { slow } else { 200 };
            text += &format!(
                "layer layers.{layer}.mlp {at}us..{}us\n api cudaLaunchKernel {}us..{}us\n kernel gemm {}us..{}us\n",
                at + 50,
                at + 10,
                at + 15,
                at + 20,
                at + 20 + us
            );
        }
        text + "end"
    }

    #[test]
    fn one_layer_of_eight() {
        let found = found(&LayerOutlier, &steps(800));
        assert_eq!(
            found[0].title,
            "layers.5.mlp takes 4.0 times as long as its 7 siblings: 800 µs per step instead of 200 µs"
        );
        assert!(found[0].gain.is_some_and(|gain| (gain.mid - 6.7).abs() < 0.5), "{:?}", found[0].gain);
        assert!((found[0].confidence - 8.0 / 9.0).abs() < 1e-9, "{}", found[0].confidence);
    }

    #[test]
    fn sisters_that_differ_give_the_range() {
        let text =
            steps(800).replacen("2020us..2220us", "2020us..2420us", 1).replacen("3020us..3220us", "3020us..3120us", 1);
        let gain = found(&LayerOutlier, &text)[0].gain.unwrap();
        let close = |percent: f64, us: f64| (percent - us / 90.0).abs() < 0.4;
        assert!(close(gain.low, 400.0) && close(gain.mid, 600.0) && close(gain.high, 700.0), "{gain:?}");
    }

    /// Two layers of each block, one of which takes long in every block.
    #[test]
    fn silent_when_it_is_long_in_every_block_and_when_it_is_little_of_the_step() {
        let text = steps(200).replace(".mlp ", ".mlp.0 ");
        let mut both = text.trim_end_matches("end").to_owned();
        for layer in 0..8u64 {
            let at = layer * 1000 + 400;
            both += &format!(
                "layer layers.{layer}.mlp.2 {at}us..{}us\n api cudaLaunchKernel {}us..{}us\n kernel gemm {}us..{}us\n",
                at + 50,
                at + 10,
                at + 15,
                at + 20,
                at + if layer < 2 { 420 } else { 421 }
            );
        }
        silent(&LayerOutlier, &(both + "end"));
        silent(
            &LayerOutlier,
            &steps(800).replace("step r 0..9ms", "step r 0..90ms").replace("every 10ms", "every 100ms"),
        );
    }

    #[test]
    fn silent_when_all_are_alike_and_without_a_gpu() {
        silent(&LayerOutlier, &steps(220));
        silent(&LayerOutlier, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_layers() {
        abstains(
            &LayerOutlier,
            "track main\n step r 0..1ms\n api cudaLaunchKernel 0..1us\n stream 7\n kernel k 2us..9us",
            "layers",
        );
    }
}
