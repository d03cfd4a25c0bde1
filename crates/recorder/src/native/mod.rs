//! What native code runs under a line of Python: the functions and their libraries, from copies of the stack that the kernel makes while
//! the thread runs (perf events). Walked and named out here; the process is not stopped and does nothing for it.

mod chosen;
mod event;
mod mapping;
mod memory_map;
mod names;
mod object_file;
mod object_files;
pub(crate) mod permission;
mod process;
mod symbols;

pub(crate) use object_files::ObjectFiles;
pub(crate) use process::NativeFrame;

use event::Event;
use process::Process;
use std::collections::HashMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The native stacks of one process, asked for thread by thread.
pub(crate) struct NativeStacks {
    pid: u32,
    process: Process,
    events: HashMap<i32, Followed>,
    /// Requests so far: the age of an event.
    requests: u64,
    /// Why there are none, once that is known.
    failure: Option<io::Error>,
}

struct Followed {
    event: Event,
    used: u64,
    /// A sample was asked for and not yet taken.
    is_asked: bool,
    /// Requests since then.
    in_vain: u32,
}

/// Each takes a file and 36 KB; of more threads that take turns those that ran least lately are closed.
const MOST_EVENTS: usize = 64;
/// Then it may be the event of a thread that has ended, and whose number another has now.
const MOST_IN_VAIN: u32 = 1000;

impl NativeStacks {
    pub fn new(pid: u32, files: ObjectFiles) -> NativeStacks {
        NativeStacks { pid, process: Process::new(pid, files), events: HashMap::new(), requests: 0, failure: None }
    }

    /// Asks for the stack of a thread that runs or could, just before its Python stack is read: both are then of the same moment. Of a
    /// thread that waits for a processor the native one comes when it has got one: it is the same, for nothing has run in between.
    pub fn request(&mut self, thread: i32) {
        if self.failure.is_some() || thread <= 0 {
            return;
        }
        self.requests += 1;
        if let Some(followed) = self.events.get_mut(&thread)
            && followed.is_asked
        {
            followed.in_vain += 1;
            if followed.in_vain < MOST_IN_VAIN {
                return;
            }
            self.events.remove(&thread);
        }
        if !self.events.contains_key(&thread) {
            self.make_room();
            match Event::open(thread) {
                Ok(event) => _ = self.events.insert(thread, Followed { event, used: 0, is_asked: false, in_vain: 0 }),
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return,
                Err(error) if self.events.is_empty() => return self.failure = Some(error),
                // No room for one more: those that there are go on.
                Err(_) => return,
            }
        }
        if let Some(followed) = self.events.get_mut(&thread) {
            (followed.used, followed.is_asked, followed.in_vain) = (self.requests, true, 0);
            followed.event.request();
        }
    }

    /// Whether the stack of a thread was asked for and has not come yet.
    pub fn is_asked(&self, thread: i32) -> bool {
        self.events.get(&thread).is_some_and(|followed| followed.is_asked)
    }

    /// The stacks that have come: of each thread its native functions above the line of Python, the innermost first. None of them:
    /// Python itself ran.
    pub fn take(&mut self) -> Vec<(i32, Vec<NativeFrame>)> {
        let mut taken = Vec::new();
        let mut others = Vec::new();
        for (thread, followed) in self.events.iter_mut().filter(|(_, followed)| followed.is_asked) {
            let Some(copied) = followed.event.take() else { continue };
            followed.is_asked = false;
            if copied.pid != self.pid {
                others.push(*thread);
            }
            // Files and stacks that lie may find a defect in what reads them.
            let frames = catch_unwind(AssertUnwindSafe(|| self.process.frames(&copied))).unwrap_or_default();
            taken.push((*thread, frames));
        }
        for thread in others {
            self.events.remove(&thread);
            taken.retain(|(other, _)| *other != thread);
        }
        taken
    }

    /// Why the kernel gives none.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    fn make_room(&mut self) {
        if self.events.len() >= MOST_EVENTS
            && let Some(oldest) =
                self.events.iter().min_by_key(|(_, followed)| followed.used).map(|(thread, _)| *thread)
        {
            self.events.remove(&oldest);
        }
    }
}
