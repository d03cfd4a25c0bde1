//! Which layer (`nn.Module`) each kernel belongs to, and how that is known.

use crate::gpu::LayerRow;
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, Timeline, WorkKind};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Direct,
    BySequence,
    ByCapture,
}

#[derive(Debug, Default)]
pub struct Layers {
    /// By place of the work; the name plus one, 0: none. Empty without layers.
    name: Vec<u32>,
    how: Vec<u8>,
}

impl Layers {
    pub fn find(timeline: &Timeline) -> Layers {
        let slices = &timeline.slices;
        if !(0..slices.len()).any(|index| slices.kind(index) == SliceKind::Layer) {
            return Layers::default();
        }
        let mut layers = Layers { name: vec![0; timeline.gpu.work.len()], how: vec![0; timeline.gpu.work.len()] };
        layers.direct(timeline);
        layers
    }

    pub fn of(&self, work: usize) -> Option<NameIndex> {
        self.name.get(work).filter(|name| **name > 0).map(|name| NameIndex(name - 1))
    }

    fn direct(&mut self, timeline: &Timeline) {
        let slices = &timeline.slices;
        for track in &timeline.tracks {
            let mut open: Vec<(u64, NameIndex)> = Vec::new();
            for index in track.slices.clone() {
                let slice = slices.get(index);
                while open.last().is_some_and(|(end, _)| *end <= slice.start) {
                    open.pop();
                }
                match slice.kind {
                    SliceKind::Layer => open.push((slice.end(), slice.name)),
                    SliceKind::ApiCall => {
                        let Some((_, name)) = open.last() else { continue };
                        for work in timeline.gpu.work.of_launch(index) {
                            self.name[*work as usize] = name.0 + 1;
                            self.how[*work as usize] = How::Direct as u8;
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    pub fn rows(&self, timeline: &Timeline) -> Vec<LayerRow> {
        let work = &timeline.gpu.work;
        let mut rows: HashMap<NameIndex, LayerRow> = HashMap::new();
        for index in (0..self.name.len()).filter(|index| work.kind(*index) == WorkKind::Kernel) {
            let Some(name) = self.of(index) else { continue };
            let empty = LayerRow { name, total_ns: 0, kernels: 0, direct: 0, by_sequence: 0, by_capture: 0 };
            let row = rows.entry(name).or_insert(empty);
            row.kernels += 1;
            row.total_ns = row.total_ns.saturating_add(work.dur[index]);
            match self.how[index] {
                how if how == How::Direct as u8 => row.direct += 1,
                how if how == How::BySequence as u8 => row.by_sequence += 1,
                _ => row.by_capture += 1,
            }
        }
        let mut rows: Vec<LayerRow> = rows.into_values().collect();
        rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.name));
        rows
    }
}
