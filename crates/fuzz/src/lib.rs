//! Runs a reader on inputs made from seeds: some hundred in a test, or for `FUZZ_SECONDS`. An input that broke something is kept, and
//! `FUZZ_SEED=N FUZZ_CASES=1` makes it again. What is made and read is left to the tests that call [`fuzz`].

mod random;

pub use random::{NUMBERS, Random};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// No input here is larger than a megabyte: what takes this long or this much does not end by itself.
const LONGEST: Duration = Duration::from_secs(120);
const MOST_KILOBYTES: u64 = 2_000_000;

fn asked(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value} is not a number")))
}

/// `make` writes an input at a path, from a seed; `read` reads it. Neither may panic, hang, or take memory without end.
pub fn fuzz(name: &str, cases: u64, make: impl Fn(&mut Random, &Path), read: impl Fn(&mut Random, &Path)) {
    let folder = std::env::temp_dir().join(format!("inferscope-fuzz-{name}-{}", std::process::id()));
    let (first, cases) = (asked("FUZZ_SEED").unwrap_or(0), asked("FUZZ_CASES").unwrap_or(cases));
    let (began, seconds) = (Instant::now(), asked("FUZZ_SECONDS").map(Duration::from_secs));
    let clock = Arc::new((AtomicU64::new(first), Mutex::new(Instant::now())));
    let watched = watch(name, &folder, clock.clone());
    let mut seed = first;
    while seconds.map_or(seed - first < cases, |most| began.elapsed() < most) {
        clock.0.store(seed, Ordering::Relaxed);
        *clock.1.lock().unwrap() = Instant::now();
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let mut random = Random::new(seed);
        // A stack that overflows ends everything at once: what was being read then is still in the folder.
        let kept = || format!("{name}, seed {seed}: the input is in {}", folder.display());
        let input = folder.join("input");
        make(&mut random, &input);
        let done = catch_unwind(AssertUnwindSafe(|| read(&mut random, &input)));
        assert!(done.is_ok(), "{}; again: FUZZ_SEED={seed} FUZZ_CASES=1", kept());
        assert!(peak_kilobytes() < MOST_KILOBYTES, "{}: or one of those beside it takes too much memory", kept());
        seed += 1;
    }
    drop(watched);
    let _ = std::fs::remove_dir_all(&folder);
    if seconds.is_some() {
        eprintln!("{name}: {} cases", seed - first);
    }
}

/// Ends the test when one case does not end.
fn watch(name: &str, folder: &Path, clock: Arc<(AtomicU64, Mutex<Instant>)>) -> mpsc::Sender<()> {
    let (alive, waits) = mpsc::channel();
    let said = format!("{name} does not end; the input is in {}", folder.display());
    std::thread::spawn(move || {
        while waits.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
            if clock.1.lock().unwrap().elapsed() > LONGEST {
                eprintln!("{said}; again: FUZZ_SEED={} FUZZ_CASES=1", clock.0.load(Ordering::Relaxed));
                std::process::abort();
            }
        }
    });
    alive
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}
