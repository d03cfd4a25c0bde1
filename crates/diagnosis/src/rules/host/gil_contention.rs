//! `gil-contention`: the step's thread could run, but another thread of the process holds the interpreter's lock.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::rules::pipeline::{postprocess_tail, preprocess_before_first_kernel};
use crate::threshold::{Threshold, Unit};
use analysis::host::step_samples::{Doing, StepSample};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use std::collections::{HashMap, HashSet};
use timeline::{NameIndex, StackIndex, TrackIndex};

pub const CODE: RuleCode = RuleCode::new("gil-contention");

pub struct GilContention;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "two threads that hand over the GIL now and then are normal; a twentieth of the step is not",
);

impl Rule for GilContention {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The step waits while another thread holds the GIL; the finding names what that thread runs.",
            why: "Every sample shows which thread holds the GIL. A step's thread that sleeps in the middle of plain Python while another holds it waits for it. Three things must agree before a line counts: the line also runs at other times (a line that never runs is a lock or a blocking call), it does not wait while the GIL is free, and the thread went to sleep often enough (a waiter wakes every 5 ms to ask again). Where native frames were recorded, they decide. The gain is the share of the step spent this way.",
            needs: "Stack samples of a Python that has a GIL, with at least two threads.",
            example: "Waiting for the GIL takes 24 % of the step; thread refresher holds it in rebuild_index (cache.py:88)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[
            hot_line::CODE,
            host_wait::CODE,
            waits_in_step::CODE,
            preprocess_before_first_kernel::CODE,
            postprocess_tail::CODE,
        ]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Sync)
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "move the other thread's work to a process", whatif: None })
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = case.without_samples() {
            return Verdict::Abstain(reason);
        }
        let known = (0..case.timeline.samples.len()).any(|index| case.timeline.samples.get(index).gil);
        if !known {
            return Verdict::Abstain(
                "no sample shows a thread with the GIL: this Python has none, or it could not be read".into(),
            );
        }
        let waits = |one: &StepSample| one.doing == Doing::Gil;
        let (share, tally) = case.share(waits);
        if share.mid < case.threshold(MIN_SHARE) || share.low < case.threshold(MIN_SHARE) / 2.0 {
            return Verdict::Silent;
        }
        finding(case, share, tally.part as u64).into()
    }
}

