//! Pictures of memory: the same shapes as before on small data, nothing of a name becomes markup, and no picture of nothing.

use crate::memory_timelines::{hostile, service};
use crate::snapshot;
use analysis::memory::heat::HeatBy;
use report::plots::{self, Asked, PlotFormat, PlotKind, Telemetry};
use serde_json::Value;
use std::io::Read;
use std::sync::Arc;
use telemetry::{Counters, Event, EventType, Identity, Source};
use timeline::Timeline;

fn drawn(timeline: &Timeline, kind: PlotKind, format: PlotFormat) -> Result<Vec<u8>, String> {
    let asked = Asked { kind: Some(kind), by: HeatBy::Line, device: None };
    let drawings = plots::of_trace(timeline, &asked)?;
    plots::write(&timeline.info.command, drawings, format).map_err(|error| error.to_string())
}

fn svg(timeline: &Timeline, kind: PlotKind) -> Result<String, String> {
    Ok(String::from_utf8(drawn(timeline, kind, PlotFormat::Svg)?).unwrap())
}

#[test]
fn pictures_look_as_they_did() {
    let timeline = service();
    for (kind, file) in [
        (PlotKind::Attribution, "attribution"),
        (PlotKind::Lifetimes, "lifetimes"),
        (PlotKind::HeatMap, "heatmap"),
        (PlotKind::Timeline, "timeline"),
    ] {
        snapshot::same(&format!("plots/{file}.svg"), &svg(&timeline, kind).unwrap());
    }
}

#[test]
fn without_a_kind_it_is_what_says_most() {
    let asked = |timeline: &Timeline| {
        let drawings = plots::of_trace(timeline, &Asked { kind: None, by: HeatBy::Line, device: None })?;
        Ok::<String, String>(drawings[0].title.clone())
    };
    assert_eq!(asked(&service()).unwrap(), "Memory in use on GPU 0");
    assert_eq!(asked(&hostile()).unwrap(), "Blocks of PyTorch's allocator, GPU 0");
    let only_rss = Timeline::from_text("track main\n scope a 0..50us\n counter process rss_bytes 0ms=5 1ms=7").unwrap();
    assert_eq!(asked(&only_rss).unwrap(), "Memory over time");
    assert!(asked(&Timeline::from_text("").unwrap()).unwrap_err().contains("no memory in it"));
}

#[test]
fn layers_are_rows_where_they_were_asked_for() {
    let by_layer = |timeline: &Timeline| {
        plots::of_trace(timeline, &Asked { kind: Some(PlotKind::HeatMap), by: HeatBy::Layer, device: None })
    };
    let found = by_layer(&service()).unwrap();
    let page = String::from_utf8(plots::write("", found, PlotFormat::Html).unwrap()).unwrap();
    assert!(page.contains("<title>decoder: 34.0 MiB in step 1</title>"), "{page}");
    assert_eq!(by_layer(&hostile()).unwrap_err(), "no layers recorded: record with --layers");
}

