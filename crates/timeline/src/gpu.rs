//! What devices did: streams, and their work in columns, linked to the API calls that asked for it. Times are on the same
//! clock as everything else; [`Gpu::clock`] says how sure that is.

mod gather;
mod once;
pub(crate) mod part;

use crate::{NameIndex, ProcessIndex, parallel, sort};
pub(crate) use gather::Gather;
pub use gather::{Job, MOST_STREAMS, Site};
use std::ops::Range;
use std::sync::Arc;
pub use trace::codes::MemoryOperation;
pub use trace::tables::{WorkKind, detail};

#[derive(Debug, Default)]
pub struct Gpu {
    pub devices: Vec<Device>,
    /// Ordered by process, device, context and stream.
    pub streams: Vec<Stream>,
    pub work: Work,
    /// Launch shapes; each is there once.
    pub shapes: Vec<Shape>,
    pub allocations: Vec<Allocation>,
    pub clock: GpuClock,
}

/// A device as a process sees it. The ordinal is the process's own (`CUDA_VISIBLE_DEVICES`); the uuid is for ever.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Device {
    pub process: Option<ProcessIndex>,
    pub ordinal: u32,
    pub name: Arc<str>,
    pub uuid: Arc<str>,
    pub multiprocessors: Option<u32>,
    /// "9.0".
    pub compute_capability: Arc<str>,
    pub memory_bytes: Option<u64>,
    /// Peak, in bytes a second.
    pub bandwidth: Option<u64>,
    /// Versions: of the CUPTI library that recorded it, and of the driver. Empty: unknown.
    pub cupti: Arc<str>,
    pub driver: Arc<str>,
}

#[derive(Clone, Debug)]
pub struct Stream {
    pub process: ProcessIndex,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    /// Its work, sorted by start, in [`Gpu::work`].
    pub work: Range<usize>,
}

/// Columns of work, sorted by stream and start: 41 bytes each, with the link to the call that asked for it.
#[derive(Debug, Default)]
pub struct Work {
    pub start: Vec<u64>,
    pub dur: Vec<u64>,
    pub name: Vec<u32>,
    pub(crate) kind: Vec<u8>,
    pub correlation: Vec<u32>,
    /// Index into [`Gpu::shapes`] plus one; 0: none.
    pub(crate) shape: Vec<u32>,
    /// Index into `mores` plus one; 0: nothing more, as with most kernels.
    pub(crate) more: Vec<u32>,
    /// Each is there once: a graph that is replayed has the same nodes again.
    pub(crate) mores: Vec<WorkExtra>,
    /// The slice of the API call that asked for it, plus one; 0: not recorded, the work is from before the window.
    pub(crate) launch: Vec<u32>,
    /// The work that has a launch, by launch and then by place.
    pub(crate) by_launch: Vec<u32>,
}

/// What only some work has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct WorkExtra {
    /// Bytes copied, set or moved; 0 for kernels.
    pub bytes: u64,
    /// See [`trace::tables::detail`].
    pub detail: u32,
    /// 0: not part of a graph.
    pub graph: u32,
    pub node: u64,
}

/// How a kernel was launched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Shape {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u32,
    pub shared_static: u32,
    pub shared_dynamic: u32,
}

impl Shape {
    /// Of a file that gives one number for shared memory; a side that it does not give is 1.
    pub(crate) fn given(grid: Option<[u32; 3]>, block: Option<[u32; 3]>, registers: u32, shared: u32) -> Option<Shape> {
        grid.or(block)?;
        let [grid, block] = [grid, block].map(|sides| sides.unwrap_or([1; 3]));
        Some(Shape { grid, block, registers, shared_static: 0, shared_dynamic: shared })
    }
}

/// One piece of work, copied out of the columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    pub start: u64,
    pub dur: u64,
    pub name: NameIndex,
    pub kind: WorkKind,
    pub correlation: u32,
    pub bytes: u64,
    pub detail: u32,
    pub graph: u32,
    pub node: u64,
    /// Index into [`crate::Timeline::slices`].
    pub launch: Option<usize>,
}

