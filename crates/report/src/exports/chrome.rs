//! Chrome trace JSON, which Perfetto, chrome://tracing and DevTools open: every event of the timeline. Slices are `X`, or
//! `b` and `e` where two overlap without nesting (asyncio tasks on one thread); marks `i`; counters `C`; stack samples are
//! `P` events with the `Profile` and `ProfileChunk` of a CPU profile, one profile a thread. Devices are in `gpu`. Times are µs after the start.

mod gpu;
mod profile;

use crate::json_text::{Event, Quoted, Separator};
use crate::lanes::is_mark;
use crate::streams::counted_device;
use std::collections::HashSet;
use std::io::{self, Write};
use timeline::{ProcessIndex, Slice, SliceKind, Timeline, Track};

pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer {
        timeline,
        names: Quoted::new(timeline),
        pids: pids(timeline),
        event: Event::default(),
        separator: Separator::new(),
        async_id: 0,
    };
    writer.head(out)?;
    for (index, track) in timeline.tracks.iter().enumerate() {
        writer.slices(track, out)?;
        writer.samples(index as u64 + 1, track, out)?;
    }
    writer.gpu(out)?;
    writer.counters(out)?;
    out.write_all(b"\n]}\n")
}

/// The machine's counters are those of process 0, which no recorded process can be.
const HOST_PID: u64 = 0;
/// For processes whose number is unknown or taken: above any that Linux gives out.
const FIRST_FREE_PID: u64 = 1 << 30;

/// A number for each process that no other has: its own where possible (after `exec` two have the same).
fn pids(timeline: &Timeline) -> Vec<u64> {
    let mut taken = HashSet::new();
    let choose = |(index, process): (usize, &timeline::Process)| match u64::try_from(process.pid) {
        Ok(pid) if pid > 0 && pid < FIRST_FREE_PID && taken.insert(pid) => pid,
        _ => FIRST_FREE_PID + index as u64,
    };
    timeline.processes.iter().enumerate().map(choose).collect()
}

struct Writer<'a> {
    timeline: &'a Timeline,
    names: Quoted,
    pids: Vec<u64>,
    event: Event,
    separator: Separator,
    async_id: u64,
}

