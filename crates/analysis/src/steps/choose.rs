//! Which slices are the steps: those that the program marked, else the outermost scope that repeats, else the outermost NVTX
//! range that repeats, else the whole recording as one window. Two passes over the slices, whatever their number.

use super::{Step, StepSource, Steps};
use timeline::{Detail, ProcessIndex, SliceKind, Timeline, TrackIndex};

/// Fewer of a kind are not a rhythm.
const REPEATS: u64 = 3;

#[derive(Clone, Copy, Default)]
struct Candidate {
    count: u64,
    open: u64,
    total: u64,
    /// Scopes around the outermost of them.
    depth: u32,
}

pub fn choose(timeline: &Timeline, wanted: Option<&str>) -> Steps {
    let [steps, scopes, ranges] = candidates(timeline);
    let found = |kind, source, (name, candidate): (u32, &Candidate), why: String| Steps {
        name: timeline.names.text(timeline::NameIndex(name)).to_owned(),
        source,
        why,
        steps: collect(timeline, kind, name),
        unfinished: candidate.open,
        not_found: None,
        sorted: Vec::new(),
    };
    let mut not_found = None;
    if let Some(wanted) = wanted {
        let named = |all: &[Candidate]| {
            closed(all).find(|(name, _)| timeline.names.text(timeline::NameIndex(*name)) == wanted).map(|found| found.0)
        };
        for (all, kind, source) in [
            (&steps, SliceKind::Step, StepSource::Step),
            (&scopes, SliceKind::Scope, StepSource::Scope),
            (&ranges, SliceKind::Nvtx, StepSource::Nvtx),
        ] {
            if let Some(name) = named(all) {
                return found(kind, source, (name, &all[name as usize]), format!("\"{wanted}\" was asked for"));
            }
        }
        not_found = Some(wanted.to_owned());
    }
    let longest =
        |least: u64| closed(&steps).filter(|(_, one)| one.count >= least).max_by_key(|(name, one)| (one.total, !name));
    fn outermost(all: &[Candidate]) -> Option<(u32, &Candidate)> {
        let repeats = closed(all).filter(|(_, one)| one.count >= REPEATS);
        repeats.min_by_key(|(name, one)| (one.depth, u64::MAX - one.total, *name))
    }
    let mut chosen = if let Some(step) = longest(REPEATS).or_else(|| longest(1)) {
        let others = closed(&steps).count() - 1;
        let why = match others {
            0 => "the program marks them as steps".to_owned(),
            _ => format!("of {} kinds of steps, these take the most time", others + 1),
        };
        found(SliceKind::Step, StepSource::Step, step, why)
    } else if let Some(scope) = outermost(&scopes) {
        let why = "the program marks no steps; this is the outermost scope that repeats".to_owned();
        found(SliceKind::Scope, StepSource::Scope, scope, why)
    } else if let Some(range) = outermost(&ranges) {
        let why = "the program marks no steps; this is the outermost NVTX range that repeats".to_owned();
        found(SliceKind::Nvtx, StepSource::Nvtx, range, why)
    } else {
        whole(timeline)
    };
    if let Some(wanted) = &not_found {
        chosen.why = format!("no step or scope is called \"{wanted}\"; instead: {}", chosen.why);
    }
    chosen.not_found = not_found;
    chosen
}

fn closed(all: &[Candidate]) -> impl Iterator<Item = (u32, &Candidate)> {
    all.iter().enumerate().filter(|(_, one)| one.count > 0).map(|(name, one)| (name as u32, one))
}

/// The place of NVTX ranges among the candidates.
const NVTX: usize = 2;