impl Piece {
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.dur)
    }

    /// Of a copy: what was copied, and the kinds of memory (see [`trace::tables::detail`]).
    pub fn copy(&self) -> Copy {
        let [direction, source, target, flags] = self.detail.to_le_bytes();
        Copy { direction, source, target, flags }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    pub direction: u8,
    pub source: u8,
    pub target: u8,
    pub flags: u8,
}

/// What a call of the driver did with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    pub time: u64,
    pub process: ProcessIndex,
    pub device: u32,
    pub operation: MemoryOperation,
    pub pool: bool,
    /// CUPTI's kind of memory: see [`trace::tables::detail`].
    pub memory: u8,
    pub address: u64,
    pub bytes: u64,
    /// Of the virtual memory management; 0: none.
    pub handle: u64,
    /// CUDA's code, of what failed; 0: not known.
    pub error: u32,
}

impl Allocation {
    /// Whether memory of a device was taken: by an allocation, or as a handle.
    pub fn allocates(&self) -> bool {
        matches!(self.operation, MemoryOperation::Alloc | MemoryOperation::Create)
    }
}

/// How well the device's times fit the host's, from what must be true: no work starts before the call that asked for it, and none
/// that a wait waited for ends after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GpuClock {
    /// Work whose launch was recorded.
    pub linked: u64,
    pub unlinked: u64,
    /// Shortest time from the begin of a launch call to the start of its work: device times are at most this much too late.
    pub shortest_launch_ns: Option<i64>,
    /// Shortest time from the end of work to the return of the wait for it: they are at most this much too early.
    pub shortest_return_ns: Option<i64>,
    /// Work that seems to start before its launch call.
    pub violations: u64,
    /// Waits of which it is known what they waited for, and those that seem to return before that has ended.
    pub waits: u64,
    pub early_returns: u64,
    /// Unlinked work that starts so long before the only call with its number that it is not linked to it, where that is most of the
    /// unlinked work: then the clock is wrong, by `early_ns` in the median.
    pub early: u64,
    pub early_ns: Option<u64>,
    /// What the collector measured between its clock and CUPTI's, and the host's own error.
    pub residual_ns: u64,
}

