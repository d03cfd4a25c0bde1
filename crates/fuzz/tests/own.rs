//! What is ours: a trace's folder, what-if expressions, conditions, gates. Rules and settings in YAML are read by the command, which
//! fuzzes them in `yaml::tests`.

use crate::through;
use crate::words::{CALLS, COPIES, HOST, KERNELS};
use diagnosis::compare::Gate;
use diagnosis::expression::Condition;
use fuzz::{NUMBERS, Random, fuzz};
use std::path::Path;
use timeline::fixture::{Fixture, Value, text::START_NS, write_table};
use trace::tables::{ColumnType, Table, file_name};

const BASE: &str = r#"
    process 100 serve.py 3.12.1
    device 0 {"ordinal":0,"name":"NVIDIA H200"}
    thread 0 100 MainThread
    step 0 100 1000..41000 request #1 {"i":1}
"#;

/// Whether a number of this column is a time, an id of a name, or some small number.
fn value(random: &mut Random, table: Table, column: &trace::tables::Column, row: usize) -> Value {
    if column.optional && random.one_in(4) {
        return Value::Null;
    }
    if column.kind == ColumnType::Text {
        let lists: [&[&str]; 5] = [&KERNELS, &CALLS, &HOST, &COPIES, &OPERATORS];
        let list = lists[random.below(5)];
        return random.pick(list).into();
    }
    let absurd = random.pick(&NUMBERS).parse::<i64>().unwrap_or(-7);
    Value::Int(match column.name {
        _ if random.one_in(60) => absurd,
        "start_ns" | "time_ns" => START_NS + random.below(100_000) as i64,
        "dur_ns" => random.below(30_000) as i64,
        "id" if matches!(table, Table::Names | Table::Stacks) => row as i64 + 1,
        // All kinds of a slice but turns of a recording window (11), of which only two codes are believed.
        "kind" => random.pick(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13]),
        "process" => random.below(2) as i64 - i64::from(random.one_in(8)),
        "thread" => 100 + random.below(3) as i64,
        "bytes" => random.below(1 << 24) as i64,
        "line" => random.below(900) as i64,
        _ => random.below(12) as i64,
    })
}

/// Names and arguments of operators: values that are written by nobody, or by all.
const OPERATORS: [&str; 9] = [
    "aten::item",
    "aten::cat",
    "aten::to",
    "aten::copy_",
    r#"{"Input Dims":[[4,4]],"Input type":["float"],"Output type":["double"],"device":"cpu","in":[1,2],"out":[1],"at":"app.py:3 f","turn":[0,0]}"#,
    r#"{"Input Dims":[[9,18446744073709551615]],"device":"cuda:0","in":[1],"out":[2],"at":"app.py:3 f","turn":[0,1]}"#,
    r#"{"device":"cpu","in":[3],"out":[],"into":[3],"over":[3],"at":"app.py:4 f","turn":[1,0],"view":1}"#,
    r#"{"device":"cpu","in":[-1],"out":[0],"padded":[9,4],"at":"","turn":[-1]}"#,
    r#"{"device":"cpu","in":[1"#,
];

#[test]
fn a_traces_folder() {
    let make = |random: &mut Random, path: &Path| {
        let mut fixture = Fixture::parse(BASE);
        let mut manifest = fixture.manifest.to_string().into_bytes();
        if random.one_in(3) {
            random.json(&mut manifest);
            fixture.manifest = serde_json::from_slice(&manifest).unwrap_or(fixture.manifest);
        }
        fixture.write(path);
        for table in Table::ALL {
            let rows: Vec<Vec<Value>> = (0..random.below(60))
                .map(|row| table.columns().iter().map(|column| value(random, table, column, row)).collect())
                .collect();
            let file = path.join(file_name(table, 2, 2));
            write_table(&file, table, &rows).expect("a table");
            if random.one_in(20) {
                let mut bytes = std::fs::read(&file).expect("what was written");
                random.bytes(&mut bytes);
                std::fs::write(&file, bytes).expect("written");
            }
        }
    };
    fuzz("folder", 150, make, through::open);
}

const EXPRESSION: [&str; 40] = [
    "remove",
    "scale",
    "pin",
    "copies",
    "graph",
    "steps",
    "sync-api",
    "kernel:",
    "kernel:*",
    "copy:x",
    "api:cuda*",
    "host:f",
    ";",
    ";;",
    "0.5",
    "-1",
    "1e999",
    "*",
    ":",
    "step_p50",
    "kernels",
    "gpu_busy",
    "h2d_time",
    "total_time",
    ">",
    ">=",
    "<",
    "==",
    "!=",
    "+5%",
    "%",
    "and",
    "or",
    "not",
    "(",
    ")",
    "/",
    "+",
    "é\u{202e}",
    "\u{0}",
];

#[test]
fn expressions_conditions_and_gates() {
    let make = |random: &mut Random, path: &Path| {
        let words: Vec<&str> = (0..random.below(14)).map(|_| random.pick(&EXPRESSION)).collect();
        let mut text = words.join(if random.one_in(5) { "" } else { " " });
        if random.one_in(50) {
            text = ["(", "not ", "-", "1+", "remove kernel:*;"][random.below(5)].repeat(random.below(100_000)) + &text;
        }
        std::fs::write(path, text).expect("written");
    };
    fuzz("expressions", 2500, make, |_, path| {
        let text = std::fs::read_to_string(path).expect("what was written");
        if let Err(wrong) = replay::parse(&text) {
            assert!(wrong.position >= 1 && wrong.position <= text.chars().count() + 1, "{wrong:?}");
        }
        if let Err(wrong) = Condition::parse(&text) {
            assert!(!wrong.why.is_empty());
        }
        if let Err(wrong) = Gate::parse(&text) {
            assert!(!wrong.to_string().is_empty());
        }
    });
}
