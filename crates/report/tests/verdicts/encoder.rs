//! A model on the CPU: what samples show of it, two steps in which operators were recorded, and calls with layers.

use std::fmt::Write;
use timeline::Timeline;

/// The operators of a step: name, begin and end in µs, shapes, line, module.
const OPERATORS: [(&str, u64, u64, &str, u32, &str); 7] = [
    ("embedding", 100, 300, "[1000,64],[8,96]", 31, "embed"),
    ("addmm", 1000, 4000, "[192],[768,64],[64,192]", 16, "layers.0.qkv"),
    ("_softmax", 4100, 5100, "[8,4,96,96]", 17, "layers.0"),
    ("addmm", 6000, 9000, "[192],[768,64],[64,192]", 16, "layers.1.qkv"),
    ("_softmax", 9100, 10100, "[8,4,96,96]", 17, "layers.1"),
    ("add", 10200, 10300, "[8,96,64],[8,96,64]", 18, "layers.1"),
    ("randint", 10400, 10500, "", 44, ""),
];

const LAYERS: [(&str, u64, u64); 6] = [
    ("Encoder", 0, 11_000),
    ("embed", 100, 400),
    ("layers.0", 900, 5_500),
    ("layers.0.qkv", 1_000, 4_000),
    ("layers.1", 5_900, 10_500),
    ("layers.1.qkv", 6_000, 9_000),
];

pub fn encoder() -> Timeline {
    let mut text = String::from(
        "host cpus 8 numa 1
         rate 100
         state complete
         layers on
         process serve.py python 3.12.1
         collector layers on
         collector ops on
         track main
         repeat 60 every 20ms
           step request 0..12ms
           sample 2ms active serve:40>forward@serve.py:16>linear@/x/site-packages/torch/nn/functional.py:9
           sample 5ms active serve:40>forward@serve.py:17>softmax@/x/site-packages/torch/nn/functional.py:7
           sample 8ms active serve:40>forward@serve.py:16>linear@/x/site-packages/torch/nn/functional.py:9
           sample 10ms active gil serve:40>tokenise@serve.py:60
           sample 11ms active gil serve:40>decode@serve.py:50
         end
         step request 2000ms..2020ms
         step request 2020ms..2040ms
        ",
    );
    for (turn, base) in [(0, 2_000_000), (1, 2_020_000)] {
        for (name, start, end, dims, line, module) in OPERATORS {
            let (start, end) = (base + start, base + end);
            let dims: String = if dims.is_empty() { "[]".into() } else { dims.into() };
            writeln!(
                text,
                "op aten::{name} {start}us..{end}us args {{\"Input~Dims\":[{dims}],\"Input~type\":[\"float\",\"float\",\"float\"],\"Concrete~Inputs\":[],\"Output~type\":[\"float\"],\"device\":\"cpu\",\"in\":[1],\"out\":[2],\"at\":\"serve.py:{line}~forward\",\"module\":\"{module}\",\"turn\":[0,{turn}]}}"
            )
            .unwrap();
        }
    }
    // The first call takes longer, and counts for nothing.
    for (call, base) in [(0, 0), (1, 20_000), (2, 40_000)] {
        for (name, start, end) in LAYERS {
            let end = if call == 0 { end + 800 } else { end };
            writeln!(text, "layer {name} {}us..{}us", base + start, base + end).unwrap();
        }
    }
    Timeline::from_text(&text).unwrap()
}
