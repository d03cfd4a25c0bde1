//! How far what is said of devices can be trusted: their clock, what recorded them, what was lost, and work from before the
//! window. Says nothing where no device was recorded.

use super::HealthState::{self, Bad, Info, Ok, Warn};
use super::{HealthLine, HealthTopic};
use crate::losses;
use crate::measures::gpu_clock::{error_bar, wrong};
use crate::rule::Case;
use crate::wording;
use analysis::origin::failed;
use analysis::phrase;
use analysis::stats;
use analysis::steps::StepSource;
use std::collections::BTreeSet;
use timeline::{CollectorCode, Condition, Timeline, TrackIndex};

/// Less than this of the steps is within what a replay may be off by.
const MIN_MISSING_SHARE: f64 = 0.02;

pub fn lines(case: &Case) -> Vec<HealthLine> {
    let Some(metrics) = case.gpu() else { return Vec::new() };
    let line = HealthLine::new;
    let mut lines = vec![line(HealthTopic::GpuClock, clock(case)), line(HealthTopic::GpuRecords, records(case))];
    if metrics.before_window > 0 {
        let operations = phrase::counted(metrics.before_window, "GPU operation");
        let text = format!("{operations} launched before the recording started (no launch call recorded)");
        lines.push(line(HealthTopic::GpuWindow, (Info, text)));
    }
    lines.extend(behind(case).map(|said| line(HealthTopic::GpuWindow, said)));
    lines.extend(replay(case).map(|said| line(HealthTopic::Replay, said)));
    lines
}

/// What causality proves, and what the collector measured.
fn clock(case: &Case) -> (HealthState, String) {
    let linked = case.timeline.gpu.clock.linked;
    if let Some(wrong) = wrong(case) {
        return (Bad, format!("{}: {}", wrong.by, wrong.seen));
    }
    let error = error_bar(case);
    let within = match error {
        Some(error) => format!("GPU timestamps accurate to {}", phrase::duration(error)),
        None => "error of GPU timestamps unknown".to_owned(),
    };
    let state = match (error, case.steps.p50()) {
        (None, _) => Info,
        (Some(error), step) if step > 0 => HealthState::above(error as f64 / step as f64, 0.01, 0.1),
        _ => Ok,
    };
    match linked {
        0 => (state, within),
        linked => (
            state,
            format!("{within}; none of {} starts before its launch call", phrase::counted(linked, "GPU operation")),
        ),
    }
}

/// A step that ends when its work is launched, not when it is done: the device goes on after it, and that time is in no step or in the next.
fn behind(case: &Case) -> Option<(HealthState, String)> {
    let (timeline, windows) = (case.timeline, case.windows.all());
    if case.steps.source == StepSource::Whole || windows.is_empty() {
        return None;
    }
    let work = &timeline.gpu.work;
    let mut done: Vec<u64> = windows.iter().map(|window| window.end).collect();
    // Launches come by thread and time, so most are in the window of the last.
    let (mut track, mut last) = (0, None);
    for index in work.linked().iter().map(|index| *index as usize) {
        let Some(launch) = work.launch(index) else { continue };
        while timeline.tracks[track].slices.end <= launch {
            (track, last) = (track + 1, None);
        }
        let begin = timeline.slices.start[launch];
        let inside = |window: usize| windows[window].start <= begin && begin < windows[window].end;
        if !last.is_some_and(inside) {
            last = case.windows.at(TrackIndex(track as u32), begin);
        }
        if let Some(window) = last {
            done[window] = done[window].max(work.end(index));
        }
    }
    let mut parts: Vec<(f64, u64)> = Vec::with_capacity(windows.len());
    for (window, done) in windows.iter().zip(done) {
        let behind = done - window.end;
        parts.push((behind as f64 / (window.end - window.start).max(1) as f64, behind));
    }
    let (part, behind) = stats::median_by(parts, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))?;
    let text = || {
        let behind = phrase::duration(behind);
        format!(
            "steps end before their GPU work does: it runs for {behind} more (median), which no share of the step includes"
        )
    };
    (part >= MIN_SHARE_BEHIND).then(|| (if part >= MAJORITY { Warn } else { Info }, text()))
}

/// A tenth of the step: a few kernels that are still to run are usual.
const MIN_SHARE_BEHIND: f64 = 0.1;
const MAJORITY: f64 = 0.5;

/// How far the steps are reproduced by replaying what was recorded, unchanged: gains are no better than that.
fn replay(case: &Case) -> Option<(HealthState, String)> {
    match case.player() {
        Result::Ok(player) => {
            let check = player.check();
            let (off, worst) = (phrase::percent(check.off.abs()), phrase::percent(check.worst.abs()));
            let steps = phrase::counted(check.steps, "step");
            let mut text = format!("{steps} replayed unchanged: {off} off in total, {worst} at worst");
            if check.held >= MIN_MISSING_SHARE {
                let held = phrase::percent(check.held);
                text += &format!(
                    "; for {held} of the time launched work does not start, for an unrecorded reason: this time is kept as is"
                );
            }
            Some((HealthState::above(check.off.abs().max(check.held - MIN_MISSING_SHARE), 0.02, f64::INFINITY), text))
        }
        Err(why) => Some((Info, format!("gains computed without a replay: {}", wording::replay::refusal(why)))),
    }
}

