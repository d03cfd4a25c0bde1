//! How fast the recorder is: writes call records into a segment as quickly as the recorder takes them, through the whole
//! path ring → Parquet, and prints time and bytes per event, and memory. Run it with `--release`.

use recorder::Settings;
use std::path::Path;
use std::time::{Duration, Instant};
use trace::event::{Event, Kind};
use trace::segment::Identity;
use trace::{NameId, Segment, SegmentReader};

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(10_000_000);
    let folder = Path::new("/dev/shm").join(format!("inferscope-speed-{}", std::process::id()));
    let output = std::env::temp_dir().join(format!("inferscope-speed-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder in /dev/shm");
    let pid = std::process::id();
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let start_ticks = after_name.split_whitespace().nth(19).and_then(|word| word.parse().ok()).unwrap_or(0);
    let who =
        Identity { pid, parent: 1, start_ticks, program: "speed".into(), python: "3.12".into(), ..Identity::default() };
    let segment = Segment::create(&folder, 100 << 20, &who).expect("a segment");

    let stop = folder.join("stop");
    let writing = std::thread::spawn(move || {
        let took = write(segment, count);
        std::fs::write(stop, "").expect("the stop file");
        (took, cpu(libc::CLOCK_THREAD_CPUTIME_ID))
    });
    let settings = Settings { output: Some(output.clone()), rate_hz: 0, memory_hz: 0.0, ..Settings::default() };
    let started = Instant::now();
    let mut finished = Duration::ZERO;
    let outcome = recorder::record(&settings, &folder, pid, |_| {
        finished = started.elapsed();
        None
    });
    let ((took, left), writer_cpu) = writing.join().expect("the writer");
    // What follows the recording (waiting for the caller to read its answer) is idle.
    let recorder_cpu = cpu(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(writer_cpu);
    let bytes: u64 =
        std::fs::read_dir(&output).expect("a trace").flatten().map(|f| f.metadata().map_or(0, |m| m.len())).sum();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default().trim().to_owned();
    let per = |time: Duration| time.as_nanos() as f64 / count as f64;
    println!(
        "{count} events, {:.1} M/s taken by the recorder while it was pressed",
        count as f64 / took.as_secs_f64() / 1e6
    );
    println!(
        "{:.1} ns of recorder CPU per event, compaction included ({:.1} ns to write one)",
        per(recorder_cpu),
        per(writer_cpu)
    );
    println!("{:.2} bytes per event on disk", bytes as f64 / count as f64);
    println!(
        "{:.3} s from the last event to a complete trace ({left} events were not on disk then)",
        (finished - took).as_secs_f64()
    );
    println!("peak memory {peak}, with the rings and the writer");
    if let Ok(outcome) = outcome {
        outcome.notes.iter().for_each(|note| println!("note: {note}"));
    }
    let _ = std::fs::remove_dir_all(output);
    let _ = std::fs::remove_dir_all(folder);
}

/// Writes calls as fast as they are made durable. Returns how long it took, and how many were not on disk at the end.
fn write(segment: &'static Segment, count: u64) -> (Duration, u64) {
    let started = Instant::now();
    let mut names = trace::names::NameWriter::new(|bytes| segment.names(bytes)).expect("room for names");
    let names: Vec<NameId> =
        (0..60).map(|n| names.intern(&format!("function_{n}\u{1f}/app/module.py\u{1f}{n}"))).collect();
    let mut ring = segment.claim(std::process::id()).expect("a ring");
    let reader = SegmentReader::open(segment.path()).expect("our own segment");
    let mut seed = 88_172_645_463_325_252_u64;
    for _ in 0..count {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let (now, kind) = (trace::clock::now(), Kind::Call as u16);
        let name = names[(seed >> 32) as usize % names.len()];
        let event = Event { time: now - seed % 5000, value: seed % 5000, thread: 7, name, kind, flags: 0, extra: 3 };
        // A real workload would not wait: the ring would wrap. Here nothing may be lost.
        while !(ring.writer.has_room(1) || ring.look(1) || ring.grow(1)) {
            std::thread::yield_now();
        }
        ring.push(event.to_words());
    }
    let rings = (0..reader.rings()).filter_map(|number| reader.ring(number));
    (started.elapsed(), count - rings.map(|ring| ring.durable()).sum::<u64>())
}

fn cpu(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
