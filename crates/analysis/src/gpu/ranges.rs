//! Which work was launched inside which step, scope and NVTX range, by what was open on the launching thread.

use super::RangeRow;
use std::collections::HashMap;
use timeline::{Around, NameIndex, SliceKind, Timeline, WorkKind};

pub fn rows(timeline: &Timeline) -> Vec<RangeRow> {
    let work = &timeline.gpu.work;
    let mut rows: HashMap<(SliceKind, NameIndex), RangeRow> = HashMap::new();
    let mut linked = work.linked().iter().map(|index| *index as usize).peekable();
    for track in &timeline.tracks {
        let mut around = Around::new(timeline, track);
        while let Some((call, open)) = around.next_call() {
            let (mut kernels, mut total_ns) = (0, 0u64);
            while let Some(index) = linked.next_if(|index| work.launch(*index).is_some_and(|launch| launch <= call)) {
                if work.launch(index) == Some(call) && work.kind(index).is_busy() {
                    kernels += u64::from(work.kind(index) == WorkKind::Kernel);
                    total_ns = total_ns.saturating_add(work.dur[index]);
                }
            }
            if kernels == 0 && total_ns == 0 {
                continue;
            }
            // Of ranges with one name inside each other, the work counts once.
            let mut counted: Vec<(SliceKind, NameIndex)> = Vec::new();
            for slice in open.map(|index| timeline.slices.get(index)).filter(|slice| slice.kind != SliceKind::Layer) {
                let key = (slice.kind, slice.name);
                if !counted.contains(&key) {
                    counted.push(key);
                    let empty = RangeRow { kind: slice.kind, name: slice.name, kernels: 0, total_ns: 0 };
                    let row = rows.entry(key).or_insert(empty);
                    row.kernels += kernels;
                    row.total_ns = row.total_ns.saturating_add(total_ns);
                }
            }
        }
    }
    let mut rows: Vec<RangeRow> = rows.into_values().collect();
    rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.kind, row.name));
    rows
}
