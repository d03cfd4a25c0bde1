//! Writes a trace such as an eager decode leaves, encoded as the recorder does: `generate_gpu FOLDER KERNELS [A_STEP]`. One
//! thread launches 240 kernels a step on one stream, or so many, with layers in the first four steps, a copy and a wait at the
//! end of each, and samples of it and of threads that wait meanwhile. No two launches take the same time. For measuring the
//! readers; the same arguments always give the same trace.

use std::path::Path;
use timeline::fixture::{Fixture, Value, text::START_NS, write_table};
use trace::tables::{SliceKind, Table, WorkKind, detail, file_name, sample_state};

const LAYERS: i64 = 12;
const CALIBRATED: i64 = 4;
const KERNELS: i64 = 18;
const LAUNCH_NS: i64 = 5_000;
const KERNEL_NS: i64 = 4_000;
/// Threads that are sampled, and places at which they are seen.
const THREADS: i32 = 4;
const STACKS: i64 = 200;
const SAMPLE_EVERY: i64 = 10_000_000;
const ROWS_A_FILE: usize = 1_000_000;

/// Names by place: kernels, layers, then these.
const OTHER: [&str; 6] =
    ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "Memcpy DtoH", "step", "sync"];

struct Out<'a> {
    folder: &'a Path,
    files: [u32; Table::ALL.len()],
    rows: Vec<(Table, Vec<Vec<Value>>)>,
}

impl Out<'_> {
    fn row<const N: usize>(&mut self, table: Table, row: [Value; N]) {
        let place = self.rows.iter().position(|rows| rows.0 == table).unwrap_or_else(|| {
            self.rows.push((table, Vec::new()));
            self.rows.len() - 1
        });
        self.rows[place].1.push(row.into());
        if self.rows[place].1.len() == ROWS_A_FILE {
            self.write(place);
        }
    }

    fn write(&mut self, place: usize) {
        let (table, rows) = (self.rows[place].0, std::mem::take(&mut self.rows[place].1));
        let number = &mut self.files[place];
        *number += 1;
        write_table(&self.folder.join(file_name(table, *number, *number)), table, &rows).expect("a table");
    }

    fn slice(&mut self, kind: SliceKind, name: i64, start: i64, end: i64, id: i64) {
        let (dur, id) = (end - start, Some(id).filter(|id| *id > 0));
        let (kind, tid) = (kind as i32, 100);
        let head = [start.into(), dur.into(), 0.into(), tid.into(), kind.into(), name.into()];
        let [a, b, c, d, e, f] = head;
        self.row(Table::Slices, [a, b, c, d, e, f, id.into(), Value::Null, Value::Null]);
    }

    fn work(&mut self, kind: WorkKind, name: i64, start: i64, dur: i64, correlation: i64) {
        let kernel = kind == WorkKind::Kernel;
        let of_kernel = |value: i64| Value::from(kernel.then_some(value));
        let bits = match kind {
            WorkKind::Memcpy => detail::pack(detail::D2H, detail::DEVICE, detail::PINNED, detail::ASYNC),
            WorkKind::Sync => 3,
            _ => 0,
        };
        let row = [
            start.into(),
            dur.into(),
            0.into(),
            0.into(),
            1.into(),
            7.into(),
            (kind as i32).into(),
            name.into(),
            correlation.into(),
            (kind == WorkKind::Memcpy).then_some(4096i64).into(),
            bits.into(),
            of_kernel(8 * (1 + name % 5)),
            of_kernel(1),
            of_kernel(1),
            of_kernel(128),
            of_kernel(1),
            of_kernel(1),
            of_kernel(64),
            of_kernel(0),
            of_kernel(1024),
            Value::Null,
            Value::Null,
        ];
        self.row(Table::Gpu, row);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, count, rest @ ..] = &arguments[..] else { panic!("generate_gpu FOLDER KERNELS [A_STEP]") };
    let a_step = rest.first().map_or(240, |words| words.parse().expect("how many kernels a step"));
    let steps = count.parse::<i64>().expect("how many kernels") / a_step;
    let mut random = 1u64;
    let mut jitter = |most: i64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as i64 % most
    };
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder).expect("the folder of the trace");
    let mut out = Out { folder, files: [0; Table::ALL.len()], rows: Vec::new() };
    let names =
        (0..KERNELS).map(|number| format!("kernel_{number}")).chain((0..LAYERS).map(|number| format!("h.{number}")));
    for (id, name) in (1..).zip(names.chain(OTHER.map(str::to_owned))) {
        out.row(Table::Names, [id.into(), (&*name).into(), Value::Null, Value::Null]);
    }
    let other = |place: i64| 1 + KERNELS + LAYERS + place;
    for id in 1..=STACKS {
        let (name, line) = (format!("function_{id}"), 10 * id as i32);
        out.row(Table::Names, [(900 + id).into(), (&*name).into(), "app.py".into(), line.into()]);
        let parent = Some(id - 1).filter(|parent| parent % 20 > 0);
        out.row(Table::Stacks, [id.into(), parent.into(), (900 + id).into(), (line + 2).into()]);
    }
    let (mut now, mut device, mut correlation, mut sample_at, mut layer_id) =
        (START_NS, START_NS, 0, START_NS, 1_000_000);
    for step in 0..steps {
        let begin = now;
        for number in 0..a_step {
            if step < CALIBRATED && number % (a_step / LAYERS) == 0 {
                layer_id += 1;
                let length = (a_step / LAYERS) * LAUNCH_NS;
                out.slice(SliceKind::Layer, 1 + KERNELS + number / (a_step / LAYERS), now, now + length, layer_id);
            }
            correlation += 1;
            // Some take long, as they do when the thread has no core for a moment.
            let launch = if jitter(5_000) == 0 { 60_000 } else { LAUNCH_NS + jitter(2_000) - 1_000 };
            out.slice(SliceKind::ApiCall, other(0), now + 500, now + launch - 500, correlation);
            device = device.max(now + launch + 1_000 + jitter(500));
            let took = KERNEL_NS - number % 9 * 100 - jitter(300);
            out.work(WorkKind::Kernel, 1 + (number * 7) % KERNELS, device, took, correlation);
            device += KERNEL_NS;
            now += launch;
        }
        out.slice(SliceKind::ApiCall, other(1), now, now + 2_000, correlation + 1);
        out.work(WorkKind::Memcpy, other(3), device + 2_000, 1_500, correlation + 1);
        device += 5_000;
        out.slice(SliceKind::ApiCall, other(2), now + 2_500, device + 3_000, correlation + 2);
        out.work(WorkKind::Sync, other(5), now + 2_600, device - now, correlation + 2);
        correlation += 2;
        now = device + 10_000;
        out.slice(SliceKind::Step, other(4), begin, now, step + 1);
        while sample_at < now {
            for thread in 0..THREADS {
                let state = if thread == 0 { sample_state::ACTIVE | sample_state::GIL } else { 0 };
                let stack = if thread == 0 { 1 + jitter(STACKS) } else { i64::from(20 * thread) };
                out.row(
                    Table::Samples,
                    [sample_at.into(), 0.into(), (100 + thread).into(), stack.into(), state.into()],
                );
            }
            sample_at += SAMPLE_EVERY;
        }
    }
    (0..out.rows.len()).for_each(|place| out.write(place));
    let mut fixture = Fixture::parse("process 100 decode.py 3.12.1\ndevice 0 {\"ordinal\":0,\"name\":\"NVIDIA H200\"}");
    fixture.manifest["ended_ns"] = now.into();
    fixture.write(folder);
}
