//! A service on a GPU whose memory is known byte for byte: weights, a leak, temporary blocks, a context, a library and other processes. Tests and
//! the example of pages share it.

use timeline::Timeline;
use timeline::memory::MemoryEventKind;

const SERVICE: &str = "
    device 0 GPU memory 80G
    track main
    alloc 100ms 67108864 at 1073741824
    block alloc 101ms 48M at 1G main>load@model.py:12
    alloc 120ms 104857600 at 3221225472
    alloc 150ms 67108864 at 1140850688
    repeat 8 every 100ms
    step request 200ms..290ms
    layer decoder 205ms..285ms
    block alloc 210ms 24M at 1088M main>forward@model.py:44
    block alloc 220ms 8M at 1112M main>attention@model.py:51
    block alloc 230ms 2M at 1122M each main>handle@serve.py:31
    block free 250ms 8M at 1112M
    block free 270ms 24M at 1088M
    end
    counter process rss_bytes 0ms=104857600 100ms=314572800 300ms=419430400 900ms=440401920";

/// What the driver counts, a tenth of a second after each change: beside the calls 400 MiB of a context, and from the sixth step on 64 MiB more.
pub fn service() -> Timeline {
    let readings = |name: &str, beside: u64| {
        let at = |ms: u64| {
            let context = if ms >= 780 { 464 } else { 400 };
            format!(" {ms}ms={}", (beside + context + 64 + 100 + 64) << 20)
        };
        format!("counter {name}{}\n", [195, 295, 395, 495, 595, 695, 795, 895, 995].map(at).concat())
    };
    let text = format!(
        "{SERVICE}\n{}{}",
        readings("host gpu_memory_used_bytes", 30),
        readings("process gpu_process_memory_bytes", 0)
    );
    let mut timeline = Timeline::from_text(&text).expect("the text of the service");
    let mut held = 0;
    for event in &mut timeline.memory.events {
        match event.kind {
            MemoryEventKind::Alloc => held += event.bytes,
            MemoryEventKind::FreeCompleted => held -= event.bytes,
            _ => {}
        }
        (event.allocated, event.reserved) = (Some(held), Some(if event.time < 150_000_000 { 64 } else { 128 } << 20));
    }
    timeline.info.command = "python serve.py".into();
    timeline
}

/// Names that are markup, move a cursor, or fill a screen.
pub fn hostile() -> Timeline {
    let long = "n".repeat(1 << 20);
    let names = [
        "</script><script>window.injected=1</script>",
        "<img/src=x/onerror=window.injected=1>",
        "\u{1b}[2Jx\u{202e}y",
        long.as_str(),
    ];
    let block = |(at, name): (usize, &&str)| {
        format!("block alloc {}us {}M at {} main>{name}@m{at}.py:{at}\n", at + 1, at + 1, at * 64)
    };
    let text: String = names.iter().enumerate().map(block).collect();
    let mut timeline = Timeline::from_text(&text).expect("the text of hostile names");
    timeline.info.command = "<b>python</b>".into();
    timeline
}
