//! What could be the steps: slices of one label that were marked, ranges, and calls into entry points with the turns of the loop around
//! them. Two passes over the slices, whatever their number: one counts, one measures the few that hold the most time.

use super::StepSource;
use super::called::Called;
use super::evidence::{Evidence, Near};
use super::score::Measured;
use super::turns::Turns;
use timeline::{SliceKind, Timeline, TrackIndex};

/// Fewer of a kind are not a rhythm.
pub const REPEATS: u64 = 3;
/// So many of each place are measured, those that hold the most time: what is left out holds less than an eighth.
const MEASURED: usize = 8;

/// Of so many that are open at once on a thread it is known that others lie in them. Nobody nests deeper; who overlaps more often is
/// not nested at all.
const DEEPEST: usize = 16;

/// Where a candidate comes from; their order is that of [`Place::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Step,
    Scope,
    Nvtx,
    Entry,
}

impl Place {
    pub const ALL: [Place; 4] = [Place::Step, Place::Scope, Place::Nvtx, Place::Entry];

    pub fn source(self) -> StepSource {
        match self {
            Place::Step => StepSource::Step,
            Place::Scope => StepSource::Scope,
            Place::Nvtx => StepSource::Nvtx,
            Place::Entry => StepSource::Entry,
        }
    }
}

#[derive(Clone, Copy, Default)]
pub struct Counted {
    pub count: u64,
    pub open: u64,
    total: u64,
}

/// By place, then by label.
pub type Counts = [Vec<Counted>; 4];

pub struct Candidate {
    pub place: Place,
    pub label: u32,
    pub measured: Measured,
    /// Of entries: the turns of the loop around them.
    pub turns: Option<Turns>,
}

/// Whether an entry of this name is a call of a request handler, and not of a model.
pub fn is_request(name: &str) -> bool {
    name.split(' ').next() == Some("request")
}

/// Where among the candidates a slice belongs, and its label.
pub fn place_of(timeline: &Timeline, called: &mut Called, index: usize) -> Option<(Place, u32)> {
    let slices = &timeline.slices;
    let place = match slices.kind(index) {
        SliceKind::Step => Place::Step,
        SliceKind::Scope => Place::Scope,
        // A range of no length is a mark.
        SliceKind::Nvtx if slices.dur[index] > 0 => Place::Nvtx,
        SliceKind::Entry => Place::Entry,
        _ => return None,
    };
    let label = called.of(timeline, index);
    let is_step = called.labels.get(label as usize)?.is_step;
    Some((if is_step { Place::Step } else { place }, label))
}

pub fn count(timeline: &Timeline, called: &mut Called) -> Counts {
    let mut all = Counts::default();
    for index in timeline.tracks.iter().flat_map(|track| track.slices.clone()) {
        let Some((place, label)) = place_of(timeline, called, index) else { continue };
        let list = &mut all[place as usize];
        if list.len() <= label as usize {
            list.resize(label as usize + 1, Counted::default());
        }
        let (one, slice) = (&mut list[label as usize], timeline.slices.get(index));
        if slice.open {
            one.open += 1;
        } else {
            one.count += 1;
            one.total = one.total.saturating_add(slice.dur);
        }
    }
    all
}

/// Those worth measuring. A step that was marked is one even if it comes once.
fn chosen(called: &Called, counts: &Counts) -> Vec<Candidate> {
    let mut all = Vec::new();
    for place in Place::ALL {
        let least = if place == Place::Step { 1 } else { REPEATS };
        let fits = |(label, one): &(usize, &Counted)| {
            one.count >= least && (place == Place::Step || !called.labels[*label].is_library)
        };
        let mut here: Vec<(usize, &Counted)> = counts[place as usize].iter().enumerate().filter(fits).collect();
        here.sort_by_key(|(label, one)| (u64::MAX - one.total, *label));
        // An entry's name is its kind, a space, and what was called.
        let is_request = |label: usize| is_request(&called.labels[label].text);
        all.extend(here.into_iter().take(MEASURED).map(|(label, _)| Candidate {
            place,
            label: label as u32,
            measured: Measured::default(),
            // From one request to the next is as long as nobody asks.
            turns: (place == Place::Entry && !is_request(label)).then(Turns::default),
        }));
    }
    all
}

