//! What the devices did in a step, on average over the steps that count: copies, kernels, and the gaps before the first and
//! after the last work. How busy they were is in the analysis already.

use analysis::StepSource;
use analysis::device::gpu::DeviceMetrics;
use diagnosis::Diagnosis;
use timeline::gpu::{Stream, detail};
use timeline::{ProcessIndex, Timeline, WorkKind};

/// Of one device. Times are the mean of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InSteps {
    pub steps: u64,
    pub window_ns: u64,
    pub busy_ns: u64,
    pub h2d_ns: u64,
    pub d2h_ns: u64,
    /// From the first work of a step to its last, over the steps that have any.
    pub span_ns: u64,
    pub leading_ns: u64,
    pub trailing_ns: u64,
    /// In all steps together.
    pub kernels: u64,
    pub unlinked: u64,
}

pub fn of(timeline: &Timeline, diagnosis: &Diagnosis, device: &DeviceMetrics) -> InSteps {
    let spans = steps(timeline, diagnosis, device.process);
    let own = |stream: &&Stream| stream.process == device.process && stream.device == device.ordinal;
    let mut sum = InSteps { steps: spans.len() as u64, ..InSteps::default() };
    // First start and last end of work in each step.
    let mut ends: Vec<Option<(u64, u64)>> = vec![None; spans.len()];
    let (work, mut near) = (&timeline.gpu.work, 0);
    for index in timeline.gpu.streams.iter().filter(own).flat_map(|stream| stream.work.clone()) {
        let (start, end, kind) = (work.start[index], work.end(index), work.kind(index));
        if !kind.is_busy() {
            continue;
        }
        let (from, to) = touched(&spans, start, end, &mut near);
        if from == to {
            continue;
        }
        sum.unlinked += u64::from(work.launch(index).is_none());
        sum.kernels += u64::from(kind == WorkKind::Kernel);
        for ((first, last), seen) in spans[from..to].iter().zip(&mut ends[from..to]) {
            let (start, end) = (start.max(*first), end.min(*last));
            *seen = Some(seen.map_or((start, end), |seen| (seen.0.min(start), seen.1.max(end))));
            if kind == WorkKind::Memcpy {
                match work.get(index).copy().direction {
                    detail::H2D => sum.h2d_ns = sum.h2d_ns.saturating_add(end - start),
                    detail::D2H => sum.d2h_ns = sum.d2h_ns.saturating_add(end - start),
                    _ => {}
                }
            }
        }
    }
    for ((start, end), (first, last)) in spans.iter().zip(&ends).filter_map(|(span, ends)| Some((span, (*ends)?))) {
        sum.span_ns = sum.span_ns.saturating_add(last - first);
        sum.leading_ns = sum.leading_ns.saturating_add(first - start);
        sum.trailing_ns = sum.trailing_ns.saturating_add(end - last);
    }
    let with_work = ends.iter().flatten().count().max(1) as u64;
    let all = sum.steps.max(1);
    InSteps {
        window_ns: device.window_ns / all,
        busy_ns: device.busy_ns / all,
        h2d_ns: sum.h2d_ns / all,
        d2h_ns: sum.d2h_ns / all,
        span_ns: sum.span_ns / with_work,
        leading_ns: sum.leading_ns / with_work,
        trailing_ns: sum.trailing_ns / with_work,
        ..sum
    }
}

/// How many steps the times of a process's devices are shared out over: what all reports mean by "of a step".
pub fn count(timeline: &Timeline, diagnosis: &Diagnosis, process: ProcessIndex) -> u64 {
    steps(timeline, diagnosis, process).len().max(1) as u64
}

/// The steps of the device's own process; where it has none, of all; where there are none at all, the recording.
fn steps(timeline: &Timeline, diagnosis: &Diagnosis, process: ProcessIndex) -> Vec<(u64, u64)> {
    let steps = || diagnosis.steps.measured().filter(|step| step.end > step.start);
    let own = |track: timeline::TrackIndex| timeline.tracks[track.0 as usize].process == process;
    let span = |step: &analysis::Step| (step.start, step.end);
    let mut spans: Vec<(u64, u64)> = match diagnosis.steps.source {
        StepSource::Whole => Vec::new(),
        _ => steps().filter(|step| own(step.track)).map(span).collect(),
    };
    if spans.is_empty() && diagnosis.steps.source != StepSource::Whole {
        spans = steps().map(span).collect();
    }
    if spans.is_empty() {
        spans.push((timeline.start, timeline.end));
    }
    spans.sort_unstable();
    spans
}

/// Which of the spans a piece of work lies in, at least in part. Where spans overlap, those between are taken to be touched. `near`
/// is where the last piece was: mostly the next is there too.
fn touched(spans: &[(u64, u64)], start: u64, end: u64, near: &mut usize) -> (usize, usize) {
    let begun = |place: usize| spans[place].0 < end;
    let fits = |to: usize| (to == 0 || begun(to - 1)) && (to == spans.len() || !begun(to));
    let to = [*near, *near + 1].into_iter().filter(|to| *to <= spans.len()).find(|to| fits(*to));
    let to = to.unwrap_or_else(|| spans.partition_point(|span| span.0 < end));
    *near = to;
    let from = spans[..to].iter().rposition(|span| span.1 <= start).map_or(0, |place| place + 1);
    (from, to)
}
