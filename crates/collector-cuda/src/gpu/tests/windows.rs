//! The overhead budget keeps its word: a program that recording slows down is recorded in windows, so that the whole run
//! takes little more than the budget; one that it does not slow down is recorded nearly all the time.

use super::super::windows::{ProgressCalls, RecordingWindows};

const MS: u64 = 1_000_000;

/// Plays a program whose progress call takes `interval` nanoseconds, and `cost` times more while it is recorded. Returns the share of the
/// time that was recorded and how much longer the run took than without recording.
fn play(percent: f64, interval: u64, cost: f64, seconds: u64) -> (f64, f64) {
    play_on(RecordingWindows::new(percent, START), START, interval, cost, seconds)
}

const START: u64 = 1_000_000_000;
const NONE: ProgressCalls = ProgressCalls { count: 0, last: 0 };

/// As `play`, of a program that was recorded whole since `start`.
fn play_on(mut windows: RecordingWindows, start: u64, interval: u64, cost: f64, seconds: u64) -> (f64, f64) {
    let before = START - start;
    let (mut now, mut calls, mut plain) = (START, 0u64, (before as f64 / (1.0 + cost)) as u64);
    while now - start < seconds * 1000 * MS {
        let slower = if windows.recording { 1.0 + cost } else { 1.0 };
        now += (interval as f64 * slower) as u64;
        plain += interval;
        calls += 1;
        windows.turn(now, ProgressCalls { count: calls, last: now });
    }
    let all = (windows.total[0] + windows.total[1]) as f64;
    (windows.total[0] as f64 / all, (now - start) as f64 / plain as f64 - 1.0)
}

#[test]
fn a_costly_recording_stays_within_its_budget() {
    for (percent, cost) in [(2.0, 0.10), (2.0, 0.5), (1.0, 0.05), (5.0, 0.2)] {
        let (share, slower) = play(percent, 20 * MS, cost, 120);
        assert!(slower * 100.0 < percent + 0.5, "{percent} % was asked for, {:.2} % it took", slower * 100.0);
        assert!(slower * 100.0 > percent / 3.0, "no reason to record so little: {share}");
    }
}

#[test]
fn a_short_run_stays_within_its_budget_too() {
    // While the cost is not known yet, and right after it is: as tiny layers were recorded on an H200.
    for seconds in [8, 15, 22, 30, 45] {
        for cost in [0.1, 0.2, 0.35] {
            let (share, slower) = play(2.0, 3 * MS, cost, seconds);
            assert!(slower < 0.03, "{seconds} s, {cost}: {slower:.4} slower, recorded {share:.2}");
            assert!(share > 0.02, "{seconds} s, {cost}: no reason to record so little: {share:.3}");
        }
    }
}

#[test]
fn a_cheap_recording_goes_on_nearly_all_the_time() {
    let (share, _) = play(2.0, 5 * MS, 0.005, 120);
    assert!(share > 0.75, "only the first seconds, when the cost is not known, are careful: {share}");
}

#[test]
fn a_program_that_launches_fast_is_slowed_down_no_more_than_the_limit() {
    // Recorded whole for three seconds, then found to be costly.
    let start = START - 3000 * MS / 4;
    for cost in [0.15, 0.25, 0.6] {
        let (share, slower) = play_on(RecordingWindows::from_whole(10.0, start, start, START), start, 5 * MS, cost, 20);
        assert!(slower < 0.105, "{cost}: {slower:.3} slower, recorded {share:.2}");
        assert!(slower > 0.05, "{cost}: no reason to record so little: {share:.2}");
    }
}

#[test]
fn what_was_recorded_while_it_cost_nothing_is_not_paid_back() {
    // An hour of little work, and then many launches: they are recorded as those of a program that begins with them.
    let mut windows = RecordingWindows::from_whole(10.0, 0, 3_597_000 * MS, 3_600_000 * MS);
    let (mut now, mut calls, mut recorded) = (3_600_000 * MS, 0u64, 0u64);
    while now < 3_900_000 * MS {
        let interval = if windows.recording { 6 * MS } else { 5 * MS };
        recorded += if windows.recording { interval } else { 0 };
        now += interval;
        calls += 1;
        windows.turn(now, ProgressCalls { count: calls, last: now });
    }
    assert!(recorded > 100_000 * MS, "{} s of 300", recorded / (1000 * MS));
}

#[test]
fn a_machine_that_changes_its_pace_does_not_hide_the_cost() {
    // Faster and slower by a seventh, over and over, as processors of a shared machine are.
    let (mut now, mut calls, mut plain) = (START, 0u64, 0.0);
    let mut windows = RecordingWindows::from_whole(10.0, START, START, START);
    while now - START < 30_000 * MS {
        let pace = 1.0 + 0.15 * ((now / MS) as f64 / 700.0).sin();
        let interval = 5.0 * MS as f64 * pace;
        plain += interval;
        now += (interval * if windows.recording { 1.2 } else { 1.0 }) as u64;
        calls += 1;
        windows.turn(now, ProgressCalls { count: calls, last: now });
    }
    let slower = (now - START) as f64 / plain - 1.0;
    assert!(slower < 0.12, "{slower:.3} slower, with a cost that is taken for {:?}", windows.cost());
}