/// From where on a thread has candidates, to where it was last seen.
pub type Steady = Vec<Option<(u64, u64)>>;

pub fn measure(
    timeline: &Timeline,
    called: &mut Called,
    counts: &Counts,
    evidence: &Evidence,
) -> (Vec<Candidate>, Steady) {
    let mut all = chosen(called, counts);
    let mut steady: Steady = vec![None; timeline.tracks.len()];
    if all.is_empty() {
        return (all, steady);
    }
    let mut numbers: [Vec<u8>; 4] = counts.each_ref().map(|list| vec![u8::MAX; list.len()]);
    for (number, one) in all.iter().enumerate() {
        numbers[one.place as usize][one.label as usize] = number as u8;
    }
    let mut near = vec![Near::default(); all.len()];
    for (number, track) in timeline.tracks.iter().enumerate() {
        let track_index = TrackIndex(number as u32);
        let mut ends = vec![None; all.len()];
        let mut around: Vec<(u64, u8)> = Vec::new();
        let mut last = last_seen(timeline, number);
        for index in track.slices.clone() {
            let Some((place, label)) = place_of(timeline, called, index) else { continue };
            let number = numbers[place as usize][label as usize];
            let slice = timeline.slices.get(index);
            if number == u8::MAX || slice.open {
                continue;
            }
            let (start, end) = (slice.start, slice.end());
            // Tasks that interleave on one thread look nested by time; where ids were recorded they decide.
            let detail = timeline.slices.detail(index);
            let outermost = slice.kind != SliceKind::Nvtx && detail.id != 0 && detail.parent == 0;
            let holds = |other: &&(u64, u8)| !outermost && other.0 >= end;
            if around.iter().filter(holds).any(|other| other.1 == number) {
                continue;
            }
            steady[track_index.0 as usize].get_or_insert((start, end));
            last = last.max(end);
            let nested = around.iter().any(|other| holds(&other));
            around.retain(|other| other.0 > start);
            if around.len() < DEEPEST {
                around.push((end, number));
            }
            let place = number as usize;
            let seen: &mut Option<u64> = &mut ends[place];
            let new = start.max(seen.unwrap_or(0)).min(end);
            let inside = evidence.inside(&mut near[place], track_index, new, end);
            *seen = Some(seen.unwrap_or(0).max(end));
            all[place].measured.add(slice.dur, end - new, inside);
            all[place].measured.nested += u64::from(nested);
            if slice.kind == SliceKind::Entry {
                for (other, one) in all.iter_mut().enumerate() {
                    let Some(turns) = &mut one.turns else { continue };
                    match other == place {
                        true => turns.begin(evidence, track_index, (start, end), nested),
                        false => turns.cross(),
                    }
                }
            }
        }
        let Some((from, to)) = &mut steady[number] else { continue };
        *to = last.max(*from);
        let thread = evidence.inside(&mut Near::default(), track_index, *from, to.saturating_add(1));
        for (one, _) in all.iter_mut().zip(&ends).filter(|(_, end)| end.is_some()) {
            one.measured.thread_time = one.measured.thread_time.saturating_add(*to - *from);
            one.measured.thread_active += thread.active;
            one.turns.iter_mut().for_each(Turns::leave);
        }
    }
    for one in &mut all {
        one.measured.kernels = evidence.kernels();
        let threads = one.measured.clone();
        one.turns.iter_mut().for_each(|turns| turns.finish(&threads));
    }
    (all, steady)
}

/// The last that is known of a thread, candidates aside: slices are in order of their starts.
pub fn last_seen(timeline: &Timeline, track: usize) -> u64 {
    let track = &timeline.tracks[track];
    let slice = track.slices.clone().next_back().map(|last| timeline.slices.start[last]);
    let sample = track.samples.clone().next_back().map(|last| timeline.samples.time[last]);
    slice.max(sample).unwrap_or(0)
}
