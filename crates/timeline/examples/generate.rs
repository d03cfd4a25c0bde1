//! Writes a trace such as a busy service leaves, encoded as the recorder does: `generate FOLDER EVENTS`. Steps with
//! scopes, nested calls, marks and collections on six threads of two processes, with samples and counters meanwhile.
//! For measuring the readers; the same arguments always give the same trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use timeline::fixture::{Fixture, Value, text::START_NS, write_table};
use trace::tables::{SliceKind, Table, WHOLE_PROCESS, file_name, sample_state};

const FUNCTIONS: i64 = 500;
const FRAMES: i64 = 4000;
const PHASES: [&str; 4] = ["tokenise", "batch", "compute", "detokenise"];
const OTHER: [&str; 5] = ["request", "poll", "cache_miss", "gen 0", "late"];
const OF_PROCESS: [&str; 5] = ["rss_bytes", "pss_bytes", "minor_faults", "major_faults", "cpu_ns"];
const OF_THREAD: [&str; 4] = ["cpu_ns", "runqueue_wait_ns", "voluntary_switches", "involuntary_switches"];
const SAMPLE_EVERY: i64 = 10_000_000;
const COUNT_EVERY: i64 = 100_000_000;
const ROWS_A_FILE: usize = 1_000_000;
/// (process, tid, whether it serves requests); the others poll.
const THREADS: [(i64, i64, bool); 6] =
    [(0, 100, true), (0, 101, true), (0, 102, false), (1, 200, true), (1, 201, true), (1, 202, false)];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, count] = &arguments[..] else { panic!("generate FOLDER EVENTS") };
    let count: usize = count.parse().expect("how many events");
    let mut out = Out { folder: folder.into(), ..Out::default() };
    let mut random = Random(1);
    std::fs::create_dir_all(folder).expect("the folder of the trace");
    let names = names(&mut out, &mut random);
    let mut threads = THREADS.map(|of| Thread { of, time: START_NS, ids: of.1 * 20_000_000 % 2_000_000_000 });
    let (mut sample_at, mut count_at) = (START_NS, START_NS);
    out.events = 0;
    while out.events < count {
        let next = threads.iter_mut().min_by_key(|thread| thread.time).expect("a thread");
        let now = next.time;
        next.turn(&mut out, &mut random, &names);
        while sample_at < now {
            samples(&mut out, &mut random, sample_at);
            sample_at += SAMPLE_EVERY;
        }
        while count_at < now {
            counters(&mut out, &names, count_at);
            count_at += COUNT_EVERY;
        }
    }
    let end = threads.iter().map(|thread| thread.time).max().unwrap_or(START_NS);
    out.finish();
    let mut fixture = Fixture::parse("process 100 serve.py 3.12.1\nprocess 200 worker.py 3.12.1");
    fixture.manifest["ended_ns"] = end.into();
    THREADS.iter().for_each(|(process, tid, serves)| {
        let name = if *serves { "serving" } else { "polling" };
        fixture.row(Table::Threads, [START_NS.into(), (*process).into(), (*tid).into(), name.into()]);
    });
    fixture.write(Path::new(folder));
}

/// Functions first, then the plain names, then the frames of the stacks.
fn names(out: &mut Out, random: &mut Random) -> BTreeMap<&'static str, i64> {
    for id in 1..=FUNCTIONS {
        let (name, file) = (format!("function_{id}"), format!("app/module_{}.py", id % 40));
        out.row(Table::Names, [id.into(), (&*name).into(), (&*file).into(), (id * 3).into()]);
    }
    let plain: BTreeMap<_, _> =
        PHASES.iter().chain(&OTHER).chain(&OF_PROCESS).chain(&OF_THREAD).copied().zip(FUNCTIONS + 1..).collect();
    for (name, id) in &plain {
        out.row(Table::Names, [(*id).into(), (*name).into(), Value::Null, Value::Null]);
    }
    for id in 1..=FRAMES {
        let parent = (id > 8).then(|| id - 1 - random.roll(id * 2 / 5));
        let (name, line) = (1 + random.roll(FUNCTIONS), 1 + random.roll(900));
        out.row(Table::Stacks, [id.into(), parent.into(), name.into(), line.into()]);
    }
    plain
}

struct Thread {
    of: (i64, i64, bool),
    time: i64,
    /// The last id of a scope or step; threads of a process do not meet.
    ids: i64,
}

