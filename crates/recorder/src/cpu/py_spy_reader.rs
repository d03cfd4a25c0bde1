//! py-spy, asked for the stacks of all threads, as it is made for, or of one: it is then pointed at that thread's own place in
//! the interpreter's list and told to read only the holder of the GIL. What it reads there is checked to be that thread.

use super::native_rows::NativeRows;
use super::spy::guarded;
use super::thread_list::{InterpreterAddresses, Thread};
use py_spy::{PythonSpy, StackTrace};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

pub(super) struct PySpyReader {
    spy: PythonSpy,
    /// The real ones.
    pub interpreter: usize,
    pub gil: usize,
    /// Native functions above the Python ones, where they are wanted.
    pub native: Option<NativeRows>,
}

impl PySpyReader {
    pub fn new(spy: PythonSpy, native: Option<NativeRows>) -> PySpyReader {
        let (interpreter, gil) = (spy.addresses.interpreter_address, spy.addresses.threadstate_address);
        PySpyReader { spy, interpreter, gil, native }
    }

    /// Of Python: 3 and 12.
    pub fn version(&self) -> (u64, u64) {
        (self.spy.version.major, self.spy.version.minor)
    }

    /// Asks for the native stack of a thread that runs, whose Python stack is read next.
    pub fn request_native(&mut self, thread: i32) {
        if let Some(native) = &mut self.native {
            native.request(thread);
        }
    }

    /// The stacks of all threads, with their names.
    pub fn all(&mut self) -> Result<Vec<StackTrace>, String> {
        self.spy.config.collect_thread_names = true;
        guarded(|| self.spy.get_stack_traces())
    }

    /// The stack of one thread. `active` says only whether its innermost function may be more than a wait.
    pub fn one(&mut self, place: InterpreterAddresses, thread: &Thread) -> Result<StackTrace, String> {
        self.spy.config.collect_thread_names = false;
        self.at(place, thread)
    }

    /// The names of all threads by what Python calls their ident, looked up together with the stack of one.
    pub fn names(&mut self, place: InterpreterAddresses, thread: &Thread) -> &HashMap<u64, Option<String>> {
        self.spy.config.collect_thread_names = true;
        self.spy.python_thread_names.clear();
        // Torn or not: the names are there if they could be read.
        let _ = self.at(place, thread);
        &self.spy.python_thread_names
    }

    fn at(&mut self, place: InterpreterAddresses, thread: &Thread) -> Result<StackTrace, String> {
        self.spy.config.gil_only = true;
        (self.spy.addresses.interpreter_address, self.spy.addresses.threadstate_address) =
            (place.interpreter, place.gil);
        let read = guarded(|| self.spy.get_stack_traces());
        (self.spy.addresses.interpreter_address, self.spy.addresses.threadstate_address) = (self.interpreter, self.gil);
        self.spy.config.gil_only = false;
        let is_same = |trace: &StackTrace| {
            let os_id = trace.os_thread_id.and_then(|id| i32::try_from(id).ok());
            trace.thread_id == thread.python_id && os_id == thread.os_id
        };
        read?.pop().filter(is_same).ok_or_else(|| "another thread has taken its place".into())
    }
}

/// Tells stacks apart: functions, files and lines.
pub(super) fn fingerprint(trace: &StackTrace) -> u64 {
    let mut hasher = DefaultHasher::new();
    for frame in &trace.frames {
        (&frame.name, &frame.filename, frame.line).hash(&mut hasher);
    }
    hasher.finish()
}
