//! What one event costs the workload: the clock is read, a record is built and pushed into a ring of a real segment.
//! Prints nanoseconds as JSON for benches/run.py: the median over many short rounds, and the fastest round.

use std::time::Instant;
use trace::segment::Identity;
use trace::{Event, Kind, NameId, Segment, clock};

const ROUND: u32 = 20_000;
const ROUNDS: usize = 501;

fn main() {
    let folder = std::env::temp_dir().join(format!("inferscope-ring-speed-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a new folder in the temporary folder");
    let pid = std::process::id();
    let who = Identity {
        pid,
        parent: 0,
        start_ticks: 0,
        program: "ring_speed".into(),
        python: String::new(),
        ..Identity::default()
    };
    let segment = Segment::create(&folder, 100 << 20, &who).expect("a segment");
    let mut ring = segment.claim(pid).expect("a ring");

    let push_only = measure(|number| ring.push(event(0, number).to_words()));
    let with_clock = measure(|number| ring.push(event(clock::now(), number).to_words()));
    let _ = std::fs::remove_dir_all(&folder);
    let line =
        |name: &str, (median, least): (f64, f64)| format!(r#""{name}":{{"median":{median:.2},"least":{least:.2}}}"#);
    println!("{{{},{}}}", line("push_ns", push_only), line("event_ns", with_clock));
}

fn event(time: u64, number: u32) -> Event {
    Event { time, value: 1, thread: 1, name: NameId(7), kind: Kind::Call as u16, flags: 0, extra: number }
}

/// Nanoseconds an operation, (median, least) over the rounds. The rings are warm: the first rounds do not count.
fn measure(mut operation: impl FnMut(u32)) -> (f64, f64) {
    let mut rounds: Vec<f64> = (0..ROUNDS + 20)
        .map(|_| {
            let began = Instant::now();
            (0..ROUND).for_each(&mut operation);
            began.elapsed().as_nanos() as f64 / f64::from(ROUND)
        })
        .skip(20)
        .collect();
    rounds.sort_by(f64::total_cmp);
    (rounds[rounds.len() / 2], rounds[0])
}
