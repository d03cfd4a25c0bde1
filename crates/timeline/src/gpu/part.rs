//! Work that is read in parts, side by side, into columns that have room for all of it. What repeats is numbered in each part on
//! its own; [`Gather::join`] makes one of them, as if the work had been pushed piece by piece.

use super::gather::{Gather, Job, MOST_STREAMS, Site};
use super::once::{Once, Shapes};
use super::{Work, WorkExtra};
use crate::parallel::{self, Task};
use crate::{NameIndex, ProcessIndex};

/// Columns for all parts.
#[derive(Default)]
pub struct Columns {
    work: Work,
    stream: Vec<u32>,
    /// How many rows each part has room for.
    rooms: Vec<usize>,
}

/// The room of one part.
pub struct Room<'r> {
    start: &'r mut [u64],
    dur: &'r mut [u64],
    name: &'r mut [u32],
    correlation: &'r mut [u32],
    shape: &'r mut [u32],
    more: &'r mut [u32],
    stream: &'r mut [u32],
    kind: &'r mut [u8],
}

#[derive(Default)]
pub struct Part {
    filled: usize,
    sites: Once<Site>,
    last: Option<(Site, u32)>,
    shapes: Shapes,
    mores: Once<WorkExtra>,
}

impl Columns {
    pub fn new(rooms: Vec<usize>) -> Columns {
        let rows = rooms.iter().sum();
        let column = || vec![0u32; rows];
        let work = Work {
            start: vec![0; rows],
            dur: vec![0; rows],
            name: column(),
            correlation: column(),
            shape: column(),
            more: column(),
            kind: vec![0; rows],
            ..Work::default()
        };
        Columns { work, stream: column(), rooms }
    }

    pub fn rooms(&mut self) -> Vec<Room<'_>> {
        let Work { start, dur, name, correlation, shape, more, kind, .. } = &mut self.work;
        let (mut start, mut dur) = (pieces(start, &self.rooms), pieces(dur, &self.rooms));
        let columns = [name, correlation, shape, more, &mut self.stream];
        let mut columns = columns.map(|column| pieces(column, &self.rooms));
        let mut kind = pieces(kind, &self.rooms);
        let room = |_: &usize| {
            let [name, correlation, shape, more, stream] = columns.each_mut().map(|column| column.next());
            Some(Room {
                start: start.next()?,
                dur: dur.next()?,
                name: name?,
                correlation: correlation?,
                shape: shape?,
                more: more?,
                stream: stream?,
                kind: kind.next()?,
            })
        };
        self.rooms.iter().map_while(room).collect()
    }

    /// Lets go of the room that was not filled.
    fn close_up(&mut self, filled: &[usize]) {
        if *filled == self.rooms {
            return;
        }
        let Work { start, dur, name, correlation, shape, more, kind, .. } = &mut self.work;
        close_up(start, &self.rooms, filled);
        close_up(dur, &self.rooms, filled);
        close_up(kind, &self.rooms, filled);
        for column in [name, correlation, shape, more, &mut self.stream] {
            close_up(column, &self.rooms, filled);
        }
        self.rooms = filled.to_vec();
    }
}

/// A column in pieces, one after the other.
pub(crate) fn pieces<'r, T>(mut column: &'r mut [T], sizes: &'r [usize]) -> impl Iterator<Item = &'r mut [T]> {
    sizes.iter().map(move |size| {
        let (piece, rest) = std::mem::take(&mut column).split_at_mut(*size);
        column = rest;
        piece
    })
}

/// Moves what the pieces of a column really hold together.
pub(crate) fn close_up<T: Copy>(column: &mut Vec<T>, rooms: &[usize], filled: &[usize]) {
    let (mut from, mut to) = (0, 0);
    for (room, filled) in rooms.iter().zip(filled) {
        column.copy_within(from..from + filled, to);
        (from, to) = (from + room, to + filled);
    }
    column.truncate(to);
    column.shrink_to_fit();
}

impl Part {
    /// The process of a site is whatever number the caller knows it by, until parts are joined.
    pub fn push(&mut self, room: &mut Room, job: Job) {
        let stream = match self.last.filter(|last| last.0 == job.site) {
            Some((_, stream)) => stream,
            None => self.sites.place(job.site) - 1,
        };
        self.last = Some((job.site, stream));
        let row = self.filled;
        self.filled += 1;
        (room.start[row], room.dur[row]) = (job.start, job.dur);
        (room.name[row], room.kind[row]) = (job.name.0, job.kind as u8);
        (room.correlation[row], room.stream[row]) = (job.correlation, stream);
        room.shape[row] = job.shape.map_or(0, |shape| self.shapes.place(job.name, shape));
        room.more[row] = if job.more == WorkExtra::default() { 0 } else { self.mores.place(job.more) };
    }
}

