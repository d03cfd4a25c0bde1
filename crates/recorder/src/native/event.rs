//! One native stack of one thread, on request: a perf event that fires once on the processor that the thread runs on, and copies
//! its registers and the top of its stack. Nothing is stopped, and nothing is copied of a thread that does not run.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// `struct perf_event_attr` as of Linux 4.1, which has all that is used here.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clock: i32,
    sample_regs_intr: u64,
    aux_watermark: u32,
    sample_max_stack: u16,
    reserved: u16,
}
const _: () = assert!(size_of::<Attributes>() == 112);

const SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
const IP: u64 = 1;
const TID: u64 = 1 << 1;
const TIME: u64 = 1 << 2;
const READ: u64 = 1 << 4;
const REGS_USER: u64 = 1 << 12;
const STACK_USER: u64 = 1 << 13;
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const USE_CLOCK: u64 = 1 << 25;
const CLOSE_ON_EXEC: u64 = 1 << 3;

/// Fires as often as its argument says, and is then switched off.
const REFRESH: u64 = 0x2402;

const RECORD_SAMPLE: u32 = 9;

/// The registers that a stack is walked from, in the kernel's order of them.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
const COUNT: usize = REGISTERS.count_ones() as usize;

/// The shortest that the kernel's timer takes: the sample is wanted now.
const PERIOD_NS: u64 = 10_000;
/// So much of the thread's own time may pass from the request to the sample. Timers of virtual machines come 30 to 60 µs late, as seen
/// on one; reading a Python stack takes as long as this.
const LATEST_NS: u64 = 100_000;
/// Of the stack: frames of an operator of PyTorch down to the interpreter take 4 to 12 KB.
const STACK_BYTES: u32 = 16 << 10;
/// One record fits, and no more is ever asked for. It counts against the memory that a user may lock for such events.
const RING_BYTES: usize = 32 << 10;

/// What was on a processor at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub fp: u64,
    /// The return address, where the processor keeps it in a register.
    #[cfg(target_arch = "aarch64")]
    pub lr: u64,
}

#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Whose thread it was: numbers of threads are used again.
    pub pid: u32,
    /// The thread's own time, as the event counts it.
    pub counted_ns: u64,
    pub registers: Registers,
    /// From the stack pointer on.
    pub stack: Vec<u8>,
}

/// The event of one thread.
pub(super) struct Event {
    file: OwnedFd,
    ring: Ring,
    excludes_kernel: bool,
    /// What the event had counted of the thread's own time when it last fired.
    counted_ns: u64,
}

impl Event {
    /// `thread` is the kernel's number of it.
    pub fn open(thread: i32) -> io::Result<Event> {
        // With the time that it spends in the kernel, where we may: its stack is then that of the call into it.
        Event::open_excluding(thread, 0).or_else(|_| Event::open_excluding(thread, EXCLUDE_KERNEL))
    }

    fn open_excluding(thread: i32, excluded: u64) -> io::Result<Event> {
        let attributes = Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32,
            config: TASK_CLOCK,
            sample_period: PERIOD_NS,
            sample_type: IP | TID | TIME | READ | REGS_USER | STACK_USER,
            flags: DISABLED | excluded | EXCLUDE_HYPERVISOR | USE_CLOCK,
            wakeup_events: 1,
            sample_regs_user: REGISTERS,
            sample_stack_user: STACK_BYTES,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        // SAFETY: the kernel reads as many bytes of the attributes as they say they have.
        let file = unsafe {
            libc::syscall(libc::SYS_perf_event_open, &raw const attributes, thread, -1i32, -1i32, CLOSE_ON_EXEC)
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, and nobody else's.
        let file = unsafe { OwnedFd::from_raw_fd(file as i32) };
        let ring = Ring::map(&file)?;
        Ok(Event { file, ring, excludes_kernel: excluded != 0, counted_ns: 0 })
    }

    /// Asks for one sample, as soon as the thread runs code of its own. Only once the one before has come.
    pub fn request(&mut self) {
        self.control(REFRESH, 1);
    }

    /// The sample that was asked for. None: the thread has not run since. What cannot be read has no registers.
    pub fn take(&mut self) -> Option<Copied> {
        let mut copied = self.ring.read().map(|record| parse(&record).unwrap_or_default())?;
        let after = copied.counted_ns.saturating_sub(self.counted_ns);
        self.counted_ns = copied.counted_ns;
        // Where the kernel is excluded, a thread that was in it is copied after its return: that is another place.
        if self.excludes_kernel && after > LATEST_NS {
            copied.registers = Registers::default();
        }
        Some(copied)
    }

    fn control(&self, order: u64, argument: u64) {
        // SAFETY: the order takes a number. One that fails shows as a sample that never comes.
        unsafe { libc::ioctl(self.file.as_raw_fd(), order as _, argument) };
    }
}

/// The kernel's buffer of one event: a page that says what is where, then the records.
struct Ring {
    start: *mut u8,
    page: usize,
    room: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Ring {}

/// Of `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

impl Ring {
    fn map(file: &OwnedFd) -> io::Result<Ring> {
        // SAFETY: asks for a constant of the system.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let room = RING_BYTES.max(page);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), page + room, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { start: start.cast(), page, room })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: both offsets lie in the first page and are aligned; the kernel reads and writes them as one word.
        unsafe { &*self.start.add(offset).cast::<AtomicU64>() }
    }

