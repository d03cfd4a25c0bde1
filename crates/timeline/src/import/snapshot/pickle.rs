//! Reads a pickle as plain data: numbers, texts, lists, tuples and dictionaries, of protocols 0 to 5. Nothing in it is executed: whatever would
//! import or call something ends the reading with a sentence. There is no recursion, so nesting and loops cost nothing.

use super::heap::Heap;
use super::input::{Input, Stop};
use super::memo::Memo;
use super::records::Records;
use super::text;
use super::value::{Kind, Value, Wide};
use std::io::Read;

/// A text that is longer is skipped: names of functions are the longest that a snapshot has.
const LONGEST_TEXT: u64 = 1 << 20;
/// Integers of more bytes are read past; no size or time has them.
const LONGEST_INT: u64 = 64;
/// Dictionaries with more entries are no frame, event, block or segment.
const MOST_FIELDS: usize = 64;

pub struct Pickle<'p, R> {
    pub input: Input<'p, R>,
    pub heap: Heap,
    pub records: Records,
    stack: Vec<Value>,
    /// How long the stack was at each open mark.
    marks: Vec<usize>,
    memo: Memo,
    frame_end: u64,
}

impl<'p, R: Read> Pickle<'p, R> {
    pub fn new(input: Input<'p, R>, most: u64) -> Pickle<'p, R> {
        let (stack, marks, memo) = (Vec::new(), Vec::new(), Memo::default());
        Pickle { input, heap: Heap::new(most), records: Records::default(), stack, marks, memo, frame_end: 0 }
    }

    /// The value of the pickle. Where it stops early, what was read up to there is put together by [`Pickle::close`].
    pub fn read(&mut self) -> Result<Value, Stop> {
        loop {
            let code = self.input.byte()?;
            if code == b'.' {
                let value = self.pop()?;
                return self.settle(value);
            }
            self.step(code)?;
        }
    }

    fn step(&mut self, code: u8) -> Result<(), Stop> {
        match code {
            // The two that a snapshot is made of.
            b'j' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.get(u64::from(number))
            }
            b'h' => {
                let number = self.input.byte()?;
                self.get(u64::from(number))
            }
            0x94 => self.put(self.memo.next()),
            b'q' => {
                let number = self.input.byte()?;
                self.put(u64::from(number))
            }
            b'r' => {
                let number = u32::from_le_bytes(self.input.array()?);
                self.put(u64::from(number))
            }
            b'g' | b'p' => {
                let number = match Wide::from_text(self.input.line()?) {
                    Some(Wide::Int(number)) => u64::try_from(number).ok(),
                    _ => None,
                };
                let number = number.ok_or(Stop::Damaged("a reference has no number"))?;
                if code == b'g' { self.get(number) } else { self.put(number) }
            }
            b'(' => self.mark(),
            b'K' | b'M' | b'J' | b'I' | b'L' | 0x8a | 0x8b | b'F' | b'G' => {
                let number = self.number(code)?;
                let value = self.heap.number(number)?;
                self.push(value)
            }
            b'N' => self.push(Value::NONE),
            0x88 => self.push(Value::bool(true)),
            0x89 => self.push(Value::bool(false)),
            0x8c | b'X' | 0x8d | b'U' | b'T' | b'C' | b'B' | 0x8e | 0x96 | b'S' | b'V' => self.text(code),
            b']' | b')' | 0x8f => self.container(Kind::List, 0),
            b'}' => self.container(Kind::Dict, 0),
            0x85..=0x87 => self.container(Kind::List, usize::from(code - 0x84)),
            b't' | b'l' | 0x91 => {
                let count = self.since_mark()?;
                self.container(Kind::List, count)
            }
            b'd' => {
                let count = self.since_mark()?;
                self.container(Kind::Dict, count)
            }
            b'a' => self.append(1),
            b'e' | 0x90 => {
                let count = self.since_mark()?;
                self.append(count)
            }
            b's' => self.set(2),
            b'u' => {
                let count = self.since_mark()?;
                self.set(count)
            }
            b'0' => self.pop().map(drop),
            b'1' => {
                let count = self.since_mark()?;
                self.stack.truncate(self.stack.len() - count);
                Ok(())
            }
            b'2' => {
                let last = *self.stack.last().ok_or(Stop::Damaged("it takes from an empty stack"))?;
                self.push(last)
            }
            0x80 => match self.input.byte()? {
                0..=5 => Ok(()),
                _ => Err(Stop::Damaged("its protocol is not known")),
            },
            0x95 => self.frame(),
            _ => Err(self.refuse(code)),
        }
    }

