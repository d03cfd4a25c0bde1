//! speedscope's file format: for each thread one profile of its samples, and one of its scopes and calls for each lane in
//! which they nest. Times are nanoseconds after the start of the recording.

use crate::lanes::{self, EdgeKind};
use crate::{provenance, sampled};
use serde_json::json;
use std::io::{self, BufWriter, Write};
use timeline::{Frame, SliceKind, Timeline, Track};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let name = if timeline.info.command.is_empty() { "InferScope" } else { &timeline.info.command };
    let exporter = format!("inferscope {}", env!("CARGO_PKG_VERSION"));
    write!(out, "{{\"$schema\":{},\"name\":{},\"exporter\":{}", json!(SCHEMA), json!(name), json!(exporter))?;
    // Not part of the format, and passed over by its readers: what a person should know of these numbers.
    write!(out, ",\"inferscope\":{}", json!(provenance::lines(timeline)))?;
    write!(out, ",\"activeProfileIndex\":0,\"shared\":{{\"frames\":[")?;
    for index in 0..timeline.names.len() {
        let name = timeline.names.get(timeline::NameIndex(index as u32));
        write!(out, "{}{{\"name\":{}", comma(index), json!(&*name.text))?;
        if !name.file.is_empty() {
            write!(out, ",\"file\":{}", json!(&*name.file))?;
        }
        if name.line > 0 {
            write!(out, ",\"line\":{}", name.line)?;
        }
        write!(out, "}}")?;
    }
    // The last frame is the one that idle samples end in.
    write!(out, "{}{{\"name\":\"(idle)\"}}]}},\"profiles\":[", comma(timeline.names.len()))?;
    let mut profiles = Profiles { timeline, out, written: 0 };
    for track in &timeline.tracks {
        profiles.samples(track)?;
        profiles.slices(track)?;
    }
    if profiles.written == 0 {
        profiles.begin("sampled", "no sample and no slice was recorded in this trace", 0)?;
        write!(profiles.out, "\"samples\":[],\"weights\":[]}}")?;
    }
    write!(profiles.out, "]}}")?;
    profiles.out.flush()
}

fn comma(index: usize) -> &'static str {
    if index == 0 { "" } else { "," }
}

struct Profiles<'a, W: Write> {
    timeline: &'a Timeline,
    out: W,
    written: usize,
}

impl<W: Write> Profiles<'_, W> {
    /// `end` is when the last event ends, which may be after the recording: a last sample stands for a whole interval.
    fn begin(&mut self, kind: &str, name: &str, end: u64) -> io::Result<()> {
        let (comma, end) = (comma(self.written), end.max(self.timeline.end).saturating_sub(self.timeline.start));
        self.written += 1;
        write!(
            self.out,
            "{comma}{{\"type\":\"{kind}\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":{end},",
            json!(name)
        )
    }

    fn label(&self, track: &Track) -> String {
        format!("{} / {}", provenance::process(self.timeline.process(track)), provenance::thread(track))
    }

    /// Stacks and weights are two lists, so the samples are walked twice.
    fn samples(&mut self, track: &Track) -> io::Result<()> {
        if track.samples.is_empty() {
            return Ok(());
        }
        let name = format!("{}: samples", self.label(track));
        let end = sampled::extents(self.timeline, track).last().map_or(0, |last| last.end);
        self.begin("sampled", &name, end)?;
        let (mut frames, idle): (Vec<Frame>, usize) = (Vec::new(), self.timeline.names.len());
        write!(self.out, "\"samples\":[")?;
        for (index, run) in sampled::runs(self.timeline, track).enumerate() {
            write!(self.out, "{}[", comma(index))?;
            if let Some(sample) = run.seen {
                sampled::root_first(self.timeline, sample.stack, &mut frames);
                // A stack that is missing from the trace is one frame that says so.
                let names = frames.iter().map(|frame| frame.name.0 as usize).chain(frames.is_empty().then_some(0));
                for (place, frame) in names.chain((!sample.active).then_some(idle)).enumerate() {
                    write!(self.out, "{}{frame}", comma(place))?;
                }
            }
            write!(self.out, "]")?;
        }
        write!(self.out, "],\"weights\":[")?;
        for (index, run) in sampled::runs(self.timeline, track).enumerate() {
            write!(self.out, "{}{}", comma(index), run.end - run.start)?;
        }
        write!(self.out, "]}}")
    }

    /// A profile for each lane. Their edges are sorted by lane first, which takes sixteen bytes a slice, one thread at a time.
    fn slices(&mut self, track: &Track) -> io::Result<()> {
        let timeline = self.timeline;
        let mut edges: Vec<Vec<u64>> = Vec::new();
        let base = track.slices.start;
        let taken: Result<(), std::convert::Infallible> = lanes::walk(timeline, track, |edge| {
            let lane = edge.lane as usize;
            if lane >= edges.len() {
                edges.resize_with(lane + 1, Vec::new);
            }
            // The lowest bit says which edge it is.
            let place = ((edge.slice - base) as u64) << 1;
            match edge.kind {
                EdgeKind::Begin => edges[lane].push(place),
                EdgeKind::End => edges[lane].push(place | 1),
                EdgeKind::Mark => {}
            }
            Ok(())
        });
        let Ok(()) = taken;
        let label = self.label(track);
        let what = if calls(timeline, track) { "scopes and calls" } else { "scopes" };
        for (lane, edges) in edges.into_iter().enumerate().filter(|(_, edges)| !edges.is_empty()) {
            let name = match lane {
                0 => format!("{label}: {what}"),
                lane => format!("{label}: overlapping scopes {lane}"),
            };
            let end = edges.last().map_or(0, |edge| timeline.slices.get(base + (edge >> 1) as usize).end());
            self.begin("evented", &name, end)?;
            write!(self.out, "\"events\":[")?;
            for (index, edge) in edges.iter().enumerate() {
                let slice = timeline.slices.get(base + (edge >> 1) as usize);
                let (kind, time) = if edge & 1 == 0 { ('O', slice.start) } else { ('C', slice.end()) };
                let (comma, at, frame) = (comma(index), time.saturating_sub(timeline.start), slice.name.0);
                write!(self.out, "{comma}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}")?;
            }
            write!(self.out, "]}}")?;
        }
        Ok(())
    }
}

fn calls(timeline: &Timeline, track: &Track) -> bool {
    track.slices.clone().any(|index| matches!(timeline.slices.kind(index), SliceKind::Call | SliceKind::CCall))
}
