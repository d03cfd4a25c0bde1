//! Which work ran in a CUDA graph: by the number of the graph where the recording has it, else by the call that launched it. Older files of
//! torch.profiler have no numbers.

use timeline::{NameIndex, Timeline};

pub struct Graphs<'a> {
    timeline: &'a Timeline,
    /// By name: whether such a call launches a graph.
    calls: Vec<bool>,
}

impl<'a> Graphs<'a> {
    pub fn new(timeline: &'a Timeline) -> Graphs<'a> {
        let launches = |name: u32| timeline.names.text(NameIndex(name)).contains("GraphLaunch");
        Graphs { timeline, calls: (0..timeline.names.len() as u32).map(launches).collect() }
    }

    pub fn any(&self) -> bool {
        self.calls.contains(&true) || self.timeline.gpu.work.any_graph()
    }

    /// Whether a piece of work ran in a graph.
    pub fn has(&self, work: usize) -> bool {
        let all = &self.timeline.gpu.work;
        all.more(work).graph != 0 || all.launch(work).is_some_and(|call| self.launches(call))
    }

    /// Whether a call launches a graph, by its name.
    pub fn launches(&self, call: usize) -> bool {
        self.calls.get(self.timeline.slices.name[call] as usize) == Some(&true)
    }
}
