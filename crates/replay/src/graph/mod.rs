//! The dependency graph of a process's recorded steps: calls of its threads in order, work in order of its stream, what each
//! waits for, and the events in the order in which they can be replayed. What the edges cost is left to `run`.

pub mod floors;
mod follows;
pub mod held;
pub mod waits;

use analysis::host::full_queue::FullQueue;
use analysis::steps::Steps;
use analysis::steps::chosen::Chosen;
use floors::Floors;
use timeline::{ProcessIndex, SliceKind, Timeline, TrackIndex, WorkKind};

/// Thirteen days: times further off are damaged, and must not make sums of a few overflow.
const LONGEST_NS: i128 = 1 << 50;

/// A CUDA call, the outermost where they nest.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub slice: u32,
    pub track: u32,
    pub name: u32,
    pub begin: i64,
    pub end: i64,
    /// The job that it waits for, plus one.
    pub wait: u32,
    /// It waits for that only because the queue is full.
    pub room: bool,
    /// How many jobs it launched.
    pub jobs: u32,
    /// The measured or warm-up step in which it began, plus one.
    pub step: u32,
}

/// Work of a device.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub work: u32,
    /// All plus one, 0: none. The call that launched it, the job before it in its stream, another that it waits for.
    pub call: u32,
    pub before: u32,
    pub after: u32,
    pub start: i64,
    pub end: i64,
    /// It was launched before the recording: others of its stream come later, with their launches.
    pub earlier: bool,
    /// So long the device showed nothing before it, although it was launched.
    pub held: i64,
}

#[derive(Clone, Copy, Debug)]
pub struct StepNode {
    pub track: u32,
    pub start: i64,
    pub end: i64,
    pub measured: bool,
    /// Of the jobs of its thread that had started when it ended, the one that ended last, plus one.
    pub last: u32,
}

/// In this order where times are the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    CallEnd,
    StepEnd,
    StepBegin,
    CallBegin,
    Job,
}

pub struct Graph<'a> {
    pub timeline: &'a Timeline,
    pub calls: Vec<Call>,
    pub jobs: Vec<Job>,
    pub steps: Vec<StepNode>,
    /// The tracks of the process; calls and steps have places in it.
    pub tracks: Vec<TrackIndex>,
    pub events: Vec<(i64, What, u32)>,
    pub floors: Floors,
}

