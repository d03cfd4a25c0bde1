//! Kernels by name: how many, how long, their usual shape, and the line of the program that launched them.

use super::{DeviceInputs, KernelLayer, KernelRow};
use crate::device::layers::Layers;
use crate::place::Place;
use crate::stats::times::Times;
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, StackIndex, WorkKind};

/// A thread that was seen so shortly before a launch call was on its way to it.
const ON_THE_WAY_NS: u64 = 200_000;

#[derive(Default)]
struct Sum {
    times: Times,
    /// Shapes and layers by their numbers; few each.
    shapes: Counts,
    layers: Counts,
}

/// How often each of a few numbers came.
#[derive(Default)]
struct Counts {
    last: Option<(u32, u64)>,
    all: HashMap<u32, u64>,
}

impl Counts {
    fn add(&mut self, number: u32) {
        match &mut self.last {
            Some((last, count)) if *last == number => *count += 1,
            last => {
                if let Some((number, count)) = last.replace((number, 1)) {
                    *self.all.entry(number).or_default() += count;
                }
            }
        }
    }

    fn all(mut self) -> HashMap<u32, u64> {
        if let Some((number, count)) = self.last.take() {
            *self.all.entry(number).or_default() += count;
        }
        self.all
    }

    /// The most frequent; of several, the one with the lowest number.
    fn most(self) -> Option<u32> {
        self.all().into_iter().max_by_key(|(number, count)| (*count, u32::MAX - number)).map(|(number, _)| number)
    }
}

/// Without the lines: those are found at the same time, and come by `name_places`.
pub fn rows(inputs: &DeviceInputs, layers: &Layers) -> Vec<KernelRow> {
    let gpu = &inputs.timeline.gpu;
    // By place of the name, so that a million kernels need no hashing.
    let mut places_of_names = vec![u32::MAX; inputs.timeline.names.len()];
    let mut sums: Vec<(u32, Sum)> = Vec::new();
    for index in (0..gpu.work.len()).filter(|index| gpu.work.kind(*index) == WorkKind::Kernel) {
        let name = gpu.work.name[index];
        let Some(place) = places_of_names.get_mut(name as usize) else { continue };
        if *place == u32::MAX {
            *place = sums.len() as u32;
            sums.push((name, Sum::default()));
        }
        let sum = &mut sums[*place as usize].1;
        sum.times.push(gpu.work.dur[index]);
        if let Some(shape) = gpu.work.shape(index) {
            sum.shapes.add(shape as u32);
        }
        if let Some(layer) = layers.of(index) {
            sum.layers.add(layer.0);
        }
    }
    let row = |(name, mut sum): (u32, Sum)| {
        let (count, total_ns) = (sum.times.count() as u64, sum.times.total());
        let names = &inputs.timeline.names;
        let layers = sum.layers.all().into_iter().map(|(layer, count)| (names.text(NameIndex(layer)), count));
        KernelRow {
            name: NameIndex(name),
            count,
            total_ns,
            mean_ns: total_ns / count.max(1),
            p95_ns: sum.times.percentile(95),
            share: 0.0,
            shape: sum.shapes.most().and_then(|shape| gpu.shapes.get(shape as usize).copied()),
            place: None,
            layer: KernelLayer::of(layers, count),
        }
    };
    let mut rows: Vec<KernelRow> = sums.into_iter().map(row).collect();
    rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.name));
    let all = rows.iter().map(|row| row.total_ns as f64).sum::<f64>();
    rows.iter_mut().filter(|_| all > 0.0).for_each(|row| row.share = row.total_ns as f64 / all);
    rows
}

pub fn name_places(rows: &mut [KernelRow], mut places: HashMap<u32, Place>) {
    rows.iter_mut().for_each(|row| row.place = places.remove(&row.name.0));
}

/// Per kernel name, the line that most samples saw at a launch of it: inside the launch call, or right before it.
pub fn places(inputs: &DeviceInputs) -> HashMap<u32, Place> {
    let timeline = inputs.timeline;
    let work = &timeline.gpu.work;
    let mut votes: HashMap<(u32, NameIndex, u32), (u64, StackIndex)> = HashMap::new();
    for track in timeline.tracks.iter().filter(|track| !track.samples.is_empty()) {
        let mut next = track.slices.start;
        for sample in track.samples.clone().map(|index| timeline.samples.get(index)) {
            // The first call that had not ended when the sample was taken. Calls of one thread do not overlap.
            while next < track.slices.end {
                let slice = timeline.slices.get(next);
                if slice.kind == SliceKind::ApiCall && slice.end() >= sample.time {
                    break;
                }
                next += 1;
            }
            if next == track.slices.end {
                break;
            }
            if timeline.slices.start[next] > sample.time.saturating_add(ON_THE_WAY_NS) {
                continue;
            }
            let home = inputs.frames.home(sample.stack);
            if home.0 == 0 {
                continue;
            }
            let frame = timeline.stacks.frame(home);
            let mut last = None;
            for index in work.of_launch(next).iter().map(|index| *index as usize) {
                if work.kind(index) == WorkKind::Kernel && last != Some(work.name[index]) {
                    last = Some(work.name[index]);
                    votes.entry((work.name[index], frame.name, frame.line)).or_insert((0, home)).0 += 1;
                }
            }
        }
    }
    let mut best: HashMap<u32, (u64, StackIndex)> = HashMap::new();
    for ((kernel, _, _), vote) in votes {
        let one = best.entry(kernel).or_insert(vote);
        if (vote.0, one.1.0) > (one.0, vote.1.0) {
            *one = vote;
        }
    }
    best.into_iter().map(|(kernel, (_, frame))| (kernel, inputs.place(frame))).collect()
}
