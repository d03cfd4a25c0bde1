//! Names, each once: equal text, file and line is one [`NameIndex`] however many ids the recorder gave it.

use crate::cuda_calls::CudaCall;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use trace::codes::EnginePhase;

/// Index into [`Names`]. 0 stands for a name that is missing from the trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NameIndex(pub u32);

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Name {
    pub text: Arc<str>,
    /// Where the function is defined; empty for a plain name.
    pub file: Arc<str>,
    /// First line of the function; 0 when unknown.
    pub line: u32,
}

#[derive(Debug)]
pub struct Names {
    all: Vec<Name>,
    /// What each says as the name of a CUDA call.
    calls: Vec<CudaCall>,
    /// What a serving engine does in the steps of this name, where its own marker gave them that name.
    phases: BTreeMap<NameIndex, EnginePhase>,
    known: HashMap<Name, u32>,
}

pub const MISSING: &str = "(name not recorded)";

impl Default for Names {
    fn default() -> Names {
        let mut names = Names { all: Vec::new(), calls: Vec::new(), phases: BTreeMap::new(), known: HashMap::new() };
        names.intern(Name { text: MISSING.into(), file: "".into(), line: 0 });
        names
    }
}

impl Names {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, index: NameIndex) -> &Name {
        self.all.get(index.0 as usize).unwrap_or(&self.all[0])
    }

    pub fn text(&self, index: NameIndex) -> &str {
        &self.get(index).text
    }

    /// What a call of this name does.
    pub fn call(&self, index: NameIndex) -> CudaCall {
        self.calls.get(index.0 as usize).copied().unwrap_or(self.calls[0])
    }

    /// What a serving engine does in the steps of this name.
    pub(crate) fn phase(&self, index: NameIndex) -> Option<EnginePhase> {
        self.phases.get(&index).copied()
    }

    pub(crate) fn set_phase(&mut self, index: NameIndex, phase: EnginePhase) {
        self.phases.insert(index, phase);
    }

    pub(crate) fn intern(&mut self, name: Name) -> NameIndex {
        let next = self.all.len() as u32;
        let index = *self.known.entry(name.clone()).or_insert(next);
        if index == next {
            self.calls.push(CudaCall::of(&name.text));
            self.all.push(name);
        }
        NameIndex(index)
    }

    /// Gives back what only loading needs.
    pub(crate) fn finish(&mut self) {
        self.known = HashMap::new();
        self.all.shrink_to_fit();
        self.calls.shrink_to_fit();
    }
}

/// Texts that repeat (files, arguments, thread names), each kept once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    known: HashMap<Arc<str>, u32>,
    pub all: Vec<Arc<str>>,
}

impl Texts {
    pub fn index(&mut self, text: &str) -> u32 {
        if let Some(index) = self.known.get(text) {
            return *index;
        }
        let index = self.all.len() as u32;
        let text: Arc<str> = text.into();
        self.all.push(text.clone());
        self.known.insert(text, index);
        index
    }

    pub fn get(&mut self, text: &str) -> Arc<str> {
        let index = self.index(text);
        self.all[index as usize].clone()
    }
}

/// Numbers that the recorder gave out, to indexes of ours: a plain vector while they are dense, as the recorder's are,
/// and a map for the rest, so that one absurd number in a damaged file costs one entry.
#[derive(Debug, Default)]
pub(crate) struct IdMap {
    dense: Vec<u32>,
    sparse: HashMap<i32, u32>,
    inserted: usize,
}

const NONE: u32 = u32::MAX;

impl IdMap {
    pub fn insert(&mut self, id: i32, index: u32) {
        let place = id as usize;
        self.inserted += 1;
        if id >= 0 && place <= 4 * self.inserted + 1024 {
            if place >= self.dense.len() {
                self.dense.resize(place + 1, NONE);
            }
            self.dense[place] = index;
        } else {
            self.sparse.insert(id, index);
        }
    }

    #[inline]
    pub fn get(&self, id: i32) -> Option<u32> {
        match self.dense.get(id as usize) {
            Some(index) if id >= 0 && *index != NONE => Some(*index),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get(&id).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_one_and_an_unknown_index_is_said_to_be_missing() {
        let name = |text: &str, line| Name { text: text.into(), file: "a.py".into(), line };
        let mut names = Names::default();
        let (a, b) = (names.intern(name("f", 1)), names.intern(name("f", 2)));
        assert_ne!(a, b);
        assert_eq!(names.intern(name("f", 1)), a);
        assert_eq!(names.text(NameIndex(99)), MISSING);
    }

    #[test]
    fn an_absurd_id_costs_one_entry() {
        let mut map = IdMap::default();
        for (id, index) in [(1, 10), (2, 20), (i32::MAX, 30), (-5, 40), (i32::MIN, 50)] {
            map.insert(id, index);
        }
        assert!(map.dense.len() < 2000);
        assert_eq!([1, 2, i32::MAX, -5, i32::MIN, 3, 0].map(|id| map.get(id).unwrap_or(0)), [10, 20, 30, 40, 50, 0, 0]);
    }
}
