//! The copies between host and device inside the steps, each with how much of it no kernel hid.

use super::DeviceInputs;
use super::busy::Busy;
use crate::stats::share::Tally;
use timeline::gpu::{Piece, detail};
use timeline::{ProcessIndex, WorkKind};

pub struct Moved {
    pub process: ProcessIndex,
    pub ordinal: u32,
    /// By stream and start.
    pub all: Vec<Copy>,
    /// How long each step is.
    pub windows: Vec<u64>,
}

pub struct Copy {
    /// Index into the timeline's work.
    pub work: u32,
    pub piece: Piece,
    /// Place in the windows.
    pub window: u32,
    pub exposed_ns: u64,
}

impl Copy {
    pub fn is(&self, direction: u8) -> bool {
        self.piece.copy().direction == direction
    }

    /// The kind of memory on the host's side.
    pub fn host_memory(&self) -> u8 {
        let copy = self.piece.copy();
        if copy.direction == detail::H2D { copy.source } else { copy.target }
    }
}

impl Moved {
    /// One for each device that copied anything in the steps.
    pub fn find(inputs: &DeviceInputs, busy: &Busy) -> Vec<Moved> {
        let streams = &inputs.timeline.gpu.streams;
        let devices = streams.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device));
        devices.map(|streams| Moved::of(inputs, busy, streams)).filter(|moved| !moved.all.is_empty()).collect()
    }

    fn of(inputs: &DeviceInputs, busy: &Busy, streams: &[timeline::gpu::Stream]) -> Moved {
        let work = &inputs.timeline.gpu.work;
        let (process, ordinal) = (streams[0].process, streams[0].device);
        let windows = inputs.windows_of(process);
        let mut all = Vec::new();
        for stream in streams {
            let mut at = 0;
            for index in stream.work.clone().filter(|index| work.kind(*index) == WorkKind::Memcpy) {
                let piece = work.get(index);
                if !matches!(piece.copy().direction, detail::H2D | detail::D2H) {
                    continue;
                }
                at += windows[at..].partition_point(|window| window.end <= piece.start);
                if windows.get(at).is_some_and(|window| window.start <= piece.start) {
                    all.push(Copy { work: index as u32, piece, window: at as u32, exposed_ns: piece.dur });
                }
            }
        }
        if let Some(device) = busy.of(process, ordinal).filter(|_| !all.is_empty()) {
            for copy in &mut all {
                let hidden = device.kernels.overlap(copy.piece.start, copy.piece.end());
                copy.exposed_ns -= hidden.min(copy.exposed_ns);
            }
        }
        Moved { process, ordinal, all, windows: windows.iter().map(|window| window.end - window.start).collect() }
    }

    /// The sum of something over the copies that fit, step by step.
    pub fn tally(&self, value: impl Fn(&Copy) -> Option<u64>) -> Tally {
        let mut tally = Tally::default();
        for (part, length) in self.per_window(value).into_iter().zip(&self.windows) {
            tally.add(part.min(*length) as f64, *length as f64);
        }
        tally
    }

    pub fn per_window(&self, value: impl Fn(&Copy) -> Option<u64>) -> Vec<u64> {
        let mut parts = vec![0u64; self.windows.len()];
        for copy in &self.all {
            if let Some(value) = value(copy) {
                let part = &mut parts[copy.window as usize];
                *part = part.saturating_add(value);
            }
        }
        parts
    }

    /// Bytes a nanosecond, of all that fit. None: nothing does.
    pub fn speed(&self, fits: impl Fn(&Copy) -> bool) -> Option<f64> {
        let those = self.all.iter().filter(|copy| fits(copy) && copy.piece.dur > 0);
        let (bytes, ns) =
            those.fold((0.0, 0.0), |(bytes, ns), copy| (bytes + copy.piece.bytes as f64, ns + copy.piece.dur as f64));
        (ns > 0.0).then(|| bytes / ns)
    }
}
