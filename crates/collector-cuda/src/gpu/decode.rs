//! Activity records become our records. Runs on the decoder's own thread; whatever is not understood is skipped and counted.
//! Where records go, and what is behind CUPTI's pointers, is left to a [`Target`].

use super::layout::{Device, Kernel, Memcpy, MemcpyPeer, Memset, Migration, Overhead};
use super::names::Names;
use std::collections::HashMap;
use std::ffi::CStr;
use trace::NameId;
use trace::device::Work;
use trace::device_facts::DeviceFacts;
use trace::event::{EVENT_WORDS, Event, Kind};
use trace::tables::detail;

/// What the decoder needs of the process around it.
pub trait Target {
    fn push(&mut self, words: [u64; EVENT_WORDS]);
    /// The records of one event, which stand together.
    fn push_all(&mut self, records: &[[u64; EVENT_WORDS]]) {
        records.iter().for_each(|words| self.push(*words));
    }
    /// The decoder's own thread.
    fn thread(&self) -> u32;
    fn intern(&self, text: &str) -> NameId;
    /// The same for texts of which there may be any number.
    fn intern_message(&self, text: &str) -> NameId;
    /// The string at an address out of a record. None: there is none.
    ///
    /// # Safety
    /// 0, or what CUPTI wrote into a record that is not given back yet.
    unsafe fn text(&self, address: usize) -> Option<&CStr>;
    /// A time of CUPTI's on our clock; or why it has no place there.
    fn time(&self, theirs: u64) -> Result<u64, Trouble>;
    fn count(&mut self, trouble: Trouble);
}

/// Why a record is not in the recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    /// It is of a kind that we do not know.
    Unknown,
    /// CUPTI could not tell when it was.
    NoTimes,
    /// The buffer ends in the middle of it, or CUPTI does not find it.
    Cut,
    /// It is of an earlier recording of the same process.
    Early,
}

/// Start and duration; or why there are none.
type Times = Result<(u64, u64), Trouble>;

/// CUPTI's `cuptiActivityGetNextRecord`, and what it says at the end of a buffer.
pub type NextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32;
const END_OF_BUFFER: u32 = 12;
/// No record is shorter: its kind, and something.
const SHORTEST: usize = 8;

/// `CUPTI_ACTIVITY_KIND_KERNEL`: the same record, of kernels that were made to run one by one.
const SERIAL_KERNEL: u32 = 3;

/// CUPTI's kinds run to about 60; an unknown one may share a place.
const KINDS: usize = 64;

/// What the decoder remembers from record to record.
pub struct Decoder {
    pub names: Names,
    /// How long records are, by kind, as seen so far: CUPTI says it nowhere.
    sizes: [u32; KINDS],
    fixed: HashMap<&'static str, NameId>,
    /// Pieces of work decoded so far.
    pub work: u64,
    /// Those of them that were launched one by one, not as part of a graph.
    pub launched: u64,
    /// The newest correlation among them; they grow from call to call.
    pub newest: u32,
    pub graphs: bool,
    /// The devices that work was on, and those of which it was told what they are, as bits.
    devices: u64,
    told: u64,
}

impl Default for Decoder {
    fn default() -> Decoder {
        let (names, fixed) = (Names::default(), HashMap::new());
        Decoder { names, sizes: [0; KINDS], fixed, work: 0, launched: 0, newest: 0, graphs: false, devices: 0, told: 0 }
    }
}

impl Decoder {
    /// Takes every record of a buffer.
    ///
    /// # Safety
    /// `start` is a buffer of `valid` bytes that CUPTI filled and that is ours, and `next` walks through it.
    pub unsafe fn take_all(&mut self, target: &mut impl Target, next: NextRecord, start: *mut u8, valid: usize) {
        let mut record = std::ptr::null_mut();
        // Where the last record begins, and its kind.
        let mut last: Option<(usize, usize)> = None;
        // A library that goes round in circles does not hold us up.
        for _ in 0..valid / SHORTEST {
            // SAFETY: by the caller's promise, and `record` is null or the last record of it.
            let code = unsafe { next(start, valid, &mut record) };
            let offset = (record as usize).wrapping_sub(start as usize);
            if code != 0 || offset >= valid {
                if code != END_OF_BUFFER || self.has_more(last, valid) {
                    target.count(Trouble::Cut);
                }
                return;
            }
            if let Some((at, kind)) = last {
                self.sizes[kind] = offset.wrapping_sub(at) as u32;
            }
            // SAFETY: so many bytes of the buffer are left at the record.
            let kind = unsafe { self.take(target, record, valid - offset) };
            last = Some((offset, kind as usize % KINDS));
        }
    }

    /// Whether bytes follow behind the last record, as far as it is known how long one of its kind is.
    fn has_more(&self, last: Option<(usize, usize)>, valid: usize) -> bool {
        last.is_some_and(|(at, kind)| self.sizes[kind] != 0 && at + (self.sizes[kind] as usize) < valid)
    }

    /// Takes one record, and gives its kind.
    ///
    /// # Safety
    /// `record` is what CUPTI's GetNextRecord gave, with `left` bytes from there to the end of a buffer that is not given back yet.
    unsafe fn take(&mut self, target: &mut impl Target, record: *const u8, left: usize) -> u32 {
        if left < SHORTEST {
            target.count(Trouble::Cut);
            return 0;
        }
        // SAFETY: every record starts with its kind.
        let kind = unsafe { record.cast::<u32>().read_unaligned() };
        // SAFETY: by the caller's promise.
        unsafe { self.take_kind(target, kind, record, left) };
        kind
    }

