//! A [`Timeline`] written as small text, so that a test shows at a glance what happened:
//!
//! ```text
//! host cpus 8 numa 1
//! rate 100
//! track main                                   # the first track of a process is its main thread
//! repeat 40 every 50ms                         # times inside are moved by 0, 50 ms, 100 ms ...
//!   step request 0..40ms
//!   scope tokenise 0..10ms
//!   samples 0..40ms every 10ms active gil main>serve>tokenise@service.py:44
//! end
//! counter runqueue_wait_ns 0..2s every 100ms grows 10ms
//! ```
//!
//! Also: `process NAME [python 3.12] [rank 0]` and `process NAME of PID` (its parent's; the first process is 1000, the second 2000, `~` is a space), `collector NAME STATE [reason]`, `call|ccall|gc NAME RANGE`, `mark NAME TIME` (`~` is a space),
//! `sample TIME [active] [gil] [STACK]`, `counter [process|host] NAME TIME=VALUE ...`, `loss COLLECTOR COUNT REASON`, `note CODE ARGUMENT...` or `note text`,
//! `api|nvtx|layer|overhead|entry|op NAME RANGE [args JSON]` (`~` is a space), `window on|off TIME`, `fix MOMENT TIME [TEXT]`, `step NAME RANGE phase prefill|decode|mixed` (of a serving engine), and what a device (see `device` below) or an allocator (`memory`) does. `calls on`, `attached`, `state complete`, `clock residual TIME`. `5ms..` never ends. A frame is `name[@file][:line]`, the root first.

mod device;
mod memory;

use crate::builder::{Builder, SliceExtra};
use crate::{
    CollectorState, EnginePhase, FixMoment, LossReason, Note, NoteCode, OverheadKind, Process, ProcessIndex,
    RecordingWindow, SliceKind, StackIndex, State, Timeline, TrackIndex, WindowedRecording,
};

impl Timeline {
    /// Reads the form above. The error names the line.
    pub fn from_text(text: &str) -> Result<Timeline, String> {
        let clean = |line: &str| line.split(" #").next().unwrap_or("").trim().to_owned();
        let lines: Vec<String> = text.lines().map(clean).collect();
        let mut reader =
            Reader { builder: Builder::default(), track: None, end: None, device: device::Device::default() };
        reader.lines(&lines, 0, 0)?;
        reader.finish_memory();
        let mut timeline = reader.builder.finish();
        if let Some(end) = reader.end {
            timeline.end = timeline.end.max(end);
        }
        Ok(timeline)
    }
}

struct Reader {
    builder: Builder,
    track: Option<TrackIndex>,
    /// Of the recording, where a slice that never ends has to be closed.
    end: Option<u64>,
    device: device::Device,
}

impl Reader {
    fn lines(&mut self, lines: &[String], first: usize, offset: u64) -> Result<(), String> {
        let mut at = 0;
        while at < lines.len() {
            let said = |why: String| format!("line {}: {why}: {}", first + at + 1, lines[at]);
            let words: Vec<&str> = lines[at].split_whitespace().collect();
            if words.first() == Some(&"repeat") {
                let length = block(&lines[at + 1..]).ok_or_else(|| said("`repeat` without `end`".into()))?;
                let count: u64 = number(words.get(1)).map_err(said)?;
                let every = time(words.get(3).unwrap_or(&"")).map_err(said)?;
                for round in 0..count {
                    self.lines(&lines[at + 1..at + 1 + length], first + at + 1, offset + round * every)?;
                }
                at += length + 2;
                continue;
            }
            if let Some((verb, rest)) = words.split_first() {
                self.line(verb, rest, offset).map_err(said)?;
            }
            at += 1;
        }
        Ok(())
    }

