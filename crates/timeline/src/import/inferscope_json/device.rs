//! Events of devices: kernels, copies and memory taken or given back. What the format does not name (correlations, contexts,
//! graphs) is read where our own files have it.

use super::event::Event;
use super::load::Loader;
use crate::NameIndex;
use crate::gpu::{Allocation, Job, MemoryOperation, Shape, Site, WorkExtra, WorkKind, detail};
use crate::import::json::fields::{Raw, fields};

/// The fields of an event's metadata that concern a device.
#[derive(Default)]
struct OfDevice<'a> {
    device: Raw<'a>,
    context: Raw<'a>,
    stream: Raw<'a>,
    correlation: Raw<'a>,
    graph: Raw<'a>,
    node: Raw<'a>,
    grid: Raw<'a>,
    block: Raw<'a>,
    registers: Raw<'a>,
    shared: Raw<'a>,
    bytes: Raw<'a>,
    operation: Raw<'a>,
    address: Raw<'a>,
    handle: Raw<'a>,
    error: Raw<'a>,
    pool: Raw<'a>,
}

impl<'a> OfDevice<'a> {
    fn of(event: &Event<'a>) -> OfDevice<'a> {
        let mut found = OfDevice::default();
        // The event was read once already: an error cannot be.
        let _ = fields(event.metadata.object().unwrap_or("{}"), |key, value| match key {
            "device_id" => found.device = value,
            "context_id" => found.context = value,
            "stream_id" => found.stream = value,
            "correlation_id" => found.correlation = value,
            "graph_id" => found.graph = value,
            "graph_node_id" => found.node = value,
            "grid_dim" => found.grid = value,
            "block_dim" => found.block = value,
            "registers_per_thread" => found.registers = value,
            "shared_memory_bytes" => found.shared = value,
            "bytes" => found.bytes = value,
            "operation" => found.operation = value,
            "address" => found.address = value,
            "handle" => found.handle = value,
            "error" => found.error = value,
            "pool" => found.pool = value,
            _ => {}
        });
        found
    }

    fn bytes(&self) -> u64 {
        self.bytes.whole().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0)
    }
}

/// The number by which work finds the call that asked for it; 0: none.
pub fn correlation(event: &Event<'_>) -> u32 {
    OfDevice::of(event).correlation.small()
}

impl Loader {
    pub(super) fn work(&mut self, event: &Event<'_>, kind: WorkKind, direction: u8) {
        let Some((start, dur)) = event.span(&mut self.warnings) else {
            self.warnings.times += 1;
            return;
        };
        let of = OfDevice::of(event);
        let site = Site {
            process: self.places.process(&mut self.builder, event.process),
            device: of.device.small(),
            context: of.context.small(),
            stream: of.stream.small(),
        };
        let shape = Shape::given(of.grid.sides(), of.block.sides(), of.registers.small(), of.shared.small());
        let host = match event.kind.0 {
            r#""pageable""# => detail::PAGEABLE,
            r#""pinned""# => detail::PINNED,
            _ => 0,
        };
        let (source, target) = match direction {
            detail::H2D => (host, detail::DEVICE),
            detail::D2H => (detail::DEVICE, host),
            0 => (0, 0),
            _ => (detail::DEVICE, detail::DEVICE),
        };
        let more = WorkExtra {
            bytes: of.bytes(),
            detail: detail::pack(direction, source, target, 0) as u32,
            graph: of.graph.small(),
            node: of.node.whole().unwrap_or(0) as u64,
        };
        let name = event.name.as_deref().map_or(NameIndex(0), |name| self.builder.name(name, "", 0));
        self.last = self.last.max(start.saturating_add(dur));
        let correlation = of.correlation.small();
        self.builder.work(Job {
            site,
            kind,
            name,
            start,
            dur,
            correlation,
            shape: shape.filter(|_| direction == 0),
            more,
        });
    }

    /// Memory of a device, and the copies that the format has no type for; the host's own memory is not shown yet.
    pub(super) fn memory(&mut self, event: &Event<'_>) {
        let of = OfDevice::of(event);
        let operation = match of.operation.0 {
            _ if !of.device.given() => return *self.warnings.unshown.entry("memory_event").or_default() += 1,
            r#""memset""# => return self.work(event, WorkKind::Memset, 0),
            r#""migration""# => return self.work(event, WorkKind::Migration, 0),
            r#""d2d_copy""# => return self.work(event, WorkKind::Memcpy, detail::D2D),
            r#""p2p_copy""# => return self.work(event, WorkKind::Memcpy, detail::P2P),
            r#""copy""# => return self.work(event, WorkKind::Memcpy, 0),
            other => match MemoryOperation::from_name(other.trim_matches('"')) {
                Some(operation) => operation,
                None => return *self.warnings.unshown.entry("memory_event").or_default() += 1,
            },
        };
        let Some(time) = self.time(event) else { return };
        let process = self.places.process(&mut self.builder, event.process);
        self.builder.timeline.gpu.allocations.push(Allocation {
            time,
            process,
            device: of.device.small(),
            operation,
            pool: of.pool.truth(),
            memory: detail::DEVICE,
            address: address(of.address),
            bytes: of.bytes(),
            handle: address(of.handle),
            error: of.error.small(),
        });
    }
}

/// A number, or one in hexadecimal digits as a string.
fn address(value: Raw<'_>) -> u64 {
    let hexadecimal = value.0.trim_matches('"').strip_prefix("0x");
    let read = hexadecimal.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    read.unwrap_or_else(|| value.whole().unwrap_or(0) as u64)
}
