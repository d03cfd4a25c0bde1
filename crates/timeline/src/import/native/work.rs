//! Rows of device work and of device allocations, taken in as they come; what cannot be is counted and left out.

use super::load::{Loader, RowTally};
use super::table::Rows;
use crate::gpu::part::{Columns, Part, Room};
use crate::gpu::{Allocation, Job, MemoryOperation, Shape, Site, WorkExtra, WorkKind};
use crate::names::IdMap;
use crate::{NameIndex, ProcessIndex};

/// The work of one row group.
#[derive(Default)]
pub struct WorkPart {
    pub part: Part,
    pub seen: RowTally,
}

impl WorkPart {
    pub fn take(&mut self, room: &mut Room, names: &IdMap, rows: &Rows) {
        let (starts, durs) = (rows.longs("start_ns"), rows.longs("dur_ns"));
        let (processes, devices, contexts) = (rows.ints("process"), rows.ints("device"), rows.ints("context"));
        let (streams, kinds, ids_of_names) = (rows.ints("stream"), rows.ints("kind"), rows.ints("name"));
        let (correlations, bytes, details) = (rows.ints("correlation"), rows.longs("bytes"), rows.ints("detail"));
        let (graphs, nodes) = (rows.ints("graph"), rows.longs("node"));
        let shaped = rows.levels("grid_x");
        let sides = ["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"].map(|side| rows.ints(side));
        let [registers, fixed, dynamic] = ["registers", "shared_static", "shared_dynamic"].map(|key| rows.ints(key));
        for row in 0..rows.count {
            let Some(kind) = WorkKind::from_i32(kinds[row]) else {
                self.seen.warnings.work_kinds += 1;
                continue;
            };
            // CUPTI leaves 0 where it has no time; taken as one, the timeline would begin when the machine did.
            let (Ok(start @ 1..), Ok(dur)) = (u64::try_from(starts[row]), u64::try_from(durs[row])) else {
                self.seen.warnings.work_times += 1;
                continue;
            };
            let Ok(end) = i64::try_from(start.saturating_add(dur)) else {
                self.seen.warnings.work_times += 1;
                continue;
            };
            self.seen.time(starts[row]);
            self.seen.time(end);
            let site = Site {
                process: ProcessIndex(processes[row] as u32),
                device: devices[row] as u32,
                context: contexts[row] as u32,
                stream: streams[row] as u32,
            };
            let side = |place: usize| sides[place][row] as u32;
            let shape = (kind == WorkKind::Kernel && (shaped.is_empty() || shaped[row] == 1)).then(|| Shape {
                grid: [side(0), side(1), side(2)],
                block: [side(3), side(4), side(5)],
                registers: registers[row] as u32,
                shared_static: fixed[row] as u32,
                shared_dynamic: dynamic[row] as u32,
            });
            let more = WorkExtra {
                bytes: u64::try_from(bytes[row]).unwrap_or(0),
                detail: details[row] as u32,
                graph: graphs[row] as u32,
                node: nodes[row] as u64,
            };
            let name = NameIndex(self.seen.name(names, ids_of_names[row]));
            let correlation = correlations[row] as u32;
            self.part.push(room, Job { site, kind, name, start, dur, correlation, shape, more });
        }
    }
}

impl Loader {
    /// All work, in its order.
    pub(super) fn join_work(&mut self, columns: Columns, parts: Vec<WorkPart>) {
        let mut work = std::mem::take(&mut self.work);
        let mut joined = Vec::with_capacity(parts.len());
        for WorkPart { part, seen } in parts {
            self.seen.join(seen);
            joined.push(part);
        }
        work.join(columns, joined, |number| self.process(number as i32));
        self.work = work;
    }

    pub(super) fn take_allocations(&mut self, rows: &Rows) {
        let (times, addresses, bytes) = (rows.longs("time_ns"), rows.longs("address"), rows.longs("bytes"));
        let (processes, devices, operations) = (rows.ints("process"), rows.ints("device"), rows.ints("operation"));
        let (memories, pools) = (rows.ints("memory"), rows.ints("pool"));
        let (handles, errors) = (rows.longs("handle"), rows.ints("error"));
        for row in 0..rows.count {
            let operation = MemoryOperation::from_i32(operations[row]);
            let (Ok(1..), Some(operation)) = (u64::try_from(times[row]), operation) else {
                self.seen.warnings.allocations += 1;
                continue;
            };
            let allocation = Allocation {
                time: self.time(times[row]),
                process: self.process(processes[row]),
                device: devices[row] as u32,
                operation,
                pool: pools[row] != 0,
                memory: memories[row] as u8,
                address: addresses[row] as u64,
                // A size of 2^63 and more is one all the same.
                bytes: bytes[row] as u64,
                handle: handles[row] as u64,
                error: errors[row] as u32,
            };
            self.allocations.push(allocation);
        }
    }
}