impl Writer<'_> {
    fn head(&mut self, out: &mut impl Write) -> io::Result<()> {
        let info = &self.timeline.info;
        let start = self.timeline.start.saturating_add_signed(info.clock.unix_minus_mono_ns);
        self.event.raw(r#"{"displayTimeUnit":"ns","otherData":{"tool":"InferScope","version":"#).text(&info.version);
        self.event.raw(r#","command":"#).text(&info.command).raw(r#","hostname":"#).text(&info.host.hostname);
        self.event.raw(r#","start_unix_ns":""#).number(start).raw(r#"","clock_error_ns":""#);
        self.event.number(info.clock.residual_ns).raw(r#"","notes":"#).text(&self.timeline.notes_said().join("\n"));
        let losses =
            self.timeline.losses.iter().map(|l| format!("{}: {} {}", l.collector, l.count, l.reason.said(l.count)));
        self.event.raw(r#","losses":"#).text(&losses.collect::<Vec<_>>().join("\n"));
        self.event.raw("},\n\"traceEvents\":[").send(out)?;
        for (index, process) in self.timeline.processes.iter().enumerate() {
            self.metadata("process_name", self.pids[index], 0, &process.program, out)?;
        }
        if self.timeline.counters.iter().any(|counter| counter.process.is_none()) {
            self.metadata("process_name", HOST_PID, 0, "the machine", out)?;
        }
        for track in self.timeline.tracks.iter().filter(|track| !track.name.is_empty()) {
            self.metadata("thread_name", self.pid(Some(track.process)), tid(track.tid), &track.name, out)?;
        }
        Ok(())
    }

    fn pid(&self, process: Option<ProcessIndex>) -> u64 {
        process.map_or(HOST_PID, |process| self.pids[process.0 as usize])
    }

    fn metadata(&mut self, what: &str, pid: u64, tid: u64, name: &str, out: &mut impl Write) -> io::Result<()> {
        self.event.raw(self.separator.next()).raw(r#"{"ph":"M","pid":"#).number(pid).raw(r#","tid":"#).number(tid);
        self.event.raw(r#","name":""#).raw(what).raw(r#"","args":{"name":"#).text(name).raw("}}").send(out)
    }

    /// `{"ph":"X","pid":1,"tid":2,"ts":3.456`: what every event begins with.
    fn begin(&mut self, phase: &str, pid: u64, tid: u64, time: u64) {
        let time = time.saturating_sub(self.timeline.start);
        self.event.raw(self.separator.next()).raw(r#"{"ph":""#).raw(phase).raw(r#"","pid":"#).number(pid);
        self.event.raw(r#","tid":"#).number(tid).raw(r#","ts":"#).micros(time);
    }

    fn slices(&mut self, track: &Track, out: &mut impl Write) -> io::Result<()> {
        let (pid, tid) = (self.pid(Some(track.process)), tid(track.tid));
        let mut ends: Vec<u64> = Vec::new();
        for index in track.slices.clone() {
            let slice = self.timeline.slices.get(index);
            while ends.last().is_some_and(|end| *end <= slice.start) {
                ends.pop();
            }
            let nests = ends.last().is_none_or(|end| slice.end() <= *end);
            let phase = match (slice.kind, nests) {
                _ if is_mark(&slice) => "i",
                (_, true) => "X",
                (_, false) => "b",
            };
            self.begin(phase, pid, tid, slice.start);
            if phase == "X" {
                ends.push(slice.end());
                self.event.raw(r#","dur":"#).micros(slice.dur);
            } else if phase == "i" {
                self.event.raw(r#","s":"t""#);
            } else {
                self.async_id += 1;
                self.event.raw(r#","id":"#).number(self.async_id);
            }
            self.label(&slice);
            self.args(index, &slice);
            self.event.send(out)?;
            if phase == "b" {
                self.begin("e", pid, tid, slice.end());
                self.event.raw(r#","id":"#).number(self.async_id);
                self.label(&slice);
                self.event.raw("}").send(out)?;
            }
        }
        Ok(())
    }

    fn label(&mut self, slice: &Slice) {
        let name = self.names.get(slice.name);
        let category = gpu::category(self.timeline.names.call(slice.name), slice);
        self.event.raw(r#","cat":""#).raw(category).raw(r#"","name":"#).bytes(name);
    }

    /// `,"args":{...}}`: the place of a function, the recorded arguments, and whether the slice never ended.
    fn args(&mut self, index: usize, slice: &Slice) {
        let name = self.timeline.names.get(slice.name);
        let args = self.timeline.slices.args(index);
        let asked = Some(self.timeline.slices.detail(index).id).filter(|_| slice.kind == SliceKind::ApiCall);
        if name.file.is_empty() && args.is_none() && !slice.open && asked.is_none() {
            self.event.raw("}");
            return;
        }
        let mut comma = "";
        self.event.raw(r#","args":{"#);
        if !name.file.is_empty() {
            self.event.raw(r#""file":"#).text(&name.file).raw(r#","line":"#).number(name.line.into());
            comma = ",";
        }
        if let Some(correlation) = asked {
            self.event.raw(comma).raw(r#""correlation":"#).number(correlation.into());
            comma = ",";
        }
        if slice.open {
            self.event.raw(comma).raw(r#""open":true"#);
            comma = ",";
        }
        if let Some(args) = args {
            self.event.raw(comma).raw(r#""args":"#).object(args);
        }
        self.event.raw("}}");
    }

    fn counters(&mut self, out: &mut impl Write) -> io::Result<()> {
        for counter in &self.timeline.counters {
            let (pid, thread) = (self.pid(counter.process), counter.tid.map_or(0, tid));
            for (time, value) in counter.time.iter().zip(&counter.value) {
                self.begin("C", pid, thread, *time);
                // Of devices each is a counter of its own, the first one too.
                if counter.tid.is_some() || counted_device(counter).is_some() {
                    self.event.raw(r#","id":"#).number(thread);
                }
                self.event.raw(r#","name":"#).text(&counter.name).raw(r#","args":{"value":"#).signed(*value).raw("}}");
                self.event.send(out)?;
            }
        }
        Ok(())
    }
}

/// Thread numbers are positive; what a damaged trace holds stays apart and readable.
fn tid(tid: i32) -> u64 {
    u64::from(tid as u32)
}
