//! The lines of the small text that say what devices did:
//!
//! ```text
//! device 0 NVIDIA_H200 cupti 130001 sms 132 memory 80G    # of the last process
//! track main
//! api cudaLaunchKernel 0..5us                       # a call; its number is one more than the last, or `corr 7`
//! stream 7 device 0 context 1                       # what follows runs here; device and context may be left out
//! kernel gemm 10us..30us grid 8,2,1 block 128 graph 3 node 5
//! copy h2d 40us..50us 1000000 pageable              # h2d, d2h, d2d, p2p; bytes; pageable, pinned or nothing
//! memset 50us..51us 4096
//! sync stream 6us..60us                             # the record of a wait: stream, context or event
//! alloc 10us 4096 at 1 [each] [pinned] / free 20us 4096 at 1 / create 5us 4096 handle 7 / map 6us 4096 at 1 handle 7 / failed 9us 4096 error 2
//! op aten::mm 0..9us dims 64,32/32,16 type c10::Half/c10::Half   # an operator with its arguments; `inputs` are its scalars
//! op record_param_comms 0..9us message allreduce,1000,8,Half      # of a collective: elements, ranks, type
//! ```
//!
//! Work has the number of the last `api` line unless it says `corr 7`; `corr 0` is work from before the window.

use super::{Reader, number, range, time};
use crate::SliceKind;
use crate::gpu::{self, Allocation, Job, MemoryOperation, Shape, Site, WorkExtra, WorkKind, detail};

/// Where the reader is.
#[derive(Default)]
pub struct Device {
    ordinal: u32,
    context: u32,
    stream: u32,
    correlation: u32,
}

