//! Names kernels by the company they keep: a whole sequence of kernels, launched inside one outermost layer while layers were
//! recorded, is looked for among the launches where they were not.

use super::{How, Layers};
use std::collections::HashMap;
use timeline::{NameIndex, Timeline, WorkKind};

/// Shorter sequences are met by chance.
const LEAST: usize = 4;
/// A model has a few sequences (prefill, decode, a size of batch each); more lengths than this are not looked for.
const MOST_LENGTHS: usize = 32;
/// Of a rolling hash over kernel names.
const BASE: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Default)]
pub struct Calibrated {
    /// The outermost layer's slice that is being gathered, and its kernels.
    root: Option<usize>,
    names: Vec<u32>,
    layers: Vec<Option<NameIndex>>,
    known: HashMap<(usize, u64), Sequence>,
}

struct Sequence {
    names: Vec<u32>,
    /// None where sequences with the same kernels disagree.
    layers: Vec<Option<NameIndex>>,
}

impl Calibrated {
    /// The next kernel launched inside an outermost layer.
    pub fn add(&mut self, root: usize, name: u32, layer: NameIndex) {
        if self.root != Some(root) {
            self.end();
            self.root = Some(root);
        }
        self.names.push(name);
        self.layers.push(Some(layer));
    }

    /// The outermost layer has no more.
    pub fn end(&mut self) {
        let (names, layers) = (std::mem::take(&mut self.names), std::mem::take(&mut self.layers));
        self.root = None;
        if names.len() < LEAST {
            return;
        }
        let key = (names.len(), hash(&names));
        match self.known.get_mut(&key) {
            Some(known) if known.names == names => {
                for (one, other) in known.layers.iter_mut().zip(layers) {
                    *one = one.filter(|_| *one == other);
                }
            }
            _ => drop(self.known.insert(key, Sequence { names, layers })),
        }
    }

    /// Names what no other way has named.
    pub fn name(&self, timeline: &Timeline, layers: &mut Layers) {
        if self.known.is_empty() {
            return;
        }
        let work = &timeline.gpu.work;
        let mut lengths: Vec<usize> = self.known.keys().map(|key| key.0).collect();
        lengths.sort_unstable_by_key(|length| usize::MAX - length);
        lengths.dedup();
        lengths.truncate(MOST_LENGTHS);
        let kernels = work.linked().iter().copied();
        let kernels: Vec<u32> = kernels.filter(|index| work.kind(*index as usize) == WorkKind::Kernel).collect();
        let track = |index: usize| {
            let launch = work.launch(index).unwrap_or(0);
            timeline.tracks.partition_point(|track| track.slices.end <= launch)
        };
        let mut run = 0;
        while run < kernels.len() {
            // A run of kernels without a name, on one thread.
            let here = track(kernels[run] as usize);
            let open = |index: &u32| layers.of(*index as usize).is_none() && track(*index as usize) == here;
            let end = run + kernels[run..].iter().take_while(|index| open(index)).count();
            if end > run {
                self.find(&kernels[run..end], &lengths, timeline, layers);
            }
            run = end.max(run + 1);
        }
    }

    /// The longest sequence that begins at each place, or nothing and on to the next.
    fn find(&self, kernels: &[u32], lengths: &[usize], timeline: &Timeline, layers: &mut Layers) {
        let names: Vec<u32> = kernels.iter().map(|index| timeline.gpu.work.name[*index as usize]).collect();
        let hashes = Hashes::new(&names, lengths);
        let mut at = 0;
        while at < kernels.len() {
            let fits = |(place, length): (usize, &usize)| {
                let found = self.known.get(&(*length, hashes.of(at, place, *length)?))?;
                (found.names == names[at..at + length]).then_some(found)
            };
            let Some(found) = lengths.iter().enumerate().find_map(fits) else {
                at += 1;
                continue;
            };
            for (index, layer) in kernels[at..].iter().zip(&found.layers) {
                if let Some(layer) = layer {
                    layers.set(*index as usize, *layer, How::BySequence);
                }
            }
            at += found.names.len();
        }
    }
}

/// Hashes of all stretches of a sequence, in constant time each.
struct Hashes {
    before: Vec<u64>,
    /// `BASE` to the power of each length.
    powers: Vec<u64>,
}

impl Hashes {
    fn new(names: &[u32], lengths: &[usize]) -> Hashes {
        let mut before = Vec::with_capacity(names.len() + 1);
        before.push(0u64);
        let mut sum = 0u64;
        for name in names {
            sum = step(sum, *name);
            before.push(sum);
        }
        Hashes { before, powers: lengths.iter().map(|length| BASE.wrapping_pow(*length as u32)).collect() }
    }

    /// Of the stretch that begins `at`; `place` is that of its length. None: it is longer than what is left.
    fn of(&self, at: usize, place: usize, length: usize) -> Option<u64> {
        let end = self.before.get(at + length)?;
        Some(end.wrapping_sub(self.before[at].wrapping_mul(self.powers[place])))
    }
}

fn step(sum: u64, name: u32) -> u64 {
    sum.wrapping_mul(BASE).wrapping_add(u64::from(name) + 1)
}

fn hash(names: &[u32]) -> u64 {
    names.iter().fold(0, |sum, name| step(sum, *name))
}
