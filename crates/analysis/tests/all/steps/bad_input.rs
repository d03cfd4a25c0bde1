//! Recordings as nobody would make them.

use super::*;

#[test]
fn ranges_that_never_close_are_no_steps() {
    let text = format!("end 1s\n {}", rounds(20, "nvtx lost 0..\n step s 1ms.."));
    let found = find(&text);
    assert_eq!(found.source, StepSource::Whole, "{:?}", found.reason);
    let some = find(&format!("end 1s\n {} step s 300ms..", rounds(20, "step s 0..9ms")));
    assert_eq!((chosen(&some), some.unfinished), ((StepSource::Step, "s", 20), 1));
}

#[test]
fn a_domain_for_every_range() {
    let ranges = |own: &str| {
        let range =
            |place: u32| format!("nvtx work {place}us..{}us args {{\"domain\":\"d{place}{own}\"}}\n", place + 1);
        (0..20_000).map(range).collect::<String>()
    };
    assert_eq!(find(&format!("track main\n {}", ranges("")),).source, StepSource::Whole);
    let twice = find(&format!("track main\n {}{}{}", ranges(""), ranges(""), ranges("")));
    assert_eq!(twice.source, StepSource::Nvtx, "three of one domain repeat");
}

#[test]
fn steps_that_overlap_count_what_they_share_once() {
    let text =
        "track main\n samples 0..215ms every 1ms active gil main:1\n repeat 20 every 10ms\n step s 0..25ms\n end";
    let found = find(text);
    assert_eq!(chosen(&found), (StepSource::Step, "s", 20));
    assert!(found.share.unwrap() <= 1.0 && found.share.unwrap() > 0.99, "{:?}", found.share);
}

/// As many as are open at once: each is looked for in a few of the others.
#[test]
fn steps_that_are_all_open_at_once_take_no_longer() {
    let many = (0..50_000).map(|place| format!("step s {place}us..{}us id {}\n", 60_000 + place, place + 1));
    let found = find(&format!("track main\n {}", many.collect::<String>()));
    assert_eq!(chosen(&found), (StepSource::Step, "s", 50_000));
}

#[test]
fn steps_inside_steps_of_the_same_name_are_one() {
    let found = find(&rounds(20, "step s 0..9ms id 1\n step s 1ms..8ms id 2 parent 1"));
    assert_eq!((chosen(&found), found.p50()), ((StepSource::Step, "s", 20), 9_000_000));
    let entries = find(&rounds(20, "entry model 0..6ms\n entry model 1ms..5ms"));
    assert_eq!((chosen(&entries), entries.p50()), ((StepSource::Turn, "iteration (model)", 19), 10_000_000));
}

#[test]
fn a_change_of_kind_halfway_keeps_both_apart() {
    let half = |name: &str, at: u32| format!("repeat 20 every 10ms\n step {name} {at}ms..{}ms\n end\n", at + 9);
    let found = find(&format!(
        "track main\n samples 0..400ms every 1ms active gil main:1\n {}{}",
        half("train", 0),
        half("eval", 200)
    ));
    assert_eq!((found.steps.len(), found.kinds.len()), (20, 1));
    assert!(found.steps.iter().all(|step| step.end <= 200_000_000) == (found.name == "train"), "{:?}", found.reason);
}

#[test]
fn a_recording_of_one_step_has_one() {
    let found = find(&rounds(1, "step only 0..9ms"));
    assert_eq!((chosen(&found), found.kinds.len(), found.warmups()), ((StepSource::Step, "only", 1), 0, 0));
    let nothing = find("");
    assert_eq!((nothing.source, nothing.count()), (StepSource::Whole, 0));
}

#[test]
fn of_two_programs_in_one_trace_each_has_its_steps_and_one_kind_is_chosen() {
    let program = |name: &str, step: &str, count: u32| format!("process {name} of 1\n{}", rounds(count, step));
    let text = program("trains.py", "step train 0..9ms", 30) + &program("serves.py", "step request 0..8ms", 20);
    let found = find(&text);
    assert_eq!(chosen(&found), (StepSource::Step, "train", 30));
    assert_eq!(found.kinds.iter().map(|kind| (&*kind.name, kind.count)).collect::<Vec<_>>(), [("request", 20)]);
    // The same script twice: the steps of both are steps.
    let same = find(&(program("a.py", "step s 0..9ms", 30) + &program("b.py", "step s 0..9ms", 20)));
    assert_eq!(chosen(&same), (StepSource::Step, "s", 50));
}
