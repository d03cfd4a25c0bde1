//! What a step of one recording has more or less of than a step of the other: functions, kernels, copies, CUDA calls,
//! layers, and why devices were idle. Things are matched by their names.

use super::Side;
use crate::named::noise::{Noise, mean_of};
use crate::named::per_step::{self, Row};
use crate::named::{Measured, part_time};
use analysis::phrase::short_file;
use analysis::steps::StepSource;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    Kind,
    Function,
    Line,
    Idle,
    Kernel,
    Copy,
    Api,
    Op,
    Layer,
}

impl Group {
    pub const ALL: [Group; 9] = [
        Group::Kind,
        Group::Function,
        Group::Line,
        Group::Idle,
        Group::Kernel,
        Group::Copy,
        Group::Api,
        Group::Op,
        Group::Layer,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Group::Kind => "part",
            Group::Function => "function",
            Group::Line => "line",
            Group::Idle => "idle_cause",
            Group::Kernel => "kernel",
            Group::Copy => "copy",
            Group::Api => "api",
            Group::Op => "op",
            Group::Layer => "layer",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Group::Kind => "What a step does",
            Group::Function => "Functions",
            Group::Line => "Lines",
            Group::Idle => "GPU idle, by cause",
            Group::Kernel => "Kernels",
            Group::Copy => "Copies",
            Group::Api => "CUDA calls",
            Group::Op => "Operators, the host's own time",
            Group::Layer => "Layers",
        }
    }
}

/// Times are nanoseconds of a mean step.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub group: Group,
    pub label: String,
    /// Of a function its file, of a line `file:line`; else empty.
    pub place: String,
    pub a: Measured,
    pub b: Measured,
    /// How many a step has, where they are counted.
    pub count: Option<(f64, f64)>,
    pub noise: Noise,
}

impl Change {
    pub fn delta(&self) -> f64 {
        self.b.value - self.a.value
    }
}

/// One side of a change.
#[derive(Clone)]
struct Entry {
    time: Measured,
    count: Option<f64>,
}

const STEPS_OVERLAP: &str = "steps overlap on a thread, so what one did cannot be told from what the others did: parts, functions and lines are \
                           their share of the time in which any step was open, times the mean step";

type Key = (Group, String, String);

pub fn between(a: Side, b: Side) -> (Vec<Change>, Vec<String>) {
    let (mut notes, sides) = (Vec::new(), [entries(a), entries(b)]);
    for group in Group::ALL {
        let has = |side: &BTreeMap<Key, Entry>| side.keys().any(|key| key.0 == group);
        match (has(&sides[0]), has(&sides[1])) {
            (true, false) => notes.push(format!("{}: recorded in A only, not compared", group.title())),
            (false, true) => notes.push(format!("{}: recorded in B only, not compared", group.title())),
            _ => continue,
        }
    }
    if [a, b].iter().any(|side| side.diagnosis.breakdown.overlapping) && a.diagnosis.steps.source != StepSource::Whole {
        notes.push(STEPS_OVERLAP.into());
    }
    let compared = |group: Group| sides.iter().all(|side| side.keys().any(|key| key.0 == group));
    let mut keys: Vec<&Key> = sides.iter().flat_map(|side| side.keys()).filter(|key| compared(key.0)).collect();
    keys.sort();
    keys.dedup();
    let known = sides.iter().all(|side| side.values().any(|entry| entry.time.error.is_some()));
    let mut changes: Vec<Change> = keys
        .into_iter()
        .map(|key| {
            let entry = |side: usize| {
                // What a recording does not have takes no time in it, and that is known as well as the rest.
                let none = Entry { time: Measured::exactly(0.0), count: Some(0.0) };
                sides[side].get(key).cloned().unwrap_or(none)
            };
            let (x, y) = (entry(0), entry(1));
            let noise = if known { Noise::of(x.time, y.time) } else { Noise::Unknown };
            let counted = matches!(key.0, Group::Kernel | Group::Copy | Group::Api | Group::Op | Group::Layer);
            let count = x.count.zip(y.count).filter(|_| counted);
            Change { group: key.0, label: key.1.clone(), place: key.2.clone(), a: x.time, b: y.time, count, noise }
        })
        .collect();
    // What is real before what may be noise, then by size.
    let weight = |change: &Change| change.delta().abs();
    changes.sort_by(|x, y| {
        let within = |change: &Change| change.noise == Noise::Within;
        (x.group, within(x))
            .cmp(&(y.group, within(y)))
            .then(weight(y).total_cmp(&weight(x)))
            .then(y.b.value.total_cmp(&x.b.value))
    });
    (changes, notes)
}

