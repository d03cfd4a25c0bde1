//! InferScope trace JSON 1.1: every event but waits of devices, a line each, and the scopes with their parents and children. Calls and pauses are
//! `cpu_call`; a scope or step is `scope_enter` and `scope_exit`; marks, samples and counter readings are `instant`, told
//! apart by `metadata.category`. A sample names its stack, and `stacks` lists them. Times are µs after the start.

mod events;
mod gpu;
mod scopes;

use crate::json_text::{Event, Quoted, Separator};
use crate::units::date;
use events::Events;
use scopes::Scopes;
use std::io::{self, Write};
use timeline::{StackIndex, Timeline};

pub fn write(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let names = Quoted::new(timeline);
    head(timeline, out)?;
    let mut events = Events::new(timeline, &names, Scopes::find(timeline));
    for track in &timeline.tracks {
        events.track(track, out)?;
    }
    events.gpu(out)?;
    events.counters(out)?;
    out.write_all(b"\n],\n\"relationships\":{\"scopes\":[")?;
    events.scopes.write(timeline, &names, out)?;
    out.write_all(b"\n]},\n")?;
    stacks(timeline, &names, out)?;
    tail(timeline, out)
}

fn head(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let info = &timeline.info;
    let mut event = Event::default();
    event.raw("{\"format_version\":\"1.1\",\n\"trace_metadata\":{\"timestamp_created\":");
    event.text(&date(info.created_unix_ns).replace(' ', "T").replace("TUTC", "Z")).raw(r#","duration_ms":"#);
    event.number(timeline.duration() / 1_000_000).raw(&format!(".{:06}", timeline.duration() % 1_000_000));
    let device = timeline.gpu.devices.iter().find(|device| device.process.is_some());
    event.raw(r#","cuda_version":"#);
    known(&mut event, device.map(|device| &*device.driver));
    event.raw(r#","python_version":"#);
    match timeline.processes.iter().find(|process| !process.python.is_empty()) {
        Some(process) => event.text(&process.python),
        None => event.raw("null"),
    };
    event.raw(r#","torch_version":null,"gpu_model":"#);
    known(&mut event, device.map(|device| &*device.name));
    event.raw(r#","hostname":"#).text(&info.host.hostname);
    event.raw(r#","command":"#).text(&info.command).raw(r#","inferscope_version":"#).text(&info.version);
    event.raw("},\n\"system_info\":{\"cpu_count\":");
    optional(&mut event, info.host.cpu_count);
    event.raw(r#","cpu_model":"#).text(&info.host.cpu_model).raw(r#","numa_nodes":"#);
    optional(&mut event, info.host.numa_nodes);
    event.raw(r#","ram_gb":"#);
    match info.host.ram_bytes {
        Some(bytes) => event.raw(&format!("{:.2}", bytes as f64 / f64::from(1 << 30))),
        None => event.raw("null"),
    };
    event.raw(",\"gpu_count\":");
    optional(&mut event, gpus(timeline));
    event.raw("},\n\"events\":[").send(out)
}

/// The machine's devices; where they were not listed, those that processes saw, each once.
fn gpus(timeline: &Timeline) -> Option<u64> {
    let devices = &timeline.gpu.devices;
    let machine = devices.iter().filter(|device| device.process.is_none()).count() as u64;
    let mut seen: Vec<(&str, u32)> = devices
        .iter()
        .map(|device| if device.uuid.is_empty() { ("", device.ordinal) } else { (&*device.uuid, 0) })
        .collect();
    seen.sort_unstable();
    seen.dedup();
    if machine > 0 { Some(machine) } else { Some(seen.len() as u64).filter(|count| *count > 0) }
}

fn known(event: &mut Event, text: Option<&str>) {
    match text.filter(|text| !text.is_empty()) {
        Some(text) => event.text(text),
        None => event.raw("null"),
    };
}

fn optional(event: &mut Event, number: Option<u64>) {
    match number {
        Some(number) => event.number(number),
        None => event.raw("null"),
    };
}

fn stacks(timeline: &Timeline, names: &Quoted, out: &mut impl Write) -> io::Result<()> {
    let mut event = Event::default();
    let mut separator = Separator::new();
    out.write_all(b"\"stacks\":[")?;
    for index in 1..timeline.stacks.len() as u32 {
        let frame = timeline.stacks.frame(StackIndex(index));
        event.raw(separator.next()).raw(r#"{"id":"#).number(index.into()).raw(r#","parent_id":"#);
        optional(&mut event, (frame.parent.0 != 0).then_some(frame.parent.0.into()));
        event.raw(r#","function":"#).bytes(names.get(frame.name)).raw(r#","file":"#);
        event.text(&timeline.names.get(frame.name).file).raw(r#","line":"#);
        optional(&mut event, (frame.line != 0).then_some(frame.line.into()));
        event.raw("}").send(out)?;
    }
    out.write_all(b"\n],\n")
}

/// Who was recorded, and what was lost.
fn tail(timeline: &Timeline, out: &mut impl Write) -> io::Result<()> {
    let mut event = Event::default();
    let mut separator = Separator::new();
    event.raw("\"processes\":[");
    for process in &timeline.processes {
        event.raw(separator.next()).raw(r#"{"process_id":"#).signed(process.pid).raw(r#","parent_process_id":"#);
        event.signed(process.parent_pid).raw(r#","program":"#).text(&process.program);
        event.raw(r#","python_version":"#).text(&process.python).raw("}");
    }
    event.raw("\n],\n\"threads\":[");
    separator = Separator::new();
    for track in &timeline.tracks {
        event.raw(separator.next()).raw(r#"{"process_id":"#).signed(timeline.process(track).pid);
        event.raw(r#","thread_id":"#).signed(track.tid.into()).raw(r#","name":"#).text(&track.name).raw("}");
    }
    event.raw("\n],\n\"losses\":[");
    separator = Separator::new();
    for loss in &timeline.losses {
        event.raw(separator.next()).raw(r#"{"collector":"#).text(&loss.collector);
        event.raw(r#","reason":"#).text(loss.reason.name());
        event.raw(r#","what":"#).text(loss.reason.said(loss.count)).raw(r#","count":"#).number(loss.count).raw("}");
    }
    event.raw("\n],\n\"notes\":[");
    separator = Separator::new();
    for note in &timeline.notes {
        event.raw(separator.next()).raw(r#"{"code":"#).text(note.code.name());
        if let Some(process) = note.process {
            event.raw(r#","process":"#).number(process.into()).raw(r#","processes":"#).number(note.processes.into());
        }
        event.raw(r#","args":["#);
        for (at, argument) in note.args.iter().enumerate() {
            event.raw(if at > 0 { "," } else { "" }).text(argument);
        }
        event.raw(r#"],"text":"#).text(&note.said()).raw("}");
    }
    event.raw("\n]}\n").send(out)
}
