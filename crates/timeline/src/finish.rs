//! How every [`Timeline`] is finished, whichever reader gathered its rows: sorted, on its span of time, with codes where old files have
//! sentences, with the work of devices linked to the calls that asked for it, and with notes of what did not fit.

use crate::gpu::{Gather, MOST_STREAMS};
use crate::names::Texts;
use crate::parallel;
use crate::{Counter, Gpu, Note, ProcessIndex, Samples, Slices, Timeline, Track, before_codes, link, segments, sort};

/// The rows of a timeline, in the order in which a reader met them.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// Its columns of slices, samples and counters are not sorted yet; its tracks are in their final order. Where its end is 0, start and
    /// end are taken from the events.
    pub timeline: Timeline,
    /// The arguments of slices.
    pub texts: Texts,
    /// The track of each slice and of each sample.
    pub slice_track: Vec<u32>,
    pub sample_track: Vec<u32>,
    pub work: Gather,
    pub order: RowOrder,
    /// How long the recording says it lasted. Times count from its start where they fit into that; else they are some other clock's.
    pub duration: Option<u64>,
    /// The file is from before there were codes.
    pub before_codes: bool,
    /// What the reader has to say, after what the recording says itself.
    pub notes: Vec<String>,
}

/// Which of two slices that start and end together is the outer one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RowOrder {
    /// The later row: a recorder writes a slice when it ends.
    #[default]
    InnerFirst,
    /// The earlier row: other tools write what begins first.
    OuterFirst,
}

pub(crate) fn finish(rows: Rows) -> Timeline {
    let Rows { mut timeline, texts, mut slice_track, mut sample_track, work, order, duration, before_codes, notes } =
        rows;
    if order == RowOrder::OuterFirst {
        reverse(&mut timeline, &mut slice_track, &mut sample_track);
    }
    let beyond = beyond(&work);
    let size = timeline.slices.len() + work.len();
    let mut gpu = Gpu::default();
    parallel::run(size, vec![Box::new(|| gpu = work.finish())], || {
        timeline.slices.args = texts.all;
        sort_slices(&mut timeline.slices, &mut timeline.tracks, slice_track);
    });
    sort_samples(&mut timeline.samples, &mut timeline.tracks, sample_track);
    timeline.counters.iter_mut().for_each(sort_counter);
    let (devices, mut allocations) = (timeline.gpu.devices, timeline.gpu.allocations);
    allocations.sort_by_key(|allocation| allocation.time);
    timeline.gpu = Gpu { devices, allocations, ..gpu };
    timeline.memory.events.sort_by_key(|event| event.time);
    timeline.memory.states.sort_by_key(|state| state.time);
    segments::add(&mut timeline.memory, &timeline.gpu.allocations);
    add_unknown_threads(&mut timeline);
    set_span(&mut timeline, duration);
    // What no moment is known of is said of the whole.
    let start = timeline.start;
    timeline.losses.iter_mut().filter(|loss| loss.time == 0).for_each(|loss| loss.time = start);
    if before_codes {
        before_codes::slices(&mut timeline);
    }
    timeline.names.finish();
    timeline.slices.shrink();
    timeline.notes.extend(notes.into_iter().chain(beyond).map(Note::sentence));
    link::link(&mut timeline);
    timeline
}

/// Of rows that are equal the sort takes the last as the outer one.
fn reverse(timeline: &mut Timeline, slice_track: &mut [u32], sample_track: &mut [u32]) {
    let slices = &mut timeline.slices;
    slices.start.reverse();
    slices.dur.reverse();
    slices.name.reverse();
    slices.kind.reverse();
    slices.id.reverse();
    slices.detail.reverse();
    slice_track.reverse();
    let samples = &mut timeline.samples;
    samples.time.reverse();
    samples.stack.reverse();
    samples.state.reverse();
    sample_track.reverse();
}

fn sort_slices(slices: &mut Slices, tracks: &mut [Track], track: Vec<u32>) {
    let sorted = sort::by_track(&track, &slices.start, |index| slices.dur[index], tracks.len());
    drop(track);
    tracks.iter_mut().zip(sorted.ranges).for_each(|(track, range)| track.slices = range);
    if let Some(order) = sorted.order {
        slices.reorder(&order);
    }
}

fn sort_samples(samples: &mut Samples, tracks: &mut [Track], track: Vec<u32>) {
    let sorted = sort::by_track(&track, &samples.time, |_| 0, tracks.len());
    tracks.iter_mut().zip(sorted.ranges).for_each(|(track, range)| track.samples = range);
    if let Some(order) = sorted.order {
        sort::gather(&mut samples.time, &order);
        sort::gather(&mut samples.stack, &order);
        sort::gather(&mut samples.state, &order);
    }
}

