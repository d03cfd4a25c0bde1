//! Python's stack of a thread, read by the thread itself where it stands: in the middle of PyTorch's allocator, under its lock and mostly without
//! the GIL. The CUDA library asks for it through [`inferscope_stack_reader`] and gives it its name; here nothing is kept and nothing is written.
//!
//! Nothing is read before `check` has found every value as the interpreter says that it is, and nothing once the interpreter ends: it then frees
//! the states of threads that may still be in a call of C.

mod check;
mod frames;
mod layout;
mod memory;
mod text;

use frames::Interpreter;
use memory::Checked;
use pyo3::ffi;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trace::codes::StackMissing;
use trace::event::MAX_TEXT;
use trace::names::SEPARATOR;
use trace::status::Collector;
use workload::guard::guarded;
use workload::python_stack::{self, RawFrame, StackReader};

pub use check::add_to;

/// Set once, before reading is switched on.
static INTERPRETER: OnceLock<Interpreter> = OnceLock::new();
static STATE: AtomicU8 = AtomicU8::new(UNCHECKED);
/// Readings that have begun and not ended, of all threads.
static READINGS: AtomicU32 = AtomicU32::new(0);

const UNCHECKED: u8 = 0;
const ON: u8 = 1;
const ENDING: u8 = 2;

/// Readings take microseconds. A thread that is stopped in one, as by a debugger, does not keep the program from ending.
const END_TIMEOUT: Duration = Duration::from_secs(1);

static READER: StackReader = StackReader { version: python_stack::VERSION, read, describe, end };

/// Where the CUDA library finds the reader.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_stack_reader() -> *const StackReader {
    &raw const READER
}

/// Only after [`INTERPRETER`] is there.
fn switch_on() {
    // An interpreter that has ended does not come back as the same one.
    let _ = STATE.compare_exchange(UNCHECKED, ON, Ordering::SeqCst, Ordering::SeqCst);
}

/// The interpreter ends: no reading begins from here on, and those that have begun come to their end first. They wait for nothing of ours.
fn switch_off() {
    STATE.store(ENDING, Ordering::SeqCst);
    let since = Instant::now();
    while READINGS.load(Ordering::SeqCst) != 0 && since.elapsed() < END_TIMEOUT {
        std::thread::yield_now();
    }
}

/// In a forked child, where nobody else is reading.
extern "C" fn forget_readings() {
    READINGS.store(0, Ordering::SeqCst);
}

extern "C" fn end() {
    READINGS.fetch_sub(1, Ordering::SeqCst);
}

unsafe extern "C" fn read(frames: *mut RawFrame, room: usize) -> i32 {
    // Said before the state is read: who ends the interpreter writes the state before it reads this.
    READINGS.fetch_add(1, Ordering::SeqCst);
    let read = guarded(Collector::Blocks, Err(StackMissing::Unreadable), || {
        // SAFETY: by the caller's promise there is room for so many.
        read_own(unsafe { std::slice::from_raw_parts_mut(frames, room.min(python_stack::MOST_FRAMES)) })
    });
    match read {
        Ok(count) => count as i32,
        Err(why) => {
            end();
            python_stack::missing(why)
        }
    }
}

/// The frames of this thread; there is at least one.
fn read_own(frames: &mut [RawFrame]) -> Result<usize, StackMissing> {
    match STATE.load(Ordering::SeqCst) {
        ON => {}
        ENDING => return Err(StackMissing::Ending),
        _ => return Err(StackMissing::Unreadable),
    }
    let interpreter = INTERPRETER.get().ok_or(StackMissing::Unreadable)?;
    // SAFETY: it looks at the thread's own memory, with the GIL or without; the interpreter has not ended, and does not before `end`.
    let thread = unsafe { ffi::PyGILState_GetThisThreadState() };
    if thread.is_null() {
        return Err(StackMissing::NoPython);
    }
    match interpreter.read(&Checked, thread as usize, frames) {
        None => Err(StackMissing::Unreadable),
        Some(0) => Err(StackMissing::NoPython),
        Some(count) => Ok(count),
    }
}

unsafe extern "C" fn describe(frame: *const RawFrame, text: *mut u8, room: usize, line: *mut u32) -> usize {
    guarded(Collector::Blocks, 0, || {
        let Some(interpreter) = INTERPRETER.get() else { return 0 };
        // SAFETY: by the caller's promise: a frame of a reading that has not ended, so that its code is there; and room for what is written.
        let (frame, text) = unsafe { (&*frame, std::slice::from_raw_parts_mut(text, room)) };
        let Some(code) = interpreter.code(&Checked, frame.code) else { return 0 };
        // SAFETY: as above.
        unsafe { ptr::write(line, interpreter.line(&Checked, &code, frame.instruction).unwrap_or(0)) };
        name(&code, text).unwrap_or(0)
    })
}

/// A function as its calls have it (`calls::functions`): its name, its file and its first line.
fn name(code: &frames::Code, text: &mut [u8]) -> Option<usize> {
    // The file and the line are worth more than the end of a very long name.
    let mut used = code.name.write(&Checked, text.get_mut(..MAX_TEXT / 4)?)?;
    used += SEPARATOR.encode_utf8(text.get_mut(used..)?).len();
    used += code.file.write(&Checked, text.get_mut(used..used + MAX_TEXT / 2)?)?;
    used += SEPARATOR.encode_utf8(text.get_mut(used..)?).len();
    let mut digits = [0u8; 10];
    let mut at = digits.len();
    let mut number = code.first_line.max(0);
    while at == digits.len() || number > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    let digits = &digits[at..];
    text.get_mut(used..used + digits.len())?.copy_from_slice(digits);
    Some(used + digits.len())
}
