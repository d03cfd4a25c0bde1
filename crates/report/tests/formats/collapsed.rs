//! The collapsed stacks: counts add up, idle samples are there when asked for, and no name breaks a line.

use super::{parse, timelines};
use report::exports::collapsed::{self, Options};
use timeline::Timeline;

fn read(timeline: &Timeline, options: Options) -> Vec<String> {
    let mut bytes = Vec::new();
    collapsed::write(timeline, options, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_line_for_each_stack_with_its_count() {
    let timeline = timelines::open(&timelines::everything());
    assert_eq!(
        read(&timeline, Options::default()),
        [
            "serve.py (100);MainThread (100);main (a.py) 1",
            "serve.py (100);MainThread (100);main (a.py);forward (model.py) 1",
            "serve.py (100);MainThread (100);main (a.py);forward (model.py);matmul (np.py) 2",
        ]
    );
}

#[test]
fn idle_and_lines_when_asked_for() {
    let timeline = timelines::open(&timelines::everything());
    let lines = read(&timeline, Options { idle: true, lines: true });
    assert!(
        lines.contains(&"serve.py (100);MainThread (100);main (a.py:4);wait (sync.py:8);(idle) 1".into()),
        "{lines:?}"
    );
    assert!(lines.contains(&"serve.py (100);loop (101);loop (asyncio.py:1);(idle) 1".into()), "{lines:?}");
    let count = |line: &String| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap();
    assert_eq!(lines.iter().map(count).sum::<usize>(), timeline.samples.len());
}

#[test]
fn no_name_breaks_a_line_or_a_frame() {
    let timeline = timelines::hostile();
    let mut bytes = Vec::new();
    collapsed::write(&timeline, Options { idle: true, lines: false }, &mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    // A thread of one frame is three parts, however its names are spelt.
    let hostile: Vec<&str> = text.split('\n').filter(|line| line.contains("script")).collect();
    assert_eq!(hostile.len(), 2, "{hostile:?}");
    for line in hostile {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        assert_eq!((stack.split(';').count(), count), (3, "1"), "{line:?}");
        assert!(stack.chars().all(|letter| !letter.is_control() && letter != '\u{2028}'), "{line:?}");
        assert!(stack.contains("名前 🦀"), "{line:?}");
    }
    assert!(text.contains("(name not recorded) 1\n"), "a missing stack is said to be missing");
}

#[test]
fn an_empty_recording_says_so() {
    assert_eq!(read(&timelines::nothing(), Options::default()), ["no stack was sampled in this recording 0"]);
    let idle = parse("track main\nsample 1us f@a.py:1");
    assert_eq!(read(&idle, Options::default()), ["no thread was seen running in this recording 0"]);
}