    fn line(&mut self, verb: &str, rest: &[&str], offset: u64) -> Result<(), String> {
        let timeline = &mut self.builder.timeline;
        match (verb, rest) {
            ("process", _) => drop(self.process(rest)),
            ("track", _) => {
                let process = self.last_process();
                let known = self.builder.timeline.tracks_of(process).count() as i32;
                let main = self.builder.timeline.processes[process.0 as usize].pid as i32;
                self.track = Some(self.builder.track(process, main + known, &rest.join(" ")));
            }
            ("host", _) => {
                for pair in rest.chunks(2) {
                    let value = Some(number(pair.get(1))?);
                    match pair[0] {
                        "cpus" => timeline.info.host.cpu_count = value,
                        "numa" => timeline.info.host.numa_nodes = value,
                        "ram" => timeline.info.host.ram_bytes = value,
                        other => return Err(format!("unknown host word {other}")),
                    }
                }
            }
            ("rate", [hz]) => timeline.info.settings.rate_hz = Some(number(Some(hz))? as f64),
            ("calls", [on]) => timeline.info.settings.calls = Some(*on == "on"),
            ("layers", [on]) => timeline.info.settings.layers = Some(*on == "on"),
            ("clock", ["residual", error]) => timeline.info.clock.residual_ns = time(error)?,
            ("state", ["cut", events]) => timeline.info.state = State::Cut { events: Some(number(Some(events))?) },
            ("state", [state]) => {
                timeline.info.state = match *state {
                    "complete" => State::Complete,
                    "recovered" => State::Recovered,
                    _ => State::Recording,
                }
            }
            ("attached", []) => timeline.info.attached = true,
            ("note", [code, args @ ..]) if NoteCode::from_name(code).is_some() => {
                let code = NoteCode::from_name(code).unwrap_or(NoteCode::Sentence);
                let args = args.iter().map(|word| word.replace('~', " ")).collect();
                timeline.notes.push(Note { args, ..Note::new(code) });
            }
            ("note", _) => timeline.notes.push(Note::sentence(rest.join(" "))),
            ("end", [at]) => self.end = Some(offset + time(at)?),
            ("loss", [collector, count, reason]) => {
                let process = self.last_process();
                let reason = LossReason::from_name(reason).ok_or_else(|| format!("no reason of a loss: {reason}"))?;
                self.builder.loss(Some(process), collector, reason, number(Some(count))?);
            }
            ("collector", [name, state, reason @ ..]) => {
                let process = self.last_process();
                // `own TIME`, `residual TIME` and `windows RECORDED COST`, in per cent, come before the reason.
                let (mut own_ns, mut residual_ns, mut windows, mut reason) = (0, 0, None, reason);
                if let ["windows", recorded, cost, rest @ ..] = reason {
                    let part =
                        |text: &str| text.parse::<f64>().map(|percent| percent / 100.0).map_err(|e| e.to_string());
                    windows = Some(WindowedRecording { recorded: part(recorded)?, cost: part(cost)? });
                    reason = rest;
                }
                while let [key @ ("own" | "residual"), value, rest @ ..] = reason {
                    *(if *key == "own" { &mut own_ns } else { &mut residual_ns }) = time(value)?;
                    reason = rest;
                }
                let (name, state, reason) = ((*name).into(), (*state).into(), reason.join(" "));
                let state = CollectorState { name, state, reason, own_ns, residual_ns, windows };
                self.builder.timeline.processes[process.0 as usize].collectors.push(state);
            }
            ("counter", ["process", name, values @ ..]) => {
                let process = self.last_process();
                self.counter(Some(process), None, name, values, offset)?;
            }
            ("counter", ["host", name, values @ ..]) => self.counter(None, None, name, values, offset)?,
            ("counter", [name, values @ ..]) => {
                let track = self.here()?;
                let track = &self.builder.timeline.tracks[track.0 as usize];
                let (process, tid) = (track.process, track.tid);
                self.counter(Some(process), Some(tid), name, values, offset)?;
            }
            ("sample", [at, rest @ ..]) => self.sample(offset + time(at)?, rest)?,
            ("samples", [span, "every", every, rest @ ..]) => {
                let (start, end, every) = (range(span)?.0, range(span)?.1.ok_or("no end")?, time(every)?.max(1));
                for at in (start..end).step_by(every as usize) {
                    self.sample(offset + at, rest)?;
                }
            }
            ("mark", [name, at, ..]) => {
                self.slice(SliceKind::Mark, name, &format!("{at}..{at}"), offset, rest)?;
            }
            ("gc", [name, span, ..]) => {
                self.slice(SliceKind::Gc, &format!("gc generation {name}"), span, offset, rest)?
            }
            ("overhead", [name, span, ..]) => {
                let kind = OverheadKind::from_name(name).unwrap_or(OverheadKind::Other);
                let id = (kind as u32).to_string();
                self.slice(SliceKind::Overhead, name, span, offset, &["id", &id])?;
            }
            ("window", [turn, at]) => {
                let window = RecordingWindow::from_name(turn).ok_or("neither `on` nor `off`")?;
                let (span, id) = (format!("{at}..{at}"), (window as u32).to_string());
                self.slice(SliceKind::RecordingWindow, window.said(), &span, offset, &["id", &id])?;
            }
            ("fix", [moment, at, said @ ..]) => {
                let moment = FixMoment::from_name(moment).ok_or("not a moment of a fix")?;
                let (span, id) = (format!("{at}..{at}"), (moment as u32).to_string());
                self.slice(SliceKind::Fix, &said.join(" "), &span, offset, &["id", &id])?;
            }
            // Without arguments as JSON it is one of torch.profiler's (see `device`).
            ("op", [name, span, "args", ..]) => self.slice(SliceKind::Op, name, span, offset, rest)?,
            ("step" | "scope" | "call" | "ccall" | "nvtx" | "layer" | "entry", [name, span, ..]) => {
                let kind = slice_kind(verb).ok_or("not understood")?;
                self.slice(kind, name, span, offset, rest)?
            }
            ("allocator" | "sampled" | "block" | "segment" | "oom" | "kept" | "reserved" | "holds", _) => {
                return self.memory_line(verb, rest, offset);
            }
            _ => return self.device_line(verb, rest, offset),
        }
        Ok(())
    }