fn records(case: &Case) -> (HealthState, String) {
    let gpu = &case.timeline.gpu;
    let lost = losses::totals(case.timeline);
    let lost = lost.iter().filter(|loss| losses::is_of_device(&loss.collector)).map(|loss| loss.count);
    let lost = lost.fold(0u64, u64::saturating_add);
    let libraries = libraries(case.timeline);
    // The records of waits are none of it.
    let work = (0..gpu.work.len()).filter(|index| gpu.work.kind(*index).is_busy()).count() as u64;
    let mut text = phrase::counted(work, "GPU operation");
    if !libraries.is_empty() {
        text += &format!(", recorded by {}", libraries.into_iter().collect::<Vec<_>>().join(" and "));
    }
    let whole = lost as f64 / (lost as f64 + gpu.work.len() as f64);
    match lost {
        0 if !case.timeline.info.recorded_by.is_ours() => (Info, text),
        0 if failed(case.timeline, CollectorCode::Gpu) => {
            (Warn, format!("{text}; more may be missing: collector gpu failed"))
        }
        0 => (Ok, format!("{text}; none lost")),
        lost => (HealthState::above(whole, 0.0, 0.05), format!("{text}; {} lost", phrase::counted(lost, "record"))),
    }
}

/// What recorded the devices, as our collector names it ("libcupti.so.13, CUPTI 130001, driver for CUDA 13.0, in /opt/cuda/lib"), or by
/// the version that another file gives.
pub fn libraries(timeline: &Timeline) -> BTreeSet<String> {
    let states = timeline.processes.iter().flat_map(|process| &process.collectors);
    let loaded = states
        .filter(|state| state.name == CollectorCode::Gpu && state.state == Condition::On && !state.reason.is_empty());
    let named: BTreeSet<String> = loaded.map(|state| state.reason.clone()).collect();
    if !named.is_empty() {
        return named;
    }
    let devices = timeline.gpu.devices.iter().filter(|device| !device.cupti.is_empty());
    devices.map(|device| format!("CUPTI {}", device.cupti)).collect()
}

/// None: recording devices cost nothing that was measured.
pub fn overhead(case: &Case) -> Option<(HealthState, String)> {
    let overhead = case.gpu()?.overhead.as_ref()?;
    let mut text = match overhead.percent {
        Some(percent) => format!("{}: {}", phrase::percent(percent / 100.0), wording::device::overhead(overhead.how)),
        None => wording::device::overhead(overhead.how),
    };
    let state = overhead.percent.map_or(Info, |percent| HealthState::above(percent, 5.0, 25.0));
    // Of all threads together, some of them its own: it may be more than the recording lasts, and need not slow a step down.
    let recorded = case.timeline.duration();
    if overhead.cupti_ns < recorded / 20 || overhead.cupti_ns == 0 {
        return Some((state, text));
    }
    let (cupti, recorded) = (phrase::duration(overhead.cupti_ns), phrase::duration(recorded));
    text += &format!("; CUPTI reports {cupti} of its own time in a recording of {recorded}");
    Some((state.max(Warn), text))
}

#[cfg(test)]
pub mod tests {
    use super::HealthState::Bad;
    use super::*;

    pub const RUN: &str = "
        device 0 NVIDIA_H200 cupti 130001
        collector gpu on residual 400ns
        track main
        step request 0..1ms
        api cudaLaunchKernel 0..5us
        stream 7
        kernel gemm 10us..500us
        api cudaStreamSynchronize 20us..509us
        sync stream 20us..509us";

    pub fn said(text: &str) -> Vec<(HealthState, String)> {
        let timeline = Timeline::from_text(text).unwrap();
        lines(&Case::new(&timeline, None)).into_iter().map(|line| (line.state, line.text)).collect()
    }

    /// The host launches a second of work in a tenth of it, and calls that a step.
    #[test]
    fn a_step_that_ends_before_its_work_is_said_to() {
        let text = "track main\n step r 0..100ms\n api cudaLaunchKernel 10ms..11ms\n stream 7\n kernel k 12ms..1s";
        let line = said(text).into_iter().find(|line| line.1.contains("it runs for")).unwrap();
        assert_eq!(line.0, Warn);
        assert!(line.1.contains("for 900 ms more"), "{line:?}");
        assert!(!said(&text.replace("..1s", "..99ms")).iter().any(|line| line.1.contains("it runs for")));
    }