/// Steps, scopes and NVTX ranges by name.
fn candidates(timeline: &Timeline) -> [Vec<Candidate>; 3] {
    let slices = &timeline.slices;
    let mut all = [(); 3].map(|()| vec![Candidate::default(); timeline.names.len()]);
    let mut around: Vec<u64> = Vec::new();
    for track in &timeline.tracks {
        around.clear();
        for index in track.slices.clone() {
            let place = match slices.kind(index) {
                SliceKind::Step => 0,
                SliceKind::Scope => 1,
                // A range of no length is a mark.
                SliceKind::Nvtx if slices.dur[index] > 0 => NVTX,
                _ => continue,
            };
            let slice = slices.get(index);
            while around.last().is_some_and(|end| *end <= slice.start) {
                around.pop();
            }
            // Tasks that interleave on one thread look nested by time; where ids were recorded they decide.
            let detail = slices.detail(index);
            let outermost = place != NVTX && detail.id != 0 && detail.parent == 0;
            let depth = if outermost { 0 } else { around.len() as u32 };
            around.push(slice.end());
            let Some(one) = all[place].get_mut(slice.name.0 as usize) else { continue };
            one.depth = if one.count + one.open == 0 { depth } else { one.depth.min(depth) };
            if slice.open {
                one.open += 1;
            } else {
                one.count += 1;
                one.total = one.total.saturating_add(slice.dur);
            }
        }
    }
    all
}

/// The finished slices of one name, without those inside another of the same name (recursion).
fn collect(timeline: &Timeline, kind: SliceKind, name: u32) -> Vec<Step> {
    let slices = &timeline.slices;
    let mut inside = Ids::default();
    let mut process = ProcessIndex(u32::MAX);
    let mut steps = Vec::new();
    for (number, track) in timeline.tracks.iter().enumerate() {
        if track.process != process {
            process = track.process;
            inside = Ids { most: 64 * slices.len() as u64 + 1024, ..Ids::default() };
        }
        let mut last_end = 0;
        for index in track.slices.clone() {
            let slice = slices.get(index);
            if !matches!(slice.kind, SliceKind::Step | SliceKind::Scope) && slice.kind != kind {
                continue;
            }
            // Ranges have no ids of ours.
            let detail = if slice.kind == SliceKind::Nvtx { Detail::default() } else { slices.detail(index) };
            let wanted = slice.kind == kind && slice.name.0 == name && (kind != SliceKind::Nvtx || slice.dur > 0);
            let nested = match detail.id {
                0 => slice.start < last_end && slice.end() <= last_end,
                _ => inside.has(detail.parent),
            };
            if detail.id != 0 && (wanted || nested) {
                inside.put(detail.id);
            }
            if wanted && !nested && !slice.open {
                last_end = last_end.max(slice.end());
                let track = TrackIndex(number as u32);
                steps.push(Step {
                    track,
                    start: slice.start,
                    end: slice.end(),
                    index: 0,
                    warmup: false,
                    outlier: false,
                });
            }
        }
    }
    steps
}

/// A set of ids: one bit each, as the recorder gives them out in sequence. An absurd one is not kept.
#[derive(Default)]
struct Ids {
    bits: Vec<u64>,
    most: u64,
}

impl Ids {
    fn has(&self, id: u32) -> bool {
        self.bits.get(id as usize / 64).is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    fn put(&mut self, id: u32) {
        if u64::from(id) < self.most {
            let word = id as usize / 64;
            if word >= self.bits.len() {
                self.bits.resize(word + 1, 0);
            }
            self.bits[word] |= 1 << (id % 64);
        }
    }
}

/// One window on the busiest thread.
fn whole(timeline: &Timeline) -> Steps {
    let active = |range: std::ops::Range<usize>| range.filter(|index| timeline.samples.get(*index).active).count();
    let busiest = timeline.tracks.iter().enumerate().max_by_key(|(number, track)| {
        (active(track.samples.clone()), track.samples.len(), track.slices.len(), usize::MAX - number)
    });
    let steps = busiest.filter(|_| timeline.duration() > 0).map(|(number, _)| Step {
        track: TrackIndex(number as u32),
        start: timeline.start,
        end: timeline.end,
        index: 0,
        warmup: false,
        outlier: false,
    });
    let why = match steps {
        Some(_) => "nothing marked in the program repeats; this is the whole recording of its busiest thread",
        None => "nothing was recorded that takes time",
    };
    Steps {
        name: "recording".into(),
        source: StepSource::Whole,
        why: why.into(),
        steps: steps.into_iter().collect(),
        unfinished: 0,
        not_found: None,
        sorted: Vec::new(),
    }
}
