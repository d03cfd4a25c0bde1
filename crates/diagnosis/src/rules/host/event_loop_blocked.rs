//! `event-loop-blocked`: one callback keeps the asyncio event loop, and every other task waits.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::frames::{WAITS, is};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use std::collections::HashMap;
use timeline::{CollectorCode, NameIndex, StackIndex, TrackIndex};

pub const CODE: RuleCode = RuleCode::new("event-loop-blocked");

pub struct EventLoopBlocked;

const MIN_BLOCKED_NS: Threshold = Threshold::new(
    CODE,
    "min_blocked_ns",
    50_000_000.0,
    Unit::Nanoseconds,
    "half of what asyncio's own debug mode complains about: already a visible delay for every other request",
);
const MIN_SAMPLES: Threshold =
    Threshold::new(CODE, "min_samples", 3.0, Unit::Count, "two samples could be two callbacks");

impl Rule for EventLoopBlocked {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_BLOCKED_NS, MIN_SAMPLES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "One callback blocks the event loop for {min_blocked_ns} or more.",
            why: "Between two callbacks the loop polls for input. Consecutive samples with the same callback at the same line, with no step starting or ending on that thread in between, are one callback that blocks; the confidence is the chance that they are, given how often that callback is sampled at all and how often steps start and end. (The same callback run twice without polling in between looks like one: for the others it is.) The gain is the time that other open steps were blocked. A step that was alone gains nothing from a free loop, and the finding says so.",
            needs: "Stack samples of a thread that runs asyncio (or uvloop).",
            example: "resize (images.py:40) blocks the event loop 12 times, for up to 230 ms",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Sync)
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.timeline.samples.is_empty() {
            return Verdict::Abstain(not_recorded(case.timeline, CollectorCode::Stacks, "stacks not sampled"));
        }
        let callbacks = callbacks(case);
        let mut found = Vec::new();
        for (number, track) in case.timeline.tracks.iter().enumerate() {
            let on_loop = |index: &usize| case.frames.on_path(case.timeline.samples.get(*index).stack, is::EVENT_LOOP);
            let looked = track.samples.clone().filter(on_loop).count();
            if looked >= (case.threshold(MIN_SAMPLES) as u64) as usize {
                found.extend(on_track(case, &callbacks, TrackIndex(number as u32), looked));
            }
        }
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

/// For every stack the frame of the callback that the loop runs in it; 0 where it runs none.
fn callbacks(case: &Case) -> Vec<u32> {
    let stacks = &case.timeline.stacks;
    let mut callback = vec![0u32; stacks.len()];
    for index in 1..stacks.len() {
        let frame = stacks.frame(StackIndex(index as u32));
        let (own, parent) = (case.frames.bits(frame.name), stacks.frame(frame.parent));
        let above_loop = frame.parent.0 != 0 && case.frames.bits(parent.name) & is::EVENT_LOOP != 0;
        callback[index] = match own & is::EVENT_LOOP {
            0 if above_loop && own & WAITS == 0 => index as u32,
            0 => callback[frame.parent.0 as usize],
            _ => 0,
        };
    }
    callback
}

/// Samples of one callback, one after the other.
#[derive(Clone, Copy)]
struct Run {
    callback: u32,
    start: u64,
    end: u64,
    samples: u64,
    /// The stack in the middle of it.
    stack: StackIndex,
}