    #[test]
    fn the_clock_is_bounded_and_the_library_named() {
        assert_eq!(
            said(RUN),
            [
                (Ok, "GPU timestamps accurate to 400 ns; none of 1 GPU operation starts before its launch call".into()),
                (Ok, "1 GPU operation, recorded by CUPTI 130001; none lost".into()),
                (Ok, "1 step replayed unchanged: 0 % off in total, 0 % at worst".into()),
            ]
        );
        let proved = said(&RUN.replace("residual 400ns", ""));
        assert!(proved[0].1.starts_with("GPU timestamps accurate to 10.0 µs"), "{proved:?}");
    }

    #[test]
    fn work_before_its_call_losses_and_work_from_before_the_window_are_said() {
        let said = said(&format!(
            "{RUN}\n kernel early 600us..700us corr 5\n api cudaLaunchKernel 605us..606us corr 5
            kernel old 800us..801us corr 0\n loss gpu 1 dropped-by-cupti"
        ));
        assert_eq!(said[0].0, Bad);
        assert_eq!(
            said[0].1,
            "GPU timestamps are too early by 5.00 µs at least: 1 of 2 GPU operations starts before the call that launched it"
        );
        assert_eq!(said[1], (Bad, "3 GPU operations, recorded by CUPTI 130001; 1 record lost".into()));
        assert!(said[2].1.starts_with("1 GPU operation launched before"), "{said:?}");
    }

    #[test]
    fn our_collector_names_its_library() {
        let text =
            RUN.replace("cupti 130001", "").replace("residual 400ns", "libcupti.so.13, CUPTI 130001, in /opt/cuda/lib");
        assert_eq!(
            said(&text)[1].1,
            "1 GPU operation, recorded by libcupti.so.13, CUPTI 130001, in /opt/cuda/lib; none lost"
        );
    }

    #[test]
    fn what_cupti_took_of_a_recording_is_a_warning() {
        let said = |text: &str| {
            let timeline = Timeline::from_text(text).unwrap();
            overhead(&Case::new(&timeline, None))
        };
        let much = said(&RUN.replace("stream 7", "overhead Buffer_Flush 600us..700us\n stream 7")).unwrap();
        assert_eq!(much.0, Warn);
        assert!(much.1.ends_with("; CUPTI reports 100 µs of its own time in a recording of 1.00 ms"), "{much:?}");
        let little = said(&RUN.replace("stream 7", "overhead Buffer_Flush 600us..610us\n stream 7")).unwrap();
        assert!(little.0 == Info && !little.1.contains("CUPTI reports"), "{little:?}");
    }

    #[test]
    fn what_another_tool_does_not_tell_is_neither_good_nor_bad() {
        let mut timeline =
            Timeline::from_text(&RUN.replace("residual 400ns", "").replace("sync stream 20us..509us", "")).unwrap();
        timeline.info.recorded_by = timeline::RecordedBy::Kineto;
        timeline.gpu.clock.shortest_return_ns = None;
        let said = lines(&Case::new(&timeline, None));
        assert_eq!((said[0].state, said[1].state), (Info, Info), "{said:?}");
        assert_eq!(said[1].text, "1 GPU operation, recorded by CUPTI 130001");
    }

    #[test]
    fn nothing_is_said_without_a_device() {
        assert_eq!(said("track main\n step request 0..1ms"), []);
    }

    #[test]
    fn a_clock_that_is_late_is_not_called_right() {
        let late = RUN.replace("10us..500us", "40us..530us");
        assert_eq!(
            said(&late)[0],
            (
                Bad,
                "GPU timestamps are too late by 21.0 µs at least: 1 of 1 wait returns before the work it waited for has ended"
                    .into()
            )
        );
        // By less than the clocks were read to, it may be right.
        assert_eq!(said(&RUN.replace("10us..500us", "10us..509200ns"))[0].0, Ok);
    }

    #[test]
    fn a_clock_that_is_early_by_far_is_not_work_from_before_the_window() {
        let steps = |early: u64| {
            let (start, end) = (60_010 - early, 60_500 - early);
            format!(
                "collector gpu on residual 400ns\n track main\n repeat 20 every 2ms\n step request 60ms..61ms
                 api cudaLaunchKernel 60ms..60005us\n stream 7\n kernel gemm {start}us..{end}us\n end"
            )
        };
        for early in [3_000, 50_000] {
            let said = said(&steps(early));
            let by = phrase::duration((early - 10) * 1000);
            assert_eq!(
                (said[0].0, said[0].1.starts_with(&format!("GPU timestamps are too early by {by} (median)"))),
                (Bad, true),
                "{said:?}"
            );
            assert!(!said.iter().any(|line| line.1.contains("before the recording")), "{said:?}");
        }
        assert_eq!(said(&steps(0))[0].0, Ok);
    }
}
