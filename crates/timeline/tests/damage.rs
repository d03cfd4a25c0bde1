//! Damages traces in every way that a few thousand cases allow: no panic leaves the reader, nothing hangs, and each outcome is
//! a timeline with a note or a typed error. The changes are pseudo-random from a fixed seed, so a failure repeats.

use crate::support::within_kilobytes;
use std::path::{Path, PathBuf};
use timeline::fixture::{Fixture, TemporaryFolder};
use timeline::{OpenError, Timeline};

const TRACE: &str = r#"
    process 100 serve.py 3.12.1
    thread 0 100 MainThread
    step 0 100 10..90 request #1 {"i":1}
    scope 0 100 20..80 decode #2 ^1 {"n":3}
    scope 0 100 85.. tail #3 ^1
    mark 0 100 30 cache_miss ^2 {"key":"k"}
    call 0 100 20..60 forward@model.py:12
    ccall 0 100 30..40 matmul@np.py:3
    sample 0 100 25 active,gil main@a.py:3;forward@model.py:14
    sample 0 100 35 idle main@a.py:3
    counter 0 0 10 rss_bytes 4096
    counter 0 100 20 cpu_ns 5000
    loss 0 calls 3 overwritten
    device 0 {"ordinal":0,"name":"NVIDIA H200"}
    api 0 100 40..45 cudaLaunchKernel #7
    kernel 0 0 7 50..60 gemm #7 grid 8 block 128 graph 3 node 5
    copy 0 0 7 60..70 h2d #8 bytes 4096
    sync 0 0 7 60..70 stream #9
    alloc 0 0 45 4096 17
"#;

fn write() -> (TemporaryFolder, Vec<PathBuf>) {
    let folder = TemporaryFolder::new("damage");
    Fixture::parse(TRACE).write(folder.path());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    (folder, files)
}

/// Reads every value that a report would, so that nothing odd is left for later.
fn touch(timeline: &Timeline) {
    for track in &timeline.tracks {
        for index in track.slices.clone() {
            let slice = timeline.slices.get(index);
            let _ = (slice.end(), timeline.names.text(slice.name).len(), timeline.slices.args(index).map(str::len));
        }
        assert!(track.slices.clone().map(|index| timeline.slices.start[index]).is_sorted());
        for index in track.samples.clone() {
            timeline.stacks.walk(timeline.samples.get(index).stack).for_each(|(_, frame)| {
                let _ = timeline.names.get(frame.name);
            });
        }
    }
    let gpu = &timeline.gpu;
    for stream in &gpu.streams {
        assert!(gpu.work.start[stream.work.clone()].is_sorted());
        for index in stream.work.clone() {
            let piece = gpu.work.get(index);
            let _ = (piece.end(), piece.copy(), gpu.shape(index), timeline.names.text(piece.name));
            if let Some(launch) = piece.launch {
                assert!(gpu.work.of_launch(launch).contains(&(index as u32)));
                let _ = timeline.waited_for(launch);
            }
        }
    }
    assert!(gpu.allocations.is_sorted_by_key(|allocation| allocation.time));
    assert!(timeline.counters.iter().all(|counter| counter.time.is_sorted()));
    assert!(timeline.start <= timeline.end);
}

fn open(folder: &Path) -> Result<Timeline, OpenError> {
    let timeline = timeline::open(folder)?;
    touch(&timeline);
    Ok(timeline)
}

#[test]
fn a_table_cut_at_any_byte_is_named_and_the_rest_opens() {
    let (folder, files) = write();
    for file in files.iter().filter(|file| file.extension().is_some_and(|e| e == "parquet")) {
        let whole = std::fs::read(file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        for length in 0..whole.len() {
            std::fs::write(file, &whole[..length]).unwrap();
            let timeline = open(folder.path()).unwrap();
            assert!(
                timeline.notes_said().iter().any(|note| note.starts_with(name)),
                "{name} cut at {length}: {:?}",
                timeline.notes_said()
            );
            assert_eq!(timeline.info.damaged, [name], "cut at {length}");
            if !name.starts_with("slices") {
                assert_eq!(timeline.slices.len(), 7, "{name} cut at {length}");
            }
        }
        std::fs::write(file, &whole).unwrap();
    }
}

#[test]
fn a_manifest_cut_at_any_byte_costs_only_the_manifest() {
    let (folder, files) = write();
    let manifest = files.iter().find(|file| file.ends_with("manifest.json")).unwrap();
    let whole = std::fs::read(manifest).unwrap();
    for length in 0..whole.len() {
        std::fs::write(manifest, &whole[..length]).unwrap();
        let timeline = open(folder.path()).unwrap();
        assert_eq!(timeline.slices.len(), 7);
        assert!(timeline.notes_said()[0].starts_with("manifest.json"), "cut at {length}: {:?}", timeline.notes_said());
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    /// Changes a few bytes: others, zeros, ones, high bits, a piece taken out, a piece doubled.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            let Some(byte) = bytes.get_mut(at) else { return };
            match self.below(7) {
                0 => *byte = self.below(256) as u8,
                1 => *byte = 0,
                2 => *byte = 0xff,
                3 => *byte ^= 1 << self.below(8),
                4 => *byte = byte.wrapping_add(1),
                5 => {
                    let end = (at + 1 + self.below(16)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    let end = (at + 1 + self.below(16)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
}

#[test]
fn changed_bytes_never_panic_hang_or_take_all_memory() {
    const CASES: usize = 6000;
    let (folder, files) = write();
    let mut random = Random(0x5eed_1234_5678_9abc);
    let (mut opened, mut refused) = (0, 0);
    for case in 0..CASES {
        let file = &files[case % files.len()];
        let whole = std::fs::read(file).unwrap();
        let mut bytes = whole.clone();
        random.damage(&mut bytes);
        std::fs::write(file, &bytes).unwrap();
        match open(folder.path()) {
            Ok(_) => opened += 1,
            Err(_) => refused += 1,
        }
        std::fs::write(file, &whole).unwrap();
    }
    assert_eq!(opened + refused, CASES);
    assert!(refused < CASES / 4, "{refused} of {CASES} were refused: one bad file must not cost the trace");
}

#[test]
fn declared_sizes_are_not_believed() {
    within_kilobytes(300_000, "damage::declared_sizes_are_not_believed", || {
        let (folder, files) = write();
        let names = files.iter().find(|file| file.to_str().unwrap().contains("names.")).unwrap();
        let whole = std::fs::read(names).unwrap();
        // Every place that could hold a size, made as large as the format allows: a varint of five bytes.
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes.splice(at..at + 1, [0xfe, 0xff, 0xff, 0xff, 0x0f]);
            std::fs::write(names, &bytes).unwrap();
            let _ = open(folder.path());
        }
    });
}
