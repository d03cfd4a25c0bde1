//! The layers (`nn.Module`) of a program without a GPU by the time that the host spent in each: a layer's own time is that of its calls
//! without the layers inside them. Only some calls of a model are recorded with layers; of those the first, which loads and tries out, and
//! those in which operators were recorded, which slowed them, count only where there is no other.

use crate::operators;
use crate::steps::spans::Spans;
use std::collections::{BTreeMap, HashMap};
use timeline::{NameIndex, SliceKind, Timeline, Track, TrackIndex};

#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostLayers {
    /// Most own time first.
    pub rows: Vec<HostLayer>,
    /// The calls of models that count, and their time: the own times of all layers add up to it.
    pub model_calls: u64,
    pub total_ns: u64,
    /// The recorded calls of models that do not count.
    pub left_out: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct HostLayer {
    pub name: NameIndex,
    /// The outermost module around it: the model.
    pub model: NameIndex,
    pub calls: u64,
    pub own_ns: u64,
    /// With the layers inside it.
    pub total_ns: u64,
    /// Its own time in each call of the model that has it.
    pub each_ns: Vec<u64>,
}

/// A call of a model: its layers with calls, own time and time.
struct ModelCall {
    model: NameIndex,
    start: u64,
    end: u64,
    layers: BTreeMap<NameIndex, (u64, u64, u64)>,
    is_slowed: bool,
}

/// Nested deeper than this, a layer counts for the one around it: a damaged trace must not cost the square of its slices.
const DEEPEST: usize = 256;

