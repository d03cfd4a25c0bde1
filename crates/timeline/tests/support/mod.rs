//! What the tests of readers share: a file to open, a reader of everything in a timeline, damage from a fixed seed, and a process
//! of its own for a test that measures memory.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::process::Command;
use timeline::fixture::TemporaryFolder;
use timeline::{OpenError, Timeline};

/// A file of its own for each test.
pub struct Place(pub TemporaryFolder);

impl Place {
    pub fn open(&self, bytes: &[u8]) -> Result<Timeline, OpenError> {
        let path = self.0.path().join("trace.json");
        std::fs::write(&path, bytes).unwrap();
        let timeline = timeline::open(&path)?;
        touch(&timeline);
        Ok(timeline)
    }
}

/// Reads every value that a report would, and checks what everything after relies on.
pub fn touch(timeline: &Timeline) {
    for track in &timeline.tracks {
        assert!((track.process.0 as usize) < timeline.processes.len());
        for index in track.slices.clone() {
            let slice = timeline.slices.get(index);
            assert!(slice.start >= timeline.start && slice.end() <= timeline.end, "{slice:?}");
            let _ = (timeline.names.text(slice.name).len(), timeline.slices.args(index).map(str::len));
        }
        assert!(track.slices.clone().map(|index| timeline.slices.start[index]).is_sorted());
        for index in track.samples.clone() {
            let stack = timeline.samples.get(index).stack;
            assert!((stack.0 as usize) < timeline.stacks.len());
            timeline.stacks.walk(stack).for_each(|(_, frame)| drop(timeline.names.get(frame.name).clone()));
        }
    }
    for counter in &timeline.counters {
        assert!(counter.time.is_sorted() && counter.time.len() == counter.value.len());
        assert!(counter.process.is_none_or(|process| (process.0 as usize) < timeline.processes.len()));
    }
    assert!(timeline.start <= timeline.end);
    let gpu = &timeline.gpu;
    for stream in &gpu.streams {
        assert!((stream.process.0 as usize) < timeline.processes.len());
        assert!(gpu.work.start[stream.work.clone()].is_sorted());
        for index in stream.work.clone() {
            let piece = gpu.work.get(index);
            assert!(piece.start >= timeline.start && piece.end() <= timeline.end, "{piece:?}");
            let _ = (piece.copy(), gpu.shape(index), timeline.names.text(piece.name));
            assert!(piece.launch.is_none_or(|launch| gpu.work.of_launch(launch).contains(&(index as u32))));
        }
    }
}

/// `kind name start+dur` of every slice, in nanoseconds, track by track.
pub fn draw(timeline: &Timeline) -> Vec<String> {
    let slices = &timeline.slices;
    let one = |index: usize| {
        let slice = slices.get(index);
        let (kind, name) = (slice.kind.name(), timeline.names.text(slice.name));
        format!("{kind} {name} {}+{}{}", slice.start, slice.dur, if slice.open { " open" } else { "" })
    };
    timeline.tracks.iter().flat_map(|track| track.slices.clone().map(one)).collect()
}

pub fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// From a fixed seed, so that a failure repeats.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    /// A few bytes changed, taken out or doubled, or something put in that JSON gives a meaning.
    pub fn damage(&mut self, bytes: &mut Vec<u8>) {
        const PIECES: [&[u8]; 16] = [
            b"\"", b"{", b"}", b"[", b"]", b",", b":", b"\\", b"-", b"e9", b"1e18", b"null", b"NaN", b"\\ud83d",
            b"\xff", b"\x00",
        ];
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            let end = (at + 1 + self.below(40)).min(bytes.len());
            match self.below(6) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => drop(bytes.drain(at..end)),
                3 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                4 => drop(bytes.splice(at..at, PIECES[self.below(PIECES.len())].to_vec())),
                _ => drop(bytes.splice(at..at + 1, PIECES[self.below(PIECES.len())].to_vec())),
            }
        }
    }
}

/// Runs a test, named by its path, in a process of its own, and fails if that had more than so many kilobytes of memory: in this
/// one the other tests run too.
pub fn within_kilobytes(most: u64, test: &str, body: impl FnOnce()) {
    const ALONE: &str = "TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let this = std::env::current_exe().unwrap();
        let done = Command::new(this).args([test, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(said.contains("1 passed") && done.status.success(), "{test}: {said}");
        return;
    }
    body();
    let peak = peak_kilobytes();
    assert!(peak < most, "{peak} kB at the peak");
}

/// The most memory that this process has had, in kilobytes.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}