impl<'a> Graph<'a> {
    pub fn new(
        timeline: &'a Timeline,
        steps: &Steps,
        chosen: &Chosen,
        queue: &FullQueue,
        process: ProcessIndex,
    ) -> Graph<'a> {
        let tracks = (0..timeline.tracks.len() as u32).map(TrackIndex);
        let tracks: Vec<TrackIndex> =
            tracks.filter(|track| timeline.tracks[track.0 as usize].process == process).collect();
        let mut graph = Graph {
            timeline,
            calls: Vec::new(),
            jobs: Vec::new(),
            steps: Vec::new(),
            tracks,
            events: Vec::new(),
            floors: Floors::default(),
        };
        graph.steps(steps, chosen);
        graph.calls(chosen);
        let (streams, devices) = graph.jobs(process, chosen);
        held::find(&mut graph, &streams, &devices);
        graph.order(&streams);
        waits::find(&mut graph, &streams, queue);
        graph.floors = Floors::measure(&graph);
        if follows::find(&mut graph, &streams) {
            graph.floors = Floors::measure(&graph);
        }
        graph
    }

    fn at(&self, time: u64) -> i64 {
        let since = i128::from(time) - i128::from(self.timeline.start);
        since.clamp(-LONGEST_NS, LONGEST_NS) as i64
    }

    fn steps(&mut self, steps: &Steps, chosen: &Chosen) {
        for step in steps.steps.iter().filter(|step| chosen.has_step(step)) {
            if let Ok(track) = self.tracks.binary_search(&step.track) {
                let (start, end) = (self.at(step.start), self.at(step.end));
                self.steps.push(StepNode { track: track as u32, start, end, measured: !step.warmup, last: 0 });
            }
        }
    }

    fn calls(&mut self, chosen: &Chosen) {
        let timeline = self.timeline;
        for place in 0..self.tracks.len() {
            let range = timeline.tracks[self.tracks[place].0 as usize].slices.clone();
            let mut last = i64::MIN;
            for index in inside(&timeline.slices.start, range, chosen).flatten() {
                if timeline.slices.kind(index) != SliceKind::ApiCall {
                    continue;
                }
                let slice = timeline.slices.get(index);
                let (begin, end) = (self.at(slice.start), self.at(slice.end()));
                if begin >= last {
                    let (slice, track, name) = (index as u32, place as u32, slice.name.0);
                    self.calls.push(Call { slice, track, name, begin, end, wait: 0, room: false, jobs: 0, step: 0 });
                    last = end;
                }
            }
        }
    }

    /// The place of a slice's call, or of the one around it. Calls lie in the order of their slices.
    pub fn call_of(&self, slice: usize) -> Option<usize> {
        let place = self.calls.partition_point(|call| call.slice as usize <= slice).checked_sub(1)?;
        let call = &self.calls[place];
        let track = &self.timeline.tracks[self.tracks[call.track as usize].0 as usize];
        let same = track.slices.contains(&slice) && self.at(self.timeline.slices.start[slice]) < call.end;
        (call.slice as usize == slice || same).then_some(place)
    }

    /// The jobs of each stream, in order, and its device, numbered.
    fn jobs(&mut self, process: ProcessIndex, chosen: &Chosen) -> (Vec<std::ops::Range<u32>>, Vec<u32>) {
        let (timeline, mut streams, mut devices) = (self.timeline, Vec::new(), Vec::new());
        let (mut number, mut last) = (0, None);
        for stream in timeline.gpu.streams.iter().filter(|stream| stream.process == process) {
            let first = self.jobs.len() as u32;
            // Streams lie by device.
            number += u32::from(last.replace(stream.device).is_some_and(|last| last != stream.device));
            devices.push(number);
            let linked = stream.work.clone().find(|work| timeline.gpu.work.launch(*work).is_some()).unwrap_or(0);
            for work in inside(&timeline.gpu.work.start, stream.work.clone(), chosen).flatten() {
                if matches!(timeline.gpu.work.kind(work), WorkKind::Sync | WorkKind::Migration) {
                    continue;
                }
                let call = timeline.gpu.work.launch(work).and_then(|slice| self.call_of(slice));
                let call = call.map_or(0, |call| call as u32 + 1);
                let (start, end) = (self.at(timeline.gpu.work.start[work]), self.at(timeline.gpu.work.end(work)));
                let here = self.jobs.len() as u32;
                let before = if here > first { here } else { 0 };
                self.jobs.push(Job {
                    work: work as u32,
                    call,
                    before,
                    after: 0,
                    start,
                    end,
                    earlier: work < linked,
                    held: 0,
                });
            }
            streams.push(first..self.jobs.len() as u32);
        }
        (streams, devices)
    }

    /// The events in an order in which everything comes after what it depends on, and which step is whose.
    fn order(&mut self, streams: &[std::ops::Range<u32>]) {
        let mut of_track: Vec<Vec<u32>> = vec![Vec::new(); self.tracks.len()];
        for (index, step) in self.steps.iter().enumerate() {
            of_track[step.track as usize].push(index as u32);
            self.events.push((step.start, What::StepBegin, index as u32));
            self.events.push((step.end.max(step.start + 1), What::StepEnd, index as u32));
        }
        // A thread without steps works for those of the thread that has most.
        let most = (0..of_track.len()).max_by_key(|track| of_track[*track].len()).unwrap_or(0);
        for (index, call) in self.calls.iter_mut().enumerate() {
            let steps = &of_track[call.track as usize];
            let steps = if steps.is_empty() { &of_track[most] } else { steps };
            let place = steps.partition_point(|step| self.steps[*step as usize].start <= call.begin);
            let step = place.checked_sub(1).map(|place| steps[place]);
            call.step = step.filter(|step| call.begin < self.steps[*step as usize].end).map_or(0, |step| step + 1);
            self.events.push((call.begin, What::CallBegin, index as u32));
            self.events.push((call.end.max(call.begin + 1), What::CallEnd, index as u32));
        }
        for stream in streams {
            let mut latest = i64::MIN;
            for index in stream.clone() {
                let job = self.jobs[index as usize];
                latest = latest.max(job.start);
                if let Some(call) = (job.call as usize).checked_sub(1) {
                    let call = &mut self.calls[call];
                    latest = latest.max(call.begin);
                    call.jobs += 1;
                }
                self.events.push((latest, What::Job, index));
            }
        }
        self.events.sort_unstable();
        self.lasts(|track| if of_track[track].is_empty() { most } else { track });
    }

    /// How far the devices were with the work of each step's thread when it ended.
    fn lasts(&mut self, home: impl Fn(usize) -> usize) {
        let mut last = vec![0u32; self.tracks.len()];
        for (_, what, index) in &self.events {
            match what {
                What::Job => {
                    let job = self.jobs[*index as usize];
                    let call = (job.call as usize).checked_sub(1);
                    let last = &mut last[home(call.map_or(0, |call| self.calls[call].track as usize))];
                    if (*last as usize).checked_sub(1).is_none_or(|last| self.jobs[last].end < job.end) {
                        *last = index + 1;
                    }
                }
                What::StepEnd => {
                    let step = &mut self.steps[*index as usize];
                    step.last = last[step.track as usize];
                }
                _ => {}
            }
        }
    }
}

/// Those of a range, sorted by start, that start in the chosen stretches.
fn inside<'a>(
    starts: &'a [u64],
    range: std::ops::Range<usize>,
    chosen: &'a Chosen,
) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
    chosen.ranges().iter().map(move |(from, to)| {
        let of = &starts[range.clone()];
        let end = if *to == u64::MAX { of.len() } else { of.partition_point(|start| start < to) };
        range.start + of.partition_point(|start| start < from)..range.start + end
    })
}