    fn process(&mut self, words: &[&str]) -> ProcessIndex {
        let after = |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1));
        let rank = after("rank").and_then(|rank| rank.parse().ok());
        let parent_pid = after("of").and_then(|pid| pid.parse().ok()).unwrap_or(0);
        let program = words.first().filter(|_| words.len() != 2).map_or("app.py", |word| *word).replace('~', " ");
        // Far enough apart for the threads of each to have numbers of their own.
        let pid = 1000 * (self.builder.timeline.processes.len() as i64 + 1);
        let python = after("python").map_or("3.12.0", |word| *word).to_owned();
        self.builder.process(Process { pid, parent_pid, program, python, rank, ..Process::default() })
    }

    fn last_process(&mut self) -> ProcessIndex {
        match self.builder.timeline.processes.len() {
            0 => self.process(&[]),
            count => ProcessIndex(count as u32 - 1),
        }
    }

    fn here(&self) -> Result<TrackIndex, String> {
        self.track.ok_or_else(|| "no track before it".into())
    }

    fn slice(&mut self, kind: SliceKind, name: &str, span: &str, offset: u64, rest: &[&str]) -> Result<(), String> {
        let track = self.here()?;
        let (start, end) = range(span)?;
        let word = |key: &str| rest.iter().position(|word| *word == key).and_then(|at| rest.get(at + 1));
        let id = |key: &str| word(key).map_or(Ok(0), |word| number(Some(word)));
        let args = word("args").map(|args| args.replace('~', " "));
        let more = SliceExtra {
            id: id("id")? as u32,
            parent: id("parent")? as u32,
            args: args.as_deref(),
            open: end.is_none(),
        };
        let (text, file, line) = place(name, "");
        let name = self.builder.name(&text.replace('~', " "), file, line);
        if let Some(phase) = word("phase") {
            let phase = EnginePhase::from_name(phase).ok_or("no phase of an engine's step")?;
            self.builder.engine_step(name, phase);
        }
        let start = offset + start;
        let end = end.map(|end| offset + end).or(self.end).unwrap_or(start);
        self.builder.slice(track, kind, name, start, end.saturating_sub(start), more);
        Ok(())
    }

    fn sample(&mut self, at: u64, rest: &[&str]) -> Result<(), String> {
        let track = self.here()?;
        let (active, gil) = (rest.contains(&"active"), rest.contains(&"gil"));
        let mut stack = None;
        let named = rest.last().filter(|word| !["active", "gil"].contains(word));
        for frame in named.map_or(Vec::new(), |stack| frames(stack)) {
            let (text, file, line) = place(frame, "app.py");
            let name = self.builder.name(text, file, 0);
            stack = Some(self.builder.frame(stack, name, line));
        }
        self.builder.sample(track, at, stack.unwrap_or(StackIndex(0)), active, gil);
        Ok(())
    }

    fn counter(
        &mut self,
        process: Option<ProcessIndex>,
        tid: Option<i32>,
        name: &str,
        values: &[&str],
        offset: u64,
    ) -> Result<(), String> {
        if let [span, "every", every, "grows", step] = values {
            let (start, end) = range(span)?;
            let (every, step) = (time(every)?.max(1) as usize, amount(step)?);
            for (round, at) in (start..=end.ok_or("no end")?).step_by(every).enumerate() {
                self.builder.count(process, tid, name, offset + at, step * round as i64);
            }
            return Ok(());
        }
        for pair in values {
            let (at, value) = pair.split_once('=').ok_or_else(|| format!("{pair} is not TIME=VALUE"))?;
            self.builder.count(process, tid, name, offset + time(at)?, amount(value)?);
        }
        Ok(())
    }
}

