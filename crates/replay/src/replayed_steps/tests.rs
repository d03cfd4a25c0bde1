//! Whether two gains are of the same time is decided by what was changed, not by what came out.

use super::*;
use timeline::Timeline;

/// Twenty steps with two kernels that take the same time, one behind the other.
fn two_alike(launches: &str) -> Timeline {
    let text = format!(
        "device 0 NVIDIA_H200\n track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n{launches} kernel one 20us..320us\n\
         {launches} kernel two 320us..620us\n api cudaStreamSynchronize 15us..625us\n end"
    );
    Timeline::from_text(&text).unwrap()
}

fn pieces(timeline: &Timeline, name: &str) -> Vec<u32> {
    let work = &timeline.gpu.work;
    let named = |index: &u32| timeline.names.text(timeline::NameIndex(work.name[*index as usize])) == name;
    (0..work.len() as u32).filter(named).collect()
}

#[test]
fn equal_gains_of_different_work_are_two_times() {
    let timeline = two_alike("api cudaLaunchKernel 0..1us\n");
    let case = ReplayedSteps::new(StepAnalysis::new(&timeline, None));
    let ask = |name: &str| case.gain(&[Change::Work(pieces(&timeline, name), 0.0)], Share::exactly(0.3));
    let (one, two, again) = (ask("one"), ask("two"), ask("one"));
    assert!(case.replayed(&one) && case.replayed(&two), "{one:?} {two:?}");
    assert_eq!((one.mid, one.low, one.high), (two.mid, two.low, two.high));
    let same = |a: &Gain, b: &Gain| case.same_time(a, b);
    assert_eq!([same(&one, &two), same(&one, &again), same(&one, &one)], [Some(false), Some(true), Some(true)]);
    // However a rule judges what of it remains.
    assert_eq!([same(&one.at_most(), &again), same(&one.at_most(), &two)], [Some(true), Some(false)]);
}

#[test]
fn without_a_replay_what_is_touched_decides() {
    // No launch was recorded: nothing says what waited for what.
    let timeline = two_alike("");
    let case = ReplayedSteps::new(StepAnalysis::new(&timeline, None));
    let share = Share::exactly(0.3);
    let ask = |pieces: Vec<u32>| case.gain(&[Change::Work(pieces, 0.0)], share);
    let (one, two) = (pieces(&timeline, "one"), pieces(&timeline, "two"));
    let (most, half) = (ask(one[..15].to_vec()), ask(one[..5].iter().chain(&two).copied().collect()));
    let (one, two) = (ask(one), ask(two));
    assert!(!case.replayed(&one) && one.by == GainBy::Recorded);
    let same = |a: &Gain, b: &Gain| case.same_time(a, b);
    assert_eq!([same(&one, &most), same(&two, &half)], [Some(true); 2]);
    assert_eq!([same(&one, &two), same(&one, &half)], [Some(false); 2]);
    assert_eq!(same(&one, &Gain::recorded(30.0, 30.0, 30.0)), None);
}

/// Without a device nothing is replayed: what the samples of two gains stand for says whether they are of the same time, also in steps shorter than a period.
#[test]
fn without_a_device_samples_say_what_is_of_the_same_time() {
    let text = "track main\n repeat 40 every 10ms\n step r 0..4ms\n end\n repeat 20 every 20ms\n \
                sample 1ms active gil serve>load:5\n sample 11ms active gil serve>build:9\n end";
    let timeline = Timeline::from_text(text).unwrap();
    let case = ReplayedSteps::new(StepAnalysis::new(&timeline, None));
    let line = |one: &StepSample| case.timeline.stacks.frame(case.sample(one).stack).line;
    let half = Share::exactly(0.5);
    let at = |wanted: u32| case.gain_of_samples(|one| line(one) == wanted, half);
    let (load, build, all) = (at(5), at(9), case.gain_of_samples(|_| true, half));
    assert!(!case.replayed(&load) && load.mid == 50.0);
    let same = |a: &Gain, b: &Gain| case.same_time(a, b);
    assert_eq!([same(&load, &build), same(&load, &all), same(&all, &build)], [Some(false), Some(true), Some(true)]);
    assert_eq!(case.covered(&all, &load), Some(0.5));
    // What operators take is known from elsewhere, and where it lies from samples; where these show nothing, it is of the whole step.
    let operators = case.gain_of_host_at(|one| line(one) == 5, Share::exactly(0.1));
    assert_eq!((operators.mid, same(&operators, &load), same(&operators, &build)), (10.0, Some(true), Some(false)));
    let nowhere = case.gain_of_host_at(|_| false, half);
    assert!(case.changes_everything(&nowhere) && !case.changes_everything(&operators));
    assert_eq!((same(&nowhere, &load), nowhere.mid), (None, 50.0));
}
