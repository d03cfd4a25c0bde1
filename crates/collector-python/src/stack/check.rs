//! The check that reading stacks waits for: frames are read as another thread's call would have them read, and each value is compared with what
//! the interpreter says of the same frame. One that differs leaves reading off, with a note that says so.

use super::frames::Interpreter;
use super::memory::{Checked, Memory, Tried};
use super::{INTERPRETER, forget_readings, layout, switch_off, switch_on};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{ffi, intern};
use std::sync::Once;
use trace::codes::{NoteCode, Reason, ReasonCode};
use trace::event::{Event, Kind, NameId, TextRole, text_records};
use trace::status::Collector;
use workload::python_stack::{MOST_FRAMES, RawFrame};
use workload::session;

/// Adds the functions below to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(stacks_check, module)?)?;
    module.add_function(wrap_pyfunction!(stacks_begin, module)?)?;
    module.add_function(wrap_pyfunction!(stacks_end, module)?)
}

/// Reads the frames of who calls, and compares them with the interpreter's own. Returns what differs first, or None. `minor`: as if this were
/// another 3.x, which has to be noticed.
#[pyfunction]
#[pyo3(signature = (minor=None))]
fn stacks_check(py: Python<'_>, minor: Option<u8>) -> PyResult<Option<String>> {
    let Some(interpreter) = interpreter(py, minor) else { return Ok(Some("its version is not known".to_owned())) };
    let memory = Tried::new().ok_or_else(|| PyRuntimeError::new_err("no pipe"))?;
    // SAFETY: attached, so that this thread has a state.
    let thread = unsafe { ffi::PyGILState_GetThisThreadState() } as usize;
    let mut frames = [RawFrame::default(); MOST_FRAMES];
    let Some(count) = interpreter.read(&memory, thread, &mut frames) else { return Ok(Some("frames".to_owned())) };
    // SAFETY: attached; the frame is borrowed from the interpreter, which runs it now.
    let mut frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast::<ffi::PyObject>()) };
    for raw in &frames[..count] {
        let Some(told) = frame else { return Ok(Some("more frames than there are".to_owned())) };
        if let Some(what) = difference(&interpreter, &memory, raw, &told)? {
            return Ok(Some(what.to_owned()));
        }
        frame = told.getattr(intern!(py, "f_back")).ok().filter(|frame| !frame.is_none());
    }
    if frame.is_some() && count < MOST_FRAMES {
        return Ok(Some("fewer frames than there are".to_owned()));
    }
    // And as it will be done, now that it is known to be right.
    let mut own = [RawFrame::default(); MOST_FRAMES];
    let is_same = interpreter.read(&Checked, thread, &mut own) == Some(count)
        && frames[..count]
            .iter()
            .zip(&own)
            .all(|(one, other)| (one.code, one.identity) == (other.code, other.identity));
    Ok((!is_same).then(|| "frames read twice".to_owned()))
}

/// The interpreter that runs this, as its version has it.
fn interpreter(py: Python<'_>, minor: Option<u8>) -> Option<Interpreter> {
    let version = py.version_info();
    let layout = layout::of((version.major, minor.unwrap_or(version.minor)))?;
    // SAFETY: attached; the frame is borrowed from the interpreter, which runs it now, and its code's type lives as long as that does.
    let (address, code_type) = unsafe {
        let frame = ffi::PyEval_GetFrame();
        if frame.is_null() {
            return None;
        }
        let code = Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(frame).cast());
        (ffi::PyInterpreterState_Get() as usize, code.get_type_ptr() as usize)
    };
    Some(Interpreter { layout, address, code_type })
}

