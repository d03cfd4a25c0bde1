//! Damaged traces through the whole path: whatever opens is measured and written in every way, without a panic, and what is
//! written is valid. The changes are pseudo-random from a fixed seed, so a failure repeats.

use report::Style;
use timeline::Timeline;
use timeline::fixture::{Fixture, TemporaryFolder};

const TRACE: &str = r#"
    process 100 serve.py 3.12.1
    process 200 worker.py 3.12.1
    thread 0 100 MainThread
    step 0 100 10..90 request #1 {"i":1}
    scope 0 100 20..80 decode #2 ^1 {"n":3}
    scope 0 100 85.. tail #3 ^1
    scope 1 200 5..70 other #1
    mark 0 100 30 cache_miss ^2 {"key":"k"}
    call 0 100 20..60 forward@model.py:12
    call 0 100 22..58 forward@model.py:12
    ccall 0 100 30..40 matmul@np.py:3
    sample 0 100 25 active,gil main@a.py:3;forward@model.py:14
    sample 0 100 35 idle main@a.py:3
    sample 1 200 35 active main@a.py:3
    counter 0 0 10 rss_bytes 4096
    counter 0 0 60 rss_bytes 8192
    counter 1 0 60 rss_bytes 100
    counter 0 100 20 cpu_ns 5000
    counter 0 100 80 cpu_ns 65000
    counter -1 0 20 psi_cpu_some_us 5
    api 0 100 41..43 cudaLaunchKernel #7
    kernel 0 0 7 50..60 gemm #7 grid 8 block 128
    kernel 0 0 7 60..70 gemm #7 graph 3 node 5
    copy 0 0 7 70..75 h2d #8 bytes 4096
    sync 0 0 7 55..76 stream #9
    alloc 0 0 45 4096 17
    loss 0 calls 3 overwritten
"#;

fn random(state: &mut u64, below: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as usize % below.max(1)
}

fn write_everything(timeline: &Timeline) {
    let metrics = analysis::measure(timeline);
    let diagnosis = diagnosis::diagnose(timeline, &diagnosis::Options::default());
    for style in [Style::default(), Style { colour: true, unicode: false, width: 60 }] {
        let mut text = Vec::new();
        report::reports::text::write(timeline, &metrics, &diagnosis, 20, &style, &mut text).unwrap();
        report::reports::brief::write(timeline, &metrics, &diagnosis, &style, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.chars().all(|c| !c.is_control() || c == '\n' || c == '\x1b' && style.colour), "{text:?}");
    }
    let mut bytes = Vec::new();
    report::reports::html::write(timeline, &metrics, &diagnosis, &mut bytes).unwrap();
    report::reports::markdown::write(timeline, &metrics, &diagnosis, &mut bytes).unwrap();
    report::exports::perfetto::write(timeline, &mut bytes).unwrap();
    bytes.clear();
    report::reports::analysis_json::write(timeline, &metrics, &diagnosis, &mut bytes).unwrap();
    serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).unwrap();
    for write in [report::exports::chrome::write, report::exports::json::write]
        as [fn(&Timeline, &mut Vec<u8>) -> std::io::Result<()>; 2]
    {
        let mut bytes = Vec::new();
        write(timeline, &mut bytes).unwrap();
        serde_json::from_slice::<serde::de::IgnoredAny>(&bytes)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&bytes)));
    }
}

#[test]
fn whatever_opens_can_be_reported() {
    const CASES: usize = 1000;
    let folder = TemporaryFolder::new("damaged");
    Fixture::parse(TRACE).write(folder.path());
    let mut files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let whole: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    write_everything(&timeline::open(folder.path()).unwrap());
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut opened = 0;
    for _ in 0..CASES {
        // Values lie in the first half of these small files, and changing those is what reaches the reports.
        for _ in 0..1 + random(&mut state, 3) {
            let place = random(&mut state, files.len());
            let mut bytes = whole[place].clone();
            for _ in 0..1 + random(&mut state, 3) {
                let limit = if random(&mut state, 3) == 0 { bytes.len() } else { bytes.len() / 2 };
                let at = random(&mut state, limit);
                bytes[at] = random(&mut state, 256) as u8;
            }
            std::fs::write(&files[place], &bytes).unwrap();
        }
        if let Ok(timeline) = timeline::open(folder.path()) {
            opened += 1;
            write_everything(&timeline);
        }
        files.iter().zip(&whole).for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap());
    }
    assert!(opened > CASES / 2, "{opened} of {CASES}");
}
