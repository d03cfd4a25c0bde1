//! Every byte of a device by what it is for, in the words that the text and the Markdown report share.

use crate::streams::device_title;
use crate::units::{bytes, counted, percent_of};
use analysis::memory::attribution::{Attribution, DeviceAttribution, Level, NotAttributed, Part, PartKind};
use diagnosis::wording::memory::not_attributed;
use timeline::Timeline;

pub fn title(timeline: &Timeline, one: &DeviceAttribution) -> String {
    let own = |device: &&timeline::gpu::Device| device.process.is_none() && device.ordinal == one.device;
    let name = timeline.gpu.devices.iter().find(own).map_or("", |device| &*device.name);
    format!("Memory in use on {}", device_title(one.device, name))
}

/// What the driver counted, and how well the parts fit.
pub fn note(found: &Attribution) -> String {
    let most = found.used.iter().copied().max().unwrap_or(0);
    let asked = counted(found.times.len() as u64, "reading");
    let off = if found.off > 0.0 { format!(", parts up to {:.1} % apart", found.off * 100.0) } else { String::new() };
    format!("{} at most, by {asked} of the driver{off}", bytes(most))
}

/// Why nothing is attributed, as a line.
pub fn refusal(why: &NotAttributed) -> String {
    format!("not attributed: {}", not_attributed(why))
}

/// Share of the end, bytes at the end and at most, what it is: of each part, most first.
pub fn rows(timeline: &Timeline, found: &Attribution) -> Vec<(String, String, String, String)> {
    let used = found.used.last().copied().unwrap_or(0);
    let row = |one: &Part| (percent_of(one.end(), used), bytes(one.end()), bytes(one.peak), part(timeline, found, one));
    largest_first(found).into_iter().map(row).collect()
}

/// What each part is and its bytes at the end, most first.
pub fn parts<'a>(timeline: &'a Timeline, found: &'a Attribution) -> impl Iterator<Item = (String, u64)> + 'a {
    largest_first(found).into_iter().map(|part| (self::part(timeline, found, part), part.end()))
}

fn largest_first(found: &Attribution) -> Vec<&Part> {
    let mut parts: Vec<&Part> = found.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse((part.end(), part.peak)));
    parts
}

/// What a part is; and of which process, where there are several.
pub fn part(timeline: &Timeline, found: &Attribution, part: &Part) -> String {
    let pid = part.process.and_then(|process| timeline.processes.get(process.0 as usize)).map(|process| process.pid);
    let of = pid.filter(|_| timeline.processes.len() > 1).map_or(String::new(), |pid| format!(" (pid {pid})"));
    format!("{}{of}", said(part.kind, found.level))
}

fn said(kind: PartKind, level: Level) -> &'static str {
    match (kind, level) {
        (PartKind::OtherProcesses, _) => "other processes",
        (PartKind::Unlisted, _) => "of no process that the driver lists",
        (PartKind::Before, _) => "in use before the program (other processes, the driver)",
        (PartKind::Context, Level::Process) => "CUDA context and libraries",
        (PartKind::Context, Level::Device) => "CUDA context and libraries (the driver does not tell processes apart)",
        (PartKind::Driver, _) => "allocated outside PyTorch's allocator (libraries, the program)",
        (PartKind::DriverPool, _) => "pools of the driver (cudaMallocAsync)",
        (PartKind::Cached, _) => "PyTorch's allocator, free",
        (PartKind::InUse, _) => "PyTorch's allocator, in use",
        (PartKind::Hidden, Level::Process) => "grown after the first step, by no recorded call",
        (PartKind::Hidden, Level::Device) => "grown after the first step, by no recorded call, or other processes",
    }
}
