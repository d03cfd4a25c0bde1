//! Takes device work in any order and puts it into columns: streams in order, shapes and details each once. Linking work to
//! the calls that asked for it is left to `link`.

use super::once::{Once, Shapes};
use super::{Gpu, Shape, Stream, Work, WorkExtra, WorkKind};
use crate::{NameIndex, ProcessIndex, sort};
use std::collections::HashMap;

/// Where work ran.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Site {
    pub process: ProcessIndex,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
}

/// One piece of work that is put into a timeline.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub site: Site,
    pub kind: WorkKind,
    pub name: NameIndex,
    pub start: u64,
    pub dur: u64,
    /// 0: none.
    pub correlation: u32,
    pub shape: Option<Shape>,
    pub more: WorkExtra,
}

/// A program that makes a stream for every request would have a track for every request: further streams of a device share
/// one, whose number is `u32::MAX`. The second limit is for what no program does.
pub const MOST_STREAMS: usize = 1024;
const MOST_SHARED: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Gather {
    gpu: Gpu,
    /// Per piece of work, its stream in the order in which streams were met.
    stream: Vec<u32>,
    sites: Vec<Site>,
    known: HashMap<Site, u32>,
    last: Option<(Site, u32)>,
    pub(super) shapes: Shapes,
    pub(super) mores: Once<WorkExtra>,
    /// Work that shares a track because there are too many streams, and work that found none at all.
    pub shared: u64,
    pub refused: u64,
}

impl Gather {
    pub fn len(&self) -> usize {
        self.gpu.work.len()
    }

    pub(super) fn streams(&self) -> usize {
        self.sites.len()
    }

    /// All work, with the stream of each piece.
    pub(super) fn set(&mut self, work: Work, stream: Vec<u32>) {
        (self.gpu.work, self.stream) = (work, stream);
    }

    pub fn push(&mut self, job: Job) {
        let Some(stream) = self.stream(job.site).filter(|_| self.len() < u32::MAX as usize - 1) else {
            self.refused += 1;
            return;
        };
        let shape = job.shape.map_or(0, |shape| self.shapes.place(job.name, shape));
        let more = if job.more == WorkExtra::default() { 0 } else { self.mores.place(job.more) };
        let work = &mut self.gpu.work;
        work.start.push(job.start);
        work.dur.push(job.dur);
        work.name.push(job.name.0);
        work.kind.push(job.kind as u8);
        work.correlation.push(job.correlation);
        work.shape.push(shape);
        work.more.push(more);
        self.stream.push(stream);
    }

    pub(super) fn stream(&mut self, site: Site) -> Option<u32> {
        if let Some((_, stream)) = self.last.filter(|last| last.0 == site) {
            return Some(stream);
        }
        let mut place = self.known.get(&site).copied();
        if place.is_none() {
            let full = self.sites.len() >= MOST_STREAMS;
            let home = if full { Site { context: u32::MAX, stream: u32::MAX, ..site } } else { site };
            self.shared += u64::from(full);
            place = self.known.get(&home).copied();
            if place.is_none() && self.sites.len() < MOST_STREAMS + MOST_SHARED {
                self.sites.push(home);
                place = Some(self.sites.len() as u32 - 1);
                self.known.insert(home, self.sites.len() as u32 - 1);
            }
            if full {
                return place;
            }
        }
        self.last = place.map(|place| (site, place));
        place
    }

    /// When the work from this place on starts.
    pub fn starts(&mut self, from: usize) -> &mut [u64] {
        &mut self.gpu.work.start[from..]
    }

    /// Keeps the work at the places that `choose` gives for all starts; how much was let go.
    pub fn keep(&mut self, choose: impl Fn(&[u64]) -> Vec<u32>) -> usize {
        let work = &mut self.gpu.work;
        let (before, kept) = (work.len(), choose(&work.start));
        work.reorder(&kept);
        sort::gather(&mut self.stream, &kept);
        before - kept.len()
    }

    pub fn renumber(&mut self, renumber: impl Fn(&mut ProcessIndex)) {
        self.sites.iter_mut().for_each(|site| renumber(&mut site.process));
    }

    /// Sorted by stream and start. What is not work (devices, allocations) is for the caller to add.
    pub fn finish(mut self) -> Gpu {
        let mut order: Vec<u32> = (0..self.sites.len() as u32).collect();
        order.sort_by_key(|site| self.sites[*site as usize]);
        let mut place = vec![0u32; order.len()];
        order.iter().zip(0..).for_each(|(old, new)| place[*old as usize] = new);
        self.stream.iter_mut().for_each(|stream| *stream = place[*stream as usize]);
        (self.gpu.shapes, self.gpu.work.mores) = (self.shapes.once.all, self.mores.all);
        let work = &mut self.gpu.work;
        let sorted = sort::by_track(&self.stream, &work.start, |index| work.dur[index], order.len());
        let stream = |(site, range): (&u32, std::ops::Range<usize>)| {
            let Site { process, device, context, stream } = self.sites[*site as usize];
            Stream { process, device, context, stream, work: range }
        };
        self.gpu.streams = order.iter().zip(sorted.ranges).map(stream).collect();
        match sorted.order {
            Some(order) => {
                work.reorder(&order);
            }
            None => work.shrink(),
        }
        self.gpu
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(stream: u32, start: u64) -> Job {
        let site = Site { process: ProcessIndex(0), device: 0, context: 1, stream };
        let shape = Some(Shape { grid: [1, 1, 1], ..Shape::default() });
        let more = WorkExtra::default();
        Job { site, kind: WorkKind::Kernel, name: NameIndex(0), start, dur: 1, correlation: 0, shape, more }
    }

    #[test]
    fn work_comes_out_by_stream_and_start_with_each_shape_once() {
        let mut gather = Gather::default();
        for (stream, start) in [(9, 5), (7, 8), (9, 1), (7, 3)] {
            gather.push(job(stream, start));
        }
        let gpu = gather.finish();
        assert_eq!(gpu.work.start, [3, 8, 1, 5]);
        assert_eq!(gpu.streams.iter().map(|s| (s.stream, s.work.clone())).collect::<Vec<_>>(), [(7, 0..2), (9, 2..4)]);
        assert_eq!(gpu.shapes.len(), 1);
    }

    #[test]
    fn a_million_streams_share_a_track() {
        let mut gather = Gather::default();
        (0..1_000_000).for_each(|stream| gather.push(job(stream, u64::from(stream))));
        assert_eq!((gather.shared, gather.refused), (1_000_000 - MOST_STREAMS as u64, 0));
        let gpu = gather.finish();
        assert_eq!((gpu.streams.len(), gpu.work.len()), (MOST_STREAMS + 1, 1_000_000));
        let last = gpu.streams.last().unwrap();
        assert!(last.stream == u32::MAX && gpu.work.start[last.work.clone()].is_sorted());
    }

    #[test]
    fn a_million_devices_are_refused() {
        let mut gather = Gather::default();
        for device in 0..1_000_000 {
            let site = Site { device, ..job(0, 0).site };
            gather.push(Job { site, ..job(0, 0) });
        }
        assert_eq!(gather.refused, 1_000_000 - (MOST_STREAMS + MOST_SHARED) as u64);
    }
}
