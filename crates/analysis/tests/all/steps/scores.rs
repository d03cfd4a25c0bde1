//! What decides between two readings, one factor at a time.

use super::*;

/// Which of two scopes is taken.
fn of(inside: &str) -> String {
    find(&rounds(20, inside)).name
}

#[test]
fn the_one_with_the_kernels() {
    let kernels = launch("a", 60, 30);
    assert_eq!(of(&format!("scope left 0..5ms\n scope right 5ms..10ms\n {kernels}")), "right");
    assert_eq!(of(&format!("scope left 0..5ms\n scope right 5ms..10ms\n {}", launch("a", 10, 30))), "left");
}

#[test]
fn the_one_in_which_the_thread_runs() {
    let of = |running: &str| {
        let text = format!(
            "track main\n repeat 20 every 10ms\n samples {running} every 1ms active gil main:1\n samples 0..10ms every 1ms main:2\n \
             scope left 0..5ms\n scope right 5ms..10ms\n end"
        );
        find(&text).name
    };
    assert_eq!((of("0..4ms"), of("5ms..9ms")), ("left".into(), "right".into()));
}

#[test]
fn the_outermost_that_repeats_and_not_a_part_of_it() {
    let inside = format!("scope request 0..9ms\n scope layer 0..4ms\n scope layer 4ms..9ms\n {}", launch("a", 10, 30));
    assert_eq!(of(&inside), "request");
    // Around once is no rhythm.
    let once = format!("{} scope main 0..200ms", rounds(20, &inside));
    let found = find(&once);
    assert_eq!(chosen(&found), (StepSource::Scope, "request", 20));
    assert_eq!(found.runner_up.unwrap().differs, Differs::Part);
}

#[test]
fn tasks_that_interleave_are_told_by_their_ids() {
    // By time the second lies in the first; by its id it is nobody's part.
    let inside = "scope long 0..9ms id 1\n scope task 1ms..9ms id 2";
    let nested = "scope long 0..9ms id 1\n scope task 1ms..9ms id 2 parent 1";
    let share = |inside: &str| find(&rounds(20, inside)).runner_up.unwrap().differs;
    assert_eq!((share(inside), share(nested)), (Differs::Borders, Differs::Part));
}

#[test]
fn the_one_that_is_regular() {
    let mut both = "track main\n samples 0..400ms every 1ms active gil main:1\n".to_owned();
    for round in 0..20u32 {
        let (at, short) = (20 * round, round % 2 == 0);
        // The same time in both, once in equal parts, once in two that differ by a factor of nine.
        both += &format!("scope even {at}ms..{}ms\n", at + 5);
        both += &format!("scope odd {}ms..{}ms\n", at + 10, at + 10 + if short { 1 } else { 9 });
    }
    let found = find(&both);
    assert_eq!(chosen(&found), (StepSource::Scope, "even", 20));
}

#[test]
fn kernels_that_run_outside_speak_against_calls_that_only_launch() {
    // The call returns at once, the loop waits for the device: thread and launches are the same in both.
    let inside = format!("entry model~Net 0..4ms\n {} api cudaStreamSynchronize 4ms..10ms", launch("a", 38, 50));
    let text = format!(
        "track main\n repeat 20 every 10ms\n samples 0..4ms every 1ms active gil main:1\n samples 4ms..10ms every 1ms main:2\n {inside}\n end"
    );
    let found = find(&text);
    assert_eq!((chosen(&found), found.p50()), ((StepSource::Turn, "iteration (model Net)", 19), 10_000_000));
}
