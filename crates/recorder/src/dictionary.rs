//! Names and stacks become numbers here, for the whole trace. What is new waits until the drain takes it to disk; the
//! maps are bounded and start anew when full, so a name may have several numbers (readers unify them).

use crate::demangle::demangle;
use crate::store::{Cell, Store};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trace::tables::Table;

pub(crate) struct Dictionary(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    hashers: (RandomState, RandomState),
    names: HashMap<u128, i32>,
    stacks: HashMap<(i32, i32, i32), i32>,
    last_name: i32,
    last_stack: i32,
    new_names: Vec<NewName>,
    new_stacks: Vec<(i32, i32, i32, i32)>,
    new_bytes: usize,
}

struct NewName {
    id: i32,
    text: String,
    file: Option<String>,
    line: Option<i32>,
}

/// One frame of a stack, as a sampler sees it.
pub(crate) struct Frame<'a> {
    pub function: &'a str,
    pub file: &'a str,
    pub line: i32,
}

// Names are known by a 128-bit hash, so that a million names of 4 KB cost no more than short ones: 10 MB at most.
const MOST_NAMES: usize = 200_000;
const MOST_STACKS: usize = 400_000;
/// What may wait for the drain while the disk takes nothing.
const MOST_WAITING: usize = 50_000;
const MOST_WAITING_BYTES: usize = 8 << 20;

impl Dictionary {
    /// `last_name` is the last number that is taken already.
    pub fn new(last_name: i32) -> Dictionary {
        Dictionary::after(last_name, 0)
    }

    /// The same for stacks too.
    pub fn after(last_name: i32, last_stack: i32) -> Dictionary {
        Dictionary(Mutex::new(Inner { last_name, last_stack, ..Inner::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a name.
    pub fn name(&self, text: &str, file: Option<&str>, line: Option<i32>) -> i32 {
        self.lock().name(text, file, line)
    }

    /// The number of a name as the workload wrote it: function, file and line joined, or plain.
    pub fn segment_name(&self, joined: &str) -> i32 {
        let mut parts = joined.split(trace::names::SEPARATOR);
        let text = parts.next().unwrap_or_default();
        let file = parts.next();
        let plain = file.is_none().then(|| demangle(text)).flatten();
        self.name(plain.as_deref().unwrap_or(text), file, parts.next().and_then(|line| line.parse().ok()))
    }

    /// The number of a stack given from its outermost frame in. None when too much waits for the disk.
    pub fn stack<'a>(&self, frames: impl Iterator<Item = Frame<'a>>) -> Option<i32> {
        self.stack_above(0, frames)
    }

    /// The same for frames that were called by those of another stack.
    pub fn stack_above<'a>(&self, mut parent: i32, frames: impl Iterator<Item = Frame<'a>>) -> Option<i32> {
        let mut inner = self.lock();
        if inner.is_full() {
            return None;
        }
        for frame in frames {
            let name = inner.name(frame.function, Some(frame.file), None);
            parent = inner.child(parent, name, frame.line);
        }
        Some(parent)
    }

    /// The number of the stack that ends in this frame.
    pub fn child(&self, parent: i32, name: i32, line: i32) -> i32 {
        self.lock().child(parent, name, line)
    }

    /// Moves what is new into the store, unless the store is full; says whether it did.
    pub fn hand_over(&self, store: &mut Store) -> bool {
        let mut inner = self.lock();
        if store.batch(Table::Names).is_full() || store.batch(Table::Stacks).is_full() {
            return false;
        }
        for name in inner.new_names.drain(..) {
            let cells = [
                Cell::Int(name.id),
                Cell::Text(&name.text),
                Cell::text_or_null(name.file.as_deref()),
                Cell::int_or_null(name.line),
            ];
            store.add(Table::Names, &cells);
        }
        for (id, parent, name, line) in inner.new_stacks.drain(..) {
            let parent = if parent == 0 { Cell::Null } else { Cell::Int(parent) };
            store.add(Table::Stacks, &[Cell::Int(id), parent, Cell::Int(name), Cell::Int(line)]);
        }
        inner.new_bytes = 0;
        true
    }

    /// Records with new names should wait.
    pub fn is_full(&self) -> bool {
        self.lock().is_full()
    }
}

impl Inner {
    fn is_full(&self) -> bool {
        self.new_names.len() >= MOST_WAITING
            || self.new_stacks.len() >= MOST_WAITING
            || self.new_bytes >= MOST_WAITING_BYTES
    }

    fn name(&mut self, text: &str, file: Option<&str>, line: Option<i32>) -> i32 {
        let key = (text, file, line);
        let hash = u128::from(self.hashers.0.hash_one(key)) << 64 | u128::from(self.hashers.1.hash_one(key));
        if let Some(id) = self.names.get(&hash) {
            return *id;
        }
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        self.last_name += 1;
        self.names.insert(hash, self.last_name);
        self.new_bytes += text.len() + file.map_or(0, str::len);
        let (text, file) = (text.to_owned(), file.map(str::to_owned));
        self.new_names.push(NewName { id: self.last_name, text, file, line });
        self.last_name
    }

    fn child(&mut self, parent: i32, name: i32, line: i32) -> i32 {
        if let Some(id) = self.stacks.get(&(parent, name, line)) {
            return *id;
        }
        if self.stacks.len() >= MOST_STACKS {
            self.stacks.clear();
        }
        self.last_stack += 1;
        self.stacks.insert((parent, name, line), self.last_stack);
        self.new_stacks.push((self.last_stack, parent, name, line));
        self.last_stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_stack_keep_their_numbers() {
        let dictionary = Dictionary::new(4);
        let first = dictionary.segment_name("run\u{1f}a.py\u{1f}12");
        assert_eq!(first, 5);
        assert_eq!(dictionary.name("run", Some("a.py"), Some(12)), first);
        assert_ne!(dictionary.name("run", None, None), first);
        let frames = || [("main", 3), ("run", 9)].into_iter();
        let frame = |(function, line)| Frame { function, file: "a.py", line };
        let stack = dictionary.stack(frames().map(frame)).unwrap();
        assert_eq!(dictionary.stack(frames().map(frame)), Some(stack));
        let outer = dictionary.stack(frames().take(1).map(frame)).unwrap();
        assert_eq!(dictionary.0.lock().unwrap().new_stacks, [(outer, 0, 6 + 1, 3), (stack, outer, 8, 9)]);
    }

    #[test]
    fn a_million_names_stay_bounded() {
        let dictionary = Dictionary::new(0);
        let folder = std::env::temp_dir().join(format!("inferscope-dictionary-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut store = Store::open(&folder).unwrap();
        for number in 0..1_000_000 {
            dictionary.name(&number.to_string(), None, None);
            if number % 10_000 == 0 {
                dictionary.hand_over(&mut store);
                store.batch(Table::Names).clear();
            }
        }
        assert!(dictionary.0.lock().unwrap().names.len() <= MOST_NAMES);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
