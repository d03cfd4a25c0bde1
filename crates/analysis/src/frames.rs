//! What a frame is: the program's own code or a library's, a call that waits, logging, the event loop. One pass over names
//! and one over stacks, so that looking at a sample costs nothing.

use timeline::{Name, NameIndex, StackIndex, Timeline};

/// Bits of a name.
pub mod is {
    pub const NATIVE: u16 = 1;
    pub const LIBRARY: u16 = 1 << 1;
    /// A lambda, comprehension or generator expression: part of the function around it.
    pub const PIECE: u16 = 1 << 2;
    /// Known to wait, for a lock, a queue or another thread ...
    pub const WAITS_FOR_LOCK: u16 = 1 << 3;
    /// ... or for a socket, a pipe or a child.
    pub const WAITS_FOR_IO: u16 = 1 << 4;
    pub const LOGGING: u16 = 1 << 5;
    pub const EVENT_LOOP: u16 = 1 << 6;
    /// Native code that takes the interpreter's lock.
    pub const TAKES_GIL: u16 = 1 << 7;
}
pub const WAITS: u16 = is::WAITS_FOR_LOCK | is::WAITS_FOR_IO;

#[derive(Debug, Default)]
pub struct Frames {
    name: Vec<u16>,
    /// Bits of all frames from the root to this one that are worth inheriting.
    on_path: Vec<u16>,
    /// Bits of the native frames on top of the last Python frame.
    on_top: Vec<u16>,
    /// The frame to name for it: the deepest one of the program's own code.
    home: Vec<u32>,
    /// Frames below it, itself included.
    depth: Vec<u32>,
}

impl Frames {
    pub fn new(timeline: &Timeline) -> Frames {
        let names = &timeline.names;
        let name: Vec<u16> = (0..names.len() as u32).map(|index| bits(names.get(NameIndex(index)))).collect();
        let count = timeline.stacks.len();
        let none = || vec![0; count];
        let mut frames = Frames { name, on_path: vec![0; count], on_top: vec![0; count], home: none(), depth: none() };
        for index in 1..count {
            let frame = timeline.stacks.frame(StackIndex(index as u32));
            let (own, parent) = (frames.bits(frame.name), frame.parent.0 as usize);
            frames.depth[index] = frames.depth[parent] + 1;
            frames.on_path[index] = frames.on_path[parent] | own & (is::LOGGING | is::EVENT_LOOP);
            frames.on_top[index] = if own & is::NATIVE != 0 { frames.on_top[parent] | own } else { own };
            let above = frames.home[parent];
            let file = |stack: u32| &names.get(timeline.stacks.frame(StackIndex(stack)).name).file;
            let piece = own & is::PIECE != 0 && above != 0 && file(above) == &names.get(frame.name).file;
            let theirs = own & (is::NATIVE | is::LIBRARY) != 0 && above != 0;
            frames.home[index] = if piece || theirs { above } else { index as u32 };
            // A program that is all library has its deepest Python frame named, not its outermost.
            if theirs && frames.is_library(timeline, StackIndex(above)) && own & is::NATIVE == 0 {
                frames.home[index] = index as u32;
            }
        }
        frames
    }

    pub fn bits(&self, name: NameIndex) -> u16 {
        self.name.get(name.0 as usize).copied().unwrap_or(0)
    }

    fn is_library(&self, timeline: &Timeline, stack: StackIndex) -> bool {
        self.bits(timeline.stacks.frame(stack).name) & (is::LIBRARY | is::NATIVE) != 0
    }

    /// Whether any frame of the stack has one of these bits (`LOGGING`, `EVENT_LOOP`).
    pub fn on_path(&self, stack: StackIndex, bits: u16) -> bool {
        self.on_path.get(stack.0 as usize).is_some_and(|here| here & bits != 0)
    }

    /// Bits of what is on top: the last Python frame, or the native frames above it.
    pub fn on_top(&self, stack: StackIndex) -> u16 {
        self.on_top.get(stack.0 as usize).copied().unwrap_or(0)
    }

    /// Frames from the root to it.
    pub fn depth(&self, stack: StackIndex) -> u32 {
        self.depth.get(stack.0 as usize).copied().unwrap_or(0)
    }

    /// The deepest frame that both stacks share. 0: none.
    pub fn shared(&self, timeline: &Timeline, mut a: StackIndex, mut b: StackIndex) -> StackIndex {
        while a != b {
            let deeper = if self.depth(a) >= self.depth(b) { &mut a } else { &mut b };
            *deeper = timeline.stacks.frame(*deeper).parent;
        }
        a
    }

    /// The frame to name when time is spent in `stack`.
    pub fn home(&self, stack: StackIndex) -> StackIndex {
        StackIndex(self.home.get(stack.0 as usize).copied().unwrap_or(0))
    }
}

