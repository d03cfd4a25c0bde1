//! One process as a walker of native stacks sees it: which code lies where, the calls that lead to one moment, and their names.

use super::event::Copied;
use super::mapping::Part;
use super::memory_map::{self, CodeMapping};
use super::names;
use super::object_file::ObjectFile;
use super::object_files::ObjectFiles;
use crate::pace::cpu_time;
use framehop::{Module, Unwinder};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64 as Registers, UnwinderAarch64 as Walker};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Registers, UnwinderX86_64 as Walker};

/// One native function on a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct NativeFrame {
    /// A name in brackets stands for one that is not known.
    pub function: Arc<str>,
    /// The path of its file.
    pub library: Arc<str>,
}

impl NativeFrame {
    pub fn is_named(&self) -> bool {
        !self.function.starts_with('[')
    }
}

pub(super) struct Process {
    pid: u32,
    files: ObjectFiles,
    code: AllCode,
    walker: Walker<Part>,
    cache: Cache,
    names: Names,
    /// The file of the interpreter, once it was seen.
    python: Option<Arc<str>>,
    /// When the list of mappings was read.
    listed: Option<Instant>,
    /// The CPU time that this took, without what was new in it: waiting for a core on a busy machine is no reason to wait longer.
    listing: Duration,
}

/// Code that the process has mapped.
struct Code {
    mapping: CodeMapping,
    path: Arc<str>,
    /// With what to take from an address to find it in the file.
    file: Option<(Arc<ObjectFile>, u64)>,
}

/// By address.
#[derive(Default)]
struct AllCode(Vec<Code>);

impl AllCode {
    fn at(&self, address: u64) -> Option<&Code> {
        let after = self.0.partition_point(|code| code.mapping.range.start <= address);
        self.0.get(after.checked_sub(1)?).filter(|code| address < code.mapping.range.end)
    }
}

/// What is known of addresses.
#[derive(Default)]
struct Names(HashMap<u64, NativeFrame>);

impl Names {
    fn find(&mut self, address: u64, code: Option<&Code>, files: &ObjectFiles) -> NativeFrame {
        if let Some(frame) = self.0.get(&address) {
            return frame.clone();
        }
        let symbol = code.and_then(|code| {
            let (file, bias) = code.file.as_ref()?;
            files.function(file, address.wrapping_sub(*bias))
        });
        let unnamed = if code.is_some_and(|code| &*code.path == MEMORY) { names::GENERATED } else { names::UNNAMED };
        let function = symbol.map_or(unnamed.into(), |symbol| names::readable(&symbol).into());
        let frame = NativeFrame { function, library: code.map_or_else(|| "".into(), |code| Arc::clone(&code.path)) };
        if self.0.len() >= MOST_KNOWN {
            self.0.clear();
        }
        self.0.insert(address, frame.clone());
        frame
    }
}

/// What one walk of a stack gave.
struct Walk {
    found: Vec<NativeFrame>,
    /// It ended at an address of no code that is known.
    left_known_code: bool,
}

/// The library of code that the process made itself.
const MEMORY: &str = "[memory]";
/// A library may be loaded over the place of one that was closed. Reading the list takes a millisecond in a large process.
const LIST_EVERY: Duration = Duration::from_secs(5);
/// An address that is in no known code means that some was loaded since; or that it is no code, and then reading the list again and
/// again takes one part of so many of the time.
const LIST_AGAIN_PAUSE: u32 = 100;
/// From where the processor is down to the line of Python that called it. PyTorch's operators take 40.
const MOST_FRAMES: usize = 96;
/// A program has thousands of addresses that calls return to; those of its loops are endless.
const MOST_KNOWN: usize = 50_000;

impl Process {
    pub fn new(pid: u32, files: ObjectFiles) -> Process {
        let (code, names) = (AllCode::default(), Names::default());
        let (walker, cache) = (Walker::new(), Cache::new());
        Process { pid, files, code, walker, cache, names, python: None, listed: None, listing: Duration::ZERO }
    }

