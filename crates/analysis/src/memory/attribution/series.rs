//! What one process took of a device at any moment, and the moments at which that can be compared with what the driver counts.

use super::PartKind;
use timeline::driver_memory::{DriverMemory, LiveBytes, MemoryPlace, PlaceMemory};
use timeline::memory::MemoryEventKind;
use timeline::{Counter, ProcessIndex, Timeline};

/// The driver is asked for a device and then for its processes; it takes so long, with room for a busy machine.
const ASKED_NS: u64 = 20_000_000;
/// A call whose effect the driver may not show yet.
const JUST_NOW_NS: u64 = 5_000_000;

/// What a process has, by recorded calls and events.
#[derive(Clone, Copy, Default, Debug)]
pub struct Live {
    pub driver: u64,
    pub pool: u64,
    /// Of the framework's allocator: reserved, and handed out.
    pub framework: u64,
    pub in_use: u64,
}

impl Live {
    pub fn total(&self) -> u64 {
        let reserved = self.framework.max(self.in_use);
        self.driver.saturating_add(self.pool).saturating_add(reserved)
    }
}

pub struct User<'a> {
    pub process: ProcessIndex,
    /// By its own count.
    pub ordinal: u32,
    pub ended: u64,
    place: Option<&'a PlaceMemory>,
    /// What the framework's allocator said after each event: time, handed out, reserved.
    said: Vec<(u64, u64, u64)>,
}

impl<'a> User<'a> {
    pub fn new(timeline: &Timeline, driver: &'a DriverMemory, process: ProcessIndex, ordinal: u32) -> User<'a> {
        let own = |place: &&PlaceMemory| place.process == process && place.place == MemoryPlace::Device(ordinal);
        let mut said = Vec::new();
        for event in timeline.memory.events.iter().filter(|event| event.kind != MemoryEventKind::OutOfMemory) {
            let about = timeline.memory.allocator(event.allocator);
            if about.process == process
                && about.device == Some(ordinal)
                && let (Some(allocated), Some(reserved)) = (event.allocated, event.reserved)
            {
                said.push((event.time, allocated, reserved));
            }
        }
        let ended = timeline.processes.get(process.0 as usize).and_then(|process| process.ended_ns);
        let place = driver.places.iter().find(own);
        User { process, ordinal, ended: ended.unwrap_or(timeline.end), place, said }
    }

    /// Its first call or event.
    pub fn first(&self) -> Option<u64> {
        let call = self.place.and_then(|place| place.points.first()).map(|point| point.time);
        call.into_iter().chain(self.said.first().map(|said| said.0)).min()
    }

    pub fn is_over(&self, time: u64) -> bool {
        time > self.ended
    }

    fn said_at(&self, time: u64) -> Option<(u64, u64, u64)> {
        let after = self.said.partition_point(|said| said.0 <= time);
        after.checked_sub(1).map(|at| self.said[at])
    }

    fn taken(&self, time: u64) -> LiveBytes {
        self.place.map(|place| place.at(time)).unwrap_or_default()
    }

    pub fn at(&self, time: u64) -> Live {
        if self.is_over(time) {
            return Live::default();
        }
        let LiveBytes { direct: driver, pooled: pool, framework, .. } = self.taken(time);
        Live { driver, pool, framework, in_use: self.said_at(time).map_or(0, |said| said.1) }
    }

    /// By how much what the allocator said that it has reserved, after its last event, differs from the calls that took it.
    pub fn apart(&self, time: u64) -> u64 {
        let said = self.said_at(time).filter(|_| !self.is_over(time));
        said.map_or(0, |(at, _, reserved)| self.taken(at).framework.abs_diff(reserved))
    }

    /// The most of a part of which every change was recorded, up to then.
    pub fn peak(&self, kind: PartKind, until: u64) -> u64 {
        let of = |pick: fn(&LiveBytes) -> u64| {
            let points = self.place.map_or(&[][..], |place| &place.points);
            points.iter().filter(|point| point.time <= until).map(pick).max().unwrap_or(0)
        };
        match kind {
            PartKind::Driver => of(|point| point.direct),
            PartKind::DriverPool => of(|point| point.pooled),
            PartKind::InUse => self.said.iter().filter(|said| said.0 <= until).map(|said| said.1).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether it takes or gives back memory of the driver in this time.
    fn changes(&self, from: u64, to: u64) -> bool {
        let points = self.place.map_or(&[][..], |place| &place.points);
        let first = points.partition_point(|point| point.time < from);
        points.get(first).is_some_and(|point| point.time <= to)
    }
}

/// Times at which the driver was asked and nothing changed meanwhile.
pub struct Settled {
    pub times: Vec<(u64, u64)>,
    pub left_out: usize,
}

impl Settled {
    pub fn of(used: &Counter, users: &[&User]) -> Settled {
        let quiet = |time: u64| {
            !users.iter().any(|user| user.changes(time.saturating_sub(JUST_NOW_NS), time.saturating_add(ASKED_NS)))
        };
        let first = users.iter().filter_map(|user| user.first()).min().unwrap_or(u64::MAX);
        let samples = used.time.iter().zip(&used.value).map(|(time, value)| (*time, (*value).max(0) as u64));
        let all: Vec<(u64, u64)> = samples.filter(|(time, _)| *time >= first).collect();
        let times: Vec<(u64, u64)> = all.iter().copied().filter(|(time, _)| quiet(*time)).collect();
        Settled { left_out: all.len() - times.len(), times }
    }

    pub fn samples(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.times.iter().copied()
    }
}

/// What a counter says at a time. None: before its first row.
pub fn level(counter: &Counter, time: u64) -> Option<u64> {
    let after = counter.time.partition_point(|at| *at <= time);
    after.checked_sub(1).and_then(|at| u64::try_from(counter.value[at]).ok())
}

/// The same, of a question that is asked a little later.
pub fn level_soon(counter: &Counter, time: u64) -> Option<u64> {
    level(counter, time.saturating_add(ASKED_NS))
}