impl HostLayers {
    pub fn find(timeline: &Timeline) -> HostLayers {
        let looks = looks(timeline);
        let mut calls: BTreeMap<NameIndex, Vec<ModelCall>> = BTreeMap::new();
        for (place, track) in timeline.tracks.iter().enumerate() {
            for mut call in model_calls(timeline, track) {
                let spans = looks.get(&TrackIndex(place as u32));
                call.is_slowed = spans.is_some_and(|spans| spans.overlap(call.start, call.end) > 0);
                calls.entry(call.model).or_default().push(call);
            }
        }
        let mut found = HostLayers::default();
        let mut rows: BTreeMap<(NameIndex, NameIndex), HostLayer> = BTreeMap::new();
        for (model, mut all) in calls {
            all.sort_by_key(|call| call.start);
            let recorded = all.len();
            let usual = usual(all);
            found.left_out += (recorded - usual.len()) as u64;
            for call in usual {
                found.model_calls += 1;
                found.total_ns = found.total_ns.saturating_add(call.end - call.start);
                for (name, (calls, own_ns, total_ns)) in call.layers {
                    let empty = HostLayer { name, model, calls: 0, own_ns: 0, total_ns: 0, each_ns: Vec::new() };
                    let row = rows.entry((model, name)).or_insert(empty);
                    row.calls += calls;
                    row.own_ns = row.own_ns.saturating_add(own_ns);
                    row.total_ns = row.total_ns.saturating_add(total_ns);
                    row.each_ns.push(own_ns);
                }
            }
        }
        found.rows = rows.into_values().collect();
        found.rows.sort_by_key(|row| (u64::MAX - row.own_ns, row.name));
        found
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Of the time of the models' calls.
    pub fn share(&self, row: &HostLayer) -> f64 {
        row.own_ns as f64 / self.total_ns.max(1) as f64
    }

    /// How long a call of a model takes, on average.
    pub fn call_ns(&self) -> u64 {
        self.total_ns / self.model_calls.max(1)
    }
}

/// The calls that are neither the first nor slowed; else those that are not slowed; else all.
fn usual(calls: Vec<ModelCall>) -> Vec<ModelCall> {
    let later = calls.iter().skip(1).filter(|call| !call.is_slowed).count();
    let (skip, slowed) = match calls.iter().filter(|call| !call.is_slowed).count() {
        0 => (0, true),
        _ if later == 0 => (0, false),
        _ => (1, false),
    };
    calls.into_iter().skip(skip).filter(|call| slowed || !call.is_slowed).collect()
}

/// When operators were recorded, by thread.
fn looks(timeline: &Timeline) -> HashMap<TrackIndex, Spans> {
    let mut spans: HashMap<TrackIndex, Vec<(u64, u64)>> = HashMap::new();
    for look in operators::looks(timeline) {
        spans.entry(look.track).or_default().push(look.span());
    }
    spans.into_iter().map(|(track, spans)| (track, Spans::union(spans))).collect()
}

fn model_calls(timeline: &Timeline, track: &Track) -> Vec<ModelCall> {
    let slices = &timeline.slices;
    let mut calls: Vec<ModelCall> = Vec::new();
    // Those that are open, outermost first.
    let mut open: Vec<(u64, NameIndex)> = Vec::new();
    for index in track.slices.clone().filter(|index| slices.kind(*index) == SliceKind::Layer) {
        let slice = slices.get(index);
        while open.last().is_some_and(|(end, _)| *end <= slice.start) {
            open.pop();
        }
        // What lasts longer than the call around it is a damaged trace's.
        let (start, end) = (slice.start, slice.end().min(open.last().map_or(u64::MAX, |(end, _)| *end)));
        let length = end.saturating_sub(start);
        if open.len() == DEEPEST || length == 0 {
            continue;
        }
        if open.is_empty() {
            let layers = BTreeMap::new();
            calls.push(ModelCall { model: slice.name, start, end, layers, is_slowed: false });
        }
        let Some(call) = calls.last_mut() else { continue };
        if let Some((_, around)) = open.last()
            && let Some(around) = call.layers.get_mut(around)
        {
            around.1 = around.1.saturating_sub(length);
        }
        let again = open.iter().any(|(_, name)| *name == slice.name);
        let layer = call.layers.entry(slice.name).or_default();
        layer.0 += 1;
        layer.1 = layer.1.saturating_add(length);
        // One inside one of its own name is in its time already.
        layer.2 = layer.2.saturating_add(if again { 0 } else { length });
        open.push((end, slice.name));
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name calls own/total` in µs of every row, and how many calls of models count.
    fn said(text: &str) -> (Vec<String>, u64, u64) {
        let timeline = Timeline::from_text(text).unwrap();
        let layers = HostLayers::find(&timeline);
        let row = |row: &HostLayer| {
            let name = timeline.names.text(row.name);
            format!("{name} {} {}/{}", row.calls, row.own_ns / 1000, row.total_ns / 1000)
        };
        (layers.rows.iter().map(row).collect(), layers.model_calls, layers.left_out)
    }

    const CALL: &str = "layer Model 0..100us\n layer block 10us..60us\n layer block.mlp 20us..50us\n layer block.mlp 52us..57us\n layer head 70us..80us";

    #[test]
    fn a_layers_own_time_is_without_the_layers_inside_it() {
        let (rows, calls, left_out) = said(&format!("track main\n {CALL}"));
        assert_eq!(rows, ["Model 1 40/100", "block.mlp 2 35/35", "block 1 15/50", "head 1 10/10"]);
        assert_eq!((calls, left_out), (1, 0));
    }

    #[test]
    fn the_first_call_and_those_with_operators_do_not_count() {
        let first = "layer Model 0..900us\n";
        let later = "layer Model 1000us..1100us\n layer head 1010us..1020us\n layer Model 2000us..2700us\n";
        let look = "op aten::mm 2100us..2200us args {\"turn\":[0,0]}";
        assert_eq!(
            said(&format!("track main\n {first} {later} {look}")),
            (vec!["Model 1 90/100".into(), "head 1 10/10".into()], 1, 2)
        );
        // There is no other.
        let (rows, calls, left_out) = said(&format!("track main\n layer Model 2000us..2700us\n {look}"));
        assert_eq!((rows, calls, left_out), (vec!["Model 1 700/700".to_owned()], 1, 0));
        assert_eq!(said(&format!("track main\n {first}")).0, ["Model 1 900/900"]);
    }

    #[test]
    fn ranges_that_overlap_and_recursion_stay_within_their_time() {
        let (rows, ..) = said("track main\n layer a 0..100us\n layer a 10us..60us\n layer b 50us..120us");
        assert_eq!(rows, ["a 2 90/100", "b 1 10/10"]);
        assert_eq!(said("track main\n layer a 5us..5us"), (vec![], 0, 0));
    }
}