#[test]
fn what_is_missing_is_said_with_how_to_record_it() {
    let nothing = Timeline::from_text("track main\n scope a 0..50us").unwrap();
    for (kind, why) in [
        (PlotKind::Lifetimes, "no blocks recorded: record with --memory-events gpu"),
        (PlotKind::HeatMap, "no blocks recorded: record with --memory-events gpu"),
        (PlotKind::Attribution, "no GPU memory recorded"),
        (PlotKind::Timeline, "no memory over time"),
        (PlotKind::Ranks, "no ranks recorded"),
    ] {
        let said = svg(&nothing, kind).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    let said = svg(&hostile(), PlotKind::Attribution).unwrap_err();
    assert!(said.contains("not attributed: what the device has in use was not sampled"), "{said}");
    let mut snapshot = Timeline::from_text("reserved 20M at 1G\n holds 20M active main>load@model.py:3").unwrap();
    snapshot.info.recorded_by = timeline::RecordedBy::Snapshot;
    assert!(svg(&snapshot, PlotKind::Lifetimes).unwrap_err().contains("_record_memory_history()"));
}

#[test]
fn no_name_becomes_markup() {
    for kind in [PlotKind::Lifetimes, PlotKind::HeatMap, PlotKind::Timeline] {
        for format in [PlotFormat::Svg, PlotFormat::Html, PlotFormat::Png] {
            let bytes = drawn(&hostile(), kind, format).unwrap();
            assert!(bytes.len() < 300_000, "{kind:?} {format:?}: {}", bytes.len());
            if format == PlotFormat::Png {
                continue;
            }
            let text = String::from_utf8(bytes).unwrap();
            assert!(!text.contains("<script") && !text.contains("<img") && !text.contains("<b>"), "{kind:?}");
            assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{kind:?}");
        }
    }
}

#[test]
fn png_has_the_pixels_that_its_header_says() {
    let bytes = drawn(&service(), PlotKind::Lifetimes, PlotFormat::Png).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let (width, height, length) = (number(16), number(20), number(33));
    assert_eq!((width, &bytes[37..41]), (2000, &b"IDAT"[..]));
    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(&bytes[41..41 + length]).read_to_end(&mut rows).unwrap();
    assert_eq!(rows.len(), height * (1 + 3 * width));
    // The green of the weights, drawn over nearly half of the picture; and letters.
    let of = |colour: [u8; 3]| {
        rows.chunks(1 + 3 * width).flat_map(|row| row[1..].chunks(3)).filter(|one| *one == colour).count()
    };
    assert!(of([255, 255, 255]) > 100_000 && of([0x17, 0x20, 0x33]) > 300, "{}", of([0x17, 0x20, 0x33]));
}

fn event(time_ns: u64, kind: EventType, rank: Option<u32>, counters: Counters, context: &str) -> Event {
    let identity = Identity { rank, world_size: rank.map(|_| 2), ..Identity::default() };
    let source = Source { device_id: 0, session: "s".into(), identity, ..Source::default() };
    Event { time_ns, kind, source: Arc::new(source), counters, context: Some(context.into()), metadata: None }
}

#[test]
fn telemetry_of_several_ranks_has_a_curve_for_each() {
    let mut found = Telemetry::default();
    for at in 0..50u64 {
        for rank in 0..2u32 {
            let counters = Counters { allocated: Some((at + 1) << (20 + rank)), ..Counters::default() };
            found.take(&event(at * 1_000_000_000, EventType::Sample, Some(rank), counters, ""));
        }
    }
    found.take(&event(9_000_000_000, EventType::PhaseEnter, None, Counters::default(), "<load>"));
    let drawings = found.draw(None).unwrap();
    let text = String::from_utf8(plots::write("", drawings, PlotFormat::Svg).unwrap()).unwrap();
    for said in
        ["rank 0, device 0 (at most 50.0 MiB)", "rank 1, device 0 (at most 100 MiB)", "&lt;load&gt;", "Memory by rank"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn functions_of_telemetry_are_bars_and_nothing_is_nothing() {
    let mut found = Telemetry::default();
    for change in [3 << 20, -(1 << 20), 5 << 20] {
        let counters = Counters { change: Some(change), ..Counters::default() };
        found.take(&event(1, EventType::Allocation, None, counters, "build"));
    }
    let text = plots::write("", found.draw(Some(PlotKind::Functions)).unwrap(), PlotFormat::Svg).unwrap();
    assert!(String::from_utf8(text).unwrap().contains("7.00 MiB"));
    for (kind, why) in [
        (None, "no samples"),
        (Some(PlotKind::Ranks), "no ranks"),
        (Some(PlotKind::Functions), "no profiled functions"),
        (Some(PlotKind::Lifetimes), "inferscope run --memory-events gpu"),
    ] {
        let said = Telemetry::default().draw(kind).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
}

/// The memory of the page's payload.
fn of_page(timeline: &Timeline) -> Value {
    let (metrics, diagnosis) = (analysis::measure(timeline), diagnosis::diagnose(timeline, &Default::default()));
    let mut page = Vec::new();
    report::reports::html::write(timeline, &metrics, &diagnosis, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    let payload = page.split("id=\"payload\">").nth(1).unwrap().split("</script>").next().unwrap().to_owned();
    serde_json::from_str::<Value>(&payload).unwrap()["memory"].take()
}

/// A queue: each block that goes moves all that came after it.
#[test]
fn a_page_is_bounded_whatever_the_blocks_do() {
    let text = "repeat 30000 every 10us\n block alloc 1us 1M at 1 each main>put@queue.py:3\n end\n
        repeat 30000 every 10us\n block free 20ms 1M at 1 each\n end";
    let memory = of_page(&Timeline::from_text(text).unwrap());
    let note = memory["allocators"][0]["blocks"]["note"].as_str().unwrap();
    assert!(note.contains("of 30,000 blocks drawn") && note.contains("grey area"), "{note}");
    let size = memory.to_string().len();
    assert!((10_000..1_000_000).contains(&size), "{size}");
}

#[test]
fn the_page_has_what_the_pictures_have() {
    let of_service = of_page(&service());
    assert_eq!(of_service["devices"][0]["parts"].as_array().unwrap().len(), 6);
    let allocator = &of_service["allocators"][0];
    assert_eq!((allocator["peak_bytes"].as_u64(), allocator["end_bytes"].as_u64()), (Some(96 << 20), Some(64 << 20)));
    assert_eq!(allocator["blocks"]["note"], "25 blocks drawn");
    assert_eq!(allocator["end"][0]["place"], "load (model.py:12)");
    let of_hostile = of_page(&hostile());
    assert!(of_hostile["devices"][0]["note"].as_str().unwrap().contains("not attributed"));
    let names = of_hostile["allocators"][0]["blocks"]["places"].to_string();
    assert!(names.len() < 2_000 && !names.contains('\u{1b}') && !names.contains('\u{202e}'), "{names}");
    assert!(of_page(&Timeline::from_text("track main\n scope a 0..50us").unwrap()).is_null());
}