    /// The native functions above the innermost line of Python, the innermost first.
    pub fn frames(&mut self, copied: &Copied) -> Vec<NativeFrame> {
        if copied.registers.ip == 0 {
            return Vec::new();
        }
        if self.listed.is_none_or(|listed| listed.elapsed() >= LIST_EVERY) {
            self.list();
        }
        let walk = self.walk(copied);
        // A caller may lie in a library that was loaded since, too, though the innermost function does not.
        if walk.left_known_code && self.listed.is_none_or(|listed| listed.elapsed() >= self.listing * LIST_AGAIN_PAUSE)
        {
            self.list();
            return reduced(self.walk(copied).found, self.python.as_ref());
        }
        reduced(walk.found, self.python.as_ref())
    }

    /// The calls that lead to a moment, down to the interpreter.
    fn walk(&mut self, copied: &Copied) -> Walk {
        let Process { files, code, walker, cache, names, .. } = self;
        let sp = copied.registers.sp;
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(drop)?;
            let bytes = copied.stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            bytes.try_into().map(u64::from_ne_bytes).map_err(drop)
        };
        let mut steps = walker.iter_frames(copied.registers.ip, registers(copied), cache, &mut read);
        let (mut found, mut checked) = (Vec::new(), Vec::new());
        let mut left_known_code = false;
        while let Ok(Some(step)) = steps.next() {
            let address = step.address_for_lookup();
            let here = code.at(address);
            // No code: the walk has lost its way, or the process made code that says nothing of its stack.
            if here.is_none() {
                left_known_code = true;
                break;
            }
            // What lies in a file that was changed under us is not read.
            if let Some((file, _)) = here.and_then(|code| code.file.as_ref())
                && !checked.contains(&Arc::as_ptr(file))
            {
                if !file.mapping.is_whole() {
                    self.listed = None;
                    break;
                }
                checked.push(Arc::as_ptr(file));
            }
            let frame = names.find(address, here, files);
            if names::runs_python(&frame.function) {
                self.python = Some(frame.library);
                break;
            }
            found.push(frame);
            if found.len() >= MOST_FRAMES {
                break;
            }
        }
        Walk { found, left_known_code }
    }

    /// Reads which code is where. What is still there is kept.
    fn list(&mut self) {
        self.listed = Some(Instant::now());
        let (mappings, cost) = cpu_time(|| memory_map::read(self.pid));
        let Ok(mappings) = mappings else { return };
        self.listing = cost;
        let is_same = |code: &Code, mapping: &CodeMapping| {
            code.mapping == *mapping && code.file.as_ref().is_none_or(|(file, _)| file.mapping.is_whole())
        };
        let (kept, gone): (Vec<Code>, Vec<Code>) = std::mem::take(&mut self.code.0)
            .into_iter()
            .partition(|code| mappings.iter().any(|mapping| is_same(code, mapping)));
        if !gone.is_empty() {
            gone.iter().for_each(|code| self.walker.remove_module(code.mapping.range.start));
            self.names.0.clear();
        }
        self.code.0 = kept;
        for mapping in mappings {
            if !self.code.0.iter().any(|code| code.mapping.range == mapping.range) {
                self.add(mapping);
            }
        }
        self.code.0.sort_by_key(|code| code.mapping.range.start);
    }

    fn add(&mut self, mapping: CodeMapping) {
        let found = self.files.find(self.pid, &mapping);
        let range = mapping.range.clone();
        let file = found.and_then(|file| {
            let bias = file.bias(range.start, mapping.offset, range.end - range.start)?;
            let module = Module::new(String::new(), range.clone(), bias, &*file);
            self.walker.add_module(module);
            Some((file, bias))
        });
        let path = if mapping.path.is_empty() { MEMORY } else { &mapping.path }.into();
        self.code.0.push(Code { mapping, path, file });
    }
}

