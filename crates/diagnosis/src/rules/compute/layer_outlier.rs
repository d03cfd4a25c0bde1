//! `layer-outlier`: one of many layers of the same sort takes far longer than the others.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::{for_layers, not_recorded};
use analysis::GpuMetrics;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use analysis::stats::share::again;
use replay::gain::Gain;
use std::collections::{BTreeSet, HashMap};
use timeline::{CollectorCode, NameIndex};

pub const CODE: RuleCode = RuleCode::new("layer-outlier");

pub struct LayerOutlier;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.02, Unit::Share, "of the layers' time, above the median: less is noise");
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
const MIN_CALLS: Threshold = Threshold::new(
    CODE,
    "min_calls",
    4.0,
    Unit::Count,
    "on a CPU: in fewer calls of a model one layer may be disturbed in each",
);

impl Rule for LayerOutlier {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_RATIO, MIN_STEP_SHARE, MIN_LAYERS, MIN_CALLS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A layer takes {min_ratio} times as long as the median of more than {min_layers} of the same kind, and {min_share} of the layers' time and {min_step_share} of the step or more above it.",
            why: "Layers whose names differ only in the block number do the same: layers.0.mlp.2 and layers.1.mlp.2, but not layers.0.mlp.0. One that takes longer runs another kernel (an unfavourable shape, a cache miss), was left out of a fusion, or has extra work. The gain is what it takes above the median of its siblings, as a share of the step; at least above the longest of them, at most above the shortest. A layer's time is that of its kernels; without a GPU it is its own time on the CPU, without the layers inside it, in the call of the model in which it took least, and only layers that run the same operators on the same shapes are compared.",
            needs: "Layers (`--layers`, or torch.profiler with modules); without a GPU also operators (`--ops`, on by default).",
            example: "layers.17.mlp takes 3.2 times as long as its 31 siblings: 410 µs per step instead of 128 µs",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let layers = match case.gpu() {
            Some(gpu) if gpu.layers.is_empty() => {
                let plain = format!("layers not recorded; {}", for_layers(case.timeline.info.recorded_by));
                return Verdict::NeedsTorch(not_recorded(case.timeline, CollectorCode::Layers, &plain));
            }
            Some(gpu) => of_kernels(case, gpu),
            None if case.host_layers().is_empty() => return Verdict::Silent,
            None => on_host(case),
        };
        let sorts = sorts(&layers.rows);
        let outliers =
            sorts.values().filter(|rows| rows.len() > (case.threshold(MIN_LAYERS) as usize)).filter_map(|rows| {
                let mut times: Vec<u64> = rows.iter().map(|row| row.ns).collect();
                times.sort_unstable();
                let (usual, row) = (percentile(&times, 50), rows.iter().max_by_key(|row| row.ns)?);
                let (shortest, longest) = (times[0], times[times.len() - 2]);
                let mut most: Vec<u64> = rows.iter().map(|row| row.most_ns).collect();
                most.sort_unstable();
                let clearly = row.ns >= percentile(&most, 50);
                (clearly && row.ns as f64 >= case.threshold(MIN_RATIO) * usual as f64)
                    .then(|| (row.ns - usual, usual, *row, rows.len() - 1, [longest, shortest]))
            });
        let Some((above, usual, row, sisters, [longest, shortest])) = outliers.max_by_key(|one| one.0) else {
            return Verdict::Silent;
        };
        if (above as f64) < case.threshold(MIN_SHARE) * layers.all_ns as f64 {
            return Verdict::Silent;
        }
        let share_of = |above: u64| above as f64 / layers.all_ns.max(1) as f64 * layers.of_step;
        let share = share_of(above);
        if share < case.threshold(MIN_STEP_SHARE) {
            return Verdict::Silent;
        }
        let beyond = |sister: u64| 100.0 * share_of(row.ns.saturating_sub(sister));
        let gain = Gain::recorded(beyond(longest), 100.0 * share, beyond(shortest));
        let each = |ns: u64| phrase::duration(ns / layers.turns);
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} takes {:.1} times as long as its {sisters} siblings: {} per {} instead of {}",
                row.name,
                row.ns as f64 / usual.max(1) as f64,
                each(row.ns),
                layers.turn,
                each(usual)
            ),
            place: Place { module: Some(row.name.to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::Low,
            certainty: Certainty::seen(again(sisters)),
            evidence: vec![Evidence::new(row.said.clone())],
            actions: vec![
                layers.compare.into(),
                "Check its shapes: print(layer.weight.shape, layer.weight.dtype, layer.weight.is_contiguous()).".into(),
            ],
            verify: proof::verify(case, share),
        };
        finding.into()
    }
}

/// The layers of a recording, by the time that each has in so many turns.
struct Layers<'a> {
    rows: Vec<Layer<'a>>,
    all_ns: u64,
    /// The part of a step that all of them take.
    of_step: f64,
    turns: u64,
    turn: &'static str,
    compare: &'static str,
}

struct Layer<'a> {
    name: &'a str,
    /// What it does, where names do not say enough: only layers that do the same are compared.
    work: String,
    ns: u64,
    /// In the turn in which it took most.
    most_ns: u64,
    said: String,
}

fn of_kernels<'a>(case: &'a Case, gpu: &GpuMetrics) -> Layers<'a> {
    let row = |row: &analysis::device::gpu::LayerRow| Layer {
        name: case.timeline.names.text(row.name),
        work: String::new(),
        ns: row.total_ns,
        most_ns: row.total_ns,
        said: format!("{} of its kernels, {} in total", phrase::count(row.kernels), phrase::duration(row.total_ns)),
    };
    Layers {
        rows: gpu.layers.iter().map(row).collect(),
        all_ns: gpu.kernels.iter().map(|row| row.total_ns).fold(0, u64::saturating_add),
        of_step: case.kernels().iter().map(|device| case.kernels_busy(device)).fold(0.0, f64::max),
        turns: case.steps.steps.len().max(1) as u64,
        turn: "step",
        compare: "Compare its kernels with a sibling's: a scope around each, or the kernel table by layer.",
    }
}

