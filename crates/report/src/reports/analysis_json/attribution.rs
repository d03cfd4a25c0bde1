//! Every byte of a device by what it is for, in the shape of the analysis JSON: curves that add up to what the driver counts.

use super::times::Micros;
use analysis::memory::attribution::{Attribution, DeviceAttribution, Level, Part};
use diagnosis::Diagnosis;
use diagnosis::wording::memory::not_attributed;
use serde::Serialize;
use timeline::Timeline;

/// Times of a curve: a picture has no more columns.
const MOST: usize = 400;

#[derive(Serialize)]
pub struct Attributed<'a> {
    /// As the driver of the machine numbers it.
    device: u32,
    name: &'a str,
    /// Why nothing is attributed. Null: it is, and the rest is not null.
    abstained: Option<String>,
    level: Option<&'static str>,
    /// How often the driver was asked, and how often the answer is left out.
    samples: Option<usize>,
    samples_left_out: Option<usize>,
    largest_gap_percent: Option<f64>,
    used_peak_bytes: Option<u64>,
    used_end_bytes: Option<u64>,
    parts: Vec<PartOf>,
    time_us: Vec<Micros>,
    used_bytes: Vec<u64>,
}

#[derive(Serialize)]
struct PartOf {
    part: &'static str,
    /// Null: of no recorded process.
    pid: Option<i64>,
    end_bytes: u64,
    peak_bytes: u64,
    /// At each of `time_us`.
    bytes: Vec<u64>,
}

pub fn attribution<'a>(timeline: &'a Timeline, diagnosis: &'a Diagnosis) -> Vec<Attributed<'a>> {
    diagnosis.attribution.iter().map(|one| device(timeline, one)).collect()
}

fn device<'a>(timeline: &'a Timeline, one: &'a DeviceAttribution) -> Attributed<'a> {
    let own = |device: &&timeline::gpu::Device| device.process.is_none() && device.ordinal == one.device;
    let name = timeline.gpu.devices.iter().find(own).map_or("", |device| &device.name);
    let found = one.found.as_ref();
    let of = found.ok();
    let shown = of.map(shown).unwrap_or_default();
    let pick = |all: &[u64]| shown.iter().map(|at| all[*at]).collect::<Vec<u64>>();
    Attributed {
        device: one.device,
        name,
        abstained: found.err().map(not_attributed),
        level: of.map(|of| match of.level {
            Level::Process => "process",
            Level::Device => "device",
        }),
        samples: of.map(|of| of.times.len()),
        samples_left_out: of.map(|of| of.unsettled),
        largest_gap_percent: of.map(|of| (of.off * 1e5).round() / 1e3),
        used_peak_bytes: of.and_then(|of| of.used.iter().copied().max()),
        used_end_bytes: of.and_then(|of| of.used.last().copied()),
        parts: of
            .map(|of| of.parts.iter().map(|part| part_of(timeline, part, pick(&part.bytes))).collect())
            .unwrap_or_default(),
        time_us: of
            .map(|of| pick(&of.times))
            .unwrap_or_default()
            .into_iter()
            .map(|time| Micros::of(time.saturating_sub(timeline.start)))
            .collect(),
        used_bytes: of.map(|of| pick(&of.used)).unwrap_or_default(),
    }
}

fn part_of(timeline: &Timeline, part: &Part, bytes: Vec<u64>) -> PartOf {
    let process = part.process.and_then(|process| timeline.processes.get(process.0 as usize));
    PartOf {
        part: part.kind.name(),
        pid: process.map(|process| process.pid),
        end_bytes: part.end(),
        peak_bytes: part.peak,
        bytes,
    }
}

/// The places of the times that are shown: of many, in each stretch that with the most in use, and the last.
fn shown(of: &Attribution) -> Vec<usize> {
    let all = of.times.len();
    if all <= MOST {
        return (0..all).collect();
    }
    let stretch = |number: usize| number * (all - 1) / (MOST - 1)..(number + 1) * (all - 1) / (MOST - 1);
    let mut places: Vec<usize> =
        (0..MOST - 1).filter_map(|number| stretch(number).max_by_key(|at| of.used[*at])).collect();
    places.push(all - 1);
    places
}
