//! The period of a sequence of launches: a launch that comes once in each, such that what lies between two of them is always
//! much the same. Every candidate is tried on a stretch of fixed length, so the cost is linear in the launches.
//!
//! A model is layers that repeat inside steps that repeat. What tells a step from a layer is the host: in a step it waits for its
//! result at least once and then prepares the next, between two layers it goes on launching.

use crate::stats::median;
use std::collections::HashMap;

/// One launch of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The same for the same kernel, copy or graph.
    pub id: u32,
    /// Of the call that launches.
    pub start: u64,
    pub end: u64,
    pub slice: u32,
    /// How long the thread had waited for devices before.
    pub waited: u64,
    /// How many pieces of work it asked for: a graph counts as what is in it.
    pub weight: u32,
}

#[derive(Debug)]
pub struct Period {
    /// Places of the first launch of each.
    pub starts: Vec<usize>,
    /// Launches of the usual one.
    pub length: usize,
    pub alike: f64,
    pub confidence: f64,
}

/// Fewer launches have no rhythm.
pub const FEWEST: usize = 6;
/// Fewer periods are a coincidence.
const REPEATS: usize = 3;
/// Candidates are tried on so many launches from the middle.
const TRIED: usize = 50_000;
/// So many candidates are tried: those with the most time before them, and the rarest.
const CANDIDATES: usize = 24;
/// What lies between two starts is the same by so much, on average, and covers so much of the sequence.
const ALIKE: f64 = 0.75;
const COVERED: f64 = 0.3;
/// A piece that is less alike ends a run of periods, unless more of them follow than it is long.
const RUN: f64 = 0.5;
/// In so many of the periods the host waits for the device: then they are steps, and not parts of one.
const WAITING: f64 = 0.8;
/// Pauses before a start of so much of the longest are of the same kind.
const SAME_PAUSE: f64 = 0.4;
/// Where the host never waits, only a sequence without any other structure is one of steps: it is all of it, each time the same.
const STRICT: f64 = 0.95;

/// Set in a mark that is known by the host's wait before it.
const AFTER_WAIT: u64 = 1 << 63;
/// A sequence of so few launches that repeats by itself may be a layer.
const MOST_OF_A_LAYER: usize = 5;

struct Tried {
    mark: u64,
    /// Places of the first and the last start.
    first: usize,
    last: usize,
    count: usize,
    length: usize,
    alike: f64,
    least_alike: f64,
    covered: f64,
    /// The part of the periods in which the host waits.
    waiting: f64,
    /// The median pause before a start.
    pause: u64,
}

pub fn find(tokens: &[Token]) -> Option<Period> {
    let skipped = tokens.len().saturating_sub(TRIED) / 2;
    let stretch = &tokens[skipped..tokens.len().min(skipped + TRIED)];
    if stretch.len() < FEWEST {
        return None;
    }
    let tried: Vec<Tried> = candidates(stretch).into_iter().filter_map(|mark| attempt(stretch, mark)).collect();
    let strict = |one: &&Tried| one.least_alike >= STRICT && one.covered >= STRICT && one.count > REPEATS;
    let plain = |one: &&Tried| one.mark & AFTER_WAIT == 0;
    let repeated = || tried.iter().filter(plain).filter(strict).max_by_key(|one| one.count);
    let by_waits = |kind: &dyn Fn(&&Tried) -> bool| {
        let waits = |one: &&Tried| one.waiting >= WAITING && kind(one);
        let longest = tried.iter().filter(waits).map(|one| one.pause).max()?;
        let same = |one: &&Tried| waits(one) && one.pause as f64 >= SAME_PAUSE * longest as f64;
        tried.iter().filter(same).max_by_key(|one| one.count)
    };
    // A wait alone is the begin only of what has no other: else a program that waits now and then would have steps of many.
    let few = || repeated().is_none_or(|one| one.length <= MOST_OF_A_LAYER);
    let after_wait = || by_waits(&|one| !plain(one) && one.alike >= STRICT).filter(|_| few());
    let waited = by_waits(&plain).or_else(after_wait);
    let best = waited.or_else(repeated)?;
    // Where all launches were tried, the run is known; else the mark tells.
    let range = if stretch.len() == tokens.len() { best.first..best.last + 1 } else { 0..tokens.len() };
    let starts: Vec<usize> = range.filter(|place| marks(tokens, *place).contains(&best.mark)).collect();
    let count = starts.len() as f64;
    // Without a wait it may be layers of one step after all.
    let told = if waited.is_some() { 1.0 } else { 0.6 };
    let confidence = best.alike * told * (0.5 + 0.5 * best.covered) * (count - 1.0) / count;
    Some(Period { starts, length: best.length, alike: best.alike, confidence })
}

/// How long the host did something else before a launch; a pause in which it waited for the device counts for more, for most
/// steps end with their result.
fn pause(tokens: &[Token], place: usize) -> u64 {
    const WAITED: u64 = 10;
    let Some(before) = place.checked_sub(1).map(|before| tokens[before]) else { return 0 };
    let pause = tokens[place].start.saturating_sub(before.end);
    if tokens[place].waited > before.waited { pause.saturating_mul(WAITED) } else { pause }
}

/// A launch may be known by itself, by the one before it, or by the host's wait before it: two hundred layers of the same two
/// kernels begin anew only there. 0: no mark.
fn marks(tokens: &[Token], place: usize) -> [u64; 3] {
    let id = u64::from(tokens[place].id) + 1;
    let Some(before) = place.checked_sub(1).map(|before| tokens[before]) else { return [id, id << 32, 0] };
    let waited = tokens[place].waited > before.waited;
    [id, id << 32 | (u64::from(before.id) + 1), if waited { id | AFTER_WAIT } else { 0 }]
}

