//! A thread's frames and their code objects, read where they lie. A thread that is in a call of C, as PyTorch's allocator is, cannot run Python
//! meanwhile: its frames stay as they are, with the GIL or without, and keep their code alive.

use super::layout::{Layout, OWNED_BY_C};
use super::memory::Memory;
use super::text::{self, Text};
use workload::python_stack::lines;
use workload::python_stack::{RawFrame, mix};

/// Bytes of a line table that tell code from other code of the same name, file and line; its length does, too.
const MOST_TABLE: usize = 2048;
/// What no table reaches: a function of 100,000 lines has a megabyte.
const LONGEST_TABLE: usize = 16 << 20;
/// Frames that stand for calls from C are not told, and there may be several between two of Python: so many for each are walked past.
const OF_C: usize = 4;

/// In every object the type, and in those of any length how long they are; the bytes of `bytes`.
const TYPE: usize = 8;
const SIZE: usize = 16;
const BYTES: usize = 32;

/// The interpreter that was checked.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    pub layout: &'static Layout,
    /// Its address. Threads of others have frames that were not looked at.
    pub address: usize,
    /// The type of code objects: what is no code is not read as such.
    pub code_type: usize,
}

/// What a frame's code object says of itself.
#[derive(Clone, Copy)]
pub struct Code {
    pub name: Text,
    pub file: Text,
    pub first_line: i32,
    table: usize,
    table_bytes: usize,
}

impl Interpreter {
    /// The innermost frames of a thread, as many as there is room for. None: something is not as it was when it was checked.
    pub fn read(&self, memory: &impl Memory, thread: usize, frames: &mut [RawFrame]) -> Option<usize> {
        let layout = self.layout;
        if memory.word(thread + layout.interpreter)? != self.address {
            return None;
        }
        let mut at = thread;
        for step in layout.current {
            at = memory.word(at.checked_add(*step)?)?;
        }
        let mut count = 0;
        for _ in 0..frames.len() * OF_C {
            let Some(next) = frames.get_mut(count).filter(|_| at != 0) else { break };
            let is_python = match layout.frame.owner {
                Some(owner) => memory.byte(at.checked_add(owner)?)? != OWNED_BY_C,
                None => true,
            };
            if is_python {
                *next = self.frame(memory, at)?;
                count += 1;
            }
            at = memory.word(at.checked_add(layout.frame.previous)?)?;
        }
        Some(count)
    }

    #[inline(always)]
    fn frame(&self, memory: &impl Memory, at: usize) -> Option<RawFrame> {
        let layout = self.layout;
        let address = memory.word(at.checked_add(layout.frame.code)?)?;
        let code = self.code(memory, address)?;
        let field = at.checked_add(layout.frame.instruction)?;
        let instruction = match layout.code.instructions {
            None => memory.number(field)?,
            Some(begin) => {
                let bytes = memory.word(field)?.wrapping_sub(address.checked_add(begin)?) as isize;
                let most = memory.word(address + SIZE)?;
                let units = i32::try_from(bytes / 2).ok().filter(|_| bytes % 2 == 0)?;
                (units < i32::try_from(most).ok()?).then_some(units)?
            }
        };
        (instruction >= -1).then_some(RawFrame { code: address, identity: code.identity(memory)?, instruction })
    }

    #[inline(always)]
    pub fn code(&self, memory: &impl Memory, at: usize) -> Option<Code> {
        let layout = self.layout;
        if memory.word(at.checked_add(TYPE)?)? != self.code_type {
            return None;
        }
        let table = memory.word(at + layout.code.lines)?;
        Some(Code {
            name: text::find(memory, layout, memory.word(at + layout.code.name)?)?,
            file: text::find(memory, layout, memory.word(at + layout.code.file)?)?,
            first_line: memory.number(at + layout.code.first_line)?,
            table_bytes: memory.word(table.checked_add(SIZE)?).filter(|bytes| *bytes < LONGEST_TABLE)?,
            table: table + BYTES,
        })
    }

    /// The line of an instruction; 0: it has none.
    pub fn line(&self, memory: &impl Memory, code: &Code, instruction: i32) -> Option<u32> {
        let table = memory.bytes(code.table, code.table_bytes)?;
        Some(lines::line(self.layout.lines, table, code.first_line, instruction).unwrap_or(0))
    }
}

impl Code {
    /// Made of everything that is ever told of it: two that have the same are told of in the same way, wherever they lie. Its address alone would
    /// not do, for code comes and goes while a program runs, and another may lie where one has been.
    #[inline(always)]
    fn identity(&self, memory: &impl Memory) -> Option<u64> {
        let mut all = mix(self.name.identity(memory)?, self.file.identity(memory)?);
        all = mix(all, (self.first_line as u64) << 32 | self.table_bytes as u64);
        Some(mix_bytes(all, memory.bytes(self.table, self.table_bytes.min(MOST_TABLE))?))
    }
}

#[inline(always)]
pub fn mix_bytes(begin: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let all = words.iter().fold(begin, |all, word| mix(all, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(rest.len() as u64, |last, byte| last << 8 | u64::from(*byte));
    mix(all, last)
}
