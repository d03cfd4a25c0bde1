//! Device work of the file: kernels, graphs, copies, memsets and waits, and what is said of the devices.

use super::database::Row;
use super::load::Loader;
use crate::NameIndex;
use crate::gpu::{Device, Job, Shape, Site, WorkExtra, WorkKind, detail};
use std::collections::HashMap;

/// What every table of work begins with.
const SITE: [&str; 7] = ["start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"];
const OWN: usize = SITE.len();

impl Loader<'_> {
    pub(super) fn kernels(&mut self) {
        let own = [
            "demangledName",
            "shortName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "graphId",
            "graphNodeId",
        ];
        for table in ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL"] {
            self.work(table, &own, |loader, row, job| {
                let id = row.number(OWN).or_else(|| row.number(OWN + 1));
                let of = |first: usize| [0, 1, 2].map(|side| row.small(OWN + first + side));
                let shape = Shape {
                    grid: of(2),
                    block: of(5),
                    registers: row.small(OWN + 8),
                    shared_static: row.small(OWN + 9),
                    shared_dynamic: row.small(OWN + 10),
                };
                job.name = loader.name(id);
                job.shape = Some(shape).filter(|shape| shape.grid != [0; 3]);
                job.more.graph = row.small(OWN + 11);
                job.more.node = row.number(OWN + 12).unwrap_or(0) as u64;
            });
        }
    }

    /// Unless it is told otherwise, Nsight Systems times a CUDA graph as a whole: its device is at work meanwhile, with kernels
    /// that are not in the file.
    pub(super) fn graphs(&mut self) {
        let before = self.builder.work.len();
        self.work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &["graphId"], |loader, row, job| {
            job.more.graph = row.small(OWN);
            job.name = loader.builder.name(&format!("CUDA graph {}, as a whole", job.more.graph), "", 0);
        });
        let graphs = self.builder.work.len() - before;
        if graphs > 0 {
            self.notes.push(format!(
                "The file has {graphs} launches of CUDA graphs as a whole, without the kernels in them: each counts as one kernel. \
                 Record with nsys profile --cuda-graph-trace=node to see into them."
            ));
        }
    }

    pub(super) fn copies(&mut self) {
        let own = ["bytes", "copyKind", "srcKind", "dstKind", "graphNodeId"];
        self.work("CUPTI_ACTIVITY_KIND_MEMCPY", &own, |loader, row, job| {
            let direction = row.small(OWN + 1) as u8;
            let words = match direction {
                detail::H2D => "Memcpy HtoD",
                detail::D2H => "Memcpy DtoH",
                detail::D2D => "Memcpy DtoD",
                detail::H2H => "Memcpy HtoH",
                detail::P2P => "Memcpy PtoP",
                _ => "Memcpy",
            };
            job.kind = WorkKind::Memcpy;
            job.name = loader.builder.name(words, "", 0);
            let detail = detail::pack(direction, memory(row.number(OWN + 2)), memory(row.number(OWN + 3)), 0) as u32;
            job.more = WorkExtra { bytes: bytes(row), detail, graph: 0, node: row.number(OWN + 4).unwrap_or(0) as u64 };
        });
    }

    pub(super) fn memsets(&mut self) {
        self.work("CUPTI_ACTIVITY_KIND_MEMSET", &["bytes", "memKind"], |loader, row, job| {
            job.kind = WorkKind::Memset;
            job.name = loader.builder.name("Memset", "", 0);
            job.more =
                WorkExtra { bytes: bytes(row), detail: memory(row.number(OWN + 1)).into(), ..WorkExtra::default() };
        });
    }

    pub(super) fn waits(&mut self) {
        self.work("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", &["syncType"], |loader, row, job| {
            let sort = row.small(OWN);
            let words = match sort {
                1 => "Event Sync",
                2 => "Stream Wait Event",
                3 => "Stream Sync",
                4 => "Context Sync",
                _ => "Sync",
            };
            job.kind = WorkKind::Sync;
            job.name = loader.builder.name(words, "", 0);
            job.more.detail = sort;
        });
    }

    fn work(&mut self, table: &str, own: &[&str], complete: impl Fn(&mut Self, &Row<'_>, &mut Job)) {
        let columns: Vec<&str> = SITE.iter().chain(own).copied().collect();
        self.table(table, &columns, |loader, row| {
            let Some((start, dur)) = loader.span(&row) else { return };
            let global = row.number(6).or_else(|| loader.places.only()).unwrap_or(0);
            let process = loader.places.process(&mut loader.builder, global);
            let site = Site { process, device: row.small(2), context: row.small(3), stream: row.small(4) };
            let mut job = Job {
                site,
                kind: WorkKind::Kernel,
                name: NameIndex(0),
                start,
                dur,
                correlation: row.small(5),
                shape: None,
                more: WorkExtra::default(),
            };
            complete(loader, &row, &mut job);
            if job.kind != WorkKind::Sync && loader.devices.len() < 4096 {
                loader.devices.insert((process, site.device));
            }
            loader.builder.work(job);
        });
    }

    /// Devices by process and the number that CUDA gives them there; without a process where the file does not say.
    pub(super) fn described(&mut self) -> HashMap<(Option<i64>, u32), Device> {
        let mut all: HashMap<(Option<i64>, u32), Device> = HashMap::new();
        let columns =
            ["id", "name", "uuid", "smCount", "totalMemory", "memoryBandwidth", "computeMajor", "computeMinor"];
        self.table("TARGET_INFO_GPU", &columns, |_, row| {
            let number = |place| row.number(place).and_then(|number| u64::try_from(number).ok()).filter(|n| *n > 0);
            let device = Device {
                name: row.text(1).unwrap_or_default().into(),
                uuid: row.text(2).unwrap_or_default().into(),
                multiprocessors: number(3).and_then(|count| u32::try_from(count).ok()),
                memory_bytes: number(4),
                bandwidth: number(5),
                compute_capability: match (row.number(6), row.number(7)) {
                    (Some(major), Some(minor)) => format!("{major}.{minor}").into(),
                    _ => "".into(),
                },
                ..Device::default()
            };
            all.insert((None, row.small(0)), device);
        });
        let mut of_processes = Vec::new();
        self.table("TARGET_INFO_CUDA_DEVICE", &["gpuId", "cudaId", "pid"], |_, row| {
            if let Some(device) = all.get(&(None, row.small(0))) {
                of_processes.push(((row.number(2), row.small(1)), device.clone()));
            }
        });
        all.extend(of_processes);
        all
    }
}

fn bytes(row: &Row<'_>) -> u64 {
    row.number(OWN).and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
}

/// `ENUM_CUDA_MEM_KIND` counts from 0 what CUPTI counts from 1.
fn memory(kind: Option<i64>) -> u8 {
    match kind {
        Some(kind @ 0..=6) => kind as u8 + 1,
        _ => 0,
    }
}
