//! pprof's profile, gzipped as its tools expect: samples by stack, thread and state, in samples, wall time and CPU time.
//! The parts of the message are written one after the other, so memory grows with different stacks and not with samples.

pub mod messages;
mod strings;

use crate::{provenance, sampled};
use flate2::Compression;
use flate2::write::GzEncoder;
use messages::{Function, Label, Line, Location, Profile, Sample, ValueType};
use prost::Message;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use strings::Strings;
use timeline::{StackIndex, Timeline, Track};

pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer {
        timeline,
        out: GzEncoder::new(out, Compression::fast()),
        bytes: Vec::new(),
        strings: Strings::default(),
        locations: HashMap::new(),
        functions: HashMap::new(),
    };
    writer.head()?;
    for track in &timeline.tracks {
        writer.samples(track)?;
    }
    let strings = std::mem::take(&mut writer.strings);
    for text in strings.into_all() {
        writer.part(Profile { string_table: vec![text], ..Default::default() })?;
    }
    writer.out.finish()?.flush()
}

struct Writer<'a, W: Write> {
    timeline: &'a Timeline,
    out: GzEncoder<W>,
    bytes: Vec<u8>,
    strings: Strings,
    /// By name and executed line.
    locations: HashMap<(u32, u32), u64>,
    functions: HashMap<u32, u64>,
}

/// What is counted together: a stack in a state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stack: u32,
    active: bool,
    gil: bool,
}

impl<W: Write> Writer<'_, W> {
    /// A message written in parts is one message: fields that may repeat come together, others are replaced.
    fn part(&mut self, part: Profile) -> io::Result<()> {
        self.bytes.clear();
        part.encode(&mut self.bytes).map_err(io::Error::other)?;
        self.out.write_all(&self.bytes)
    }

    fn head(&mut self) -> io::Result<()> {
        let timeline = self.timeline;
        let mut kind = |name, unit| ValueType { r#type: self.strings.index(name), unit: self.strings.index(unit) };
        let sample_type = vec![kind("samples", "count"), kind("wall", "nanoseconds"), kind("cpu", "nanoseconds")];
        let rate = timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0);
        let comment = provenance::lines(timeline).iter().map(|line| self.strings.index(line)).collect();
        let unix_minus_mono = timeline.info.clock.unix_minus_mono_ns;
        let start = i64::try_from(timeline.start).unwrap_or(0);
        let head = Profile {
            period_type: Some(sample_type[1].clone()).filter(|_| rate.is_some()),
            period: rate.map_or(0, |rate| (1e9 / rate) as i64),
            default_sample_type: self.strings.index("cpu"),
            sample_type,
            // 0 says that the time of day is not known.
            time_nanos: if unix_minus_mono == 0 { 0 } else { start.saturating_add(unix_minus_mono) },
            duration_nanos: i64::try_from(timeline.duration()).unwrap_or(i64::MAX),
            comment,
            ..Default::default()
        };
        self.part(head)
    }

    fn samples(&mut self, track: &Track) -> io::Result<()> {
        let mut counted: BTreeMap<Key, (i64, i64)> = BTreeMap::new();
        for extent in sampled::extents(self.timeline, track) {
            let (sample, wall) = (extent.sample, i64::try_from(extent.dur()).unwrap_or(i64::MAX));
            let key = Key { stack: sample.stack.0, active: sample.active, gil: sample.gil };
            let values = counted.entry(key).or_default();
            *values = (values.0 + 1, values.1.saturating_add(wall));
        }
        let process = self.timeline.process(track);
        let mut labels = vec![
            self.label("process", &provenance::process(process)),
            self.label("thread", &provenance::thread(track)),
            Label { key: self.strings.index("pid"), num: process.pid, str: 0 },
            Label { key: self.strings.index("tid"), num: track.tid.into(), str: 0 },
        ];
        // Zero is what the field is when it is missing, and a reader would take the label for an empty text.
        labels.retain(|label| label.str != 0 || label.num != 0);
        for (key, (count, wall)) in counted {
            let location_id = self.stack(StackIndex(key.stack))?;
            let mut label = labels.clone();
            label.push(self.label("state", if key.active { "running" } else { "waiting" }));
            label.push(self.label("gil", if key.gil { "held" } else { "not held" }));
            let value = vec![count, wall, if key.active { wall } else { 0 }];
            self.part(Profile { sample: vec![Sample { location_id, value, label }], ..Default::default() })?;
        }
        Ok(())
    }

    fn label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.strings.index(key), str: self.strings.index(text), num: 0 }
    }

    /// The locations of a stack, leaf first; those not written yet are.
    fn stack(&mut self, leaf: StackIndex) -> io::Result<Vec<u64>> {
        let timeline = self.timeline;
        let mut ids = Vec::new();
        for (_, frame) in timeline.stacks.walk(leaf) {
            ids.push(self.location(frame.name.0, frame.line)?);
        }
        if ids.is_empty() {
            ids.push(self.location(0, 0)?);
        }
        Ok(ids)
    }

    fn location(&mut self, name: u32, line: u32) -> io::Result<u64> {
        if let Some(id) = self.locations.get(&(name, line)) {
            return Ok(*id);
        }
        let function_id = self.function(name)?;
        let id = self.locations.len() as u64 + 1;
        self.locations.insert((name, line), id);
        let line = vec![Line { function_id, line: line.into() }];
        self.part(Profile { location: vec![Location { id, line }], ..Default::default() })?;
        Ok(id)
    }

    fn function(&mut self, index: u32) -> io::Result<u64> {
        if let Some(id) = self.functions.get(&index) {
            return Ok(*id);
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(index, id);
        let known = self.timeline.names.get(timeline::NameIndex(index));
        let name = self.strings.index(&known.text);
        let filename = self.strings.index(&known.file);
        let function = Function { id, name, system_name: name, filename, start_line: known.line.into() };
        self.part(Profile { function: vec![function], ..Default::default() })?;
        Ok(id)
    }
}
