//! Operators in looks, as text, and what the table says of them.

use super::*;
use crate::operators;

/// Steps of 10 ms, of which the last two, 20 ms long, were looked at; the operators given are in both.
fn looked(ops: &[(&str, u64, u64, &str, &str)]) -> String {
    let mut text = String::from(
        "track main\n repeat 20 every 10ms\n step r 0..10ms\n end\n step r 300ms..320ms\n step r 320ms..340ms\n",
    );
    for (turn, base) in [(0, 300_000), (1, 320_000)] {
        for (name, start, end, dims, more) in ops {
            let (start, end) = (base + start, base + end);
            text += &format!(
                "op aten::{name} {start}us..{end}us args {{\"Input~Dims\":[{dims}],\"Input~type\":[\"float\",\"float\"],\"Concrete~Inputs\":[\"\",\"\"],\"Output~type\":[\"float\"],\"device\":\"cpu\",\"in\":[1],\"out\":[2],{more},\"turn\":[0,{turn}]}}\n"
            );
        }
    }
    text
}

fn table(text: &str) -> (Timeline, Option<StepOperators>) {
    let timeline = Timeline::from_text(text).unwrap();
    let steps = Steps::find(&timeline, None);
    let table = StepOperators::find(&timeline, &steps, &operators::looks(&timeline));
    (timeline, table)
}

fn said(text: &str) -> Vec<String> {
    let (timeline, table) = table(text);
    let table = table.unwrap();
    let row = |row: &OperatorRow| {
        let of_step = table.of_step(row).map_or("-".into(), |share| format!("{:.0} %", 100.0 * share));
        let module = row.module.as_ref().map_or(String::new(), |module| format!(" in {module}"));
        let line = row.place.line.unwrap_or(0);
        format!(
            "{} {} @{line}{module}: {} × {} µs, {of_step}",
            row.plain_name(&timeline),
            row.shapes,
            row.calls,
            row.ns / 1000
        )
    };
    table.rows.iter().map(row).collect()
}

#[test]
fn by_operator_shapes_and_line_with_the_time_that_none_inside_takes() {
    let at = |line: u32, module: &str| format!("\"at\":\"m.py:{line}~f\",\"module\":\"{module}\"");
    let (first, second, other) = (at(7, "layers.0.fc"), at(7, "layers.1.fc"), at(9, ""));
    let text = looked(&[
        ("addmm", 1000, 4000, "[8],[2,2],[2,8]", &first),
        ("addmm", 5000, 6000, "[8],[2,2],[2,8]", &second),
        ("relu", 7000, 7500, "[2,8]", &other),
        // One around another.
        ("linear", 8000, 9500, "[4,4],[4,4]", &other),
        ("mm", 8500, 9000, "[4,4],[4,4]", &other),
    ]);
    assert_eq!(
        said(&text),
        [
            "addmm [8] [2, 2] [2, 8] @7 in layers.*.fc: 2 × 4000 µs, 40 %",
            "linear [4, 4] [4, 4] @9: 1 × 1000 µs, 10 %",
            "relu [2, 8] @9: 1 × 500 µs, 5 %",
            "mm [4, 4] [4, 4] @9: 1 × 500 µs, 5 %",
        ]
    );
    let (_, table) = table(&text);
    let table = table.unwrap();
    assert_eq!((table.turns, table.are_steps, table.ns, table.step_ns), (2, true, 6_000_000, Some(10_000_000)));
    let addmm = &table.rows[0];
    assert_eq!((addmm.dtype, addmm.family, addmm.mean_ns()), ("float32", Family::Product, 2_000_000));
    assert!((addmm.share - 4.0 / 6.0).abs() < 1e-9 && table.all_of_step() == Some(0.6));
    // 2·2·2·8 operations in 2 ms.
    assert!((addmm.gflops().unwrap() - 64.0 / 2e6).abs() < 1e-12);
}

#[test]
fn operators_that_took_longer_than_a_step_are_no_more_than_all_of_it() {
    let text = looked(&[
        ("addmm", 0, 15_000, "[8],[2,2],[2,8]", "\"at\":\"m.py:7\""),
        ("relu", 15_000, 20_000, "[2]", "\"at\":\"m.py:8\""),
    ]);
    let shares: Vec<String> = said(&text).into_iter().map(|row| row.rsplit(", ").next().unwrap().to_owned()).collect();
    assert_eq!(shares, ["75 %", "25 %"]);
}

#[test]
fn a_turn_that_the_look_did_not_see_to_its_end_does_not_count() {
    let whole = [("mm", 0, 1000, "[2,2],[2,2]", "\"at\":\"m.py:7\""), ("relu", 2000, 3000, "[2]", "\"at\":\"m.py:8\"")];
    let text = looked(&whole);
    let cut = text.replacen("\"turn\":[0,1]", "\"turn\":[0,1],\"last\":1", 1);
    let (_, table_of_one) = table(&cut);
    let one = table_of_one.unwrap();
    assert_eq!((one.turns, one.is_cut), (1, false));
    // Neither was seen to its end: the operators are said, and no share of the step.
    let both = cut.replacen("\"turn\":[0,0]", "\"turn\":[0,0],\"last\":1", 1);
    let (_, table_of_none) = table(&both);
    let none = table_of_none.unwrap();
    assert!(none.is_cut && none.turns == 2 && none.of_step(&none.rows[0]).is_none());
}

#[test]
fn turns_inside_a_step_are_not_taken_for_the_step() {
    // Both turns lie in one step: how many more it has is not known.
    let ops = "op aten::mm 301ms..302ms args {\"at\":\"m.py:7\",\"turn\":[0,0]}\n op aten::mm 303ms..304ms args {\"at\":\"m.py:7\",\"turn\":[0,1]}";
    let text = format!("track main\n repeat 20 every 10ms\n step r 0..10ms\n end\n step r 300ms..340ms\n {ops}");
    let (_, found) = table(&text);
    let found = found.unwrap();
    assert_eq!((found.turns, found.are_steps, found.step_ns), (2, false, None));
    let (_, without) = table("track main\n step r 0..1ms");
    assert_eq!(without, None);
}

#[test]
fn one_call_in_which_the_thread_lost_its_core_is_not_believed() {
    let at = "\"at\":\"m.py:7~f\",\"module\":\"\"";
    let of = |last: u64| {
        let calls = [(0, 100), (1000, 1104), (2000, 2098), (3000, last)];
        let ops: Vec<_> = calls.iter().map(|(start, end)| ("relu", *start, *end, "[2,8]", at)).collect();
        table(&looked(&ops)).1.unwrap().ns
    };
    assert!(of(9000) < 450_000, "{}", of(9000));
    assert_eq!(of(3102), 404_000);
}
