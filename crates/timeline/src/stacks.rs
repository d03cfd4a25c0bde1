//! Stacks as a tree of frames: a stack is its leaf, and a frame's parent always stands before it, so every walk ends.

use crate::NameIndex;

/// Index into [`Stacks`]. 0 stands for a stack that is missing from the trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StackIndex(pub u32);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The caller; `StackIndex(0)` for a root.
    pub parent: StackIndex,
    pub name: NameIndex,
    /// The line being executed; 0 when unknown.
    pub line: u32,
}

#[derive(Debug)]
pub struct Stacks {
    frames: Vec<Frame>,
}

impl Default for Stacks {
    fn default() -> Stacks {
        Stacks { frames: vec![Frame { parent: StackIndex(0), name: NameIndex(0), line: 0 }] }
    }
}

/// A walk goes no deeper, so that a chain a million frames long (damage, or an attack) does not make every sample cost a
/// million steps. Python's own limit is 1000 by default.
const DEEPEST: usize = 10_000;

impl Stacks {
    /// Frames, counting the one at 0 that stands for a missing stack.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn is_empty(&self) -> bool {
        self.frames.len() <= 1
    }

    pub fn frame(&self, index: StackIndex) -> Frame {
        self.frames.get(index.0 as usize).copied().unwrap_or(self.frames[0])
    }

    /// The frames of a stack, leaf first. Empty for a missing stack.
    pub fn walk(&self, leaf: StackIndex) -> impl Iterator<Item = (StackIndex, Frame)> + '_ {
        let mut next = leaf;
        std::iter::from_fn(move || {
            let here = next;
            let frame = *self.frames.get(here.0 as usize).filter(|_| here.0 != 0)?;
            next = frame.parent;
            Some((here, frame))
        })
        .take(DEEPEST)
    }

    /// A parent that does not stand before its child is damage: the frame becomes a root.
    pub(crate) fn push(&mut self, parent: Option<StackIndex>, name: NameIndex, line: u32) -> StackIndex {
        let index = StackIndex(self.frames.len() as u32);
        let parent = parent.filter(|parent| parent.0 < index.0).unwrap_or(StackIndex(0));
        self.frames.push(Frame { parent, name, line });
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_reads_from_leaf_to_root() {
        let mut stacks = Stacks::default();
        let root = stacks.push(None, NameIndex(1), 10);
        let leaf = stacks.push(Some(root), NameIndex(2), 20);
        let names: Vec<u32> = stacks.walk(leaf).map(|(_, frame)| frame.name.0).collect();
        assert_eq!(names, [2, 1]);
        assert_eq!(stacks.walk(StackIndex(0)).count() + stacks.walk(StackIndex(77)).count(), 0);
    }

    #[test]
    fn a_frame_cannot_be_its_own_ancestor() {
        let mut stacks = Stacks::default();
        let odd = stacks.push(Some(StackIndex(1)), NameIndex(1), 0);
        assert_eq!(stacks.walk(odd).count(), 1);
    }
}