    /// Why a pickle with this opcode is not read.
    fn refuse(&mut self, code: u8) -> Stop {
        let what = match code {
            b'c' | b'i' => {
                let mut line = || {
                    let line = self.input.line().ok()?;
                    Some(String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned())
                };
                let (module, name) = (line().unwrap_or_default(), line().unwrap_or_default());
                return Stop::Code(match module.is_empty() || name.is_empty() {
                    true => "import something".into(),
                    false => format!("import {module}.{name}"),
                });
            }
            0x93 => {
                let mut said = || self.stack.pop().and_then(|value| self.heap.said(value).cloned());
                let (name, module) = (said(), said());
                return Stop::Code(match (module, name) {
                    (Some(module), Some(name)) => {
                        format!("import {}.{}", trace::event::cut(&module, 80), trace::event::cut(&name, 80))
                    }
                    _ => "import something".into(),
                });
            }
            b'R' | b'o' => "call a function",
            0x81 | 0x92 => "make an object of a class",
            b'b' => "set the state of an object",
            0x82..=0x84 => "use an extension of the pickle registry",
            b'P' | b'Q' => "fetch an object from elsewhere",
            0x97 | 0x98 => "use a buffer from outside the file",
            _ => return Stop::Damaged("an unknown opcode"),
        };
        Stop::Code(what.into())
    }