/// The first word of a line that is a slice, here and where a trace is written from text.
pub(crate) fn slice_kind(word: &str) -> Option<SliceKind> {
    Some(match word {
        "scope" => SliceKind::Scope,
        "step" => SliceKind::Step,
        "mark" => SliceKind::Mark,
        "call" => SliceKind::Call,
        "ccall" => SliceKind::CCall,
        "gc" => SliceKind::Gc,
        "api" => SliceKind::ApiCall,
        "nvtx" => SliceKind::Nvtx,
        "layer" => SliceKind::Layer,
        "overhead" => SliceKind::Overhead,
        "window" => SliceKind::RecordingWindow,
        "entry" => SliceKind::Entry,
        "op" => SliceKind::Op,
        "fix" => SliceKind::Fix,
        _ => return None,
    })
}

/// Lines up to the `end` that closes the block.
fn block(lines: &[String]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|line| {
        depth += i32::from(line.starts_with("repeat"));
        depth -= i32::from(line == "end");
        depth < 0
    })
}

/// Frames apart; the `>` of `<lambda>` is part of its name.
fn frames(stack: &str) -> Vec<&str> {
    let mut inside = false;
    let ends = |letter: char| {
        let closes = letter == '>' && inside;
        inside = letter == '<' || inside && !closes;
        letter == '>' && !closes
    };
    stack.split(ends).collect()
}

/// `name[@file][:line]`.
fn place<'a>(text: &'a str, file: &'a str) -> (&'a str, &'a str, u32) {
    let (text, line) = match text.rsplit_once(':').map(|(head, line)| (head, line.parse())) {
        Some((head, Ok(line))) => (head, line),
        _ => (text, 0),
    };
    text.split_once('@').map_or((text, file, line), |(name, file)| (name, file, line))
}

fn range(text: &str) -> Result<(u64, Option<u64>), String> {
    let (start, end) = text.split_once("..").ok_or_else(|| format!("{text} is not a range"))?;
    Ok((time(start)?, if end.is_empty() { None } else { Some(time(end)?) }))
}

fn number(text: Option<&&str>) -> Result<u64, String> {
    text.and_then(|text| text.parse().ok()).ok_or_else(|| "a number is missing".into())
}

fn time(text: &str) -> Result<u64, String> {
    u64::try_from(amount(text)?).map_err(|_| format!("{text} is not a time"))
}

/// A number, in nanoseconds where it has a unit of time.
fn amount(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        other => return Err(format!("unknown unit {other}")),
    };
    let value: f64 = digits.parse().map_err(|_| format!("{text} is not a number"))?;
    Ok((value * unit).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_a_timeline() {
        let timeline = Timeline::from_text(
            "host cpus 4\n end 1s\n track main\n repeat 2 every 50ms\n step request 0..40ms # a comment\n\
             samples 0..40ms every 20ms active gil main>serve@svc.py:7\n end\n scope never 90ms..\n\
             counter cpu_ns 0=0 100ms=50ms\n loss scopes 3 overwritten",
        )
        .unwrap();
        assert_eq!(timeline.slices.start, [0, 50_000_000, 90_000_000]);
        assert!(timeline.slices.get(2).open && timeline.slices.get(2).end() == 1_000_000_000);
        assert_eq!(timeline.samples.time, [0, 20_000_000, 50_000_000, 70_000_000]);
        assert_eq!(timeline.counters[0].value, [0, 50_000_000]);
        assert_eq!((timeline.losses[0].count, timeline.info.host.cpu_count), (3, Some(4)));
        let leaf = timeline.stacks.frame(timeline.samples.get(0).stack);
        assert_eq!((timeline.names.text(leaf.name), leaf.line), ("serve", 7));
    }

    #[test]
    fn a_lambda_is_one_frame() {
        assert_eq!(frames("main:3><lambda>:4>sort"), ["main:3", "<lambda>:4", "sort"]);
    }

    #[test]
    fn a_line_that_is_not_understood_is_named() {
        let said = |text: &str| Timeline::from_text(text).unwrap_err();
        assert!(said("track main\nstpe request 0..1ms").starts_with("line 2"));
        assert!(said("step request 0..1ms").contains("no track"));
        assert!(said("repeat 3 every 1ms\n").contains("without `end`"));
    }
}
