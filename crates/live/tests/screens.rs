//! What is on the screen, for every pane, at the sizes that terminals have; and that no name of a program reaches the terminal as more than text.

use crate::watching::decode;
use live::model::{Finding, Function, Model, Process, Thread, Track};
use live::tui::{Look, Screen, once};

const UNICODE: Look = Look { color: true, unicode: true };

#[test]
fn a_screen_of_the_usual_size_shows_answer_and_findings() {
    let mut screen = Screen::new(decode(), UNICODE, 80, 24);
    let shown = screen.text();
    assert!(shown.contains("A step takes 1.40 ms"), "{shown}");
    assert!(shown.contains("launch-bound") && shown.contains("1 Answer") && shown.contains("q quit"), "{shown}");
    for (key, expected) in [
        ('2', "p99"),
        ('3', "GPU 0"),
        ('4', "own"),
        ('5', "H200"),
        ('6', "resident"),
        ('7', "pid"),
        ('8', "analysed in"),
    ] {
        screen.press(key);
        let shown = screen.text();
        assert!(shown.contains(expected), "pane {key}:\n{shown}");
    }
}

#[test]
fn every_pane_fits_every_size() {
    for (width, height) in [(20, 5), (1, 1), (40, 8), (80, 24), (300, 100)] {
        for look in [UNICODE, Look::default()] {
            let mut screen = Screen::new(hostile(), look, width, height);
            for key in ['1', '2', '3', '4', '5', '6', '7', '8', '?'] {
                screen.press(key);
                let shown = screen.text();
                assert!(shown.chars().all(|letter| letter == '\n' || !letter.is_control()), "{width}x{height} {key}");
                assert!(look.unicode || shown.is_ascii(), "{width}x{height} {key}:\n{shown}");
            }
        }
    }
}

#[test]
fn the_first_lines_of_a_tiny_terminal_are_the_answer() {
    let shown = Screen::new(decode(), UNICODE, 20, 5).text();
    assert!(shown.starts_with("A step takes"), "{shown}");
}

#[test]
fn filter_sort_details_and_baseline() {
    let mut screen = Screen::new(decode(), UNICODE, 100, 40);
    screen.press('b');
    assert!(screen.text().contains("Against the baseline: p50"), "{}", screen.text());
    screen.enter();
    assert!(screen.text().contains("torch.compile"), "{}", screen.text());
    "/launch-bound".chars().for_each(|letter| screen.press(letter));
    screen.enter();
    let shown = screen.text();
    assert!(shown.contains("launch-bound") && shown.contains("only \"launch-bound\""), "{shown}");
    assert!(!shown.contains("hot-line"), "{shown}");
}

#[test]
fn a_pipe_gets_every_pane_as_plain_text() {
    let text = once(&decode(), Look::default(), 100);
    for title in ["Answer", "Steps", "Timeline", "GPU", "Health"] {
        assert!(text.lines().any(|line| line == title), "{text}");
    }
    assert!(text.is_ascii() && !text.contains('\u{1b}'));
    let empty = once(&Model::default(), Look::default(), 80);
    assert!(empty.contains("Nothing was recorded in this window yet."), "{empty}");
}

/// Names that try to be more than text, and one that has no end.
fn hostile() -> Model {
    let evil = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}<script>\r\n日本".to_owned() + &"x".repeat(1 << 20);
    Model {
        command: evil.clone(),
        answer: vec![evil.clone()],
        findings: vec![Finding { title: evil.clone(), code: evil.clone(), action: evil.clone(), ..Finding::default() }],
        functions: vec![Function {
            name: evil.clone(),
            file: evil.clone(),
            line: 1,
            own_percent: f64::NAN,
            total_percent: 1e300,
        }],
        processes: vec![Process { name: evil.clone(), cpu_percent: Some(f64::INFINITY), ..Process::default() }],
        threads: vec![Thread { name: evil.clone(), ..Thread::default() }],
        tracks: vec![Track { name: evil, cells: vec![255; 3] }],
        ..decode()
    }
}
