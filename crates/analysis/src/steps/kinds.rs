//! Other kinds of steps beside the chosen one: prefill beside decode, evaluation beside training. They are in no figure of the chosen
//! kind, and said.

use super::choose::Search;
use super::reading::Reading;
use super::spans::Spans;
use super::{Step, StepKind};
use crate::stats::percentile;
use std::collections::HashMap;
use timeline::ProcessIndex;

/// Less than a twentieth of what was recorded changes no figure that a reader would act on.
const NOTABLE: f64 = 0.05;
/// More kinds than a reader compares.
const MOST_KINDS: usize = 4;

/// Those of the same source that hold a notable share and lie mostly outside of the chosen ones, with their places.
pub fn others(search: &mut Search, all: &[Reading], place: usize, chosen: &[Step]) -> Vec<(usize, StepKind)> {
    let fits = |(other, one): &(usize, &Reading)| {
        *other != place && one.source == all[place].source && one.measured.share() >= NOTABLE
    };
    let mut kinds: Vec<(usize, &Reading)> = all.iter().enumerate().filter(fits).collect();
    if kinds.is_empty() {
        return Vec::new();
    }
    kinds.sort_by(|a, b| b.1.measured.share().total_cmp(&a.1.measured.share()));
    kinds.truncate(MOST_KINDS);
    // By process: what another program does meanwhile is no part of these steps.
    let process = |step: &Step| search.timeline.tracks[step.track.0 as usize].process;
    let mut by_process: HashMap<ProcessIndex, Vec<(u64, u64)>> = HashMap::new();
    chosen.iter().for_each(|step| by_process.entry(process(step)).or_default().push((step.start, step.end)));
    let inside: HashMap<ProcessIndex, Spans> =
        by_process.into_iter().map(|(process, spans)| (process, Spans::union(spans))).collect();
    let mut found = Vec::new();
    for (other, one) in kinds {
        let steps = search.collect(one);
        let time: u64 = steps.iter().map(Step::dur).fold(0, u64::saturating_add);
        let timeline = search.timeline;
        let in_chosen = |step: &Step| {
            let spans = inside.get(&timeline.tracks[step.track.0 as usize].process);
            spans.map_or(0, |spans| spans.overlap(step.start, step.end))
        };
        let shared: u64 = steps.iter().map(in_chosen).fold(0, u64::saturating_add);
        if shared > time / 2 {
            continue;
        }
        let mut times: Vec<u64> = steps.iter().map(Step::dur).collect();
        times.sort_unstable();
        let (count, p50_ns) = (steps.len() as u64, percentile(&times, 50));
        found.push((other, StepKind { name: one.name.clone(), count, share: one.measured.share(), p50_ns }));
    }
    found
}
