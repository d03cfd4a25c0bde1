//! Work and memory of devices in JSON 1.1: `gpu_kernel`, `h2d_copy`, `d2h_copy`; other copies, memsets, migrations and
//! allocations are `memory_event`, told apart by `operation`. The format has no waits: the call that waited is a `cpu_call`.

use super::events::{Events, number_or_null};
use std::io::{self, Write};
use timeline::WorkKind;
use timeline::gpu::{Allocation, Piece, Stream, detail};

impl Events<'_> {
    pub fn gpu(&mut self, out: &mut impl Write) -> io::Result<()> {
        let gpu = &self.timeline.gpu;
        for stream in &gpu.streams {
            for index in stream.work.clone() {
                let piece = gpu.work.get(index);
                let copy = (piece.kind == WorkKind::Memcpy).then(|| piece.copy());
                match (piece.kind, copy.map(|copy| copy.direction)) {
                    (WorkKind::Sync, _) => continue,
                    (WorkKind::Kernel, _) => self.kernel(index, &piece, stream),
                    (_, Some(detail::H2D)) => self.copy("h2d_copy", copy.map(|copy| copy.source), &piece, stream),
                    (_, Some(detail::D2H)) => self.copy("d2h_copy", copy.map(|copy| copy.target), &piece, stream),
                    _ => self.other(&piece, stream),
                }
                self.event.raw("}}").send(out)?;
            }
        }
        for allocation in &gpu.allocations {
            self.allocation(allocation, out)?;
        }
        Ok(())
    }

    fn kernel(&mut self, index: usize, piece: &Piece, stream: &Stream) {
        self.begin("gpu_kernel", self.names.get(piece.name), piece.start, piece.end());
        self.site(piece, stream);
        let shape = self.timeline.gpu.shape(index);
        for (name, sides) in [("grid_dim", shape.map(|s| s.grid)), ("block_dim", shape.map(|s| s.block))] {
            self.event.raw(",\"").raw(name).raw("\":");
            match sides.map(|sides| sides.map(u64::from)) {
                Some([x, y, z]) => self.event.raw("[").number(x).raw(",").number(y).raw(",").number(z).raw("]"),
                None => self.event.raw("null"),
            };
        }
        self.event.raw(r#","shared_memory_bytes":"#);
        number_or_null(&mut self.event, shape.map(|shape| crate::gpu_words::shared_memory(&shape) as i64));
        self.event.raw(r#","registers_per_thread":"#);
        number_or_null(&mut self.event, shape.map(|shape| shape.registers.into()));
        self.event.raw(r#","occupancy":null"#);
    }

    fn copy(&mut self, sort: &str, host: Option<u8>, piece: &Piece, stream: &Stream) {
        self.begin(sort, self.names.get(piece.name), piece.start, piece.end());
        self.site(piece, stream);
        self.event.raw(r#","bytes":"#).number(piece.bytes).raw(r#","kind":"#).raw(match host {
            Some(detail::PAGEABLE) => "\"pageable\"",
            Some(detail::PINNED) => "\"pinned\"",
            _ => "null",
        });
        self.event.raw(r#","throughput_gbps":"#);
        match piece.dur {
            0 => self.event.raw("null"),
            dur => self.event.raw(&format!("{:.3}", piece.bytes as f64 / dur as f64)),
        };
    }

    fn other(&mut self, piece: &Piece, stream: &Stream) {
        self.begin("memory_event", self.names.get(piece.name), piece.start, piece.end());
        self.site(piece, stream);
        let operation = match (piece.kind, piece.copy().direction) {
            (WorkKind::Memset, _) => "memset",
            (WorkKind::Migration, _) => "migration",
            (_, detail::P2P) => "p2p_copy",
            (_, detail::D2D) => "d2d_copy",
            _ => "copy",
        };
        self.event.raw(r#","operation":""#).raw(operation).raw(r#"","bytes":"#).number(piece.bytes);
        self.event.raw(r#","numa_node":null,"numa_pages_migrated":null"#);
    }

    fn allocation(&mut self, allocation: &Allocation, out: &mut impl Write) -> io::Result<()> {
        let operation = allocation.operation.name();
        self.begin("memory_event", format!("\"{operation}\"").as_bytes(), allocation.time, allocation.time);
        self.event.raw(r#""process_id":"#).signed(self.timeline.processes[allocation.process.0 as usize].pid);
        self.event.raw(r#","device_id":"#).number(allocation.device.into());
        self.event.raw(r#","operation":""#).raw(operation).raw(r#"","bytes":"#).number(allocation.bytes);
        self.event.raw(r#","address":""#).raw(&format!("{:#x}", allocation.address)).raw("\",\"pool\":");
        self.event.raw(if allocation.pool { "true" } else { "false" });
        if allocation.handle != 0 {
            self.event.raw(r#","handle":""#).raw(&format!("{:#x}\"", allocation.handle));
        }
        if allocation.error != 0 {
            self.event.raw(r#","error":"#).number(allocation.error.into());
        }
        self.event.raw(r#","numa_node":null,"numa_pages_migrated":null}}"#).send(out)
    }

    fn site(&mut self, piece: &Piece, stream: &Stream) {
        self.event.raw(r#""process_id":"#).signed(self.timeline.processes[stream.process.0 as usize].pid);
        self.event.raw(r#","device_id":"#).number(stream.device.into());
        self.event.raw(r#","context_id":"#).number(stream.context.into());
        self.event.raw(r#","stream_id":"#).number(stream.stream.into());
        self.event.raw(r#","correlation_id":"#).number(piece.correlation.into());
        if piece.graph != 0 {
            self.event.raw(r#","graph_id":"#).number(piece.graph.into());
            self.event.raw(r#","graph_node_id":"#).number(piece.node);
        }
    }
}
