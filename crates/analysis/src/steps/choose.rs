//! Which slices are the steps: those that the program or its engine marked, else the outermost scope that repeats, else the
//! outermost NVTX range that repeats, else the periods of what is launched, else the whole recording as one window. Two passes over
//! the slices, whatever their number.

use super::called::Called;
use super::{Step, StepSource, Steps, busiest, sequence};
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

/// Steps, scopes and NVTX ranges by their place in `called`.
type Candidates = [Vec<Candidate>; 3];
const SOURCES: [StepSource; 3] = [StepSource::Step, StepSource::Scope, StepSource::Nvtx];
/// The place of NVTX ranges among the candidates.
const NVTX: usize = 2;

pub fn choose(timeline: &Timeline, wanted: Option<&str>) -> Steps {
    // A name that is asked for with its number is that one.
    let exact = |wanted: &str| {
        (0..timeline.names.len() as u32).any(|name| timeline.names.text(timeline::NameIndex(name)) == wanted)
    };
    let numbered = !wanted.is_some_and(exact);
    let mut called = Called::new(timeline, numbered);
    let all = candidates(timeline, &mut called);
    let mut not_found = None;
    if let Some(wanted) = wanted {
        let why = format!("\"{wanted}\", as requested");
        let named =
            |place: usize| closed(&all[place]).map(|one| one.0).find(|label| called.labels[*label].text == wanted);
        if let Some((place, label)) = (0..SOURCES.len()).find_map(|place| Some((place, named(place)?))) {
            return slices(timeline, &mut called, &all, (place, label), why);
        }
        if let Some(found) =
            Some(wanted).filter(|wanted| *wanted == sequence::NAME).and_then(|_| sequence::find(timeline))
        {
            return periods(found, &why);
        }
        not_found = Some(wanted.to_owned());
    }
    let mut chosen = usual(timeline, &mut called, &all);
    if let Some(wanted) = &not_found {
        chosen.why = match wanted == sequence::NAME {
            true => format!("no kernel sequence repeats well enough; instead: {}", chosen.why),
            false => format!("no step or scope named \"{wanted}\"; instead: {}", chosen.why),
        };
    }
    chosen.not_found = not_found;
    chosen
}

/// What nobody asked for by name.
fn usual(timeline: &Timeline, called: &mut Called, all: &Candidates) -> Steps {
    let longest = |least: u64| {
        closed(&all[0]).filter(|(_, one)| one.count >= least).max_by_key(|(label, one)| (one.total, usize::MAX - label))
    };
    if let Some((label, _)) = longest(REPEATS).or_else(|| longest(1)) {
        let why = match closed(&all[0]).count() {
            1 if called.labels[label].is_step => "from the serving engine's markers".to_owned(),
            1 if timeline.info.recorder.is_empty() => "from `step()` markers".to_owned(),
            1 => "from the program's step markers".to_owned(),
            kinds => format!("of {kinds} kinds of steps, the one with the most time"),
        };
        return slices(timeline, called, all, (0, label), why);
    }
    for (place, what) in [(1, "scope"), (NVTX, "NVTX range")] {
        let fits = |(label, one): &(usize, &Candidate)| one.count >= REPEATS && !called.labels[*label].is_operator;
        let repeats = closed(&all[place]).filter(fits);
        if let Some((label, _)) = repeats.min_by_key(|(label, one)| (one.depth, u64::MAX - one.total, *label)) {
            let why = format!("no step markers; the outermost {what} that repeats");
            return slices(timeline, called, all, (place, label), why);
        }
    }
    match sequence::find(timeline) {
        Some(found) => periods(found, "no step markers, and no scope or range repeats"),
        None => whole(timeline),
    }
}

fn slices(
    timeline: &Timeline,
    called: &mut Called,
    all: &Candidates,
    (place, label): (usize, usize),
    why: String,
) -> Steps {
    Steps {
        name: called.labels[label].text.clone(),
        source: SOURCES[place],
        why,
        steps: collect(timeline, called, place, label as u32),
        unfinished: all[place][label].open,
        not_found: None,
        confidence: 1.0,
        apart: Vec::new(),
        thread: None,
        sorted: Vec::new(),
    }
}

