//! Opens a trace and says how long that took and how much memory it holds: `open FOLDER`.

fn main() {
    let folder = std::env::args().nth(1).expect("open FOLDER");
    let before = std::time::Instant::now();
    let timeline = timeline::open(folder.as_ref()).expect("a trace");
    let elapsed = before.elapsed();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = |key: &str| status.lines().find(|line| line.starts_with(key)).unwrap_or("").to_owned();
    let (slices, samples, work) = (timeline.slices.len(), timeline.samples.len(), timeline.gpu.work.len());
    println!("{slices} slices, {samples} samples, {work} pieces of device work in {elapsed:?}");
    println!("{}\n{}", line("VmHWM"), line("VmRSS"));
    timeline.notes_said().iter().for_each(|note| println!("{note}"));
}