#[test]
fn one_that_turns_out_cheap_enough_is_recorded_whole_but_for_the_looks() {
    let windows = RecordingWindows::from_whole(10.0, START / 2, START / 2, START);
    let (share, _) = play_on(windows, START / 2, 5 * MS, 0.06, 150);
    assert!(share > 0.9, "{share}");
}

#[test]
fn one_without_progress_calls_is_recorded_whole_in_the_end() {
    let mut windows = RecordingWindows::from_whole(10.0, 0, 0, START);
    let mut since = (START, 0);
    for now in (START..START + 200_000 * MS).step_by(100 * MS as usize) {
        windows.turn(now, NONE);
        if now - START < 100_000 * MS {
            since = (now, windows.total[1]);
        }
    }
    let unrecorded = windows.total[1] - since.1;
    assert!(unrecorded < 20_000 * MS, "{unrecorded}");
    let said = windows.counted(START + 200_000 * MS).note().said();
    assert!(said.contains("fewer than 5 waits and graph launches"), "{said}");
}

#[test]
fn a_run_that_is_over_too_soon_is_not_said_to_have_had_too_few_progress_calls() {
    let mut windows = RecordingWindows::new(2.0, START);
    for count in 1..=1900 {
        let now = START + count * MS;
        windows.turn(now, ProgressCalls { count, last: now });
    }
    let said = windows.counted(START + 1900 * MS).note().said();
    assert!(said.contains("needs 5 recorded windows") && !said.contains("fewer than"), "{said}");
}

#[test]
fn a_window_that_cupti_refuses_is_an_unrecorded_one_and_is_tried_again() {
    let (mut windows, mut tried) = (RecordingWindows::new(2.0, START), 0);
    for count in 1..=60_000 {
        let now = START + count * MS;
        if windows.turn(now, ProgressCalls { count, last: now }) && windows.recording {
            tried += 1;
            assert!(!windows.settle(false));
        }
    }
    assert!(tried > 1, "{tried}");
    assert_eq!((windows.count, windows.times(START + 60_000 * MS)), (0, [0, 60_000 * MS]));
}

#[test]
fn a_start_that_is_unlike_the_rest_is_forgotten() {
    let (mut now, mut calls) = (0u64, 0u64);
    let mut windows = RecordingWindows::new(2.0, now);
    while now < 60_000 * MS {
        // Loading for the first seconds: progress calls get rarer by the second, whether they are recorded or not.
        let loading = if now < 3000 * MS { 1 + now / (200 * MS) } else { 1 };
        now += 10 * MS * loading + if windows.recording { MS } else { 0 };
        calls += 1;
        windows.turn(now, ProgressCalls { count: calls, last: now });
    }
    let cost = windows.cost().expect("known by now");
    assert!((cost - 0.1).abs() < 0.02, "{cost}");
}

#[test]
fn a_program_without_progress_calls_is_still_recorded_sometimes() {
    let mut windows = RecordingWindows::new(2.0, 0);
    for now in 0..1200 {
        windows.turn(now * 100 * MS, NONE);
    }
    assert!(windows.count > 2 && windows.cost().is_none());
    assert!(windows.total[0] < windows.total[1], "carefully, as long as the cost is not known");
    assert!(
        windows.counted(120_000 * MS).note().said().contains("cost of recording not known"),
        "{}",
        windows.counted(120_000 * MS).note().said()
    );
}

#[test]
fn the_report_says_what_was_recorded_and_what_it_cost() {
    let mut windows = RecordingWindows::new(2.0, 0);
    let (mut now, mut calls) = (0, 0);
    while windows.count < 20 {
        now += if windows.recording { 11 * MS } else { 10 * MS };
        calls += 1;
        windows.turn(now, ProgressCalls { count: calls, last: now });
    }
    let words = windows.counted(now).note().said();
    assert!(words.contains("at most 2.0 %") && words.contains("slows the program by 10.0 %"), "{words}");
}

#[test]
fn graphs_are_slowed_down_by_a_hundredth_at_most() {
    // Recorded whole for three seconds; CUPTI times every node.
    let start = START - 3000 * MS / 4;
    for cost in [0.02, 0.036, 0.058] {
        let (share, slower) = play_on(RecordingWindows::from_whole(1.0, start, start, START), start, 5 * MS, cost, 60);
        assert!(slower < 0.0105, "{cost}: {slower:.4} slower, recorded {share:.2}");
        assert!(slower > 0.005, "{cost}: no reason to record so little: {share:.2}");
    }
}