    #[inline]
    fn push(&mut self, value: Value) -> Result<(), Stop> {
        if self.stack.len() == self.stack.capacity() {
            self.heap.charge(self.stack.capacity() as u64 * 8)?;
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Value, Stop> {
        if self.marks.last() == Some(&self.stack.len()) {
            // Taking a mark from the stack is how some writers undo one.
            self.marks.pop();
            return Ok(Value::NONE);
        }
        self.stack.pop().ok_or(Stop::Damaged("it takes from an empty stack"))
    }

    fn get(&mut self, number: u64) -> Result<(), Stop> {
        let value = self.memo.get(number).ok_or(Stop::Damaged("it refers to what was not there"))?;
        self.push(value)
    }

    fn put(&mut self, number: u64) -> Result<(), Stop> {
        let value = *self.stack.last().ok_or(Stop::Damaged("it takes from an empty stack"))?;
        let grown = self.memo.put(number, value);
        self.heap.charge(grown)
    }

    fn mark(&mut self) -> Result<(), Stop> {
        if self.marks.len() == self.marks.capacity() {
            self.heap.charge(self.marks.capacity() as u64 * 8)?;
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    /// How many values lie above the last mark, which is taken away.
    fn since_mark(&mut self) -> Result<usize, Stop> {
        let mark = self.marks.pop().ok_or(Stop::Damaged("a mark is missing"))?;
        self.stack.len().checked_sub(mark).ok_or(Stop::Damaged("a mark is above the stack"))
    }

    /// Takes `count` values from the stack, each as what it became.
    fn taken(&mut self, count: usize) -> Result<Vec<Value>, Stop> {
        let from = self.stack.len().checked_sub(count).ok_or(Stop::Damaged("it takes from an empty stack"))?;
        let mut items = self.stack.split_off(from);
        for item in &mut items {
            *item = self.settle(*item)?;
        }
        Ok(items)
    }

    fn container(&mut self, kind: Kind, count: usize) -> Result<(), Stop> {
        let items = if count == 0 { Vec::new() } else { self.taken(count)? };
        let value = self.heap.container(kind, &items)?;
        self.push(value)
    }

    fn append(&mut self, count: usize) -> Result<(), Stop> {
        let items = self.taken(count)?;
        let list = *self.stack.last().ok_or(Stop::Damaged("it takes from an empty stack"))?;
        match self.heap.settled(list).kind() {
            Kind::List => self.heap.extend(list, &items),
            // It became something else already, or is nothing that holds items for us.
            _ => Ok(()),
        }
    }

    fn set(&mut self, count: usize) -> Result<(), Stop> {
        let items = self.taken(count)?;
        let dict = *self.stack.last().ok_or(Stop::Damaged("it takes from an empty stack"))?;
        if !self.heap.settled(dict).is(Kind::Dict) {
            return Ok(());
        }
        // All of it at once, as writers do: it need not be kept as a dictionary at all.
        if count > 2
            && self.heap.items(dict).is_empty()
            && let Some(record) = self.shape(&items)?
        {
            self.heap.becomes(dict, record);
            return Ok(());
        }
        self.heap.extend(dict, &items[..items.len() / 2 * 2])
    }

    fn shape(&mut self, pairs: &[Value]) -> Result<Option<Value>, Stop> {
        match pairs.len() <= 2 * MOST_FIELDS {
            true => self.records.shape(&mut self.heap, pairs),
            false => Ok(None),
        }
    }

    /// A value that is put into another one is complete: a dictionary becomes what it is in a snapshot.
    #[inline]
    fn settle(&mut self, value: Value) -> Result<Value, Stop> {
        if !value.is(Kind::Container) {
            return Ok(value);
        }
        let slot = self.heap.settled(value);
        match slot.kind() {
            Kind::List => Ok(value),
            Kind::Dict => {
                if self.heap.items(value).len() > 2 * MOST_FIELDS {
                    return Ok(value);
                }
                let pairs = self.heap.items(value).to_vec();
                let Some(record) = self.shape(&pairs)? else { return Ok(value) };
                self.heap.becomes(value, record);
                Ok(record)
            }
            _ => Ok(slot),
        }
    }

    fn frame(&mut self) -> Result<(), Stop> {
        let length = u64::from_le_bytes(self.input.array()?);
        if self.input.offset() < self.frame_end {
            return Err(Stop::Damaged("a frame begins inside another one"));
        }
        // A frame longer than the file: the file was cut, and up to there it can be read.
        self.frame_end = self.input.offset().saturating_add(length.min(self.input.left()));
        Ok(())
    }

    fn number(&mut self, code: u8) -> Result<Wide, Stop> {
        let int = |number: i64| Wide::Int(i128::from(number));
        Ok(match code {
            b'K' => int(i64::from(self.input.byte()?)),
            b'M' => int(i64::from(u16::from_le_bytes(self.input.array()?))),
            b'J' => int(i64::from(i32::from_le_bytes(self.input.array()?))),
            b'G' => Wide::Float(f64::from_be_bytes(self.input.array()?)),
            b'F' => {
                let text = std::str::from_utf8(self.input.line()?).ok();
                Wide::Float(text.and_then(|text| text.trim().parse().ok()).ok_or(Stop::Damaged("a number is none"))?)
            }
            b'I' | b'L' => Wide::from_text(self.input.line()?).ok_or(Stop::Damaged("a number is none"))?,
            _ => {
                let length = match code {
                    0x8a => u64::from(self.input.byte()?),
                    _ => u64::from(u32::from_le_bytes(self.input.array()?)),
                };
                if length > LONGEST_INT {
                    self.input.skip(length)?;
                    return Ok(Wide::Beyond);
                }
                Wide::from_bytes(self.input.take(length as usize)?)
            }
        })
    }

    fn text(&mut self, code: u8) -> Result<(), Stop> {
        if let b'S' | b'V' = code {
            let line = self.input.line()?;
            let text = if code == b'S' { text::quoted(line) } else { text::escaped(line) };
            let value = self.heap.text(&text)?;
            return self.push(value);
        }
        let length = match code {
            0x8c | b'U' | b'C' => u64::from(self.input.byte()?),
            b'X' | b'T' | b'B' => u64::from(u32::from_le_bytes(self.input.array()?)),
            _ => u64::from_le_bytes(self.input.array()?),
        };
        if length > LONGEST_TEXT || matches!(code, b'C' | b'B' | 0x8e | 0x96) {
            self.input.skip(length)?;
            return self.push(Value::OPAQUE);
        }
        let bytes = self.input.take(length as usize)?;
        let value = match std::str::from_utf8(bytes) {
            Ok(text) => self.heap.text(text)?,
            Err(_) => self.heap.text(&String::from_utf8_lossy(bytes))?,
        };
        self.push(value)
    }

    /// A list of one item is written without a mark: where something that is no key stands for one, what is on top belongs into the list below it.
    fn nest(&mut self, mark: usize) -> Result<(), Stop> {
        let no_key = |stack: &[Value]| stack.iter().step_by(2).any(|key| !key.is(Kind::Text));
        while self.stack.len() > mark + 1 && self.stack.len() - mark <= 2 * MOST_FIELDS && no_key(&self.stack[mark..]) {
            match self.heap.settled(self.stack[self.stack.len() - 2]).kind() {
                Kind::List => self.append(1)?,
                _ => drop(self.stack.pop()),
            }
        }
        Ok(())
    }

    /// Of a pickle that stopped early: what was read, as if every list and dictionary ended here.
    pub fn close(&mut self) -> Result<Value, Stop> {
        while let Some(mark) = self.marks.pop() {
            let Some(count) = self.stack.len().checked_sub(mark) else { continue };
            let target = mark.checked_sub(1).and_then(|below| self.stack.get(below)).copied();
            match target.map(|target| self.heap.settled(target).kind()) {
                Some(Kind::List) => self.append(count)?,
                // A dictionary inside is half of an event, block or frame: it is left out.
                Some(Kind::Dict) if mark > 1 => self.stack.truncate(mark - 1),
                Some(Kind::Dict) => {
                    self.nest(mark)?;
                    self.set(self.stack.len() - mark)?;
                }
                _ => self.stack.truncate(mark),
            }
        }
        // Without marks (protocol 0) each value goes into the list below it, or with its key into the dictionary below that.
        while self.stack.len() > 1 {
            let kind =
                |below: usize| self.stack.len().checked_sub(below).map(|at| self.heap.settled(self.stack[at]).kind());
            match (kind(1), kind(2), kind(3)) {
                (Some(Kind::Dict), _, _) => drop(self.stack.pop()),
                (_, Some(Kind::List), _) => self.append(1)?,
                (_, _, Some(Kind::Dict)) if self.stack.len() == 3 => self.set(2)?,
                _ => drop(self.stack.pop()),
            }
        }
        let value = self.pop()?;
        self.settle(value)
    }
}
