//! What a frame is: the program's own code or a library's, a call that waits, logging, the event loop. One pass over names
//! and one over stacks, so that looking at a sample costs nothing.

mod known;
mod native;

pub use native::{NativeFunction, native_function, python_frames};

use timeline::{NameIndex, StackIndex, Timeline};

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
    /// A call that returns when a device has done what was asked of it. It may spin meanwhile: that is no work.
    pub const WAITS_FOR_GPU: u16 = 1 << 8;
    /// Compiles, loads or tunes device code.
    pub const COMPILES: u16 = 1 << 9;
    /// Asks other processes or devices for something.
    pub const COMMUNICATES: u16 = 1 << 10;
    /// Starts a child process, or waits for one.
    pub const CHILD: u16 = 1 << 11;
    /// Python's own code that imports a module.
    pub const IMPORTS: u16 = 1 << 12;
    /// What multiprocessing begins a process with: the frame below it is its command line, and no line of the program.
    pub const BEGINS_PROCESS: u16 = 1 << 13;
    /// Runs an operator of a tensor framework, or stands between a model's code and one.
    pub const OPERATOR: u16 = 1 << 14;
    /// Makes a tensor of Python's values, one by one.
    pub const FROM_VALUES: u16 = 1 << 15;
}
pub const WAITS: u16 = is::WAITS_FOR_LOCK | is::WAITS_FOR_IO | is::WAITS_FOR_GPU;

const INHERITED: u16 = is::LOGGING | is::EVENT_LOOP | is::COMPILES | is::COMMUNICATES | is::CHILD | is::IMPORTS;

/// Python's own limit of recursion. Walks of every sample go no deeper, so that a damaged trace does not take for ever.
pub const DEEP: usize = 1000;

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
    /// The last Python frame: what native frames above it were called by.
    python: Vec<StackIndex>,
    /// The frame to name imports a module: what runs above it is the import.
    imports: Vec<bool>,
    /// It runs inside a wait of the standard library: takes a lock, wakes who waits, gives up.
    hands_over: Vec<bool>,
}

impl Frames {
    pub fn new(timeline: &Timeline) -> Frames {
        let names = &timeline.names;
        let name: Vec<u16> = (0..names.len() as u32)
            .map(|index| known::bits(names.get(NameIndex(index)), names.call(NameIndex(index))))
            .collect();
        let count = timeline.stacks.len();
        let none = || vec![0; count];
        let (on_path, on_top) = (vec![0; count], vec![0; count]);
        let (imports, hands_over) = (vec![false; count], vec![false; count]);
        let python = python_frames(timeline);
        let mut frames = Frames { name, on_path, on_top, home: none(), depth: none(), python, imports, hands_over };
        for index in 1..count {
            let frame = timeline.stacks.frame(StackIndex(index as u32));
            let (own, parent) = (frames.bits(frame.name), frame.parent.0 as usize);
            frames.depth[index] = frames.depth[parent] + 1;
            // Importing a compiler is no compilation: its modules run, and none of its functions was asked for.
            let inherited = if frames.imports[parent] { INHERITED & !is::COMPILES } else { INHERITED };
            frames.on_path[index] = frames.on_path[parent] | own & inherited;
            frames.on_top[index] = if own & is::NATIVE != 0 { frames.on_top[parent] | own } else { own };
            let above = frames.home[parent];
            let file = |stack: u32| &names.get(timeline.stacks.frame(StackIndex(stack)).name).file;
            let piece = own & is::PIECE != 0 && above != 0 && file(above) == &names.get(frame.name).file;
            let theirs = own & (is::NATIVE | is::LIBRARY) != 0 && above != 0;
            frames.home[index] = if piece || theirs { above } else { index as u32 };
            // A program that is all library has its deepest Python frame named, not its outermost.
            let outermost = frames.is_library(timeline, StackIndex(above)) || own & is::BEGINS_PROCESS != 0;
            if theirs && outermost && own & is::NATIVE == 0 {
                frames.home[index] = index as u32;
            }
            let between_threads = || known::is_between_threads(&names.get(frame.name).file);
            frames.hands_over[index] = match own & is::NATIVE != 0 {
                true => frames.hands_over[parent],
                false => (own & is::WAITS_FOR_LOCK != 0 || frames.hands_over[parent]) && between_threads(),
            };
            frames.imports[index] = match frames.home[index] == index as u32 {
                // A module of the program's own that runs while it is imported is the program; a library's is not.
                true => own & is::LIBRARY != 0 && frames.on_path[index] & is::IMPORTS != 0,
                false => frames.imports[parent] || own & is::IMPORTS != 0,
            };
        }
        frames
    }

    pub fn bits(&self, name: NameIndex) -> u16 {
        self.name.get(name.0 as usize).copied().unwrap_or(0)
    }

    fn is_library(&self, timeline: &Timeline, stack: StackIndex) -> bool {
        self.bits(timeline.stacks.frame(stack).name) & (is::LIBRARY | is::NATIVE) != 0
    }

    /// Whether any frame of the stack has one of these bits (those that are inherited).
    pub fn on_path(&self, stack: StackIndex, bits: u16) -> bool {
        self.on_path.get(stack.0 as usize).is_some_and(|here| here & bits != 0)
    }

    /// Whether the frame to name does nothing there but import a module.
    pub fn imports(&self, stack: StackIndex) -> bool {
        self.imports.get(stack.0 as usize).copied().unwrap_or(false)
    }

    /// Whether it runs inside a queue's or a lock's own code, between one thread and another: what takes time there is the other thread, or that there are two.
    pub fn hands_over(&self, stack: StackIndex) -> bool {
        self.hands_over.get(stack.0 as usize).copied().unwrap_or(false)
    }

    /// Bits of what is on top: the last Python frame, or the native frames above it.
    pub fn on_top(&self, stack: StackIndex) -> u16 {
        self.on_top.get(stack.0 as usize).copied().unwrap_or(0)
    }

    /// The line of Python that what is on top was called by; itself where nothing native is.
    pub fn python(&self, stack: StackIndex) -> StackIndex {
        self.python.get(stack.0 as usize).copied().unwrap_or(StackIndex(0))
    }

    /// Frames from the root to it.
    pub fn depth(&self, stack: StackIndex) -> u32 {
        self.depth.get(stack.0 as usize).copied().unwrap_or(0)
    }

    /// The deepest frame that both stacks share. 0: none, or too far down to look.
    pub fn shared(&self, timeline: &Timeline, mut a: StackIndex, mut b: StackIndex) -> StackIndex {
        for _ in 0..2 * DEEP {
            if a == b {
                return a;
            }
            let deeper = if self.depth(a) >= self.depth(b) { &mut a } else { &mut b };
            *deeper = timeline.stacks.frame(*deeper).parent;
        }
        StackIndex(0)
    }

    /// The frame to name when time is spent in `stack`.
    pub fn home(&self, stack: StackIndex) -> StackIndex {
        StackIndex(self.home.get(stack.0 as usize).copied().unwrap_or(0))
    }
}