impl Reader {
    pub(super) fn device_line(&mut self, verb: &str, rest: &[&str], offset: u64) -> Result<(), String> {
        match (verb, rest) {
            ("device", [ordinal, name, words @ ..]) => {
                let process = Some(self.last_process());
                let (ordinal, name) = (number(Some(ordinal))? as u32, name.replace('_', " ").into());
                let text = |key: &str| value(words, key).unwrap_or("").into();
                let (cupti, driver, uuid) = (text("cupti"), text("driver"), text("uuid"));
                let multiprocessors = named(words, "sms")?.map(|number| number as u32);
                let known = gpu::Device { process, ordinal, name, cupti, driver, uuid, ..gpu::Device::default() };
                let memory_bytes = value(words, "memory").map(super::memory::bytes).transpose()?;
                self.builder.device(gpu::Device { multiprocessors, memory_bytes, ..known });
            }
            ("stream", [stream, words @ ..]) => {
                self.device.stream = number(Some(stream))? as u32;
                self.device.ordinal = named(words, "device")?.unwrap_or(0) as u32;
                self.device.context = named(words, "context")?.unwrap_or(1) as u32;
            }
            ("api", [name, span, words @ ..]) => {
                let number =
                    named(words, "corr")?.map_or(self.device.correlation.wrapping_add(1), |number| number as u32);
                self.device.correlation = number;
                let id = number.to_string();
                self.slice(SliceKind::ApiCall, name, span, offset, &["id", &id])?;
            }
            ("op", [name, span, words @ ..]) => {
                let list = |key: &str, open: &str, close: &str| {
                    let each = value(words, key).unwrap_or("").split('/').map(|one| format!("{open}{one}{close}"));
                    each.collect::<Vec<_>>().join(",")
                };
                let (dims, types, inputs) =
                    (list("dims", "[", "]"), list("type", "\"", "\""), list("inputs", "\"", "\""));
                let mut args =
                    format!("{{\"Input Dims\":[{dims}],\"Input type\":[{types}],\"Concrete Inputs\":[{inputs}]}}");
                if let Some(message) = value(words, "message") {
                    let mut parts = message.split(',');
                    let mut part = || parts.next().unwrap_or("");
                    args = format!(
                        "{{\"Collective name\":\"{}\",\"In msg nelems\":{},\"Group size\":{},\"dtype\":\"{}\"}}",
                        part(),
                        part(),
                        part(),
                        part()
                    );
                }
                self.slice(SliceKind::CCall, name, span, offset, &["args", &args])?;
            }
            ("kernel", [name, span, words @ ..]) => {
                let sides = |key: &str| value(words, key).map(sides).transpose();
                let (grid, block) = (sides("grid")?, sides("block")?);
                let shape = grid.or(block).map(|_| Shape {
                    grid: grid.unwrap_or([1; 3]),
                    block: block.unwrap_or([1; 3]),
                    ..Shape::default()
                });
                self.work(WorkKind::Kernel, name, span, offset, words, shape, WorkExtra::default())?;
            }
            ("copy", [direction, span, bytes, words @ ..]) => {
                let host = match words.first() {
                    Some(&"pageable") => detail::PAGEABLE,
                    Some(&"pinned") => detail::PINNED,
                    _ => 0,
                };
                let device = detail::DEVICE;
                let (kind, source, target) = match *direction {
                    "h2d" => (detail::H2D, host, device),
                    "d2h" => (detail::D2H, device, host),
                    "d2d" => (detail::D2D, device, device),
                    "p2p" => (detail::P2P, device, device),
                    other => return Err(format!("no such copy: {other}")),
                };
                let detail = detail::pack(kind, source, target, 0) as u32;
                let more = WorkExtra { bytes: number(Some(bytes))?, detail, ..WorkExtra::default() };
                self.work(WorkKind::Memcpy, &format!("Memcpy {direction}"), span, offset, words, None, more)?;
            }
            ("memset", [span, bytes, words @ ..]) => {
                let more = WorkExtra { bytes: number(Some(bytes))?, ..WorkExtra::default() };
                self.work(WorkKind::Memset, "Memset", span, offset, words, None, more)?;
            }
            ("sync", [kind, span, words @ ..]) => {
                let of = match *kind {
                    "event" => 1,
                    "stream" => 3,
                    "context" => 4,
                    other => return Err(format!("no such wait: {other}")),
                };
                let more = WorkExtra { detail: of, ..WorkExtra::default() };
                self.work(WorkKind::Sync, &format!("{kind} synchronise"), span, offset, words, None, more)?;
            }
            (operation, [at, bytes, words @ ..]) if memory_operation(operation).is_some() => {
                let process = self.last_process();
                let address = named(words, "at")?.unwrap_or(0);
                let allocation = Allocation {
                    time: offset + time(at)?,
                    process,
                    device: self.device.ordinal,
                    operation: memory_operation(operation).unwrap_or(MemoryOperation::Alloc),
                    pool: words.contains(&"pool"),
                    memory: if words.contains(&"pinned") { detail::PINNED } else { detail::DEVICE },
                    address: if words.contains(&"each") { address << super::memory::EACH | offset } else { address },
                    bytes: number(Some(bytes))?,
                    handle: named(words, "handle")?.unwrap_or(0),
                    error: named(words, "error")?.unwrap_or(0) as u32,
                };
                self.builder.timeline.gpu.allocations.push(allocation);
            }
            _ => return Err("not understood".into()),
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn work(
        &mut self,
        kind: WorkKind,
        name: &str,
        span: &str,
        offset: u64,
        words: &[&str],
        shape: Option<Shape>,
        more: WorkExtra,
    ) -> Result<(), String> {
        let (start, end) = range(span)?;
        let end = end.ok_or("work has an end")?;
        let Device { ordinal, context, stream, correlation } = self.device;
        let site = Site { process: self.last_process(), device: ordinal, context, stream };
        let graph = named(words, "graph")?.unwrap_or(0) as u32;
        let more = WorkExtra { graph, node: named(words, "node")?.unwrap_or(0), ..more };
        let correlation = named(words, "corr")?.map_or(correlation, |number| number as u32);
        let name = self.builder.name(name, "", 0);
        let dur = end.saturating_sub(start);
        self.builder.work(Job { site, kind, name, start: offset + start, dur, correlation, shape, more });
        Ok(())
    }
}

/// `alloc`, or an operation by its name.
fn memory_operation(verb: &str) -> Option<MemoryOperation> {
    if verb == "alloc" { Some(MemoryOperation::Alloc) } else { MemoryOperation::from_name(verb) }
}

fn value<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied()
}

fn named(words: &[&str], key: &str) -> Result<Option<u64>, String> {
    value(words, key).map(|value| number(Some(&value))).transpose()
}

/// `8`, `8,2` or `8,2,1`.
fn sides(text: &str) -> Result<[u32; 3], String> {
    let mut sides = [1; 3];
    for (side, text) in sides.iter_mut().zip(text.split(',')) {
        *side = text.parse().map_err(|_| format!("{text} is not a number"))?;
    }
    Ok(sides)
}

#[cfg(test)]
mod tests {
    use crate::Timeline;
    use crate::gpu::WorkKind;

    #[test]
    fn devices_become_a_timeline() {
        let timeline = Timeline::from_text(
            "device 0 NVIDIA_H200 cupti 130001\n track main\n repeat 2 every 1ms\n api cudaLaunchKernel 0..5us\n stream 7\n\
             kernel gemm 10us..30us grid 8,2 block 128\n api cudaMemcpyAsync 40us..41us\n\
             copy h2d 42us..50us 1000 pinned\n end\n alloc 5us 4096 at 7",
        )
        .unwrap();
        let gpu = &timeline.gpu;
        assert_eq!((&*gpu.devices[0].name, &*gpu.devices[0].cupti), ("NVIDIA H200", "130001"));
        assert_eq!((gpu.work.len(), gpu.shapes.len(), gpu.clock.linked), (4, 1, 4));
        assert_eq!(
            (gpu.work.kind(1), gpu.work.get(1).bytes, gpu.work.get(1).copy().source),
            (WorkKind::Memcpy, 1000, 2)
        );
        assert_eq!(gpu.shape(0).unwrap().grid, [8, 2, 1]);
        assert_eq!((gpu.allocations[0].address, timeline.end), (7, 1_050_000));
        assert!(Timeline::from_text("stream 7\n kernel a 0..").unwrap_err().contains("line 2"));
    }
}
