//! Names the kernels of a replayed graph by what was captured: the launches made between the begin and the end of a capture,
//! with the layers around them, against the graph's kernels in their order. Only where their numbers agree.

use super::{How, Layers};
use std::collections::HashMap;
use timeline::cuda_calls::CudaCall;
use timeline::{Around, NameIndex, ProcessIndex, SliceKind, Timeline, WorkKind};

/// The layers of a capture's kernels in order; None: outside all layers.
type Captured = Vec<Option<NameIndex>>;

pub fn name(timeline: &Timeline, layers: &mut Layers) {
    let mut captures = captures(timeline);
    if captures.is_empty() {
        return;
    }
    let replays = replays(timeline);
    // Graphs by their number of kernels, in the order in which they were made: their ids grow.
    let mut graphs: HashMap<(ProcessIndex, usize), Vec<u32>> = HashMap::new();
    for replay in &replays {
        let known = graphs.entry((replay.process, replay.kernels.len())).or_default();
        if !known.contains(&replay.graph) && known.len() < MOST_GRAPHS {
            known.push(replay.graph);
        }
    }
    let mut of_graph: HashMap<(ProcessIndex, u32, usize), Captured> = HashMap::new();
    for ((process, count), mut ids) in graphs {
        let Some(all) = captures.remove(&(process, count)) else { continue };
        ids.sort_unstable();
        let alike = all.iter().all(|one| *one == all[0]);
        for (place, graph) in ids.iter().enumerate() {
            // As many graphs as captures: first to first. Captures that agree need no such order.
            let captured = if alike { Some(&all[0]) } else { all.get(place).filter(|_| all.len() == ids.len()) };
            of_graph.extend(captured.map(|captured| ((process, *graph, count), captured.clone())));
        }
    }
    for replay in replays {
        let Some(captured) = of_graph.get(&(replay.process, replay.graph, replay.kernels.len())) else { continue };
        for (index, layer) in replay.kernels.iter().zip(captured) {
            if let Some(layer) = layer {
                layers.set(*index, *layer, How::ByCapture);
            }
        }
    }
}

/// More graphs with one number of kernels are not told apart: no program keeps so many.
const MOST_GRAPHS: usize = 1024;

/// The captures of each process by their number of kernels, in order of time per thread.
fn captures(timeline: &Timeline) -> HashMap<(ProcessIndex, usize), Vec<Captured>> {
    let mut all: HashMap<(ProcessIndex, usize), Vec<Captured>> = HashMap::new();
    let kinds: Vec<Call> =
        (0..timeline.names.len() as u32).map(|name| call(timeline.names.call(NameIndex(name)))).collect();
    if !kinds.contains(&Call::Begin) {
        return all;
    }
    for track in &timeline.tracks {
        let mut current: Option<Captured> = None;
        let mut around = Around::new(timeline, track);
        while let Some((index, open)) = around.next_call() {
            match kinds.get(timeline.slices.name[index] as usize).copied().unwrap_or(Call::Other) {
                Call::Begin => current = Some(Vec::new()),
                Call::End => {
                    if let Some(captured) = current.take().filter(|captured| captured.iter().any(Option::is_some)) {
                        all.entry((track.process, captured.len())).or_default().push(captured);
                    }
                }
                Call::Launch => {
                    if let Some(captured) = &mut current {
                        let layer = open.filter(|index| timeline.slices.kind(*index) == SliceKind::Layer).last();
                        captured.push(layer.map(|index| timeline.slices.get(index).name));
                    }
                }
                Call::Other => {}
            }
        }
    }
    all
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Begin,
    End,
    Launch,
    Other,
}

/// What a call is to a capture: one of CUDA's runtime or driver.
fn call(call: CudaCall) -> Call {
    match call {
        _ if !call.is_runtime() && !call.is_driver() => Call::Other,
        _ if call.begins_capture() => Call::Begin,
        _ if call.ends_capture() => Call::End,
        _ if call.launches_kernel() => Call::Launch,
        _ => Call::Other,
    }
}

/// One launch of a graph: its kernels in order.
struct Replay {
    process: ProcessIndex,
    graph: u32,
    kernels: Vec<usize>,
}

fn replays(timeline: &Timeline) -> Vec<Replay> {
    let (gpu, work) = (&timeline.gpu, &timeline.gpu.work);
    let mut replays: Vec<Replay> = Vec::new();
    for of_launch in work.linked().chunk_by(|a, b| work.launch(*a as usize) == work.launch(*b as usize)) {
        let pieces =
            of_launch.iter().map(|index| *index as usize).filter(|index| work.kind(*index) == WorkKind::Kernel);
        let mut kernels: Vec<usize> = pieces.filter(|index| work.more(*index).graph != 0).collect();
        let Some(first) = kernels.first().copied() else { continue };
        let (stream, graph) = (gpu.stream_of(first), work.more(first).graph);
        // On one stream they run in the order of the capture; else their nodes were numbered in it.
        if kernels.iter().any(|index| !stream.work.contains(index)) {
            kernels.sort_by_key(|index| work.more(*index).node);
        }
        replays.push(Replay { process: stream.process, graph, kernels });
    }
    replays
}
