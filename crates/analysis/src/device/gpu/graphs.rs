//! Which work ran in a CUDA graph: by the number of the graph where the recording has it, else by the call that launched it. Older files of
//! torch.profiler have no numbers.

use timeline::{NameIndex, Timeline};

pub struct Graphs<'a> {
    timeline: &'a Timeline,
}

impl<'a> Graphs<'a> {
    pub fn new(timeline: &'a Timeline) -> Graphs<'a> {
        Graphs { timeline }
    }

    pub fn any(&self) -> bool {
        self.named() || self.timeline.gpu.work.any_graph()
    }

    /// Whether a piece of work ran in a graph.
    pub fn has(&self, work: usize) -> bool {
        let all = &self.timeline.gpu.work;
        all.more(work).graph != 0 || all.launch(work).is_some_and(|call| self.launches(call))
    }

    /// Whether a call launches a graph, by its name.
    pub fn launches(&self, call: usize) -> bool {
        self.timeline.call(call).launches_graph()
    }

    /// Whether any name is that of such a call.
    fn named(&self) -> bool {
        let names = &self.timeline.names;
        (0..names.len() as u32).any(|name| names.call(NameIndex(name)).launches_graph())
    }
}
