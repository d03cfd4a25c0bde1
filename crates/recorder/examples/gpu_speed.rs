//! How fast and how small what a GPU did is recorded: writes the kernels and launches of a decoding loop into a segment as
//! quickly as the recorder takes them, and prints time and bytes per event. Run it with `--release`.

use recorder::Settings;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use trace::clock::Source;
use trace::device::Work;
use trace::event::{Event, Kind};
use trace::segment::{Identity, OwnedRing};
use trace::{NameId, Segment};

/// Kernels of one token of a small language model: twelve layers of some twenty, and what is around them.
const KERNELS: usize = 250;
const NAMES: usize = 32;

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2_000_000);
    let folder = Path::new("/dev/shm").join(format!("inferscope-gpu-speed-{}", std::process::id()));
    let output = std::env::temp_dir().join(format!("inferscope-gpu-speed-{}", std::process::id()));
    fs::create_dir(&folder).expect("a folder in /dev/shm");
    let pid = std::process::id();
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let start_ticks = after_name.split_whitespace().nth(19).and_then(|word| word.parse().ok()).unwrap_or(0);
    let who =
        Identity { pid, parent: 1, start_ticks, program: "speed".into(), python: "3.12".into(), ..Identity::default() };
    let segment = Segment::create_with(&folder, 64 << 20, &who, Source::Monotonic).expect("a segment");
    let stop = folder.join("stop");
    let writing = std::thread::spawn(move || {
        let took = write(segment, count);
        fs::write(stop, "").expect("the stop file");
        (took, cpu(libc::CLOCK_THREAD_CPUTIME_ID))
    });
    let settings = Settings { output: Some(output.clone()), rate_hz: 0, memory_hz: 0.0, ..Settings::default() };
    let outcome = recorder::record(&settings, &folder, pid, |_| None);
    let (took, writer_cpu) = writing.join().expect("the writer");
    let recorder_cpu = cpu(libc::CLOCK_PROCESS_CPUTIME_ID).saturating_sub(writer_cpu);
    let size = |table: &str| -> u64 {
        let files = fs::read_dir(&output).expect("a trace").flatten();
        let of_table = files.filter(|file| file.file_name().to_string_lossy().starts_with(table));
        of_table.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum()
    };
    let per = |amount: f64| amount / count as f64;
    println!(
        "{count} kernels and as many launches, {:.2} M/s of each taken while it was pressed",
        count as f64 / took.as_secs_f64() / 1e6
    );
    println!(
        "{:.0} ns of recorder CPU per kernel and launch, compaction included",
        per(recorder_cpu.as_nanos() as f64)
    );
    println!("{:.2} bytes per kernel on disk (gpu)", per(size("gpu.") as f64));
    println!("{:.2} bytes per launch on disk (slices)", per(size("slices.") as f64));
    println!("{:.2} bytes per event in all ({} bytes of names)", per(size("") as f64) / 2.0, size("names."));
    if let Ok(outcome) = outcome {
        outcome.notes.iter().for_each(|note| println!("note: {note}"));
    }
    let _ = (fs::remove_dir_all(output), fs::remove_dir_all(folder));
}

/// A generator that gives the same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// One token's kernels: names and shapes as they come back in every step; times are set later.
fn step(names: &[NameId], random: &mut Random) -> Vec<(Work, u64)> {
    let mut work = |_| {
        let kind = random.below(NAMES as u64) as usize;
        let small = kind.is_multiple_of(3);
        let work = Work {
            name: names[kind],
            context: 1,
            stream: 7,
            grid: [1 + random.below(if small { 8 } else { 1500 }) as u32, 1 + random.below(4) as u32, 1],
            block: [32 << random.below(5), 1, 1],
            registers: 16 + 8 * (kind as u16 % 20),
            shared_static: if small { 0 } else { 1024 * (kind as u32 % 16) },
            shared_dynamic: if kind.is_multiple_of(5) { 49_152 } else { 0 },
            ..Work::default()
        };
        (work, 1_500 + random.below(12_000))
    };
    (0..KERNELS).map(&mut work).collect()
}

/// Writes kernels and launches as fast as they are made durable. Returns how long it took.
fn write(segment: &'static Segment, count: u64) -> Duration {
    let mut table = trace::names::NameWriter::new(|bytes| segment.names(bytes)).expect("room for names");
    let long = "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>>";
    let names: Vec<NameId> = (0..NAMES).map(|n| table.intern(&format!("void {long}({n})"))).collect();
    let launch = table.intern("cudaLaunchKernel");
    let mut random = Random(88_172_645_463_325_252);
    let step = step(&names, &mut random);
    let [mut kernels, mut launches]: [OwnedRing; 2] = [1, 2].map(|thread| segment.claim(thread).expect("a ring"));
    // A real workload would not wait: the ring would wrap. Here nothing may be lost.
    let wait = |ring: &mut OwnedRing, count: u64| {
        while !(ring.writer.has_room(count) || ring.look(count) || ring.grow(count)) {
            std::thread::yield_now();
        }
    };
    let (started, mut time, mut correlation) = (Instant::now(), trace::clock::monotonic().0, 1000);
    for number in 0..count {
        let (shape, typical) = step[number as usize % KERNELS];
        correlation += 8 + random.below(10) as u32;
        let dur = typical + random.below(typical / 8);
        time += dur + 700 + random.below(6_000);
        let work = Work { start: time, dur, correlation, ..shape };
        let (records, some) = work.records(Kind::Kernel);
        wait(&mut kernels, some as u64);
        records[..some].iter().for_each(|record| kernels.push(*record));
        let (kind, value) = (Kind::ApiCall as u16, 3_000 + random.below(2_500));
        let call = Event { time: time - 20_000, value, thread: 4711, name: launch, kind, flags: 0, extra: correlation };
        wait(&mut launches, 1);
        launches.push(call.to_words());
    }
    started.elapsed()
}

fn cpu(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` outlives the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