/// Each in the call of the model in which it took least: what else runs on the machine only adds to it. Layers are alike if they run the same
/// operators on the same shapes: those of an nn.Sequential are numbered, too, and do not. Of a layer whose operators were not recorded that is
/// not known.
fn on_host<'a>(case: &'a Case) -> Layers<'a> {
    let (layers, mut work) = (case.host_layers(), work(case));
    let mut row = |row: &analysis::HostLayer| Layer {
        name: case.timeline.names.text(row.name),
        work: work.remove(case.timeline.names.text(row.name)).unwrap_or_default(),
        ns: row.each_ns.iter().copied().min().unwrap_or(0),
        most_ns: row.each_ns.iter().copied().max().unwrap_or(0),
        said: format!(
            "{} of its own on the CPU in {} of the model",
            phrase::duration(row.own_ns),
            phrase::counted(row.each_ns.len() as u64, "recorded call")
        ),
    };
    let call_ns = layers.call_ns().max(1);
    Layers {
        rows: layers
            .rows
            .iter()
            .filter(|row| row.each_ns.len() as f64 >= case.threshold(MIN_CALLS))
            .map(&mut row)
            .filter(|row| !row.work.is_empty())
            .collect(),
        all_ns: call_ns,
        of_step: call_ns as f64 / case.steps.p50().max(call_ns) as f64,
        turns: 1,
        turn: "call of the model",
        compare: "Compare its operators with a sibling's: the operator table names the module of each.",
    }
}

/// What each module runs itself: operators with their shapes, each once.
fn work<'a>(case: &'a Case) -> HashMap<&'a str, String> {
    let mut each: HashMap<&str, BTreeSet<(NameIndex, &str)>> = HashMap::new();
    for op in case.dataflow().looks.iter().flat_map(|look| &look.ops).filter(|op| !op.module.is_empty() && !op.is_view)
    {
        each.entry(op.module).or_default().insert((op.name, op.signature));
    }
    each.into_iter().map(|(module, ops)| (module, format!("{ops:?}"))).collect()
}

/// Layers by their name without one of its numbers: the first that others have another of.
fn sorts<'a>(layers: &'a [Layer<'a>]) -> HashMap<String, Vec<&'a Layer<'a>>> {
    let mut alike: HashMap<String, u32> = HashMap::new();
    for row in layers {
        kinds(row).for_each(|sort| *alike.entry(sort).or_default() += 1);
    }
    let mut sorts: HashMap<String, Vec<&Layer>> = HashMap::new();
    for row in layers {
        let sort = kinds(row).find(|sort| alike[sort] > 1);
        sort.into_iter().for_each(|sort| sorts.entry(sort).or_default().push(row));
    }
    sorts
}

fn kinds(row: &Layer) -> impl Iterator<Item = String> {
    without_one_number(row.name).map(|name| format!("{name} {}", row.work))
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
        assert!((found[0].confidence() - 8.0 / 9.0).abs() < 1e-9, "{}", found[0].confidence());
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

    /// Ten calls of a model of eight layers, 200 µs each but for the sixth; the last call was disturbed.
    fn on_a_cpu(slow: u64) -> String {
        let mut text = String::from("track main\n repeat 10 every 10ms\n step r 0..5ms\n layer Model 0..4ms\n");
        for layer in 0..8u64 {
            let (at, us) = (layer * 300, if layer == 5 { slow } else { 200 });
            // Those after the slow one begin later by what it takes more.
            let at = if layer > 5 { at + slow - 200 } else { at };
            text += &format!("layer layers.{layer}.mlp {at}us..{}us\n", at + us);
        }
        text += "end\n step r 200ms..205ms\n layer Model 200ms..204ms\n layer layers.3.mlp 200ms..203ms\n";
        for layer in 0..8 {
            text += &format!(
                "op aten::mm {}us..{}us args {{\"Input~Dims\":[[8,8]],\"device\":\"cpu\",\"module\":\"layers.{layer}.mlp\",\"turn\":[0,0]}}\n",
                300_000 + 10 * layer,
                300_010 + 10 * layer
            );
        }
        text
    }

    #[test]
    fn layers_on_a_cpu_by_their_own_time() {
        let said = &found(&LayerOutlier, &on_a_cpu(800))[0];
        assert_eq!(
            said.title,
            "layers.5.mlp takes 4.0 times as long as its 7 siblings: 800 µs per call of the model instead of 200 µs"
        );
        // 600 µs of a step of 5 ms.
        assert!(said.gain.is_some_and(|gain| (gain.mid - 12.0).abs() < 0.5), "{:?}", said.gain);
        assert!(said.actions[0].contains("operator table"));
        // One disturbed call makes no outlier.
        silent(&LayerOutlier, &on_a_cpu(200));
        // One that works on other shapes does not do the same, and without operators nobody knows.
        let other = "\"Input~Dims\":[[8,8]],\"device\":\"cpu\",\"module\":\"layers.5.mlp\"";
        assert!(on_a_cpu(800).contains(other));
        silent(&LayerOutlier, &on_a_cpu(800).replace(other, &other.replace("[8,8]", "[8,9]")));
        silent(&LayerOutlier, &on_a_cpu(800).replace("\"module\"", "\"other\""));
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
