//! Where a step's time goes, in the analysis JSON: by what its thread was doing, by where it waited, and by why devices were idle.

use super::times::Micros;
use crate::in_steps;
use crate::percentages::shared;
use analysis::{Breakdown, Part, PartKind};
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::Timeline;

#[derive(Serialize)]
pub struct Category {
    category: &'static str,
    duration_us: Micros,
    percentage: f64,
}

#[derive(Default, Serialize)]
pub struct Idle<'a> {
    /// Null: the step's thread.
    device: Option<u32>,
    pid: Option<i64>,
    category: &'static str,
    function: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<u32>,
    api: Option<&'a str>,
    duration_us: Micros,
    percentage: f64,
}

fn category(kind: PartKind) -> &'static str {
    match kind {
        PartKind::Python => "python",
        PartKind::Native => "native",
        PartKind::Waiting => "waiting",
        PartKind::Gpu => "gpu_wait",
        PartKind::Gil => "gil",
        PartKind::Gc => "garbage_collection",
        PartKind::Descheduled => "descheduled",
        PartKind::Unknown => "unknown",
    }
}

/// The thread of the step does not run.
pub fn is_idle(kind: PartKind) -> bool {
    matches!(kind, PartKind::Waiting | PartKind::Gpu | PartKind::Gil | PartKind::Descheduled)
}

/// Percentages with three decimals, that add up to 100.
fn percentages(times: &[u64]) -> impl Iterator<Item = f64> {
    shared(100_000, times).into_iter().map(|share| share as f64 / 1e3)
}

pub fn timeline_breakdown(breakdown: &Breakdown) -> Vec<Category> {
    let total = |kind: PartKind| {
        let parts = breakdown.parts.iter().filter(move |part| part.kind == kind);
        parts.fold((0u64, 0u64), |(all, mean), part| (all.saturating_add(part.total_ns), mean.saturating_add(part.ns)))
    };
    let kinds: Vec<_> = PartKind::ALL.map(|kind| (kind, total(kind))).into_iter().filter(|kind| kind.1.0 > 0).collect();
    let totals: Vec<u64> = kinds.iter().map(|kind| kind.1.0).collect();
    let row = |((kind, (_, mean)), percentage): ((PartKind, (u64, u64)), f64)| Category {
        category: category(kind),
        duration_us: Micros::of(mean),
        percentage,
    };
    kinds.into_iter().zip(percentages(&totals)).map(row).collect()
}

/// Where a step waits; places beyond this are one.
const MOST_IDLE: usize = 20;

/// Why each device was idle, with its busy time, where devices were recorded; else where the step's thread waits.
pub fn idle_breakdown<'a>(timeline: &Timeline, diagnosis: &'a Diagnosis) -> Vec<Idle<'a>> {
    if diagnosis.idle.is_empty() {
        return host_idle(&diagnosis.breakdown);
    }
    let mut rows = Vec::new();
    for device in diagnosis.idle.iter().filter(|device| device.window_ns > 0) {
        let steps = in_steps::count(timeline, diagnosis, device.process);
        let pid = Some(timeline.processes[device.process.0 as usize].pid).filter(|pid| *pid > 0);
        let times: Vec<u64> = [device.busy_ns].into_iter().chain(device.causes.iter().map(|one| one.ns)).collect();
        let mut shares = percentages(&times);
        let mut row = |category: &'static str, ns: u64| Idle {
            device: Some(device.ordinal),
            pid,
            category,
            duration_us: Micros::of(ns / steps),
            percentage: shares.next().unwrap_or(0.0),
            ..Idle::default()
        };
        rows.push(row("busy", device.busy_ns));
        for one in &device.causes {
            let top = one.top.as_ref();
            rows.push(Idle {
                function: top.and_then(|place| place.function.as_deref()),
                file: top.and_then(|place| place.file.as_deref()),
                line: top.and_then(|place| place.line),
                api: top.and_then(|place| place.api.as_deref()),
                ..row(one.cause.code(), one.ns)
            });
        }
    }
    rows
}

fn host_idle(breakdown: &Breakdown) -> Vec<Idle<'_>> {
    let idle: Vec<&Part> = breakdown.parts.iter().filter(|part| is_idle(part.kind)).collect();
    let (shown, rest) = idle.split_at(idle.len().min(MOST_IDLE));
    let sum = |time: fn(&Part) -> u64| rest.iter().fold(0u64, |sum, part| sum.saturating_add(time(part)));
    let mut totals: Vec<u64> = shown.iter().map(|part| part.total_ns).collect();
    totals.push(sum(|part| part.total_ns));
    let mut rows: Vec<Idle> = shown.iter().map(|part| idle_at(part)).collect();
    if !rest.is_empty() {
        let duration_us = Micros::of(sum(|part| part.ns));
        rows.push(Idle { category: "other", duration_us, ..Idle::default() });
    }
    rows.iter_mut().zip(percentages(&totals)).for_each(|(row, percentage)| row.percentage = percentage);
    rows
}

/// Its percentage is known when all are.
fn idle_at(part: &Part) -> Idle<'_> {
    Idle {
        category: category(part.kind),
        // A part without a place is named after its kind.
        function: (part.label != part.kind.name()).then_some(part.label.as_str()),
        file: (!part.file.is_empty()).then_some(part.file.as_str()),
        line: (part.line > 0).then_some(part.line),
        duration_us: Micros::of(part.ns),
        ..Idle::default()
    }
}