impl Gather {
    /// Takes in all parts, in their order. `process` gives the process that a part's number stands for.
    pub fn join(&mut self, mut columns: Columns, mut parts: Vec<Part>, mut process: impl FnMut(u32) -> ProcessIndex) {
        for site in parts.iter_mut().flat_map(|part| &mut part.sites.all) {
            site.process = process(site.process.0);
        }
        let filled: Vec<usize> = parts.iter().map(|part| part.filled).collect();
        columns.close_up(&filled);
        let streams: usize = parts.iter().map(|part| part.sites.all.len()).sum();
        if self.len() > 0 || self.streams() + streams > MOST_STREAMS && !self.fits(&parts) {
            return self.one_by_one(&columns, &parts);
        }
        let Columns { mut work, mut stream, rooms } = columns;
        let numbers = |part: &Part| {
            // None is refused: all have a place.
            let streams: Vec<u32> = part.sites.all.iter().map(|site| self.stream(*site).unwrap_or(0)).collect();
            let shapes: Vec<u32> = part.shapes.once.all.iter().map(|shape| self.shapes.once.place(*shape)).collect();
            let mores: Vec<u32> = part.mores.all.iter().map(|more| self.mores.place(*more)).collect();
            (streams, shapes, mores)
        };
        let numbers: Vec<_> = parts.iter().map(numbers).collect();
        drop(parts);
        let all = pieces(&mut stream, &rooms).zip(pieces(&mut work.shape, &rooms)).zip(pieces(&mut work.more, &rooms));
        let tasks = all.zip(&numbers).map(|(((stream, shape), more), (streams, shapes, mores))| {
            Box::new(move || {
                stream.iter_mut().for_each(|one| *one = streams[*one as usize]);
                shape.iter_mut().filter(|one| **one > 0).for_each(|one| *one = shapes[*one as usize - 1]);
                more.iter_mut().filter(|one| **one > 0).for_each(|one| *one = mores[*one as usize - 1]);
            }) as Task
        });
        let tasks: Vec<Task> = tasks.collect();
        parallel::run(rooms.iter().sum(), tasks, || {});
        self.set(work, stream);
    }

    fn fits(&self, parts: &[Part]) -> bool {
        let all: std::collections::HashSet<&Site> = parts.iter().flat_map(|part| &part.sites.all).collect();
        self.streams() + all.len() <= MOST_STREAMS
    }

    /// Where there are so many streams that some share a track, it matters which came first.
    fn one_by_one(&mut self, columns: &Columns, parts: &[Part]) {
        let (work, mut index) = (&columns.work, 0);
        for (part, filled) in parts.iter().zip(&columns.rooms) {
            for _ in 0..*filled {
                let of = |place: u32| (place as usize).checked_sub(1);
                self.push(Job {
                    site: part.sites.all[columns.stream[index] as usize],
                    kind: work.kind(index),
                    name: NameIndex(work.name[index]),
                    start: work.start[index],
                    dur: work.dur[index],
                    correlation: work.correlation[index],
                    shape: of(work.shape[index]).map(|place| part.shapes.once.all[place]),
                    more: of(work.more[index]).map_or(WorkExtra::default(), |place| part.mores.all[place]),
                });
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, WorkKind};
    use super::*;

    fn job(number: u32, streams: u32) -> Job {
        let site = Site { process: ProcessIndex(number % 3), device: 0, context: 1, stream: number * 7 % streams };
        let shape = number.is_multiple_of(5).then(|| Shape { grid: [number % 4, 1, 1], ..Shape::default() });
        let more = WorkExtra { bytes: u64::from(number % 6), ..WorkExtra::default() };
        let (start, dur) = (u64::from(number * 37 % 1000), 1);
        Job { site, kind: WorkKind::Kernel, name: NameIndex(number % 9), start, dur, correlation: number, shape, more }
    }

    #[test]
    fn read_in_parts_it_is_as_if_pushed_one_by_one() {
        for streams in [5, 500, 3000] {
            let mut whole = Gather::default();
            for number in 0..4000 {
                let mut job = job(number, streams);
                job.site.process.0 += 100;
                whole.push(job);
            }
            let mut columns = Columns::new(vec![1500, 0, 2500, 700]);
            let mut parts: Vec<Part> = (0..4).map(|_| Part::default()).collect();
            for ((part, room), numbers) in
                parts.iter_mut().zip(&mut columns.rooms()).zip([0..1500, 0..0, 1500..3500, 3500..4000])
            {
                numbers.for_each(|number| part.push(room, job(number, streams)));
            }
            let mut joined = Gather::default();
            joined.join(columns, parts, |number| ProcessIndex(number + 100));
            assert_eq!((joined.shared, joined.refused), (whole.shared, whole.refused));
            assert_eq!(format!("{:?}", joined.finish()), format!("{:?}", whole.finish()), "{streams}");
        }
    }
}