/// For every number of times that something comes, the mark that most time passes before; the earliest of several.
fn candidates(tokens: &[Token]) -> Vec<u64> {
    let mut seen: HashMap<u64, (usize, u64, usize)> = HashMap::new();
    for place in 0..tokens.len() {
        for mark in marks(tokens, place).into_iter().filter(|mark| *mark != 0) {
            let sum = seen.entry(mark).or_insert((0, 0, place));
            (sum.0, sum.1) = (sum.0 + 1, sum.1.saturating_add(pause(tokens, place)));
        }
    }
    // By count: the mean pause, how early it first comes, and the mark.
    type Best = (u64, usize, u64);
    let mut by_count: HashMap<(bool, usize), Best> = HashMap::new();
    for (mark, (count, pauses, first)) in seen.into_iter().filter(|(_, (count, _, _))| *count >= REPEATS) {
        // Nothing is known of what came before the first launch.
        let mean = pauses / (count - usize::from(first == 0)) as u64;
        let one = (mean, usize::MAX - first, mark);
        by_count.entry((mark & AFTER_WAIT != 0, count)).and_modify(|best| *best = (*best).max(one)).or_insert(one);
    }
    let mut all: Vec<((bool, usize), Best)> = by_count.into_iter().collect();
    all.sort_unstable();
    if all.len() > 2 * CANDIDATES {
        all[CANDIDATES..].sort_by_key(|one| u64::MAX - one.1.0);
        all.truncate(2 * CANDIDATES);
    }
    all.into_iter().map(|one| one.1.2).collect()
}

/// How well a mark cuts the sequence into pieces that are alike. What comes before and after the best run of them (the program
/// starts, loads its weights, ends) is left out.
fn attempt(tokens: &[Token], mark: u64) -> Option<Tried> {
    let starts: Vec<usize> = (0..tokens.len()).filter(|place| marks(tokens, *place).contains(&mark)).collect();
    let pieces: Vec<&[Token]> = starts.windows(2).map(|pair| &tokens[pair[0]..pair[1]]).collect();
    let usual = usual(&pieces)?;
    let both = shared(tokens, usual, &pieces);
    let alike = |place: usize| both[place] as f64 / (usual.len() + pieces[place].len() - both[place]) as f64;
    let weight = |tokens: &[Token]| tokens.iter().map(|token| f64::from(token.weight)).sum::<f64>();
    let run = best_run((0..pieces.len()).map(|place| weight(pieces[place]) * (alike(place) - RUN)));
    let (mut same, mut all, mut least) = (0, 0, 1.0f64);
    for place in run.clone() {
        same += both[place];
        all += usual.len() + pieces[place].len() - both[place];
        least = least.min(alike(place));
    }
    let starts = &starts[run.start..run.end + 1];
    // One launch again and again says nothing, unless each is waited for.
    let waits = |pair: &[usize]| tokens[pair[1]].waited > tokens[pair[0]].waited;
    if starts.len() < REPEATS || usual.len() < 2 && !starts.windows(2).all(waits) {
        return None;
    }
    let waiting = starts.windows(2).filter(|pair| waits(pair)).count() as f64 / (starts.len() - 1) as f64;
    let last = starts[starts.len() - 1];
    // The recording may begin in the middle of one.
    let tail = tokens[..starts[0]].iter().rev().zip(usual.iter().rev());
    let cut = starts[0] - tail.take_while(|(a, b)| a.id == b.id).count();
    let covered = weight(&tokens[cut..tokens.len().min(last + usual.len())]) / weight(tokens).max(1.0);
    let pause =
        median(starts.iter().filter(|place| **place > 0).map(|place| pause(tokens, *place)).collect()).unwrap_or(0);
    let tried = Tried {
        mark,
        first: starts[0],
        last,
        count: starts.len(),
        length: usual.len(),
        alike: same as f64 / all.max(1) as f64,
        least_alike: least,
        covered,
        waiting,
        pause,
    };
    (tried.alike >= ALIKE && tried.covered >= COVERED).then_some(tried)
}

/// The piece in which the middle launch is when pieces are put in the order of their lengths.
fn usual<'a>(pieces: &[&'a [Token]]) -> Option<&'a [Token]> {
    let mut order: Vec<&[Token]> = pieces.to_vec();
    order.sort_by_key(|piece| piece.len());
    let half = order.iter().map(|piece| piece.len()).sum::<usize>() / 2;
    let mut passed = 0;
    order.into_iter().find(|piece| {
        passed += piece.len();
        passed > half
    })
}

/// How many launches of each piece are in the usual one too.
fn shared(tokens: &[Token], usual: &[Token], pieces: &[&[Token]]) -> Vec<usize> {
    let most = tokens.iter().map(|token| token.id).max().unwrap_or(0) as usize;
    let (mut has, mut used) = (vec![0u32; most + 1], vec![0u32; most + 1]);
    usual.iter().for_each(|token| has[token.id as usize] += 1);
    let count = |piece: &&[Token]| {
        let mut both = 0;
        for token in *piece {
            let id = token.id as usize;
            both += usize::from(used[id] < has[id]);
            used[id] += 1;
        }
        piece.iter().for_each(|token| used[token.id as usize] = 0);
        both
    };
    pieces.iter().map(count).collect()
}

/// The neighbours that add up to the most.
fn best_run(values: impl Iterator<Item = f64>) -> std::ops::Range<usize> {
    let (mut best, mut most) = (0..0, 0.0);
    let (mut from, mut sum) = (0, 0.0);
    for (place, value) in values.enumerate() {
        if sum <= 0.0 {
            (from, sum) = (place, 0.0);
        }
        sum += value;
        if sum > most {
            (best, most) = (from..place + 1, sum);
        }
    }
    best
}