/// Plays a program of `cost` times slower steps of `step` with progress calls every 10 ms, and returns how many of them lay whole in a
/// recorded window, and how much longer the run took than without recording.
fn play_steps(mut windows: RecordingWindows, step: u64, calls_in_it: u64, cost: f64, seconds: u64) -> (u64, f64) {
    let (mut now, mut calls, mut plain, mut whole) = (START, 0u64, 0u64, 0);
    while now - START < seconds * 1000 * MS {
        let (began, mut inside) = (now, windows.recording);
        for _ in 0..calls_in_it {
            let interval = step / calls_in_it;
            now += (interval as f64 * if windows.recording { 1.0 + cost } else { 1.0 }) as u64;
            plain += interval;
            calls += 1;
            windows.turn(now, ProgressCalls { count: calls, last: now });
            inside &= windows.recording;
        }
        whole += u64::from(inside);
        windows.see_step(now - began);
    }
    (whole, (now - START) as f64 / plain as f64 - 1.0)
}

#[test]
fn steps_that_are_longer_than_a_window_have_wider_ones() {
    for (step, seconds) in [(1500, 120), (3000, 240), (9000, 900)] {
        for cost in [0.08, 0.2] {
            let (whole, slower) = play_steps(RecordingWindows::new(2.0, START), step * MS, step / 10, cost, seconds);
            assert!(whole >= 2, "{step} ms, {cost}: {whole} whole steps");
            assert!(slower < 0.025, "{step} ms, {cost}: {slower:.4} slower");
        }
        let (whole, _) = play_steps(RecordingWindows::new(2.0, START), step * MS, step / 10, 0.005, seconds);
        assert!(whole * step > seconds * 1000 / 2, "{step} ms, cheap: {whole} whole steps");
    }
}

#[test]
fn steps_without_progress_calls_are_whole_in_windows_too() {
    // One wait a step: what recording costs cannot be told, and is taken for much.
    let mut windows = RecordingWindows::new(2.0, START);
    let (mut now, mut whole, mut began) = (START, 0, START);
    let mut inside = false;
    while now < START + 900_000 * MS {
        now += 50 * MS;
        windows.turn(now, ProgressCalls { count: (now - START) / (3000 * MS), last: now });
        inside &= windows.recording;
        if now - began >= 3000 * MS {
            windows.see_step(now - began);
            whole += u64::from(inside);
            (began, inside) = (now, windows.recording);
        }
    }
    assert!(whole >= 2 && windows.cost().is_none(), "{whole} whole steps");
    assert!(windows.total[0] * 10 < windows.total[1], "{:?}", windows.total);
    assert!(
        windows.counted(now).note().said().contains("for steps of 3.00 s"),
        "{}",
        windows.counted(now).note().said()
    );
}

/// A slow first step, as of a program that compiles, and steps that last for ever, make no endless windows.
#[test]
fn a_step_that_is_unlike_the_others_is_forgotten_and_none_makes_a_window_endless() {
    let mut windows = RecordingWindows::new(2.0, START);
    windows.see_step(u64::MAX);
    let (mut now, mut since, mut widest) = (START, START, [0; 2]);
    for count in 1..=600_000 {
        now = START + count * MS;
        windows.see_step(5 * MS);
        let recording = windows.recording;
        if windows.turn(now, ProgressCalls { count, last: now }) {
            let half = usize::from(count > 300_000);
            widest[half] = if recording { (now - since).max(widest[half]) } else { widest[half] };
            since = now;
        }
    }
    assert!(widest[0] <= 61_000 * MS && !windows.counted(now).note().said().contains("whole steps"), "{widest:?}");
}

#[test]
fn the_window_that_is_open_at_the_end_counts() {
    let mut windows = RecordingWindows::new(2.0, 0);
    let (mut now, mut calls) = (0, 0);
    while windows.count < 20 || windows.recording {
        now += if windows.recording { 11 * MS } else { 10 * MS };
        calls += 1;
        windows.turn(now, ProgressCalls { count: calls, last: now });
    }
    let so_far = windows.total[0] as f64 / (windows.total[0] + windows.total[1]) as f64 * 100.0;
    let long_after = now + 9 * (windows.total[0] + windows.total[1]);
    let (at_once, later) = (windows.counted(now).note().said(), windows.counted(long_after).note().said());
    assert!(at_once.contains(&format!("for {so_far:.0} %")), "{at_once}");
    assert!(later.contains(&format!("for {:.0} %", so_far / 10.0)), "nothing was recorded since: {later}");
}

#[test]
fn a_cost_of_a_few_hundredths_is_told_exactly() {
    // Looked at every fifty milliseconds, not at every progress call; switching itself takes some milliseconds.
    let mut windows = RecordingWindows::from_whole(1.0, START, START, START);
    let (mut now, mut calls, mut look) = (START, 0, START);
    while now < START + 12_000 * MS {
        now += if windows.recording { 6_180_000 } else { 6_000_000 };
        calls += 1;
        while look <= now {
            look += 50 * MS;
            if windows.turn(look, ProgressCalls { count: calls, last: now }) {
                now += 8 * MS;
            }
        }
    }
    let cost = windows.cost().expect("known by now");
    assert!((cost - 0.03).abs() < 0.003, "{cost}");
}
