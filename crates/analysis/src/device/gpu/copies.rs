//! Copies and memsets by what was copied to what, with the speed that they reached and how much of them no kernel hid.

use super::CopyRow;
use super::busy::Busy;
use std::collections::HashMap;
use timeline::gpu::detail;
use timeline::{Timeline, WorkKind};

pub fn rows(timeline: &Timeline, busy: &Busy) -> Vec<CopyRow> {
    let gpu = &timeline.gpu;
    let mut rows: HashMap<(WorkKind, u8, u8, u8), CopyRow> = HashMap::new();
    for stream in &gpu.streams {
        let device = busy.of(stream.process, stream.device);
        for index in stream.work.clone() {
            let kind = gpu.work.kind(index);
            if !matches!(kind, WorkKind::Memcpy | WorkKind::Memset | WorkKind::Migration) {
                continue;
            }
            let piece = gpu.work.get(index);
            let copy = piece.copy();
            let (direction, source, target) = match kind {
                WorkKind::Memset => (0, 0, 0),
                _ => (copy.direction, copy.source, copy.target),
            };
            let row = rows.entry((kind, direction, source, target)).or_insert_with(|| CopyRow {
                direction,
                source,
                target,
                label: label(kind, direction, source, target),
                count: 0,
                bytes: 0,
                total_ns: 0,
                gb_per_s: 0.0,
                exposed_ns: 0,
            });
            row.count += 1;
            row.bytes = row.bytes.saturating_add(piece.bytes);
            row.total_ns = row.total_ns.saturating_add(piece.dur);
            let hidden = device.map_or(0, |device| device.kernels.overlap(piece.start, piece.end()));
            row.exposed_ns = row.exposed_ns.saturating_add(piece.dur - hidden.min(piece.dur));
        }
    }
    let mut rows: Vec<CopyRow> = rows.into_values().collect();
    for row in rows.iter_mut().filter(|row| row.total_ns > 0) {
        row.gb_per_s = row.bytes as f64 / row.total_ns as f64;
    }
    rows.sort_by(|a, b| (b.total_ns, &a.label).cmp(&(a.total_ns, &b.label)));
    rows
}

fn label(kind: WorkKind, direction: u8, source: u8, target: u8) -> String {
    if kind == WorkKind::Memset {
        return "memset".into();
    }
    // CUPTI's CUpti_ActivityMemcpyKind.
    let what = match direction {
        detail::H2D => "host → device",
        detail::D2H => "device → host",
        3 => "host → array",
        4 => "array → host",
        5 => "array → array",
        6 => "array → device",
        7 => "device → array",
        detail::D2D => "device → device",
        detail::H2H => "host → host",
        detail::P2P => "device → other device",
        _ => "direction not recorded",
    };
    // Only the host's side has kinds of memory that differ in speed.
    let host = match direction {
        detail::H2D | 3 | detail::H2H => source,
        detail::D2H | 4 => target,
        _ => 0,
    };
    let memory = match host {
        detail::PAGEABLE => ", pageable",
        detail::PINNED => ", pinned",
        5 => ", managed",
        _ => "",
    };
    match kind {
        WorkKind::Migration => format!("{what}, unified memory"),
        _ => format!("{what}{memory}"),
    }
}
