//! Values that repeat, each kept once.

use super::Shape;
use crate::NameIndex;
use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub struct Once<T> {
    pub all: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once { all: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Copy + Eq + Hash> Once<T> {
    /// The place of a value, plus one.
    pub fn place(&mut self, value: T) -> u32 {
        *self.known.entry(value).or_insert_with(|| {
            self.all.push(value);
            self.all.len() as u32
        })
    }
}

/// A model has some hundred kernels.
const RECENT: usize = 512;

#[derive(Debug, Default)]
pub struct Shapes {
    pub once: Once<Shape>,
    /// The shapes met last, by the name of their kernel: most launches repeat one, and need not be looked up.
    recent: Vec<Option<(Shape, u32)>>,
}

impl Shapes {
    pub fn place(&mut self, name: NameIndex, shape: Shape) -> u32 {
        self.recent.resize(RECENT, None);
        let recent = &mut self.recent[name.0 as usize % RECENT];
        if let Some((_, place)) = recent.filter(|(known, _)| *known == shape) {
            return place;
        }
        let place = self.once.place(shape);
        *recent = Some((shape, place));
        place
    }
}
