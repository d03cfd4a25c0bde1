//! Which work was launched inside which step, scope and NVTX range: by what was open on the launching thread, and where that has none
//! of a kind, by what the only thread has that does.

use super::RangeRow;
use super::only::{KINDS, Only};
use std::collections::HashMap;
use std::rc::Rc;
use timeline::{Around, NameIndex, SliceKind, Timeline, WorkKind};

pub fn rows(timeline: &Timeline) -> Vec<RangeRow> {
    let work = &timeline.gpu.work;
    let mut rows: Vec<RangeRow> = Vec::new();
    let mut places: HashMap<(SliceKind, NameIndex), usize> = HashMap::new();
    // What was open around the last call, and its rows: mostly that of the next too.
    let (mut last, mut last_rows): (Vec<usize>, Vec<usize>) = Default::default();
    let mut now: Vec<usize> = Vec::new();
    let mut linked = work.linked().iter().map(|index| *index as usize).peekable();
    let processes = timeline.tracks.chunk_by(|a, b| a.process == b.process);
    let threads = processes.flat_map(|tracks| {
        let only = Rc::new(Only::of(timeline, tracks));
        tracks.iter().map(move |track| (track, only.clone()))
    });
    for (track, only) in threads {
        let mut near = [0; KINDS.len()];
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
            now.clear();
            now.extend(open.filter(|index| timeline.slices.kind(*index) != SliceKind::Layer));
            let own = now.len();
            for ((kind, only), near) in KINDS.iter().zip(&*only).zip(&mut near) {
                if !now[..own].iter().any(|index| timeline.slices.kind(*index) == *kind) {
                    now.extend(only.at(timeline.slices.start[call], near));
                }
            }
            if now != last {
                last_rows.clear();
                for slice in now.iter().map(|index| timeline.slices.get(*index)) {
                    let place = *places.entry((slice.kind, slice.name)).or_insert(rows.len());
                    if place == rows.len() {
                        rows.push(RangeRow { kind: slice.kind, name: slice.name, kernels: 0, total_ns: 0 });
                    }
                    // Of ranges with one name inside each other, the work counts once.
                    if !last_rows.contains(&place) {
                        last_rows.push(place);
                    }
                }
                std::mem::swap(&mut last, &mut now);
            }
            for place in &last_rows {
                rows[*place].kernels += kernels;
                rows[*place].total_ns = rows[*place].total_ns.saturating_add(total_ns);
            }
        }
    }
    rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.kind, row.name));
    rows
}
