//! What part of a device's data sheet kernels reach that have nothing wrong with them: as the same recording shows it, else as it was seen on one
//! device. A gain that takes its middle from this says which of the two it was.

use crate::rule::Case;
use analysis::device::kernel_kind::Math;
use analysis::device::ops::{Group, What};
use analysis::device::peaks::{self, Peaks};
use analysis::phrase;
use replay::gain::GainBy;

/// Shorter calls are made of their start and their end.
pub const SHORT_NS: u64 = 10_000;

/// What is itself at less than this part of what was seen elsewhere is nothing to compare with.
const MIN_OF_REFERENCE: f64 = 0.5;

/// A part of the data sheet, and where it was seen.
pub struct ReferenceReach {
    pub part: f64,
    pub words: &'static str,
}

/// All of one device, from the recordings in tests/traces/suite of programs whose sizes are known: `large_gemm`, `math_attention`, `healthy_encoder`
/// and `elementwise_chain`.
pub const PRODUCTS: ReferenceReach =
    ReferenceReach { part: 0.72, words: "products 8,192 wide in BF16 reached 713 of 989 TFLOP/s (72 %) on an H200" };
pub const FP32_PRODUCTS: ReferenceReach =
    ReferenceReach { part: 0.70, words: "products of attention in FP32 reached 47 of 67 TFLOP/s (70 %) on an H200" };
pub const FUSED_ATTENTION: ReferenceReach = ReferenceReach {
    part: 0.47,
    words: "fused attention in BF16, with heads 128 wide, reached 464 of 989 TFLOP/s (47 %) on an H200",
};
pub const STREAMS: ReferenceReach =
    ReferenceReach { part: 0.89, words: "elementwise kernels reached 4,278 of 4,800 GB/s (89 %) on an H200" };

#[derive(Clone)]
pub struct Reach {
    pub part: f64,
    /// A replay where the recording shows it, else a prior.
    pub by: GainBy,
    pub words: String,
}

/// What operators of this kind and type reach where arithmetic (or else memory) limits them: the fastest of the recording that fits.
pub fn of(
    case: &Case,
    peaks: &Peaks,
    what: What,
    math: Math,
    arithmetic: bool,
    fits: impl Fn(&Group) -> bool,
) -> Reach {
    let seen = match (arithmetic, what) {
        (false, _) => STREAMS,
        (true, What::Attention) => FUSED_ATTENTION,
        (true, _) => PRODUCTS,
    };
    let alike = |group: &&Group| {
        let long = group.ns / group.calls.max(1) >= SHORT_NS;
        long && (group.cost.what, group.cost.math) == (what, math) && fits(group)
    };
    let part = |group: &Group| {
        let (floor, by_math) = group.floor_ns(peaks)?;
        (by_math == arithmetic).then(|| (floor / group.ns.max(1) as f64).min(1.0))
    };
    let groups = case.ops().groups.iter().filter(alike);
    let best = groups.filter_map(|group| Some((part(group)?, group))).max_by(|a, b| a.0.total_cmp(&b.0));
    match best.filter(|(part, _)| *part >= MIN_OF_REFERENCE * seen.part) {
        Some((part, group)) => Reach {
            part,
            by: GainBy::Replay,
            words: format!(
                "{} {} of this recording reaches {} of the data sheet",
                case.timeline.names.text(group.name),
                group.shapes,
                phrase::percent(part)
            ),
        },
        None => Reach {
            part: seen.part,
            by: GainBy::Prior,
            words: format!("nothing in this recording to compare with; measured elsewhere: {}", seen.words),
        },
    }
}

/// The table for the documentation.
pub fn page() -> String {
    let mut page = format!(
        "# Peak performance of GPUs\n\nRules that compare with a GPU's peak take it from this table (`crates/analysis/src/device/peaks/devices.csv`): the vendors' data sheets, dense, without \
         sparsity. A bandwidth reported by the driver with the recording takes precedence. Power and clocks keep everything below the data sheet in the long run. What good \
         code reaches of it is taken from the fastest operator of the same kind and dtype in the recording; where there is none, from measurements on one H200, and \
         the gain then says `prior`: {}; {}; {}; {}.\n\n\
         | device | GB/s | FP64 | FP32 | TF32 | FP16 | BF16 | FP8 | INT8 | L2 MiB | link GB/s | W | source |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
        PRODUCTS.words, FP32_PRODUCTS.words, FUSED_ATTENTION.words, STREAMS.words,
    );
    for line in peaks::lines() {
        page += &format!("| {} |\n", line.replace(',', " | "));
    }
    page
}