fn on_track(case: &Case, callbacks: &[u32], track: TrackIndex, looked: usize) -> Vec<Finding> {
    let samples = &case.timeline.samples;
    let steps = Open::on(case, track);
    let hole = case.samples.period_ns.max(1).saturating_mul(5) / 2;
    let mut runs: Vec<Run> = Vec::new();
    let mut seen: HashMap<u32, u64> = HashMap::new();
    for index in case.timeline.tracks[track.0 as usize].samples.clone() {
        let sample = samples.get(index);
        let callback = callbacks[sample.stack.0 as usize];
        *seen.entry(callback).or_default() += 1;
        match runs.last_mut() {
            Some(run)
                if run.callback == callback
                    && sample.time - run.end <= hole
                    && !steps.changes(run.end, sample.time) =>
            {
                run.end = sample.time;
                run.samples += 1;
                if run.samples.is_power_of_two() {
                    run.stack = sample.stack;
                }
            }
            _ => runs.push(Run { callback, start: sample.time, end: sample.time, samples: 1, stack: sample.stack }),
        }
    }
    runs.retain(|run| {
        run.callback != 0
            && run.samples >= (case.threshold(MIN_SAMPLES) as u64)
            && run.end - run.start >= (case.threshold(MIN_BLOCKED_NS) as u64)
    });
    let mut by_place: HashMap<NameIndex, Vec<Run>> = HashMap::new();
    for run in runs {
        by_place.entry(case.timeline.stacks.frame(case.frames.home(run.stack)).name).or_default().push(run);
    }
    let mut found: Vec<Finding> = by_place
        .into_values()
        .map(|runs| finding(case, track, runs, &steps, |callback| seen[&callback] as f64 / looked as f64))
        .collect();
    found.sort_by(|a, b| a.title.cmp(&b.title));
    found
}

/// When steps were open on a track.
struct Open {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

impl Open {
    fn on(case: &Case, track: TrackIndex) -> Open {
        let marked = case.steps.source != analysis::steps::StepSource::Whole;
        let mine = || case.steps.steps.iter().filter(|step| step.track == track && marked);
        let mut open =
            Open { starts: mine().map(|step| step.start).collect(), ends: mine().map(|step| step.end).collect() };
        open.starts.sort_unstable();
        open.ends.sort_unstable();
        open
    }

    fn changes(&self, from: u64, to: u64) -> bool {
        let any =
            |times: &[u64]| times.partition_point(|time| *time <= from) < times.partition_point(|time| *time <= to);
        any(&self.starts) || any(&self.ends)
    }