impl Work {
    pub fn len(&self) -> usize {
        self.start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Takes the work at these places, in this order. Links are made afterwards.
    fn reorder(&mut self, order: &[u32]) {
        let columns = vec![
            sort::gathering(&mut self.start, order),
            sort::gathering(&mut self.dur, order),
            sort::gathering(&mut self.name, order),
            sort::gathering(&mut self.correlation, order),
            sort::gathering(&mut self.shape, order),
            sort::gathering(&mut self.more, order),
            sort::gathering(&mut self.kind, order),
        ];
        parallel::run(order.len(), columns, || {});
    }

    fn shrink(&mut self) {
        self.start.shrink_to_fit();
        self.dur.shrink_to_fit();
        self.name.shrink_to_fit();
        self.kind.shrink_to_fit();
        self.correlation.shrink_to_fit();
        self.shape.shrink_to_fit();
        self.more.shrink_to_fit();
    }

    #[inline]
    pub fn kind(&self, index: usize) -> WorkKind {
        // Only known kinds are taken in.
        WorkKind::from_i32(i32::from(self.kind[index])).unwrap_or(WorkKind::Kernel)
    }

    #[inline]
    pub fn end(&self, index: usize) -> u64 {
        self.start[index].saturating_add(self.dur[index])
    }

    /// The slice of the API call that asked for it. None: not recorded, the work is from before the window.
    #[inline]
    pub fn launch(&self, index: usize) -> Option<usize> {
        (self.launch[index] as usize).checked_sub(1)
    }

    /// Index into [`Gpu::shapes`].
    #[inline]
    pub fn shape(&self, index: usize) -> Option<usize> {
        (self.shape[index] as usize).checked_sub(1)
    }

    #[inline]
    pub fn more(&self, index: usize) -> WorkExtra {
        match self.more[index] {
            0 => WorkExtra::default(),
            place => self.mores[place as usize - 1],
        }
    }

    #[inline]
    pub fn get(&self, index: usize) -> Piece {
        let more = self.more(index);
        Piece {
            start: self.start[index],
            dur: self.dur[index],
            name: NameIndex(self.name[index]),
            kind: self.kind(index),
            correlation: self.correlation[index],
            bytes: more.bytes,
            detail: more.detail,
            graph: more.graph,
            node: more.node,
            launch: self.launch(index),
        }
    }

    /// The work that has a launch, in the order of the launches' slices: by thread, then time.
    pub fn linked(&self) -> &[u32] {
        &self.by_launch
    }

    /// The slices that gave work, with what each of them gave, in the order of the slices.
    pub fn by_launch(&self) -> impl Iterator<Item = (usize, &[u32])> {
        self.by_launch_in(0..self.by_launch.len())
    }

    /// The linked work in parts for several threads: what a slice gave is in one of them.
    pub fn linked_parts(&self) -> impl Iterator<Item = Range<usize>> {
        let launch = |at: usize| self.launch[self.by_launch[at] as usize];
        let (all, mut next) = (self.by_launch.len(), 0);
        std::iter::from_fn(move || {
            let (start, mut end) = (next, all.min(next + parallel::PIECE));
            while start < end && end < all && launch(end) == launch(end - 1) {
                end += 1;
            }
            next = end;
            (start < end).then_some(start..end)
        })
    }

    /// The same as [`Work::by_launch`], of such a part.
    pub fn by_launch_in(&self, part: Range<usize>) -> impl Iterator<Item = (usize, &[u32])> {
        let launch = |work: u32| self.launch[work as usize];
        let each = self.by_launch[part].chunk_by(move |a, b| launch(*a) == launch(*b));
        each.map(move |pieces| (launch(pieces[0]) as usize - 1, pieces))
    }

    /// Whether any of it ran in a CUDA graph.
    pub fn any_graph(&self) -> bool {
        self.mores.iter().any(|more| more.graph != 0)
    }

    /// What an API call asked for, by its slice: one piece, all nodes of a graph, or nothing.
    pub fn of_launch(&self, slice: usize) -> &[u32] {
        let launch = |work: &u32| self.launch[*work as usize] as usize;
        let from = self.by_launch.partition_point(|work| launch(work) <= slice);
        // Nearly always one piece, at times a graph's many.
        let own = |work: &u32| launch(work) == slice + 1;
        let few = self.by_launch[from..].iter().take(8).take_while(|work| own(work)).count();
        let count = if few < 8 { few } else { self.by_launch[from..].partition_point(own) };
        &self.by_launch[from..from + count]
    }
}

impl Gpu {
    pub fn is_empty(&self) -> bool {
        self.work.is_empty()
    }

    /// The stream of a piece of work.
    pub fn stream_of(&self, index: usize) -> &Stream {
        let place = self.streams.partition_point(|stream| stream.work.end <= index);
        &self.streams[place]
    }

    /// A device as a process sees it. Where CUPTI did not tell the process what it is, the machine's, if that has only one.
    pub fn device(&self, process: ProcessIndex, ordinal: u32) -> Option<&Device> {
        let own = self.devices.iter().find(|device| device.process == Some(process) && device.ordinal == ordinal);
        own.or_else(|| {
            let mut machine = self.devices.iter().filter(|device| device.process.is_none());
            machine.next().filter(|_| machine.next().is_none())
        })
    }

    pub fn shape(&self, index: usize) -> Option<Shape> {
        self.shapes.get(self.work.shape(index)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_a_process_was_not_told_of_is_the_only_one_of_the_machine() {
        let device = |process, name: &str| Device { process, name: name.into(), ..Device::default() };
        let (process, other) = (ProcessIndex(0), ProcessIndex(1));
        let mut gpu = Gpu { devices: vec![device(None, "H200"), device(Some(process), "own")], ..Gpu::default() };
        let name = |gpu: &Gpu, process| gpu.device(process, 0).map(|device| device.name.to_string());
        assert_eq!((name(&gpu, process), name(&gpu, other)), (Some("own".into()), Some("H200".into())));
        gpu.devices.push(device(None, "H200"));
        assert_eq!((name(&gpu, process), name(&gpu, other)), (Some("own".into()), None));
    }
}
