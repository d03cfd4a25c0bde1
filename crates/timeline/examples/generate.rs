//! Writes a trace of many nested calls, as the recorder would: `generate FOLDER SLICES`. For measuring the readers.

use std::path::Path;
use timeline::fixture::{Fixture, Value, write_table};
use trace::tables::{SliceKind, Table, file_name};

const FUNCTIONS: i64 = 500;
const A_FILE: usize = 1_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, count] = &arguments[..] else { panic!("generate FOLDER SLICES") };
    let count: usize = count.parse().expect("how many slices");
    let mut fixture = Fixture::parse("process 100 generated.py 3.12.1\nthread 0 100 MainThread\nthread 0 101 worker");
    for id in 1..=FUNCTIONS {
        let (name, file) = (format!("function_{id}"), format!("module_{}.py", id % 40));
        fixture.row(Table::Names, [id.into(), (&*name).into(), (&*file).into(), (id * 3).into()]);
    }
    fixture.write(Path::new(folder));
    let mut calls = Calls { random: 1, time: [5_000_000_000; 2], open: [Vec::new(), Vec::new()] };
    let mut written = 0;
    for number in 1u32.. {
        let rows: Vec<Vec<Value>> = (written..count.min(written + A_FILE)).map(|_| calls.next()).collect();
        if rows.is_empty() {
            return;
        }
        written += rows.len();
        let path = Path::new(folder).join(file_name(Table::Slices, number, number));
        write_table(&path, Table::Slices, &rows).expect("a table");
    }
}

/// Calls in the order in which they end, on two threads in turns.
struct Calls {
    random: u64,
    time: [i64; 2],
    open: [Vec<(i64, i64)>; 2],
}

impl Calls {
    fn roll(&mut self, sides: u64) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % sides) as i64
    }

    fn next(&mut self) -> Vec<Value> {
        let thread = usize::from(self.roll(200) == 0);
        loop {
            self.time[thread] += 50 + self.roll(2000);
            let depth = self.open[thread].len();
            if depth == 0 || (depth < 40 && self.roll(2) == 0) {
                let name = 1 + self.roll(FUNCTIONS as u64);
                self.open[thread].push((self.time[thread], name));
                continue;
            }
            let (start, name) = self.open[thread].pop().expect("an open call");
            let kind = if depth.is_multiple_of(4) { SliceKind::CCall } else { SliceKind::Call };
            let null = Value::Null;
            return vec![
                start.into(),
                (self.time[thread] - start).into(),
                0.into(),
                (100 + thread as i64).into(),
                (kind as i32).into(),
                name.into(),
                null.clone(),
                null.clone(),
                null,
            ];
        }
    }
}