fn finding(case: &Case, share: Share, count: u64) -> Finding {
    let waits = |one: &StepSample| one.doing == Doing::Gil;
    let holders = holders(case);
    let mut evidence = vec![
        Evidence::new(format!(
            "{} of {} samples inside the steps wait for the GIL",
            phrase::count(count),
            phrase::count(case.breakdown.samples)
        ))
        .number("samples", count as f64),
    ];
    for holder in holders.iter().take(3) {
        let at = phrase::place(&case.place(holder.frame));
        let text = format!(
            "{} held it at that time in {at}: {} samples",
            thread(case, holder.track),
            phrase::count(holder.count)
        );
        evidence.push(
            Evidence::at(text, Some(holder.track), holder.first, holder.first + case.samples.period_ns)
                .number("samples", holder.count as f64),
        );
    }
    let mut share = share;
    if case.samples.maybe_gil > 0 {
        let wait = |one: &StepSample| waits(one) || one.doing == Doing::Waiting && one.holder != 0;
        share.high = share.high.max(case.share(wait).0.high);
        let text = format!(
            "{} more samples wait while another thread holds it, at lines never sampled running: the GIL, a lock or a blocking call (calls of C functions tell: --calls=c)",
            phrase::count(case.samples.maybe_gil)
        );
        evidence.push(Evidence::new(text).number("samples", case.samples.maybe_gil as f64));
    }
    evidence.extend(proof::best_step(case, "waiting for the GIL", waits));
    let (who, place) = blamed(case, &holders, count);
    let gain = case.gain_of_samples(waits, share);
    Finding {
        code: CODE,
        title: format!("Waiting for the GIL takes {} of {}{who}", phrase::percent(share.mid), case.the_step()),
        actions: Action::all(actions(&place)),
        place,
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(share.surely_above(case.threshold(MIN_SHARE) / 2.0) * case.coverage()),
        evidence,
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

/// Who is to name: the function that held it for half of the wait or more, and the thread where it is one.
fn blamed(case: &Case, holders: &[Holder], count: u64) -> (String, Place) {
    let mut threads: HashSet<TrackIndex> = HashSet::new();
    let mut functions: HashMap<NameIndex, (u64, StackIndex)> = HashMap::new();
    for holder in holders {
        threads.insert(holder.track);
        let name = case.timeline.stacks.frame(holder.frame).name;
        functions.entry(name).or_insert((0, holder.frame)).0 += holder.count;
    }
    let who = match (threads.len(), holders.first()) {
        (_, None) => return (String::new(), Place::default()),
        (1, Some(holder)) => format!("{} holds it", thread(case, holder.track)),
        (several, Some(_)) => format!("{several} threads hold it in turn"),
    };
    let most = functions.values().max_by_key(|(count, frame)| (*count, u32::MAX - frame.0));
    match most.filter(|(held, _)| held * 2 >= count) {
        Some((_, frame)) => {
            let place = case.place(*frame);
            (format!("; {who} in {}", phrase::place(&place)), place)
        }
        None => (format!("; {who}"), Place::default()),
    }
}

fn actions(place: &Place) -> Vec<String> {
    let work = match place.function {
        Some(_) => format!("Move {} to a process of its own", phrase::place(place)),
        None => "Use processes instead of threads for Python computation".into(),
    };
    vec![
        format!("{work} (multiprocessing, concurrent.futures.ProcessPoolExecutor)."),
        "Do the other threads' work in calls that release the GIL (NumPy, PyTorch, compression), or between steps."
            .into(),
        "Let a polling thread sleep on an event instead of looping.".into(),
    ]
}

struct Holder {
    track: TrackIndex,
    frame: StackIndex,
    count: u64,
    first: u64,
}

/// Who held the GIL while the step waited, and in which function, most first.
fn holders(case: &Case) -> Vec<Holder> {
    let mut all: HashMap<(TrackIndex, NameIndex), Holder> = HashMap::new();
    let starts: Vec<usize> = case.timeline.tracks.iter().map(|track| track.samples.start).collect();
    for one in case.samples.all.iter().filter(|one| one.doing == Doing::Gil && one.holder != 0) {
        let index = one.holder as usize - 1;
        let sample = case.timeline.samples.get(index);
        let frame = case.frames.home(sample.stack);
        // Tracks lie in order of their samples; of several that start here, the last is the one that has any.
        let track = TrackIndex(starts.partition_point(|start| *start <= index).saturating_sub(1) as u32);
        let key = (track, case.timeline.stacks.frame(frame).name);
        all.entry(key).or_insert(Holder { track, frame, count: 0, first: sample.time }).count += 1;
    }
    let mut all: Vec<Holder> = all.into_values().collect();
    all.sort_by_key(|holder| (u64::MAX - holder.count, holder.track, holder.frame));
    all
}

fn thread(case: &Case, track: TrackIndex) -> String {
    match case.timeline.tracks.get(track.0 as usize) {
        Some(track) if !track.name.is_empty() => format!("thread {}", track.name),
        Some(track) => format!("thread {}", track.tid),
        None => "another thread".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const CONTENDED: &str = "
        track main
        repeat 40 every 50ms
          step request 0..40ms
          sample 1ms active gil serve>parse:10
          sample 11ms serve>parse:10
          sample 21ms serve>parse:11
          sample 31ms active gil serve>parse:11
        end
        track refresher
        repeat 40 every 50ms
          sample 1ms loop>rebuild@cache.py:88
          sample 11ms active gil loop>rebuild@cache.py:88
          sample 21ms active gil loop>rebuild@cache.py:88
          sample 31ms loop>rebuild@cache.py:88
        end";

    #[test]
    fn names_who_holds_the_gil() {
        let found = found(&GilContention, CONTENDED);
        assert_eq!(
            found[0].title,
            "Waiting for the GIL takes 50 % of the step; thread refresher holds it in rebuild (cache.py:88)"
        );
        let gain = found[0].gain.unwrap();
        assert!(gain.low > 40.0 && gain.high < 60.0, "{gain:?}");
        assert!(found[0].evidence.iter().any(|one| one.track == Some(TrackIndex(1))));
    }

    #[test]
    fn few_switches_prove_that_it_was_something_else() {
        let sleeps = format!("{CONTENDED}\n track main2\n")
            .replace("track main\n", "track main\n counter voluntary_switches 0..2s every 100ms grows 1\n");
        silent(&GilContention, &sleeps);
        let wakes =
            CONTENDED.replace("track main\n", "track main\n counter voluntary_switches 0..2s every 100ms grows 30\n");
        assert_eq!(found(&GilContention, &wakes).len(), 1);
    }

    /// `lock.acquire()`, `time.sleep()` or `sock.recv()` in the program's own code: the line waits and never runs.
    #[test]
    fn silent_at_a_line_that_only_ever_waits() {
        silent(
            &GilContention,
            &CONTENDED
                .replace("sample 11ms serve>parse:10", "sample 11ms serve>take:7")
                .replace("sample 21ms serve>parse:11", "sample 21ms serve>take:7"),
        );
    }

    #[test]
    fn silent_in_a_known_wait_and_when_nobody_holds_it() {
        let wait = "serve>wait@/usr/lib/python3.12/threading.py:359";
        silent(
            &GilContention,
            &CONTENDED
                .replace("sample 11ms serve>parse:10", &format!("sample 11ms {wait}"))
                .replace("sample 21ms serve>parse:11", &format!("sample 21ms {wait}")),
        );
        silent(&GilContention, &CONTENDED.replace("active gil loop", "loop"));
    }

    /// Four threads that take turns with a lock: who waits stands at the line that takes it, who runs is inside.
    #[test]
    fn silent_when_the_holder_may_have_a_lock_that_the_line_wants() {
        let mut text = String::new();
        for thread in 0..4 {
            text += &format!("track worker-{thread}\n repeat 40 every 40ms\n step round 0..40ms\n");
            for turn in 0..4 {
                let at = 1 + turn * 10;
                text += &match (turn + thread) % 4 {
                    0 => format!("sample {at}ms active gil work:19\n"),
                    1 => format!("sample {at}ms active work:18\n"),
                    _ => format!("sample {at}ms work:18\n"),
                };
            }
            text += "end\n";
        }
        silent(&GilContention, &text);
        let no_lock = text.replace("work:18", "work:19");
        let found = found(&GilContention, &no_lock);
        assert_eq!(
            found[0].title,
            "Waiting for the GIL takes 50 % of the step; 4 threads hold it in turn in work (app.py:19)"
        );
    }

    #[test]
    fn native_frames_decide() {
        let take = "sample 11ms serve>take:7>take_gil@libpython3.12.so";
        assert_eq!(found(&GilContention, &CONTENDED.replace("sample 11ms serve>parse:10", take)).len(), 1);
    }

    #[test]
    fn abstains_without_a_gil() {
        abstains(&GilContention, &CONTENDED.replace(" gil", ""), "no sample shows a thread with the GIL");
    }
}