/// Functions that wait, by the end of their file's path.
const WAIT: [(&str, &[&str], u16); 14] = [
    ("threading.py", &["wait", "acquire", "join", "_wait_for_tstate_lock", "__enter__"], is::WAITS_FOR_LOCK),
    ("queue.py", &["get", "put", "join"], is::WAITS_FOR_LOCK),
    ("multiprocessing/synchronize.py", &["acquire", "wait", "__enter__"], is::WAITS_FOR_LOCK),
    ("multiprocessing/queues.py", &["get", "put"], is::WAITS_FOR_LOCK),
    ("concurrent/futures/_base.py", &["result", "wait", "exception"], is::WAITS_FOR_LOCK),
    ("selectors.py", &["select"], is::WAITS_FOR_IO),
    ("socket.py", &["accept", "readinto", "recv", "recv_into", "sendall", "create_connection"], is::WAITS_FOR_IO),
    ("ssl.py", &["read", "write", "recv", "recv_into", "send", "sendall", "do_handshake"], is::WAITS_FOR_IO),
    ("subprocess.py", &["wait", "_wait", "_try_wait", "communicate", "_communicate", "poll"], is::WAITS_FOR_IO),
    ("multiprocessing/connection.py", &["_recv", "_send", "wait", "poll", "accept", "_poll"], is::WAITS_FOR_IO),
    ("multiprocessing/popen_fork.py", &["poll", "wait"], is::WAITS_FOR_IO),
    ("asyncore.py", &["poll"], is::WAITS_FOR_IO),
    ("zmq/sugar/socket.py", &["recv", "send", "poll", "recv_multipart"], is::WAITS_FOR_IO),
    ("zmq/sugar/poll.py", &["poll"], is::WAITS_FOR_IO),
];
/// Native functions, and built-in ones as recorded calls name them.
const NATIVE_WAIT: [(&str, u16); 22] = [
    ("take_gil", is::TAKES_GIL),
    ("PyEval_RestoreThread", is::TAKES_GIL),
    ("PyEval_AcquireThread", is::TAKES_GIL),
    ("PyGILState_Ensure", is::TAKES_GIL),
    ("PyThread_acquire_lock_timed", is::WAITS_FOR_LOCK),
    ("lock_PyThread_acquire_lock", is::WAITS_FOR_LOCK),
    ("acquire", is::WAITS_FOR_LOCK),
    ("lock.acquire", is::WAITS_FOR_LOCK),
    ("SimpleQueue.get", is::WAITS_FOR_LOCK),
    ("sleep", is::WAITS_FOR_LOCK),
    ("time.sleep", is::WAITS_FOR_LOCK),
    ("time_sleep", is::WAITS_FOR_LOCK),
    ("select", is::WAITS_FOR_IO),
    ("poll", is::WAITS_FOR_IO),
    ("epoll.poll", is::WAITS_FOR_IO),
    ("epoll_wait", is::WAITS_FOR_IO),
    ("recv", is::WAITS_FOR_IO),
    ("recv_into", is::WAITS_FOR_IO),
    ("socket.recv", is::WAITS_FOR_IO),
    ("socket.recv_into", is::WAITS_FOR_IO),
    ("socket.accept", is::WAITS_FOR_IO),
    ("waitpid", is::WAITS_FOR_IO),
];
const LOGGING: [&str; 4] = ["logging/__init__.py", "logging/handlers.py", "loguru/_logger.py", "loguru/_handler.py"];
const EVENT_LOOP: [(&str, &[&str]); 4] = [
    ("asyncio/base_events.py", &["run_forever", "_run_once", "run_until_complete"]),
    ("asyncio/events.py", &["_run"]),
    ("asyncio/runners.py", &["run"]),
    ("uvloop/__init__.py", &["run", "wrapper"]),
];

fn bits(name: &Name) -> u16 {
    let (file, text) = (&*name.file, &*name.text);
    let python = file.ends_with(".py") || file.ends_with(".pyx") || file.ends_with(".ipynb") || file.starts_with('<');
    let native = !python;
    let named = |end: &str| file.strip_suffix(end).is_some_and(|head| head.is_empty() || head.ends_with('/'));
    let mut bits = if native { is::NATIVE } else { 0 };
    if native {
        bits |= NATIVE_WAIT.iter().filter(|(known, _)| *known == text).fold(0, |bits, known| bits | known.1);
        return bits;
    }
    let library = ["/site-packages/", "/dist-packages/", "/lib/python3"].iter().any(|part| file.contains(part));
    if library || file.starts_with("<frozen") {
        bits |= is::LIBRARY;
    }
    if text.starts_with('<') && text != "<module>" {
        bits |= is::PIECE;
    }
    bits |= WAIT.iter().filter(|(end, texts, _)| texts.contains(&text) && named(end)).fold(0, |all, one| all | one.2);
    if LOGGING.iter().any(|end| named(end)) {
        bits |= is::LOGGING | is::LIBRARY;
    }
    if EVENT_LOOP.iter().any(|(end, texts)| texts.contains(&text) && named(end)) {
        bits |= is::EVENT_LOOP | is::LIBRARY;
    }
    bits
}
