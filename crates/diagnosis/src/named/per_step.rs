//! What happened in each step, by name: kernels, copies, CUDA calls, operators and layers, with how long and how often a step has each,
//! and how much that differs from step to step. Work belongs to the step in which it was launched, else begun.

use super::Measured;
use super::noise;
use analysis::device::layers::Layers;
use analysis::steps::Steps;
use analysis::steps::windows::{StepSpans, of_process};
use analysis::{HostLayer, HostLayers};
use std::collections::HashMap;
use timeline::gpu::detail;
use timeline::{NameIndex, ProcessIndex, SliceKind, Timeline, TrackIndex, WorkKind};

/// One name in a mean step.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// What it is of: a name, or the direction of copies.
    pub key: u32,
    pub label: String,
    /// Nanoseconds.
    pub time: Measured,
    pub count: Measured,
    pub bytes: f64,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct PerStep {
    pub kernels: Vec<Row>,
    pub copies: Vec<Row>,
    pub apis: Vec<Row>,
    /// Operators of PyTorch (`aten::mm`): the host's own time in each, without the operators inside it.
    pub ops: Vec<Row>,
    /// By kernel time; without a GPU by the host's own time in a call of the model.
    pub layers: Vec<Row>,
}

/// Name, step, nanoseconds, bytes: one piece.
type Cell = (u32, u32, u64, u64);

pub fn measure(timeline: &Timeline, steps: &Steps) -> PerStep {
    let mut owners = Owners::new(timeline, steps);
    let layers = Layers::find(timeline);
    let (mut kernels, mut copies, mut of_layers, mut apis) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let work = &timeline.gpu.work;
    for stream in &timeline.gpu.streams {
        for index in stream.work.clone().filter(|index| work.kind(*index).is_busy()) {
            let Some(step) = owners.of_work(stream.process, index) else { continue };
            let ns = work.dur[index];
            if work.kind(index) == WorkKind::Kernel {
                kernels.push((work.name[index], step, ns, 0));
                of_layers.extend(layers.of(index).map(|layer| (layer.0, step, ns, 0)));
            } else {
                let piece = work.get(index);
                let direction = if piece.kind == WorkKind::Memcpy { piece.copy().direction } else { 0 };
                copies.push((u32::from(direction), step, ns, piece.bytes));
            }
        }
    }
    let slices = &timeline.slices;
    for (place, track) in timeline.tracks.iter().enumerate() {
        for index in track.slices.clone().filter(|index| slices.kind(*index) == SliceKind::ApiCall) {
            if let Some(step) = owners.of_call(TrackIndex(place as u32), slices.start[index]) {
                apis.push((slices.name[index], step, slices.dur[index], 0));
            }
        }
    }
    let name = |name: u32| timeline.names.text(NameIndex(name)).to_owned();
    let count = steps.count();
    PerStep {
        kernels: rows(kernels, count, name),
        copies: rows(copies, count, |direction| direction_name(direction as u8).to_owned()),
        apis: rows(apis, count, name),
        ops: rows(operators(timeline, &mut owners), count, name),
        layers: match timeline.gpu.is_empty() {
            true => host_layers(timeline),
            false => rows(of_layers, count, name),
        },
    }
}

/// Without a GPU: the layers' own time on the host. Only some calls of a model have layers, so these are of a mean call of it.
fn host_layers(timeline: &Timeline) -> Vec<Row> {
    let row = |layer: &HostLayer| Row {
        key: layer.name.0,
        label: timeline.names.text(layer.name).to_owned(),
        time: noise::mean_of(layer.each_ns.iter().map(|ns| *ns as f64)),
        count: Measured::exactly(layer.calls as f64 / layer.each_ns.len().max(1) as f64),
        bytes: 0.0,
    };
    let mut rows: Vec<Row> = HostLayers::find(timeline).rows.iter().map(row).collect();
    rows.sort_by(|a, b| b.time.value.total_cmp(&a.time.value).then_with(|| a.label.cmp(&b.label)));
    rows
}