    /// # Safety
    /// As for `take`.
    unsafe fn take_kind(&mut self, target: &mut impl Target, kind: u32, record: *const u8, left: usize) {
        let length = match kind {
            Kernel::KIND | SERIAL_KERNEL => Kernel::LENGTH,
            Memcpy::KIND => Memcpy::LENGTH,
            MemcpyPeer::KIND => MemcpyPeer::LENGTH,
            Memset::KIND => Memset::LENGTH,
            Overhead::KIND => Overhead::LENGTH,
            Migration::KIND => Migration::LENGTH,
            Device::KIND => Device::LENGTH,
            _ => return target.count(Trouble::Unknown),
        };
        if left < length {
            return target.count(Trouble::Cut);
        }
        // SAFETY: the kind says which record it is, and every field that is read lies in the buffer.
        unsafe {
            match kind {
                Memcpy::KIND => self.copy(target, Memcpy::new(record)),
                MemcpyPeer::KIND => self.peer(target, MemcpyPeer::new(record)),
                Memset::KIND => self.memset(target, Memset::new(record)),
                Overhead::KIND => self.overhead(target, Overhead::new(record)),
                Migration::KIND => self.migration(target, Migration::new(record)),
                Device::KIND => self.device(target, Device::new(record)),
                _ => self.kernel(target, Kernel::new(record)),
            }
        }
    }

    unsafe fn kernel(&mut self, target: &mut impl Target, record: Kernel) {
        self.graphs |= record.graph() != 0;
        let work = Work {
            // SAFETY: CUPTI's own string.
            name: unsafe { self.names.get(target, record.name()) },
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
        self.put(target, Kind::Kernel, times(target, record.start(), record.end()), work);
    }

    fn copy(&mut self, target: &mut impl Target, record: Memcpy) {
        let work = Work {
            name: self.fixed(target, "memcpy"),
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
        self.put(target, Kind::Memcpy, times(target, record.start(), record.end()), work);
    }

    fn peer(&mut self, target: &mut impl Target, record: MemcpyPeer) {
        let work = Work {
            name: self.fixed(target, "memcpy"),
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
        self.put(target, Kind::Memcpy, times(target, record.start(), record.end()), work);
    }

    fn memset(&mut self, target: &mut impl Target, record: Memset) {
        let work = Work {
            name: self.fixed(target, "memset"),
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
        self.put(target, Kind::Memset, times(target, record.start(), record.end()), work);
    }

    fn migration(&mut self, target: &mut impl Target, record: Migration) {
        let (direction, device) = match record.sort() {
            1 => (detail::H2D, record.target()),
            2 => (detail::D2H, record.source()),
            8 => (detail::D2D, record.target()),
            // Page faults and the like move nothing.
            _ => return,
        };
        let work = Work {
            name: self.fixed(target, "unified memory"),
            device,
            stream: record.stream(),
            bytes: record.bytes(),
            detail: detail::pack(direction, 5, 5, 1) as u32,
            ..Work::default()
        };
        self.put(target, Kind::Migration, times(target, record.start(), record.end()), work);
    }

    fn overhead(&mut self, target: &mut impl Target, record: Overhead) {
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
        let Ok((start, dur)) = times(target, record.start(), record.end()) else { return };
        let name = self.fixed(target, name);
        let thread = target.thread();
        let kind = Kind::Overhead as u16;
        target.push(Event { time: start, value: dur, thread, name, kind, flags: 0, extra: record.sort() }.to_words());
    }

    unsafe fn device(&mut self, target: &mut impl Target, record: Device) {
        // SAFETY: CUPTI's own string.
        let name = unsafe { target.text(record.name()) };
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // Several processes may have an instance of the same device each.
        let instance = record.mig() != 0 && record.mig_uuid() != [0; 16];
        self.tell(
            target,
            &DeviceFacts {
                ordinal: record.ordinal(),
                name,
                instance,
                uuid: if instance { record.mig_uuid() } else { record.uuid() },
                multiprocessors: record.multiprocessors(),
                compute_capability: (record.major(), record.minor()),
                memory_bytes: record.memory(),
                // CUPTI counts in kilobytes a second.
                bandwidth: record.bandwidth().saturating_mul(1000),
            },
        );
    }

    /// Writes what a device is. It is not in a hurry, and there are few devices.
    pub fn tell(&mut self, target: &mut impl Target, facts: &DeviceFacts) {
        self.told |= bit(facts.ordinal);
        target.push_all(&facts.records(trace::clock::now(), target.thread()));
    }

    /// The devices that work was on and of which nothing was told, each once.
    pub fn untold(&mut self) -> impl Iterator<Item = u32> + use<> {
        let untold = self.devices & !self.told;
        self.told |= untold;
        (0..u64::BITS).filter(move |ordinal| untold & bit(*ordinal) != 0)
    }

    fn fixed(&mut self, target: &impl Target, name: &'static str) -> NameId {
        *self.fixed.entry(name).or_insert_with(|| target.intern(name))
    }

    /// Writes work whose times CUPTI could tell; the rest is counted.
    fn put(&mut self, target: &mut impl Target, kind: Kind, times: Times, work: Work) {
        self.newest = self.newest.max(work.correlation);
        let (start, dur) = match times {
            Ok(times) => times,
            Err(trouble) => return target.count(trouble),
        };
        self.work += 1;
        self.devices |= bit(work.device);
        self.launched += u64::from(work.graph == 0);
        let (records, count) = Work { start, dur, ..work }.records(kind);
        target.push_all(&records[..count]);
    }
}

/// No machine has more devices than there are bits: 0 beyond.
fn bit(ordinal: u32) -> u64 {
    1u64.checked_shl(ordinal).unwrap_or(0)
}

fn times(target: &impl Target, start: u64, end: u64) -> Times {
    if start == 0 || end < start {
        return Err(Trouble::NoTimes);
    }
    Ok((target.time(start)?, end - start))
}
