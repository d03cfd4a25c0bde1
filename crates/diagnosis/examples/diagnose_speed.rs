//! How long a diagnosis takes: `cargo run --release -p inferscope-diagnosis --example diagnose_speed [SLICES] [SAMPLES] [TRACKS]` makes
//! a service with that many slices and samples and prints the seconds; with a path as the only argument it opens that trace
//! and prints what is said of it.

use diagnosis::{Options, diagnose};
use std::path::Path;
use std::time::Instant;
use timeline::{Builder, Process, SliceExtra, SliceKind, StackIndex, Timeline, TrackIndex};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let timeline = match words.as_slice() {
        [path] if Path::new(path).exists() => timeline::open(Path::new(path)).unwrap_or_else(|error| panic!("{error}")),
        _ => {
            let number =
                |place: usize, usual: usize| words.get(place).map_or(usual, |word| word.parse().unwrap_or(usual));
            service(number(0, 1_000_000), number(1, 100_000), number(2, 16))
        }
    };
    let began = Instant::now();
    let diagnosis = diagnose(&timeline, &Options::default());
    let took = began.elapsed();
    diagnosis.answer.iter().for_each(|sentence| println!("{sentence}"));
    for finding in &diagnosis.findings {
        let gain = finding.gain.map_or_else(String::new, |gain| format!("{:.1} to {:.1} %", gain.low, gain.high));
        println!("  {:<26} {:<5.2} {gain:<16} {}", finding.code, finding.confidence(), finding.title);
        finding.evidence.iter().for_each(|one| println!("      {}", one.text));
    }
    for part in diagnosis.breakdown.parts.iter().take(12) {
        println!("  {:>5.1} % {:<20} {} {}:{}", part.share * 100.0, part.kind.name(), part.label, part.file, part.line);
    }
    diagnosis.abstentions.iter().for_each(|one| println!("  abstains: {}: {}", one.code, one.reason));
    diagnosis.health.iter().for_each(|line| println!("  {:<5}{}: {}", line.state.name(), line.label(), line.text));
    let bound = &diagnosis.bottleneck;
    println!("{} ({:.2}): {}", bound.kind.name(), bound.confidence, bound.primary_cause);
    let (slices, samples, tracks) = (timeline.slices.len(), timeline.samples.len(), timeline.tracks.len());
    if let Some(gpu) = &diagnosis.gpu {
        for row in gpu.layers.iter().take(3) {
            let (name, all) = (timeline.names.text(row.name), row.kernels);
            println!(
                "  {name}: {all} kernels, {} direct, {} by sequence, {} by capture",
                row.direct, row.by_sequence, row.by_capture
            );
        }
    }
    for device in &diagnosis.idle {
        let share = |ns: u64| 100.0 * ns as f64 / device.window_ns.max(1) as f64;
        println!("  GPU {}: busy {:.1} %", device.ordinal, share(device.busy_ns));
        for one in &device.causes {
            println!("    {:>5.1} % {:<22} {:?}", share(one.ns), one.cause.name(), one.top);
        }
    }
    let work = timeline.gpu.work.len();
    println!(
        "{slices} slices, {samples} samples, {tracks} tracks, {work} pieces of device work: {:.3} s",
        took.as_secs_f64()
    );
}

/// Every track serves requests one after the other: each a step of 40 ms with calls and scopes in it, sampled every 10 ms.
fn service(slices: usize, samples: usize, tracks: usize) -> Timeline {
    let tracks = tracks.max(1);
    let mut builder = Builder::default();
    builder.timeline.info.host.cpu_count = Some(8);
    let process = builder.process(Process { pid: 1, ..Process::default() });
    let names: Vec<_> = (0..500).map(|line| builder.name(&format!("function_{line}"), "service.py", line)).collect();
    let (step, scope) = (builder.name("request", "", 0), builder.name("tokenise", "", 0));
    let stacks: Vec<StackIndex> = (0..500usize)
        .map(|leaf| {
            let mut stack = builder.frame(None, names[0], 1);
            for depth in 1..20 {
                stack = builder.frame(Some(stack), names[(leaf / (21 - depth)) % 500], (leaf % 7) as u32);
            }
            stack
        })
        .collect();
    let threads: Vec<TrackIndex> = (0..tracks).map(|tid| builder.track(process, tid as i32 + 1, "worker")).collect();
    const STEP: u64 = 40_000_000;
    // A step, a scope, a pause now and then, and calls for the rest.
    let steps = (slices / 50).max(1);
    for number in 0..steps {
        let (track, start) = (threads[number % tracks], (number / tracks) as u64 * STEP);
        builder.slice(
            track,
            SliceKind::Step,
            step,
            start,
            STEP - 1_000_000,
            SliceExtra { id: number as u32 * 2 + 1, ..SliceExtra::default() },
        );
        let more = SliceExtra { id: number as u32 * 2 + 2, parent: number as u32 * 2 + 1, ..SliceExtra::default() };
        builder.slice(track, SliceKind::Scope, scope, start + 1_000, STEP / 2, more);
        for call in 0..48u64 {
            let name = names[(number as u64 * 31 + call) as usize % 500];
            let kind = if call == 7 { SliceKind::Gc } else { SliceKind::Call };
            builder.slice(track, kind, name, start + 10_000 + call * 700_000, 600_000, SliceExtra::default());
        }
    }
    let span = (steps / tracks + 1) as u64 * STEP;
    let each = (samples / tracks).max(1) as u64;
    for (place, track) in threads.iter().enumerate() {
        for number in 0..each {
            let holds = number % tracks as u64 == place as u64;
            let stack = stacks[(number as usize * 7 + place) % stacks.len()];
            builder.sample(*track, span / each * number, stack, holds || number % 3 == 0, holds);
        }
        for reading in 0..span / 100_000_000 {
            for (name, by) in [("cpu_ns", 50_000_000), ("runqueue_wait_ns", 20_000_000), ("voluntary_switches", 40)] {
                let time = reading * 100_000_000;
                builder.count(Some(process), Some(place as i32 + 1), name, time, reading as i64 * by);
            }
        }
    }
    builder.finish()
}