fn sort_counter(counter: &mut Counter) {
    if !counter.time.is_sorted() {
        let mut order: Vec<u32> = (0..counter.time.len() as u32).collect();
        order.sort_by_key(|index| counter.time[*index as usize]);
        sort::gather(&mut counter.time, &order);
        sort::gather(&mut counter.value, &order);
    }
}

/// What the one thread of a process is called of which only work of devices was recorded.
const NO_THREAD: &str = "(no thread recorded)";

/// A file of devices alone: its processes had threads, and nothing is known of them.
fn add_unknown_threads(timeline: &mut Timeline) {
    if timeline.tracks.is_empty() {
        let mut processes: Vec<ProcessIndex> = timeline.gpu.streams.iter().map(|stream| stream.process).collect();
        processes.dedup();
        let unknown = |process| Track { process, tid: 0, name: NO_THREAD.into(), slices: 0..0, samples: 0..0 };
        timeline.tracks = processes.into_iter().map(unknown).collect();
    }
}

fn set_span(timeline: &mut Timeline, duration: Option<u64>) {
    if timeline.end == 0
        && let Some(span) = events_span(timeline)
    {
        (timeline.start, timeline.end) = span;
    }
    if let Some(duration) = duration.filter(|duration| *duration >= timeline.end) {
        (timeline.start, timeline.end) = (0, duration);
    }
}

/// When the first event begins and the last one ends.
fn events_span(timeline: &Timeline) -> Option<(u64, u64)> {
    let ends = timeline.slices.start.iter().zip(&timeline.slices.dur).map(|(start, dur)| start.saturating_add(*dur));
    let counted = || timeline.counters.iter().flat_map(|counter| counter.time.iter().copied());
    let sampled = || timeline.samples.time.iter().copied();
    let work = &timeline.gpu.work;
    let worked = (0..work.len()).map(|index| work.end(index));
    let blocks = || timeline.memory.events.iter().map(|event| event.time);
    let states = || timeline.memory.states.iter().map(|state| state.time);
    let driver = || timeline.gpu.allocations.iter().map(|allocation| allocation.time);
    let allocated = || driver().chain(blocks()).chain(states());
    let starts = timeline.slices.start.iter().chain(&work.start).copied();
    let first = starts.chain(sampled()).chain(counted()).chain(allocated()).min()?;
    let last = ends.chain(worked).chain(sampled()).chain(counted()).chain(allocated()).max()?;
    Some((first, last))
}

/// Work of more streams or devices than a timeline shows.
fn beyond(work: &Gather) -> Vec<String> {
    let shared = (work.shared > 0).then(|| {
        format!("{} GPU operations are in streams beyond the first {MOST_STREAMS}: they share one track.", work.shared)
    });
    let refused = (work.refused > 0)
        .then(|| format!("{} GPU operations are left out: they are of more devices than a machine has.", work.refused));
    shared.into_iter().chain(refused).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, LossReason, Process, SliceExtra, SliceKind};

    /// Two slices that start and end together, and a loss without a moment.
    fn rows(order: RowOrder, duration: Option<u64>) -> Rows {
        let mut builder = Builder::default();
        let process = builder.process(Process::default());
        let track = builder.track(process, 1, "main");
        for name in ["first", "second"] {
            let name = builder.name(name, "", 0);
            builder.slice(track, SliceKind::Call, name, 5, 10, SliceExtra::default());
        }
        builder.loss(None, "reader", LossReason::Unknown, 1);
        Rows { order, duration, notes: vec!["said".into()], ..builder.into_rows() }
    }

    #[test]
    fn the_outer_one_of_equal_slices_follows_from_the_order_of_the_rows() {
        for (order, outer) in [(RowOrder::InnerFirst, "second"), (RowOrder::OuterFirst, "first")] {
            let timeline = finish(rows(order, None));
            assert_eq!(timeline.names.text(timeline.slices.get(0).name), outer);
        }
    }

    #[test]
    fn a_duration_counts_where_the_events_fit_into_it() {
        let of = |duration| {
            let timeline = finish(rows(RowOrder::default(), duration));
            (timeline.start, timeline.end, timeline.losses[0].time, timeline.notes_said())
        };
        let said = vec!["said".to_owned()];
        assert_eq!(of(None), (5, 15, 5, said.clone()));
        assert_eq!(of(Some(14)), (5, 15, 5, said.clone()));
        assert_eq!(of(Some(20)), (0, 20, 0, said));
    }
}
