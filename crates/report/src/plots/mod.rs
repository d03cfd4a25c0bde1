//! Pictures of memory: what there is in a recording or in telemetry, drawn once and written as SVG, PNG or a page. A picture of nothing is none: what
//! is missing is said, with how to record it.

mod attribution;
mod axes;
mod bars;
mod curves;
mod drawing;
mod heat_map;
mod labels;
mod lifetimes;
mod of_telemetry;
mod of_trace;
mod page;
mod png;
mod svg;

pub use attribution::{part_ink, shown as readings};
pub use drawing::{Drawing, Ink, named};
pub use of_telemetry::Telemetry;
pub use of_trace::{Asked, of_trace};

use std::io;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlotKind {
    Timeline,
    Attribution,
    HeatMap,
    Lifetimes,
    Ranks,
    Functions,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlotFormat {
    Svg,
    Png,
    Html,
}

/// At least one drawing; several stand below each other.
pub fn write(title: &str, drawings: Vec<Drawing>, format: PlotFormat) -> io::Result<Vec<u8>> {
    match format {
        PlotFormat::Svg => Ok(svg::file(&Drawing::column(drawings)).into_bytes()),
        PlotFormat::Png => png::file(&Drawing::column(drawings)),
        PlotFormat::Html => Ok(page::file(title, &drawings).into_bytes()),
    }
}

/// The colours of pictures as properties of the page, light and dark: `--s0` and so on.
pub fn page_colours() -> String {
    let all = |colour: fn((&'static str, &'static str)) -> &'static str| {
        let one = |(at, pair): (usize, &(&'static str, &'static str))| format!("--s{at}: {}; ", colour(*pair));
        drawing::SERIES.iter().enumerate().map(one).collect::<String>()
    };
    format!(":root {{ {}}}\n:root[data-theme=\"dark\"] {{ {}}}\n", all(|pair| pair.0), all(|pair| pair.1))
}
