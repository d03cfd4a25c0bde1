//! Activity records become our records. Runs on the decoder's own thread; whatever is not understood is skipped and counted.

use super::clock::Clock;
use super::layout::{Device, Kernel, Memcpy, MemcpyPeer, Memset, Migration, Overhead};
use super::names::Names;
use crate::session::Session;
use crate::thread::Writing;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::fmt::Write;
use std::sync::atomic::Ordering;
use trace::NameId;
use trace::device::{MOST_RECORDS, Work};
use trace::event::{EVENT_WORDS, Event, Kind};
use trace::status::Collector;
use trace::tables::detail;

/// What the decoder remembers from record to record.
#[derive(Default)]
pub struct Decoder {
    names: Names,
    fixed: HashMap<&'static str, NameId>,
    /// Pieces of work decoded so far.
    pub work: u64,
    /// Those of them that were launched one by one, not as part of a graph.
    pub launched: u64,
    /// The newest correlation among them; they grow from call to call.
    pub newest: u32,
    pub graphs: bool,
}

impl Decoder {
    /// # Safety
    /// `record` is what CUPTI's GetNextRecord gave, and its buffer is not given back yet.
    pub unsafe fn take(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: *const u8) {
        // SAFETY: every record starts with its kind.
        let kind = unsafe { record.cast::<u32>().read_unaligned() };
        // SAFETY: the kind says which record it is, and every version has at least the fields that are read.
        unsafe {
            match kind {
                Kernel::KIND | 3 => self.kernel(session, writing, clock, Kernel::new(record)),
                Memcpy::KIND => self.copy(session, writing, clock, Memcpy::new(record)),
                MemcpyPeer::KIND => self.peer(session, writing, clock, MemcpyPeer::new(record)),
                Memset::KIND => self.memset(session, writing, clock, Memset::new(record)),
                Overhead::KIND => self.overhead(session, writing, clock, Overhead::new(record)),
                Migration::KIND => self.migration(session, writing, clock, Migration::new(record)),
                Device::KIND => self.device(session, writing, Device::new(record)),
                _ => {
                    session.status(Collector::Gpu).overflow.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    unsafe fn kernel(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: Kernel) {
        self.graphs |= record.graph() != 0;
        let work = Work {
            // SAFETY: CUPTI's own string.
            name: unsafe { self.names.get(session, record.name()) },
            device: record.device(),
            context: record.context(),
            stream: record.stream(),
            correlation: record.correlation(),
            detail: u32::from(record.launch_type()),
            grid: [record.grid_x(), record.grid_y(), record.grid_z()],
            block: [record.block_x(), record.block_y(), record.block_z()],
            registers: record.registers(),
            shared_static: record.shared_static(),
            shared_dynamic: record.shared_dynamic(),
            graph: record.graph(),
            node: record.node(),
            ..Work::default()
        };
        self.put(session, writing, Kind::Kernel, times(clock, record.start(), record.end()), work);
    }

    fn copy(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: Memcpy) {
        let work = Work {
            name: self.fixed(session, "memcpy"),
            device: record.device(),
            context: record.context(),
            stream: record.stream(),
            correlation: record.correlation(),
            bytes: record.bytes(),
            detail: detail::pack(record.direction(), record.source(), record.target(), record.flags() & 1) as u32,
            graph: record.graph(),
            node: record.node(),
            ..Work::default()
        };
        self.put(session, writing, Kind::Memcpy, times(clock, record.start(), record.end()), work);
    }

    fn peer(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: MemcpyPeer) {
        let work = Work {
            name: self.fixed(session, "memcpy"),
            device: record.device(),
            context: record.context(),
            stream: record.stream(),
            correlation: record.correlation(),
            bytes: record.bytes(),
            detail: detail::pack(detail::P2P, record.source(), record.target(), record.flags() & 1) as u32,
            graph: record.graph(),
            node: record.node(),
            ..Work::default()
        };
        self.put(session, writing, Kind::Memcpy, times(clock, record.start(), record.end()), work);
    }

    fn memset(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: Memset) {
        let work = Work {
            name: self.fixed(session, "memset"),
            device: record.device(),
            context: record.context(),
            stream: record.stream(),
            correlation: record.correlation(),
            bytes: record.bytes(),
            detail: detail::pack(0, 0, record.memory() as u8, record.flags() as u8 & 1) as u32,
            graph: record.graph(),
            node: record.node(),
            ..Work::default()
        };
        self.put(session, writing, Kind::Memset, times(clock, record.start(), record.end()), work);
    }

    fn migration(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: Migration) {
        let (direction, device) = match record.sort() {
            1 => (detail::H2D, record.target()),
            2 => (detail::D2H, record.source()),
            8 => (detail::D2D, record.target()),
            // Page faults and the like move nothing.
            _ => return,
        };
        let work = Work {
            name: self.fixed(session, "unified memory"),
            device,
            stream: record.stream(),
            bytes: record.bytes(),
            detail: detail::pack(direction, 5, 5, 1) as u32,
            ..Work::default()
        };
        self.put(session, writing, Kind::Migration, times(clock, record.start(), record.end()), work);
    }

    fn overhead(&mut self, session: &'static Session, writing: &mut Writing, clock: &Clock, record: Overhead) {
        let name = match record.sort() {
            1 => "CUDA compiles",
            0x1_0000 => "CUPTI flushes",
            0x2_0000 => "CUPTI instruments",
            0x3_0000 => "CUPTI makes resources",
            0x4_0000 => "CUDA loads a module",
            0x5_0000 => "CUDA loads a function",
            0x6_0000 => "the command buffer is full",
            0x7_0000 => "CUPTI asks for a buffer",
            _ => "CUPTI",
        };
        let Some((start, dur)) = times(clock, record.start(), record.end()) else { return };
        let name = self.fixed(session, name);
        let thread = writing.tid;
        let kind = Kind::Overhead as u16;
        writing.push(Event { time: start, value: dur, thread, name, kind, flags: 0, extra: record.sort() }.to_words());
    }

    /// One line of JSON: it is not in a hurry, and there are few devices.
    unsafe fn device(&mut self, session: &'static Session, writing: &mut Writing, record: Device) {
        let name = match record.name() {
            0 => String::new(),
            // SAFETY: CUPTI's own string.
            address => unsafe { CStr::from_ptr(address as *const c_char) }.to_string_lossy().replace(['"', '\\'], ""),
        };
        let uuid = record.uuid();
        let mut text = String::new();
        for (at, byte) in uuid.iter().enumerate() {
            let dash = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            let _ = write!(text, "{dash}{byte:02x}");
        }
        let (ordinal, major, minor) = (record.ordinal(), record.major(), record.minor());
        let json = format!(
            "{{\"ordinal\":{ordinal},\"name\":\"{name}\",\"uuid\":\"GPU-{text}\",\"multiprocessors\":{},\
             \"compute_capability\":\"{major}.{minor}\",\"memory_bytes\":{},\"bandwidth\":{}}}",
            record.multiprocessors(),
            record.memory(),
            // CUPTI counts in kilobytes a second.
            record.bandwidth().saturating_mul(1000),
        );
        let event = Event {
            time: trace::clock::now(),
            value: 0,
            thread: writing.tid,
            name: session.intern(&json),
            kind: Kind::Device as u16,
            flags: 0,
            extra: ordinal,
        };
        writing.push(event.to_words());
    }

    fn fixed(&mut self, session: &'static Session, name: &'static str) -> NameId {
        *self.fixed.entry(name).or_insert_with(|| session.intern(name))
    }

    /// Writes work whose times CUPTI could tell; the rest is counted.
    fn put(
        &mut self,
        session: &'static Session,
        writing: &mut Writing,
        kind: Kind,
        times: Option<(u64, u64)>,
        work: Work,
    ) {
        self.newest = self.newest.max(work.correlation);
        let Some((start, dur)) = times else {
            session.status(Collector::Gpu).unpaired.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.work += 1;
        self.launched += u64::from(work.graph == 0);
        push(writing, Work { start, dur, ..work }.records(kind));
    }
}

fn times(clock: &Clock, start: u64, end: u64) -> Option<(u64, u64)> {
    (start != 0 && end >= start).then(|| (clock.ours(start), end - start))
}

fn push(writing: &mut Writing, (records, count): ([[u64; EVENT_WORDS]; MOST_RECORDS], usize)) {
    records[..count].iter().for_each(|words| writing.push(*words));
}