/// Which value of a frame is not what the interpreter says.
fn difference(
    interpreter: &Interpreter,
    memory: &impl Memory,
    raw: &RawFrame,
    told: &Bound<'_, PyAny>,
) -> PyResult<Option<&'static str>> {
    let py = told.py();
    let code = told.getattr(intern!(py, "f_code"))?;
    if raw.code != code.as_ptr() as usize {
        return Ok(Some("the code of a frame"));
    }
    // From here on it is known to be the interpreter's own object.
    let Some(read) = interpreter.code(memory, raw.code) else { return Ok(Some("code")) };
    if read.first_line != code.getattr(intern!(py, "co_firstlineno"))?.extract::<i32>()? {
        return Ok(Some("the first line of code"));
    }
    let bytes = told.getattr(intern!(py, "f_lasti"))?.extract::<i32>()?;
    if raw.instruction != bytes.max(-2) >> 1 {
        return Ok(Some("the instruction of a frame"));
    }
    let line = told.getattr(intern!(py, "f_lineno"))?.extract::<Option<u32>>()?.unwrap_or(0);
    if interpreter.line(memory, &read, raw.instruction) != Some(line) {
        return Ok(Some("the line of a frame"));
    }
    let name = if interpreter.layout.code.instructions.is_some() { "co_qualname" } else { "co_name" };
    for (text, attribute) in [(read.name, name), (read.file, "co_filename")] {
        let mut bytes = [0u8; 16384];
        let Some(count) = text.write(memory, &mut bytes) else { return Ok(Some("text")) };
        let told = code.getattr(attribute)?.cast_into::<PyString>()?;
        // Of one that is cut or has no UTF-8, what is common.
        let told = told.to_string_lossy();
        let is_plain =
            told.len() <= 4096 && !told.contains(|one: char| one < ' ' || one == char::REPLACEMENT_CHARACTER);
        if is_plain && told.as_bytes() != &bytes[..count] {
            return Ok(Some("text"));
        }
    }
    Ok(None)
}

/// What all of `stacks_check` have found: None switches reading on, until the interpreter ends.
#[pyfunction]
fn stacks_begin(py: Python<'_>, difference: Option<String>) -> PyResult<()> {
    let version = py.version_info();
    let known = interpreter(py, None);
    let reason = match (known, difference) {
        (None, _) => Reason::new(ReasonCode::PythonUnknown),
        (Some(_), Some(what)) => Reason::new(ReasonCode::PythonDiffers).with(what),
        (Some(interpreter), None) => {
            static ONCE: Once = Once::new();
            let mut ready = Ok(());
            ONCE.call_once(|| {
                ready = follow_end(py);
                // SAFETY: the handler only stores to an atomic.
                unsafe { libc::pthread_atfork(None, None, Some(forget_readings_in_child)) };
            });
            ready?;
            if INTERPRETER.get_or_init(|| interpreter).address == interpreter.address {
                switch_on();
            }
            return Ok(());
        }
    };
    let reason = reason.with(format!("{}.{}.{}", version.major, version.minor, version.patch));
    say(&reason);
    Ok(())
}

unsafe extern "C" fn forget_readings_in_child() {
    forget_readings();
}

/// `atexit` is where the interpreter begins to end, with every thread's state still there.
fn follow_end(py: Python<'_>) -> PyResult<()> {
    let end = py.import("inferscope._native")?.getattr("stacks_end")?;
    py.import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

#[pyfunction]
fn stacks_end() {
    switch_off();
}

/// Puts a note into the trace.
fn say(reason: &Reason) {
    let Some(session) = session::current() else { return };
    let note = reason.note(NoteCode::NoMemoryStacks);
    let Some(writing) = crate::thread::writing(session, Collector::Blocks) else { return };
    let mut records: Vec<_> = text_records(TextRole::Name, &note.joined()).collect();
    let (time, kind, flags) = (trace::clock::now(), Kind::Note as u16, records.len() as u16);
    let extra = note.code as u32;
    let event = Event { time, value: 0, thread: writing.tid, name: NameId::INLINE, kind, flags, extra };
    records.push(event.to_words());
    writing.push_all(&records);
}