fn registers(copied: &Copied) -> Registers {
    let from = &copied.registers;
    #[cfg(target_arch = "x86_64")]
    return Registers::new(from.ip, from.sp, from.fp);
    #[cfg(target_arch = "aarch64")]
    return Registers::new(from.lr, from.sp, from.fp);
}

/// Without what says nothing: functions of the interpreter (`python`: its file) that only pass a call on, or that another of its own
/// has called (`findall` is a place, how it allocates is not); those without a name that one of the same library with a name has
/// called; and calls of a function by itself.
fn reduced(mut found: Vec<NativeFrame>, python: Option<&Arc<str>>) -> Vec<NativeFrame> {
    found.retain(|frame| Some(&frame.library) != python || !names::passes_on(&frame.function));
    let mut outward: Vec<NativeFrame> = Vec::with_capacity(found.len());
    for frame in found.into_iter().rev() {
        let says_nothing = outward.last().is_some_and(|caller| {
            let is_inside = caller.library == frame.library && (!frame.is_named() || Some(&frame.library) == python);
            *caller == frame || is_inside
        });
        if !says_nothing {
            outward.push(frame);
        }
    }
    outward.reverse();
    outward
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(all: &[(&str, &str)]) -> Vec<NativeFrame> {
        let frame = |(function, library): &(&str, &str)| NativeFrame {
            function: (*function).into(),
            library: (*library).into(),
        };
        all.iter().map(frame).collect()
    }

    #[test]
    fn what_says_nothing_is_left_out() {
        let found = frames(&[
            (names::UNNAMED, "libz.so.1"),
            ("inflate", "libz.so.1"),
            ("inflate", "libz.so.1"),
            ("zlib_decompress", "zlib.so"),
            ("cfunction_vectorcall_FASTCALL", "python3"),
            ("builtin_map", "python3"),
            ("PyObject_Vectorcall", "python3"),
        ]);
        let python: Arc<str> = "python3".into();
        assert_eq!(
            reduced(found, Some(&python)),
            frames(&[("inflate", "libz.so.1"), ("zlib_decompress", "zlib.so"), ("builtin_map", "python3")])
        );
        let own = frames(&[("_PyObject_Malloc", "python3"), ("PyLong_FromLong", "python3"), ("dump", "_json.so")]);
        assert_eq!(reduced(own, Some(&python)), frames(&[("PyLong_FromLong", "python3"), ("dump", "_json.so")]));
        // A library in which nothing has a name is still named itself.
        let stripped = frames(&[(names::UNNAMED, "libc.so.6"), (names::UNNAMED, "libc.so.6"), ("f", "a.so")]);
        assert_eq!(reduced(stripped, None), frames(&[(names::UNNAMED, "libc.so.6"), ("f", "a.so")]));
        // Of another file of that name start nothing is left out.
        let other = frames(&[("PyObject_Call", "b.so")]);
        assert_eq!(reduced(other.clone(), Some(&python)), other);
    }

    /// Registers and a stack of nonsense, in a process that runs, has ended, or never was.
    #[test]
    fn a_stack_that_lies_does_no_harm() {
        let mut random = 1u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random
        };
        let code = a_stack_that_lies_does_no_harm as fn() as usize as u64;
        for pid in [std::process::id(), u32::MAX >> 1] {
            let mut process = Process::new(pid, ObjectFiles::default());
            for round in 0..2000u64 {
                let mut copied = Copied { pid, ..Copied::default() };
                copied.registers.ip = if round % 2 == 0 { code + next() % 4096 } else { next() };
                (copied.registers.sp, copied.registers.fp) = (next(), next());
                copied.stack = (0..next() % 64).flat_map(|_| (code + next() % (1 << 20)).to_ne_bytes()).collect();
                assert!(process.frames(&copied).len() <= MOST_FRAMES);
            }
        }
    }
}