/// Operators have a namespace in their names, and no Python function has.
fn operators(timeline: &Timeline, owners: &mut Owners) -> Vec<Cell> {
    let is_op: Vec<bool> =
        (0..timeline.names.len() as u32).map(|name| timeline.names.text(NameIndex(name)).contains("::")).collect();
    let slices = &timeline.slices;
    let mut cells: Vec<Cell> = Vec::new();
    for (place, track) in timeline.tracks.iter().enumerate() {
        // Those around the one at hand: where each ends, and its cell, if a step has it.
        let mut around: Vec<(u64, Option<usize>)> = Vec::new();
        for index in track.slices.clone() {
            if slices.kind(index) != SliceKind::CCall || !is_op[slices.name[index] as usize] {
                continue;
            }
            let (start, dur) = (slices.start[index], slices.dur[index]);
            while around.last().is_some_and(|(end, _)| *end <= start) {
                around.pop();
            }
            if let Some((_, Some(cell))) = around.last() {
                cells[*cell].2 = cells[*cell].2.saturating_sub(dur);
            }
            let cell = owners.of_call(TrackIndex(place as u32), start).map(|step| {
                cells.push((slices.name[index], step, dur, 0));
                cells.len() - 1
            });
            around.push((start.saturating_add(dur), cell));
        }
    }
    cells
}

fn direction_name(direction: u8) -> &'static str {
    match direction {
        0 => "memset or migration",
        detail::H2D => "host → device",
        detail::D2H => "device → host",
        detail::D2D | detail::P2P => "device → device",
        detail::H2H => "host → host",
        _ => "other copies",
    }
}

/// Largest first. Steps that do not have a name count with nothing.
fn rows(mut cells: Vec<Cell>, steps: usize, label: impl Fn(u32) -> String) -> Vec<Row> {
    cells.sort_unstable_by_key(|cell| (cell.0, cell.1));
    let mut rows: Vec<Row> = Vec::new();
    for of_name in cells.chunk_by(|a, b| a.0 == b.0) {
        let (mut time, mut squares, mut count, mut count_squares, mut bytes) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for of_step in of_name.chunk_by(|a, b| a.1 == b.1) {
            let ns: f64 = of_step.iter().map(|cell| cell.2 as f64).sum();
            let number = of_step.len() as f64;
            time += ns;
            squares += ns * ns;
            count += number;
            count_squares += number * number;
            bytes += of_step.iter().map(|cell| cell.3 as f64).sum::<f64>();
        }
        rows.push(Row {
            key: of_name[0].0,
            label: label(of_name[0].0),
            time: noise::mean(steps, time, squares),
            count: noise::mean(steps, count, count_squares),
            bytes: bytes / steps.max(1) as f64,
        });
    }
    rows.sort_by(|a, b| b.time.value.total_cmp(&a.time.value).then_with(|| a.label.cmp(&b.label)));
    rows
}

/// Which step a moment of a thread or of a process belongs to.
pub struct Owners<'a> {
    timeline: &'a Timeline,
    windows: StepSpans,
    everywhere: StepSpans,
    by_process: HashMap<ProcessIndex, StepSpans>,
}

impl<'a> Owners<'a> {
    pub fn new(timeline: &'a Timeline, steps: &Steps) -> Owners<'a> {
        let windows = StepSpans::of_steps(steps);
        let everywhere = windows.across(|_| true);
        Owners { timeline, windows, everywhere, by_process: HashMap::new() }
    }

    pub fn of_call(&mut self, track: TrackIndex, time: u64) -> Option<u32> {
        match self.windows.at(track, time) {
            Some(window) => Some(self.windows.all()[window].step),
            None => self.of_process(self.timeline.tracks[track.0 as usize].process, time),
        }
    }

    fn of_work(&mut self, process: ProcessIndex, index: usize) -> Option<u32> {
        let work = &self.timeline.gpu.work;
        match work.launch(index) {
            Some(launch) => {
                let tracks = &self.timeline.tracks;
                let track = tracks.partition_point(|track| track.slices.end <= launch);
                self.of_call(TrackIndex(track as u32), self.timeline.slices.start[launch])
            }
            None => self.of_process(process, work.start[index]),
        }
    }

    /// A process without steps works for those of others: a server hands its requests to a worker.
    fn of_process(&mut self, process: ProcessIndex, time: u64) -> Option<u32> {
        let (all, timeline) = (&self.windows, self.timeline);
        let own = self.by_process.entry(process).or_insert_with(|| all.across(of_process(timeline, process)));
        let windows = if own.all().is_empty() { &self.everywhere } else { own };
        windows.at(TrackIndex(0), time).map(|window| windows.all()[window].step)
    }
}
