//! The terminal summary of one small trace, as it looks in a file, on a narrow screen and on a terminal.

use report::Style;
use timeline::fixture::{Fixture, TemporaryFolder};
use timeline::{Exit, State, Timeline};

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
    loss 0 calls 12 overwritten
"#;

fn open(text: &str) -> Timeline {
    let folder = TemporaryFolder::new("text");
    Fixture::parse(text).write(folder.path());
    timeline::open(folder.path()).unwrap()
}

fn render(timeline: &Timeline, style: Style) -> String {
    let mut bytes = Vec::new();
    let diagnosis = diagnosis::diagnose(timeline, &diagnosis::Options::default());
    report::reports::text::write(timeline, &analysis::measure(timeline), &diagnosis, 10, &style, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_summary_in_a_file() {
    let text = render(&open(SERVICE), Style::default());
    crate::snapshot::same("summary.txt", &text);
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
        ["no stack samples", "no calls", "no scopes, steps and marks", "no CPU time", "no memory", "no events lost"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
}

fn brief(timeline: &Timeline) -> String {
    let mut bytes = Vec::new();
    let diagnosis = diagnosis::diagnose(timeline, &diagnosis::Options::default());
    report::reports::brief::write(timeline, &analysis::measure(timeline), &diagnosis, &Style::default(), &mut bytes)
        .unwrap();
    String::from_utf8(bytes).unwrap()
}

/// After `run` nobody should have to open the report to learn that the program failed.
#[test]
fn the_few_lines_say_how_a_program_failed_and_count_one_as_once() {
    let mut timeline = open("process 100 load.py 3.12\nthread 0 100 MainThread\nscope 0 100 0..98000 load #1");
    let first = |timeline: &Timeline| brief(timeline).lines().next().unwrap_or_default().to_owned();
    assert!(!first(&timeline).contains("exit code"), "{}", first(&timeline));
    timeline.info.exit = Some(Exit::Signal(9));
    assert!(first(&timeline).contains("killed by signal 9"), "{}", first(&timeline));
    timeline.info.exit = Some(Exit::Code(3));
    assert!(first(&timeline).contains("exit code 3"), "{}", first(&timeline));
    assert!(brief(&timeline).contains("load: once, 98.0 ms"), "{}", brief(&timeline));
}

/// A recorder that was killed did not measure its clock, and a recording without steps has no step to gain of.
#[test]
fn nothing_is_said_of_steps_or_of_a_clock_that_there_are_not() {
    let samples: String = (0..40)
        .map(|at| {
            format!(
                "sample 0 100 {} active,gil main@a.py:8;{}\n",
                at * 10_000,
                if at % 2 == 0 { "f@a.py:2" } else { "g@a.py:5" }
            )
        })
        .collect();
    let mut timeline = open(&format!("process 100 a.py 3.12\nthread 0 100 MainThread\n{samples}"));
    assert!(render(&timeline, Style::default()).contains("clock ±42 ns"));
    (timeline.info.clock.residual_ns, timeline.info.state) = (0, State::Recovered);
    let text = render(&timeline, Style::default());
    assert!(!text.contains("clock ±") && text.contains("does not give its clock error"), "{text}");
    assert!(text.contains("· gain ") && !text.contains("% of the step"), "{text}");
    let few = render(
        &open(
            "process 100 a.py 3.12\nthread 0 100 M\nsample 0 100 5000 active,gil f@a.py:2\nsample 0 100 9000 active f@a.py:2",
        ),
        Style::default(),
    );
    assert!(few.contains("9.00 ms; too short for a breakdown: 1 sample (") && !few.contains("· gain "), "{few}");
}

fn one_first_step_is_slow() -> Timeline {
    Timeline::from_text(
        "track main\n call <module>@app.py:1 0..2s\n call serve@app.py:9 1ms..3ms\n step request 0..400ms\n \
         repeat 39 every 20ms\n step request 500ms..510ms\n end",
    )
    .unwrap()
}

/// Warm-up is in no number: neither in the answer nor in the table of the steps.
#[test]
fn a_report_has_one_p99() {
    let timeline = one_first_step_is_slow();
    let text = render(&timeline, Style::default());
    assert!(text.contains("A request takes 10.0 ms (p50 of 39; p99 10.0 ms)"), "{text}");
    assert!(text.contains("Steps  1 warm-up step excluded"), "{text}");
    let row = text.lines().find(|line| line.ends_with("  request")).unwrap_or_default();
    assert!(row.trim_start().starts_with("39 ") && !row.contains("400 ms"), "{row}");
    assert!(brief(&timeline).contains("request: 39 times, p50 10.0 ms, p99 10.0 ms"), "{}", brief(&timeline));
}

/// What a module runs when it is imported is start-up, and no call to look at.
#[test]
fn an_import_is_not_the_call_that_took_most() {
    let brief = brief(&one_first_step_is_slow());
    assert!(brief.contains("serve: ") && !brief.contains("<module>: "), "{brief}");
}

/// The functions of a step stand before those of the whole recording.
#[test]
fn the_functions_of_a_step_are_in_the_summary() {
    let text = render(&open(SERVICE), Style::default());
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in {text}"));
    assert!(at("Where the time of a step goes") < at("Whole recording: functions by samples"), "{text}");
}