fn entries(side: Side) -> BTreeMap<Key, Entry> {
    let Side { timeline, diagnosis, .. } = side;
    let mut all: BTreeMap<Key, Entry> = BTreeMap::new();
    let breakdown = &diagnosis.breakdown;
    let time = |share: f64| {
        let one = part_time(&diagnosis.steps, breakdown, share);
        Measured { value: one.value * 1e6, error: one.error.map(|error| error * 1e6) }
    };
    if breakdown.by_calls || breakdown.samples > 0 {
        for (kind, _, share) in breakdown.kinds() {
            let entry = Entry { time: time(share), count: None };
            all.insert((Group::Kind, kind.name().to_owned(), String::new()), entry);
        }
        for part in breakdown.parts.iter().filter(|part| !part.file.is_empty()) {
            let file = short_file(&part.file);
            let mut add = |key: Key| {
                let mut one = time(part.share);
                // A function has several lines, and a line may both run and wait.
                if let Some(before) = all.get(&key) {
                    one.value += before.time.value;
                    one.error = one.error.zip(before.time.error).map(|(x, y)| x.hypot(y));
                }
                all.insert(key, Entry { time: one, count: None });
            };
            add((Group::Function, part.label.clone(), file.to_owned()));
            if part.line > 0 {
                add((Group::Line, part.label.clone(), format!("{file}:{}", part.line)));
            }
        }
    }
    idle(side, &mut all);
    let rows = per_step::measure(timeline, &diagnosis.steps);
    let mut add = |group: Group, rows: Vec<Row>| {
        for row in rows {
            // Two kernels of one name are one row already; two names may still read the same.
            let entry = Entry { time: row.time, count: Some(row.count.value) };
            all.entry((group, row.label, String::new())).or_insert(entry);
        }
    };
    add(Group::Kernel, rows.kernels);
    add(Group::Copy, rows.copies);
    add(Group::Api, rows.apis);
    add(Group::Op, rows.ops);
    add(Group::Layer, rows.layers);
    all
}

/// Idle time is known as a whole for each cause; its spread is that of the device's idle time.
fn idle(side: Side, all: &mut BTreeMap<Key, Entry>) {
    let Side { diagnosis, .. } = side;
    let steps = diagnosis.steps.count().max(1) as f64;
    let devices = diagnosis.gpu.as_ref().map(|gpu| gpu.devices.as_slice()).unwrap_or_default();
    for device in &diagnosis.idle {
        let same = devices.iter().find(|one| (one.process, one.ordinal) == (device.process, device.ordinal));
        let spread = same.and_then(|one| mean_of(one.per_step_busy.iter().copied()).error);
        for cause in &device.causes {
            let error = spread.map(|spread| spread * device.window_ns as f64 / steps);
            let time = Measured { value: cause.ns as f64 / steps, error };
            let key = (Group::Idle, cause.cause.name().to_owned(), String::new());
            let entry = all.entry(key).or_insert(Entry { time: Measured::exactly(0.0), count: None });
            entry.time.value += time.value;
            entry.time.error = entry.time.error.zip(time.error).map(|(x, y)| x.hypot(y));
        }
    }
}
