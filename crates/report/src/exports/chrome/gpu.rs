//! Work of devices in Chrome trace JSON, with the categories and arguments that readers of torch.profiler's files know:
//! `kernel`, `gpu_memcpy`, `gpu_memset`; `ac2g` arrows lead from a call to what it asked for. A device of a process is a
//! process of its own there, a stream its thread.

use super::{FIRST_FREE_PID, Writer};
use crate::{provenance, streams};
use std::collections::HashSet;
use std::io::{self, Write};
use timeline::cuda_calls::CudaCall;
use timeline::gpu::{Piece, Stream};
use timeline::{ProcessIndex, Slice, SliceKind, WorkKind};

/// Devices are numbered apart from all processes.
const FIRST_DEVICE: u64 = FIRST_FREE_PID + (1 << 24);
/// Rows of a stream, and streams of one number in several contexts, get thread numbers from here.
const FIRST_ROW: u64 = 1 << 24;
/// A graph launch asks for many pieces; the first has the arrow of the call's number, the others have these.
const FIRST_EXTRA_ARROW: u64 = 1 << 48;

impl Writer<'_> {
    pub(super) fn gpu(&mut self, out: &mut impl Write) -> io::Result<()> {
        let timeline = self.timeline;
        let mut row_number = FIRST_ROW;
        let mut taken = HashSet::new();
        for (place, stream) in timeline.gpu.streams.iter().enumerate() {
            let first = timeline.gpu.streams[..place]
                .iter()
                .position(|other| (other.process, other.device) == (stream.process, stream.device));
            let pid = FIRST_DEVICE + first.unwrap_or(place) as u64;
            if first.is_none() {
                self.metadata("process_name", pid, 0, &device_name(timeline, stream), out)?;
            }
            let (rows, count) = streams::rows(&timeline.gpu.work, stream.work.clone());
            let mut tids = Vec::new();
            for _ in 0..count.max(1) {
                let wanted = u64::from(stream.stream);
                let free = wanted < FIRST_ROW && taken.insert((pid, wanted));
                row_number += u64::from(!free);
                tids.push(if free { wanted } else { row_number });
                self.metadata("thread_name", pid, tids[tids.len() - 1], &streams::title(timeline, stream), out)?;
            }
            for (index, row) in stream.work.clone().zip(&rows) {
                self.work(pid, tids[usize::from(*row)], stream, index, out)?;
            }
        }
        Ok(())
    }

    fn work(&mut self, pid: u64, tid: u64, stream: &Stream, index: usize, out: &mut impl Write) -> io::Result<()> {
        let piece = self.timeline.gpu.work.get(index);
        self.begin("X", pid, tid, piece.start);
        self.event.raw(r#","dur":"#).micros(piece.dur).raw(r#","cat":""#).raw(streams::category(piece.kind));
        self.event.raw(r#"","name":"#).bytes(self.names.get(piece.name));
        self.event.raw(r#","args":{"device":"#).number(stream.device.into());
        self.event.raw(r#","context":"#).number(stream.context.into());
        self.event.raw(r#","stream":"#).number(stream.stream.into());
        self.event.raw(r#","correlation":"#).number(piece.correlation.into());
        self.details(index, &piece);
        self.event.raw("}}").send(out)?;
        match piece.launch {
            Some(launch) => self.arrow(pid, tid, stream.process, index, launch, &piece, out),
            None => Ok(()),
        }
    }

    fn details(&mut self, index: usize, piece: &Piece) {
        if let Some(shape) = self.timeline.gpu.shape(index) {
            for (name, sides) in [("grid", shape.grid), ("block", shape.block)] {
                let [x, y, z] = sides.map(u64::from);
                self.event.raw(",\"").raw(name).raw("\":[").number(x).raw(",").number(y).raw(",").number(z).raw("]");
            }
            self.event.raw(r#","registers per thread":"#).number(shape.registers.into());
            self.event.raw(r#","shared memory":"#).number(crate::gpu_words::shared_memory(&shape));
        }
        if piece.kind != WorkKind::Kernel && piece.kind != WorkKind::Sync {
            self.event.raw(r#","bytes":"#).number(piece.bytes);
            if piece.dur > 0 && piece.kind == WorkKind::Memcpy {
                let speed = format!("{:.3}", piece.bytes as f64 / piece.dur as f64);
                self.event.raw(r#","memory bandwidth (GB/s)":"#).raw(&speed);
            }
        }
        if piece.graph != 0 {
            self.event.raw(r#","graph id":"#).number(piece.graph.into());
            self.event.raw(r#","graph node id":"#).number(piece.node);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn arrow(
        &mut self,
        pid: u64,
        tid: u64,
        process: ProcessIndex,
        index: usize,
        launch: usize,
        piece: &Piece,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let timeline = self.timeline;
        let place = timeline.tracks.partition_point(|track| track.slices.end <= launch);
        let Some(track) = timeline.tracks.get(place) else { return Ok(()) };
        let start = timeline.slices.start[launch];
        // An arrow that points back is refused by readers.
        if start > piece.start {
            return Ok(());
        }
        let first = timeline.gpu.work.of_launch(launch).first() == Some(&(index as u32));
        let id = match first {
            true => u64::from(process.0) << 32 | u64::from(piece.correlation),
            false => FIRST_EXTRA_ARROW + index as u64,
        };
        for (phase, pid, tid, time) in
            [("s", self.pid(Some(track.process)), super::tid(track.tid), start), ("f", pid, tid, piece.start)]
        {
            self.begin(phase, pid, tid, time);
            self.event.raw(r#","id":"#).number(id).raw(if phase == "f" { r#","bp":"e""# } else { "" });
            self.event.raw(r#","cat":"ac2g","name":"ac2g"}"#).send(out)?;
        }
        Ok(())
    }
}

/// `GPU 0 · NVIDIA H200 of serve.py (100)`.
fn device_name(timeline: &timeline::Timeline, stream: &Stream) -> String {
    let known = timeline.gpu.device(stream.process, stream.device);
    let title = streams::device_title(stream.device, known.map_or("", |device| &*device.name));
    format!("{title} of {}", provenance::process(&timeline.processes[stream.process.0 as usize]))
}

/// The category of a slice: calls of CUDA have those that other tools know.
pub(super) fn category(call: CudaCall, slice: &Slice) -> &'static str {
    match slice.kind {
        // `cuLaunchKernel` is the driver's, `cudaLaunchKernel` the runtime's.
        SliceKind::ApiCall if call.is_driver() => "cuda_driver",
        SliceKind::ApiCall => "cuda_runtime",
        kind => kind.name(),
    }
}