    fn at(&self, time: u64) -> usize {
        let past = |times: &[u64]| times.partition_point(|start| *start <= time);
        past(&self.starts).saturating_sub(past(&self.ends))
    }
}

fn finding(case: &Case, track: TrackIndex, mut runs: Vec<Run>, steps: &Open, usual: impl Fn(u32) -> f64) -> Finding {
    runs.sort_by_key(|run| (u64::MAX - (run.end - run.start), run.start));
    let longest = runs[0];
    let length = |run: &Run| run.end - run.start;
    let place = case.place(case.frames.home(longest.stack));
    // The loop was kept from before the first sample to after the last: up to a sampling period more at either end.
    let others = |run: &Run| steps.at(run.start).saturating_sub(1) as f64;
    let total = case.steps.total().max(1) as f64;
    let stood = |extra: u64| {
        let sum: f64 = runs.iter().map(|run| length(run).saturating_add(extra) as f64 * others(run)).sum();
        (sum / total).min(1.0)
    };
    let period = case.samples.period_ns;
    let share = Share { low: stood(0), mid: stood(period), high: stood(2 * period) };
    let span = case.timeline.duration().max(1) as f64;
    let changes = (steps.starts.len() + steps.ends.len()) as f64 / span;
    let chance = usual(longest.callback).min(1.0).powf(longest.samples as f64 - 1.0)
        * (-changes * length(&longest) as f64).exp();
    let evidence = runs.iter().take(5).map(|run| {
        let open = steps.at(run.start);
        let waiting = if open > 1 {
            format!("; {} waiting", phrase::counted(open as u64 - 1, "other step"))
        } else {
            String::new()
        };
        let at = phrase::place(&case.place(case.frames.home(run.stack)));
        let text = format!("{} samples over {} in {at}{waiting}", run.samples, phrase::duration(length(run)));
        Evidence::at(text, Some(track), run.start, run.end).number("ns", length(run) as f64)
    });
    let times = if runs.len() == 1 { "once".to_owned() } else { format!("{} times", runs.len()) };
    let callback = case.place(StackIndex(longest.callback));
    let mut evidence: Vec<Evidence> = evidence.collect();
    if callback != place {
        evidence.insert(0, Evidence::new(format!("the callback is {}", phrase::place(&callback))));
    }
    Finding {
        code: CODE,
        title: format!(
            "{} blocks the event loop {times}, for up to {}",
            phrase::place(&place),
            phrase::duration(length(&longest))
        ),
        actions: Action::all(actions(&place)),
        place,
        gain: (share.mid > 0.0).then(|| share.into()),
        severity: if share.mid > 0.0 { Severity::of(share) } else { Severity::Low },
        certainty: Certainty::seen(1.0 - chance),
        evidence,
        verify:
            "Record again: this thread's samples should return to select between callbacks, and the p99 should fall."
                .into(),
    }
}

/// What to do about a function that keeps the loop.
pub fn actions(place: &Place) -> Vec<String> {
    let function = place.function.as_deref().unwrap_or("it");
    vec![
        format!("Run it outside the loop: await asyncio.to_thread({function}, ...)."),
        "If it computes in Python, use a process pool: await loop.run_in_executor(process_pool, ...).".into(),
        "If it waits (requests, time.sleep, a database driver), use the asynchronous version of that call.".into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const LOOP: &str = "main>run_forever@/usr/lib/python3.12/asyncio/base_events.py:600>_run_once@/usr/lib/python3.12/asyncio/base_events.py:1900";
    const RUN: &str = "_run@/usr/lib/python3.12/asyncio/events.py:80";
    const SELECT: &str = "select@/usr/lib/python3.12/selectors.py:468";

    fn blocked(steps: &str, callback: &str) -> String {
        format!(
            "track main\n {steps}
            repeat 10 every 500ms
              samples 0..200ms every 10ms {callback}
              samples 200ms..500ms every 10ms {LOOP}>{SELECT}
            end"
        )
    }

    #[test]
    fn a_callback_that_does_not_let_go_delays_the_other_steps() {
        let steps = "repeat 10 every 500ms\n step request 0..400ms id 1\n step request 5ms..450ms id 2\n end";
        let found = found(
            &EventLoopBlocked,
            &blocked(steps, &format!("active gil {LOOP}>{RUN}>handle:30>resize@images.py:40")),
        );
        assert_eq!(found[0].title, "resize (images.py:40) blocks the event loop 10 times, for up to 180 ms");
        let gain = found[0].gain.unwrap();
        // One of two steps stands still for 180 to 200 ms of 845 ms.
        assert!((gain.low - 21.3).abs() < 0.5 && (gain.high - 23.6).abs() < 0.5, "{gain:?}");
        assert!(found[0].confidence() > 0.99 && found[0].evidence[1].start == Some(10_000_000), "{:?}", found[0]);
    }

    #[test]
    fn a_call_that_sleeps_in_a_callback_blocks_too_and_alone_it_gains_nothing() {
        let found = found(&EventLoopBlocked, &blocked("step request 0..5s", &format!("{LOOP}>{RUN}>handle:30")));
        assert_eq!(found[0].gain, None);
        assert_eq!(found[0].severity, Severity::Low);
    }

    #[test]
    fn silent_when_callbacks_are_short_or_steps_change_in_between() {
        silent(
            &EventLoopBlocked,
            &format!(
                "track main\n step r 0..5s\n repeat 100 every 50ms
            samples 0..20ms every 10ms active gil {LOOP}>{RUN}>handle:30
            samples 20ms..50ms every 10ms {LOOP}>{SELECT}\n end"
            ),
        );
        let many = "repeat 250 every 20ms\n step request 0..20ms\n end";
        silent(&EventLoopBlocked, &blocked(many, &format!("active gil {LOOP}>{RUN}>handle:30")));
        silent(&EventLoopBlocked, "track main\n step r 0..5s\n samples 0..5s every 10ms active gil main>work:3");
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&EventLoopBlocked, "track main\n step r 0..5s", "stacks not sampled");
    }
}