impl Thread {
    /// One request, or one look at the queue.
    fn turn(&mut self, out: &mut Out, random: &mut Random, names: &BTreeMap<&str, i64>) {
        let (start, id) = (self.time, self.next_id());
        if !self.of.2 {
            self.calls(out, random, 3);
            self.time += 50_000_000;
            return self.slice(out, SliceKind::Scope, names["poll"], start, Some(id), None, None);
        }
        for phase in PHASES {
            let (start, scope) = (self.time, self.next_id());
            let calls = random.roll(60);
            self.calls(out, random, calls);
            if random.roll(20) == 0 {
                self.slice(out, SliceKind::Mark, names["cache_miss"], self.time, None, Some(scope), None);
            }
            let args = format!(r#"{{"tokens":{}}}"#, random.roll(4096));
            let args = (phase == "batch").then_some(&*args);
            self.slice(out, SliceKind::Scope, names[phase], start, Some(scope), Some(id), args);
        }
        if random.roll(50) == 0 {
            let start = self.time;
            self.time += random.roll(4_000_000);
            self.slice(out, SliceKind::Gc, names["gen 0"], start, None, None, None);
        }
        self.slice(out, SliceKind::Step, names["request"], start, Some(id), None, None);
        self.time += random.length();
    }

    fn next_id(&mut self) -> i64 {
        self.ids += 1;
        self.ids
    }

    /// Nested calls, each written when it ends.
    fn calls(&mut self, out: &mut Out, random: &mut Random, count: i64) {
        let (mut open, mut begun) = (Vec::new(), 0);
        while begun < count || !open.is_empty() {
            self.time += 50 + random.length();
            if begun < count && open.len() < 40 && (open.is_empty() || random.roll(5) < 3) {
                open.push((self.time, 1 + random.roll(FUNCTIONS)));
                begun += 1;
            } else if let Some((start, name)) = open.pop() {
                let kind = if name % 5 == 0 { SliceKind::CCall } else { SliceKind::Call };
                self.slice(out, kind, name, start, None, None, None);
            }
        }
    }

    #[allow(clippy::too_many_arguments)] // A row of the table.
    fn slice(
        &self,
        out: &mut Out,
        kind: SliceKind,
        name: i64,
        start: i64,
        id: Option<i64>,
        parent: Option<i64>,
        args: Option<&str>,
    ) {
        let (dur, (process, tid, _)) = (self.time - start, self.of);
        let head = [start.into(), dur.into(), process.into(), tid.into(), (kind as i32).into(), name.into()];
        let [a, b, c, d, e, f] = head;
        out.row(Table::Slices, [a, b, c, d, e, f, id.into(), parent.into(), args.into()]);
    }
}

fn samples(out: &mut Out, random: &mut Random, time: i64) {
    let holder = random.roll(4);
    for (place, (process, tid, serves)) in (0..).zip(THREADS) {
        // Few stacks are hot, as in life.
        let most = 1i64 << random.roll(12);
        let stack = if serves { FRAMES - random.roll(most) } else { FRAMES / 2 };
        let state = if serves { sample_state::ACTIVE } else { 0 } | if holder == place { sample_state::GIL } else { 0 };
        out.row(Table::Samples, [time.into(), process.into(), tid.into(), stack.into(), state.into()]);
    }
}

fn counters(out: &mut Out, names: &BTreeMap<&str, i64>, time: i64) {
    let since = time - START_NS;
    let mut row = |process: i64, tid: i64, name: &str, value: i64| {
        out.row(Table::Counters, [time.into(), process.into(), tid.into(), names[name].into(), value.into()]);
    };
    for process in [0, 1] {
        for (name, slope) in OF_PROCESS.iter().zip([8, 8, 100_000, 100_000_000, 1]) {
            row(process, WHOLE_PROCESS.into(), name, since / slope);
        }
    }
    for (process, tid, serves) in THREADS {
        for (name, slope) in OF_THREAD.iter().zip([1, 50, 1_000_000, 10_000_000]) {
            row(process, tid, name, if serves { since / slope } else { since / slope / 100 });
        }
    }
}

/// The tables as they fill, in files of a million rows.
#[derive(Default)]
struct Out {
    folder: PathBuf,
    rows: BTreeMap<Table, (u32, Vec<Vec<Value>>)>,
    events: usize,
}

impl Out {
    fn row<const N: usize>(&mut self, table: Table, row: [Value; N]) {
        self.events += 1;
        let (files, rows) = self.rows.entry(table).or_default();
        rows.push(row.into());
        if rows.len() == ROWS_A_FILE {
            *files += 1;
            let path = self.folder.join(file_name(table, *files, *files));
            write_table(&path, table, rows).expect("a table");
            rows.clear();
        }
    }

    fn finish(&mut self) {
        for (table, (files, rows)) in self.rows.iter().filter(|(_, (_, rows))| !rows.is_empty()) {
            let path = self.folder.join(file_name(*table, files + 1, files + 1));
            write_table(&path, *table, rows).expect("a table");
        }
    }
}

struct Random(u64);

impl Random {
    fn roll(&mut self, sides: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as i64
    }

    /// Nanoseconds: mostly short, now and then some milliseconds.
    fn length(&mut self) -> i64 {
        let most = 1 << self.roll(23);
        self.roll(most)
    }
}