    /// Gives everything back to the kernel.
    fn forget(&self) {
        self.word(DATA_TAIL).store(self.word(DATA_HEAD).load(Ordering::Acquire), Ordering::Release);
    }

    /// The oldest record of a sample; what else is there is skipped.
    fn read(&self) -> Option<Vec<u8>> {
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        let mut found = None;
        while found.is_none() && head.wrapping_sub(tail) >= 8 {
            let header = self.bytes(tail, 8);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < 8 || size > head.wrapping_sub(tail) {
                break;
            }
            if kind == RECORD_SAMPLE {
                found = Some(self.bytes(tail + 8, size as usize - 8));
            }
            tail += size;
        }
        self.forget();
        found
    }

    fn bytes(&self, from: u64, count: usize) -> Vec<u8> {
        let at = (from % self.room as u64) as usize;
        let first = count.min(self.room - at);
        let mut bytes = vec![0; count];
        // SAFETY: both pieces lie in the mapping; the kernel does not write over what was not given back.
        unsafe {
            ptr::copy_nonoverlapping(self.start.add(self.page + at), bytes.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(self.start.add(self.page), bytes.as_mut_ptr().add(first), count - first);
        }
        bytes
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.cast(), self.page + self.room) };
    }
}

/// A record after its header: ip, pid and tid, time, what was counted, registers, stack. None: without registers (a thread of the kernel's), or cut off.
fn parse(record: &[u8]) -> Option<Copied> {
    let word = |at: usize| Some(u64::from_ne_bytes(record.get(at * 8..at * 8 + 8)?.try_into().ok()?));
    const ABI: usize = 4;
    /// PERF_SAMPLE_REGS_ABI_64.
    const WHOLE: u64 = 2;
    if word(ABI)? != WHOLE {
        return None;
    }
    let register = |at: usize| word(ABI + 1 + at);
    #[cfg(target_arch = "x86_64")]
    let registers = Registers { fp: register(0)?, sp: register(1)?, ip: register(2)? };
    #[cfg(target_arch = "aarch64")]
    let registers = Registers { fp: register(0)?, lr: register(1)?, sp: register(2)?, ip: register(3)? };
    let size_at = ABI + 1 + COUNT;
    let size = usize::try_from(word(size_at)?).ok()?;
    let begin = (size_at + 1) * 8;
    let all = record.get(begin..begin.checked_add(size)?)?;
    // How much of it the kernel could copy stands behind it.
    let copied = if size == 0 { 0 } else { word(size_at + 1 + size / 8)? };
    let stack = all.get(..usize::try_from(copied).ok()?.min(all.len()))?.to_vec();
    let pid = (word(1)? & u64::from(u32::MAX)) as u32;
    Some(Copied { pid, counted_ns: word(3)?, registers, stack })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn record(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn whole(copied: u64) -> Vec<u64> {
        let mut words = vec![0x1000, 7, 99, 5, 2];
        words.extend((1..=COUNT as u64).map(|register| register * 0x10));
        words.extend([16, 0xaaaa, 0xbbbb, copied]);
        words
    }

    #[test]
    fn a_record_has_registers_and_as_much_of_the_stack_as_was_copied() {
        let copied = parse(&record(&whole(8))).unwrap();
        assert_eq!((copied.pid, copied.registers.fp, copied.stack), (7, 0x10, record(&[0xaaaa])));
        assert_eq!(parse(&record(&whole(16))).unwrap().stack.len(), 16);
        // More than there is: as much as there is.
        assert_eq!(parse(&record(&whole(u64::MAX))).unwrap().stack.len(), 16);
    }

    #[test]
    fn a_record_that_is_cut_off_or_lies_is_none() {
        let words = whole(16);
        for length in 0..words.len() {
            assert!(parse(&record(&words[..length])).is_none(), "{length} words");
        }
        let mut odd = words.clone();
        odd[5 + COUNT] = u64::MAX;
        assert!(parse(&record(&odd)).is_none());
        // A program of 32 bits.
        let mut small = words;
        small[4] = 1;
        assert!(parse(&record(&small)).is_none());
    }

    #[test]
    fn a_thread_that_runs_gives_its_registers_and_one_that_sleeps_gives_none() {
        let (to_us, from_thread) = std::sync::mpsc::channel();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = std::sync::Arc::clone(&stop);
        let runs = std::thread::spawn(move || {
            let place = 0u64;
            // SAFETY: asks for the number of this thread.
            to_us.send((unsafe { libc::gettid() }, &raw const place as u64)).unwrap();
            while !seen.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let (thread, place) = from_thread.recv().unwrap();
        let mut event = Event::open(thread).expect("perf events: see `inferscope doctor`");
        event.request();
        let deadline = Instant::now() + Duration::from_secs(60);
        let copied = loop {
            match event.take() {
                Some(copied) if copied.registers != Registers::default() => break copied,
                // It was late: a busy machine.
                Some(_) => event.request(),
                None => std::thread::yield_now(),
            }
            assert!(Instant::now() < deadline, "no sample of a thread that runs");
        };
        stop.store(true, Ordering::Relaxed);
        runs.join().unwrap();
        let sp = copied.registers.sp;
        assert!(sp <= place && place - sp < 1 << 20, "the stack pointer {sp:#x} is not near {place:#x}");
        assert!(!copied.stack.is_empty() && copied.stack.len() <= STACK_BYTES as usize);
        assert!(event.take().is_none(), "one request is one sample");
        // It has ended.
        event.request();
        assert!(event.take().is_none());
    }
}
