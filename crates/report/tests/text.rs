//! The terminal summary of one small trace, as it looks in a file, on a narrow screen and on a terminal.

use report::Style;
use timeline::Timeline;
use timeline::fixture::{Fixture, TemporaryFolder};

pub const SERVICE: &str = r#"
    process 100 serve.py 3.12.1
    thread 0 100 MainThread
    thread 0 101 worker
    step 0 100 1000..41000 request #1 {"i":1}
    step 0 100 50000..95000 request #2 {"i":2}
    scope 0 100 2000..12000 tokenise #3 ^1
    scope 0 100 51000..61000 tokenise #4 ^2
    scope 0 100 90000.. shutdown #5
    mark 0 100 30000 cache_miss ^1
    call 0 100 2000..12000 tokenise@serve.py:10
    call 0 100 13000..40000 forward@site-packages/model/layers/attention.py:120
    ccall 0 100 14000..30000 numpy.dot
    sample 0 100 5000 active,gil main@serve.py:80;tokenise@serve.py:14
    sample 0 100 15000 active main@serve.py:82;forward@model.py:121
    sample 0 100 25000 active main@serve.py:82;forward@model.py:121
    sample 0 101 25000 idle run@threading.py:975
    counter 0 0 0 rss_bytes 104857600
    counter 0 0 50000 rss_bytes 209715200
    counter 0 0 95000 rss_bytes 157286400
    counter 0 100 0 cpu_ns 0
    counter 0 100 50000 cpu_ns 45000000
    counter 0 100 95000 cpu_ns 50000000
    counter 0 100 0 runqueue_wait_ns 0
    counter 0 100 95000 runqueue_wait_ns 1500000
    loss 0 calls 12 records overwritten before they were read
"#;

fn open(text: &str) -> Timeline {
    let folder = TemporaryFolder::new("text");
    Fixture::parse(text).write(folder.path());
    timeline::open(folder.path()).unwrap()
}

fn render(timeline: &Timeline, style: Style) -> String {
    let mut bytes = Vec::new();
    let diagnosis = analysis::diagnose(timeline, &analysis::Options::default());
    report::text::write(timeline, &analysis::measure(timeline), &diagnosis, 10, &style, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_summary_in_a_file() {
    let text = render(&open(SERVICE), Style::default());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/summary.txt");
    if std::env::var_os("WRITE_SNAPSHOTS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    assert!(text == expected, "the summary has changed; if that is right, run with WRITE_SNAPSHOTS=1:\n{text}");
}

#[test]
fn no_line_is_wider_than_the_screen_and_ascii_is_ascii() {
    let timeline = open(SERVICE);
    for width in [60, 80, 100, 160] {
        let text = render(&timeline, Style { colour: false, unicode: false, width });
        assert!(text.is_ascii(), "{text}");
        let widest = text.lines().max_by_key(|line| line.len()).unwrap();
        // The columns of a table take what they need; only its names give way.
        assert!(widest.len() <= width.max(72), "{} > {width}: {widest}", widest.len());
    }
}

#[test]
fn names_cannot_reach_the_terminal() {
    let timeline =
        open("process 100 evil\x1b[2J 3.12\nscope 0 100 0..5 a\x1b]0;title\x07b #1\nmark 0 100 3 x\u{202e}y");
    let plain = render(&timeline, Style::default());
    assert!(!plain.chars().any(|c| c.is_control() && c != '\n') && !plain.contains('\u{202e}'), "{plain:?}");
    assert!(plain.contains("a\\u{1b}]0;title\\u{7}b"), "{plain}");
    let colour = render(&timeline, Style { colour: true, ..Style::default() });
    let ours = colour
        .split('\x1b')
        .skip(1)
        .all(|rest| rest.starts_with('[') && rest.split_once('m').is_some_and(|(code, _)| code.len() <= 3));
    assert!(ours, "{colour:?}");
}

#[test]
fn an_empty_trace_says_what_is_not_there() {
    let text = render(&open("process 100 quick.py 3.12"), Style::default());
    for line in
        ["no stack samples", "no calls", "no scopes, steps and marks", "no CPU time", "no memory", "no event was lost"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}
