//! A session in a folder of its own, records to write into it, and what a recorder finds of them.

use std::collections::BTreeMap;
use std::path::Path;
use trace::event::{Event, Kind, NameId};
use trace::ring::Reader;
use trace::segment::SegmentReader;
use workload::settings::{Calls, GpuDetail, Recording, Settings};
use workload::thread::Writing;

/// Settings as a recorder gives them, for segments in a new folder.
pub fn settings(test: &str, calls: Calls) -> Settings {
    let segments = std::env::temp_dir().join(format!("inferscope-workload-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&segments).expect("a folder for segments");
    let recording = Recording { trace_size_mb: 4, calls, gpu_detail: GpuDetail::Off, ..Recording::default() };
    Settings { segments, recorder: None, recording }
}

/// Writes one record with a number in it.
pub fn write(writing: &mut Writing, number: u64) {
    let (thread, kind) = (writing.tid, Kind::Mark as u16);
    let event = Event { time: number, value: number, thread, name: NameId::NONE, kind, flags: 0, extra: 0 };
    writing.push(event.to_words());
}

/// The numbers in a segment, by thread, and how many records were overwritten.
pub fn read(segment: &Path) -> (BTreeMap<u32, Vec<u64>>, u64) {
    let reader = SegmentReader::open(segment).expect("a segment");
    let (mut found, mut lost) = (BTreeMap::<u32, Vec<u64>>::new(), 0);
    for ring in (0..reader.rings()).filter_map(|number| reader.ring(number)) {
        let mut words = Vec::new();
        lost += Reader::new(ring.head, ring.slots, 0).drain(&mut words, usize::MAX);
        for event in words.into_iter().map(Event::from_words) {
            found.entry(event.thread).or_default().push(event.value);
        }
    }
    found.values_mut().for_each(|numbers| numbers.sort_unstable());
    (found, lost)
}