fn periods(found: sequence::Found, why: &str) -> Steps {
    let (count, alike) = (found.steps.len() as u64, crate::phrase::percent(found.alike));
    let launches = crate::phrase::counted(found.launches as u64, "launch");
    let count = crate::phrase::count(count);
    Steps {
        name: "iteration".into(),
        source: StepSource::Sequence,
        why: format!(
            "{why}; a sequence of {launches} repeats {count} times, {alike} alike (confidence {:.2})",
            found.confidence
        ),
        steps: found.steps,
        unfinished: found.unfinished,
        not_found: None,
        confidence: found.confidence,
        apart: Vec::new(),
        thread: None,
        sorted: Vec::new(),
    }
}

fn closed(all: &[Candidate]) -> impl Iterator<Item = (usize, &Candidate)> {
    all.iter().enumerate().filter(|(_, one)| one.count > 0)
}

/// Where among the candidates a slice belongs, and its label.
fn place_of(timeline: &Timeline, called: &mut Called, index: usize) -> Option<(usize, u32)> {
    let slices = &timeline.slices;
    let place = match slices.kind(index) {
        SliceKind::Step => 0,
        SliceKind::Scope => 1,
        // A range of no length is a mark.
        SliceKind::Nvtx if slices.dur[index] > 0 => NVTX,
        _ => return None,
    };
    let label = called.of(timeline, timeline::NameIndex(slices.name[index]));
    let is_step = called.labels.get(label as usize)?.is_step;
    Some((if is_step { 0 } else { place }, label))
}

fn candidates(timeline: &Timeline, called: &mut Called) -> Candidates {
    let slices = &timeline.slices;
    let mut all = Candidates::default();
    let mut around: Vec<u64> = Vec::new();
    for track in &timeline.tracks {
        around.clear();
        for index in track.slices.clone() {
            let Some((place, label)) = place_of(timeline, called, index) else { continue };
            let slice = slices.get(index);
            while around.last().is_some_and(|end| *end <= slice.start) {
                around.pop();
            }
            // Tasks that interleave on one thread look nested by time; where ids were recorded they decide.
            let detail = slices.detail(index);
            let outermost = slice.kind != SliceKind::Nvtx && detail.id != 0 && detail.parent == 0;
            let depth = if outermost { 0 } else { around.len() as u32 };
            around.push(slice.end());
            if all[place].len() <= label as usize {
                all[place].resize(label as usize + 1, Candidate::default());
            }
            let one = &mut all[place][label as usize];
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

/// The finished slices of one label, without those inside another of the same (recursion).
fn collect(timeline: &Timeline, called: &mut Called, place: usize, label: u32) -> Vec<Step> {
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
            let Some(what) = place_of(timeline, called, index) else { continue };
            let (slice, wanted) = (slices.get(index), what == (place, label));
            if !wanted && slice.kind == SliceKind::Nvtx {
                continue;
            }
            // Ranges have no ids of ours.
            let detail = if slice.kind == SliceKind::Nvtx { Detail::default() } else { slices.detail(index) };
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
    let busiest = busiest::find(timeline).filter(|_| timeline.duration() > 0);
    let steps = busiest.iter().map(|busiest| Step {
        track: busiest.track,
        start: timeline.start,
        end: timeline.end,
        index: 0,
        warmup: false,
        outlier: false,
    });
    let repeats = match timeline.gpu.is_empty() {
        true => "no step, scope or range repeats three times",
        false => "no step, scope, range or kernel sequence repeats three times",
    };
    Steps {
        name: "recording".into(),
        source: StepSource::Whole,
        why: match &busiest {
            Some(busiest) => format!("{repeats}; analysed: the whole recording of {}", busiest.said),
            None => "no timed events recorded".into(),
        },
        steps: steps.collect(),
        unfinished: 0,
        not_found: None,
        confidence: 1.0,
        apart: Vec::new(),
        thread: busiest.map(|busiest| busiest.said),
        sorted: Vec::new(),
    }
}
