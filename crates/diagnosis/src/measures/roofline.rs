//! What the rules of the roofline share: which part of the kernels' time arithmetic or memory limits, by the shapes of operators where they were
//! recorded, else by what the names of kernels say.

use crate::finding::Evidence;
use crate::rule::Case;
use analysis::device::kernel_kind::Class;
use analysis::device::ops::Group;
use analysis::device::step_kernels::{Row, StepKernels};
use analysis::phrase;
use analysis::place::Place;

/// And most of its time goes there.
const MAJORITY: f64 = 0.5;
/// Shapes speak for the kernels where they cover so much of their time.
const MIN_COVERED: f64 = 0.5;
/// Tiles of libraries for products that have enough rows and columns to be limited by arithmetic.
const LARGE_TILE: u32 = 64;

/// Tiles for products with a few rows or columns, whose weights are read for hardly any arithmetic.
const SMALL_TILE: u32 = 16;

pub struct Bound<'a> {
    pub device: &'a StepKernels,
    /// The part of the steps in which a kernel runs.
    pub busy: f64,
    /// Of the kernels' time.
    pub part: f64,
    pub by_shapes: bool,
}

/// Parts of the kernels' time.
pub struct Parts {
    pub compute: f64,
    pub memory: f64,
}

/// The busiest device, where its kernels run for at least this part of the steps and most of their time is what is asked for.
pub fn look<'a>(case: &'a Case, least_busy: f64, part: impl Fn(&Parts) -> f64) -> Option<Bound<'a>> {
    let devices = case.kernels().iter().map(|device| (device, case.kernels_busy(device)));
    let (device, busy) = devices.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, busy)| *busy >= least_busy)?;
    let shapes = by_shapes(case, device);
    let by_shapes = shapes.is_some();
    let part = part(&shapes.unwrap_or_else(|| by_names(device)));
    (part >= MAJORITY).then_some(Bound { device, busy, part, by_shapes })
}

/// None: too few kernels have an operator with shapes, or the device's peaks are not known.
fn by_shapes(case: &Case, device: &StepKernels) -> Option<Parts> {
    let (ops, peaks) = (case.ops(), device.peaks(case)?);
    if ops.covered() < MIN_COVERED {
        return None;
    }
    let mut parts = Parts { compute: 0.0, memory: 0.0 };
    for group in &ops.groups {
        let part = if group.floor_ns(&peaks)?.1 { &mut parts.compute } else { &mut parts.memory };
        *part += group.ns as f64 / ops.kernel_ns.max(1) as f64;
    }
    Some(parts)
}

fn by_names(device: &StepKernels) -> Parts {
    Parts { compute: device.of_kernels(computes), memory: device.of_kernels(streams) }
}

/// By its name, memory limits it: little arithmetic for each byte, or a product with few rows or columns.
fn streams(row: &Row) -> bool {
    let few = row.kind.class == Class::Matmul && row.kind.tile.is_some_and(|tile| tile <= SMALL_TILE);
    row.kind.class.streams() || row.kind.class == Class::Gemv || few
}

/// By its name, arithmetic limits it.
pub fn computes(row: &Row) -> bool {
    let kind = &row.kind;
    let large = kind.tile.is_none_or(|tile| tile >= LARGE_TILE);
    match kind.class {
        // What lies badly in memory is fed too slowly, whatever the units could do.
        Class::Matmul | Class::Convolution => {
            kind.tensor_cores == Some(true) && large && kind.unaligned() != Some(true)
        }
        Class::Attention => true,
        _ => false,
    }
}

impl Bound<'_> {
    /// How sure it is: by the number of steps, and by the part of the kernels' time that shapes or names tell of.
    pub fn confidence(&self, case: &Case) -> f64 {
        let told = match self.by_shapes {
            true => case.ops().covered().min(1.0),
            false => self.device.of_kernels(|row| row.kind.class != Class::Other),
        };
        told * self.device.tally(case, |_| true).repeats()
    }

    pub fn how(&self) -> String {
        if self.by_shapes {
            "by the shapes of the operators and the data sheet of the device".into()
        } else {
            "by the names of the kernels: shapes were not recorded".into()
        }
    }

    /// What the operator with most time reaches.
    pub fn reached(&self, case: &Case) -> Option<Evidence> {
        let peaks = self.device.peaks(case).filter(|_| self.by_shapes)?;
        let group = case.ops().groups.first()?;
        let text = speed(case, group, peaks.math(group.cost.math)?, peaks.bandwidth);
        Some(Evidence::new(format!("{text} ({})", peaks.source)))
    }
}

/// "aten::mm [4096, 8192] [8192, 8192]: 633 of 989 TFLOP/s, 120 of 4,800 GB/s".
pub fn speed(case: &Case, group: &Group, math: f64, bandwidth: f64) -> String {
    let calls = group.calls as f64 / group.ns.max(1) as f64;
    let of = |reached: f64, peak: f64| {
        format!("{} of {}", phrase::count(reached.round() as u64), phrase::count(peak.round() as u64))
    };
    format!(
        "{} {}: {} TFLOP/s, {} GB/s",
        case.timeline.names.text(group.name),
        group.shapes,
        of(group.cost.flops * calls / 1e3, math),
        of(group.cost.bytes * calls, bandwidth)
    )
}

/// The kernel with the line and the layer that launch it, where they are known.
pub fn place(case: &Case, row: &Row) -> Place {
    let known = case.gpu().and_then(|gpu| gpu.kernels.iter().find(|one| one.name == row.name));
    Place {
        kernel: Some(case.timeline.names.text(row.name).to_owned()),
        module: known.and_then(|known| known.layer.as_ref()?.path()).map(str::to_owned),
        ..known.and_then(|known| known.place.clone()).unwrap_or_default()
    }
}

/// ` (model.py:120)`, the line that launches it; nothing where the line is not known.
pub fn launched(place: &Place) -> String {
    match place.function {
        Some(_) => format!(" ({})", phrase::line(place)),
        None => String::new(),
    }
}
