//! `waits-in-step`: the step's thread does not run but waits, and this is the line it waits at.

mod device;

use crate::blame;
use crate::breakdown::PartKind;
use crate::finding::{Evidence, Finding, Place, Severity};
use crate::frames::{Frames, is};
use crate::phrase;
use crate::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::seen::{Doing, Seen};
use crate::share::Share;
use timeline::{StackIndex, Timeline};

pub struct WaitsInStep;

/// As for a line that runs: a tenth of the step is worth a look.
const LEVEL: f64 = 0.10;
const MOST: usize = 2;

impl Rule for WaitsInStep {
    fn code(&self) -> &'static str {
        "waits-in-step"
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The step spends a tenth of its time or more waiting at one place.",
            why: "A sample shows a thread that sleeps in a call: for a lock, a queue, a socket, a child, or a plain sleep. \
                  Making the code faster cannot help there; what it waits for can be started earlier, done at the same time \
                  or left out. The gain is the share of the step that this wait takes. A wait for the GPU is named with the call \
                  and the line that makes it, and has no gain: what it would bring to wait less depends on the device.",
            needs: "Stack samples inside the steps (at least 20), or recorded calls of C functions (`--calls=c`).",
            example: "62 % of the step is spent waiting in next_batch (service.py:131), for a lock, a queue or another thread",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let device = device::finding(case);
        match case.without_samples() {
            Some(_) if case.breakdown.by_calls => return by_calls(case, device),
            Some(reason) => return device.map_or(Verdict::Abstain(reason), Verdict::from),
            None => {}
        }
        let waits = |one: &Seen| one.doing == Doing::Waiting;
        let mut found = Vec::from_iter(device);
        for at in blame::functions(case, waits).into_iter().take(MOST) {
            let fits =
                |one: &Seen| waits(one) && case.timeline.stacks.frame(case.blame().frame(case, one)).name == at.name;
            let (share, _) = case.share(fits);
            if let (true, Some((frame, _))) = (share.mid >= LEVEL && share.low >= LEVEL / 2.0, at.lines.first()) {
                found.push(finding(case, *frame, share, fits));
            }
        }
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

/// What a thread waits for, by the frame on top.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum For {
    Lock,
    Io,
    /// The event loop has nothing to run.
    Nothing,
    Unknown,
}

pub fn waits_for(timeline: &Timeline, frames: &Frames, stack: StackIndex) -> For {
    let top = frames.on_top(stack);
    match top {
        _ if top & is::WAITS_FOR_IO != 0 && frames.on_path(stack, is::EVENT_LOOP) => {
            let parent = timeline.stacks.frame(stack).parent;
            let under_loop = frames.bits(timeline.stacks.frame(parent).name) & is::EVENT_LOOP != 0;
            if under_loop { For::Nothing } else { For::Io }
        }
        _ if top & is::WAITS_FOR_IO != 0 => For::Io,
        _ if top & is::WAITS_FOR_LOCK != 0 => For::Lock,
        _ => For::Unknown,
    }
}

fn finding(case: &Case, frame: StackIndex, share: Share, fits: impl Fn(&Seen) -> bool) -> Finding {
    let place = case.place(frame);
    let mut tops: std::collections::HashMap<StackIndex, u64> = Default::default();
    for one in case.seen.all.iter().filter(|one| fits(one)) {
        *tops.entry(case.sample(one).stack).or_default() += 1;
    }
    let top = tops.iter().max_by_key(|(stack, count)| (**count, stack.0)).map_or(frame, |(stack, _)| *stack);
    let (what, actions) = advice(waits_for(case.timeline, &case.frames, top), &place);
    let count: u64 = tops.values().sum();
    let samples = Evidence::said(format!(
        "{} of {} samples inside {} do not run; on top is {}",
        phrase::count(count),
        phrase::count(case.breakdown.samples),
        case.the_steps(),
        phrase::place(&case.place(top))
    ));
    let mut evidence = vec![samples.number("samples", count as f64)];
    let held = case.seen.all.iter().filter(|one| fits(one) && one.holder != 0).count() as u64;
    if held > 0 {
        let text = format!(
            "in {} of them another thread held the GIL: it may wait for that; --native tells",
            phrase::count(held)
        );
        evidence.push(Evidence::said(text).number("samples", held as f64));
    }
    evidence.extend(proof::best_step(case, "it waits", &fits));
    let at = phrase::place(&place);
    let gain = case.gain_of_samples(fits, share);
    Finding {
        code: WaitsInStep.code(),
        title: format!("{} of {} is spent waiting in {at}{what}", phrase::percent(share.mid), case.the_step()),
        place,
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        confidence: share.surely_above(LEVEL / 2.0) * case.coverage(),
        evidence,
        actions,
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

/// Too few samples: recorded calls whose name says that they wait.
fn by_calls(case: &Case, device: Option<Finding>) -> Verdict {
    let functions = case.breakdown.functions();
    let waits = functions.iter().filter(|part| part.kind == PartKind::Waiting && part.share >= LEVEL).take(MOST);
    let steps = case.windows.all().len() as f64;
    let found: Vec<Finding> = device
        .into_iter()
        .chain(waits.map(|part| {
            let (place, share) = (part.place(), Share::exactly(part.share));
            let text = format!("{} in {}, by recorded calls", phrase::duration(part.total_ns), case.the_steps());
            let at = phrase::place(&place);
            Finding {
                code: WaitsInStep.code(),
                title: format!("{} of {} is spent waiting in {at}", phrase::percent(share.mid), case.the_step()),
                actions: advice(For::Unknown, &place).1,
                place,
                gain: Some(share.into()),
                severity: Severity::of(share),
                // Laplace's rule, as for everything measured.
                confidence: (steps + 1.0) / (steps + 2.0),
                evidence: vec![Evidence::said(text).number("ns", part.total_ns as f64)],
                verify: proof::verify(case, share.mid),
            }
        }))
        .collect();
    if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
}

fn advice(wait: For, place: &Place) -> (&'static str, Vec<String>) {
    let line = place.line.map_or_else(|| "this call".to_owned(), |line| format!("line {line}"));
    match wait {
        For::Lock => (
            ", for a lock, a queue or another thread",
            vec![
                format!(
                    "Look at who answers {line}: the thread that holds the lock or fills the queue sets this step's pace."
                ),
                "Hold the lock for less (prepare outside it), or give each worker its own data.".into(),
                format!("If {line} waits for a batch to fill up, shorten that wait."),
            ],
        ),
        For::Io => (
            ", for a socket, a pipe or a child",
            vec![
                format!(
                    "Start what {line} waits for earlier, and do other work of the step meanwhile (threads or asyncio)."
                ),
                "Ask once for all instead of once for each, and keep connections open.".into(),
            ],
        ),
        For::Nothing => (
            ", where the event loop has nothing to run",
            vec![
                "The step awaits something outside this thread: see which await with a scope around each.".into(),
                "Await independent things together: await asyncio.gather(a, b).".into(),
            ],
        ),
        For::Unknown => (
            "",
            vec![
                format!("See what {line} calls: a sleep, a lock, or input and output through native code."),
                "Record again with --native: the native frames say what it waits for.".into(),
            ],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn names_the_line_that_waits_and_for_what() {
        let found = found(&WaitsInStep, "
            track main
            repeat 40 every 50ms
              step request 0..40ms
              samples 1ms..31ms every 10ms serve>next_batch:131>get@/usr/lib/python3.12/queue.py:171>wait@/usr/lib/python3.12/threading.py:359
              sample 35ms active gil serve>work:5
            end");
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].title,
            "75 % of the step is spent waiting in next_batch (app.py:131), for a lock, a queue or another thread"
        );
        assert!(found[0].actions.len() >= 2 && found[0].gain.unwrap().low > 60.0);
    }

    #[test]
    fn an_idle_event_loop_is_said_to_be_idle() {
        let base = "/usr/lib/python3.12/asyncio/base_events.py";
        let found = found(&WaitsInStep, &format!("
            track main
            step request 0..1s
            samples 0..1s every 10ms main>run_forever@{base}:600>_run_once@{base}:1900>select@/usr/lib/python3.12/selectors.py:468"));
        assert!(found[0].title.contains("the event loop has nothing to run"), "{}", found[0].title);
    }

    #[test]
    fn recorded_calls_serve_where_there_are_few_samples() {
        let found = found(
            &WaitsInStep,
            "track main\n step r 0..10ms\n call f@a.py:1 0..10ms\n ccall time.sleep 1ms..9ms\n sample 5ms f:1",
        );
        assert_eq!(found[0].title, "80 % of the step is spent waiting in time.sleep");
    }

    const DEVICE: &str = "
        track main
        repeat 40 every 50ms
          step request 0..40ms
          api cudaLaunchKernel 1ms..2ms
          stream 7
          kernel gemm 2ms..38ms
          api cudaStreamSynchronize 8ms..38ms
          sync stream 8ms..38ms
          samples 0..40ms every 10ms active gil main>generate:12
        end";

    /// CUDA spins while it waits, so samples say that the thread runs.
    #[test]
    fn a_wait_for_the_device_is_named_with_its_call_and_line_however_busy_it_looks() {
        let found = found(&WaitsInStep, DEVICE);
        assert_eq!(
            found[0].title,
            "75 % of the step is spent waiting for the GPU in cudaStreamSynchronize, called at generate (app.py:12)"
        );
        assert_eq!((found.len(), found[0].gain), (1, None));
        assert_eq!(found[0].place.api.as_deref(), Some("cudaStreamSynchronize"));
        assert!(found[0].evidence.iter().any(|one| one.text == "the device is at work in 90 % of the steps' time"));
        assert!(found[0].evidence.iter().any(|one| one.text.ends_with("waited for gemm")), "{:?}", found[0].evidence);
    }

    /// A stack is read a little after its time was taken: close to the end of the call it may show what runs next.
    #[test]
    fn a_sample_at_the_end_of_a_call_does_not_say_who_called_it() {
        let with = |more: &str| {
            let late = "samples 0..40ms every 10ms active gil main>generate:12";
            let samples = format!(
                "sample 37960us active gil main>book:3\n sample 37970us active gil main>book:3\n {more}\n samples 39ms..40ms every 250us active gil main>book:3"
            );
            found(&WaitsInStep, &DEVICE.replace(late, &samples)).remove(0)
        };
        let near = with("");
        assert!(near.title.ends_with("in cudaStreamSynchronize, near book (app.py:3)"), "{}", near.title);
        assert_eq!(near.place.function, None);
        let sure = with("sample 20ms active gil main>wait:7");
        assert!(sure.title.ends_with("in cudaStreamSynchronize, called at wait (app.py:7)"), "{}", sure.title);
    }

    /// A copy that returns when all before it is done waits as long as any synchronisation; the function around it is its place.
    #[test]
    fn a_copy_that_waits_is_a_wait_and_has_the_function_around_it() {
        let text = "
            track main
            repeat 4 every 50ms
              step request 0..40ms
              call prepare@batch.py:7 0..39ms
              call __torch_function__@torch/utils/_device.py:9 1ms..39ms
              api cudaLaunchKernel 1ms..2ms
              stream 7
              kernel gemm 2ms..38ms
              ccall aten::copy_ 8ms..38.2ms
              api cudaMemcpyAsync 8ms..38.2ms
              copy h2d 38ms..38.1ms 60 pageable
            end";
        let found = found(&WaitsInStep, text);
        assert_eq!(
            found[0].title,
            "76 % of the step is spent waiting for the GPU in cudaMemcpyAsync, in prepare (batch.py:7)"
        );
        assert!(found[0].actions.last().unwrap().contains("non_blocking"));
        silent(&WaitsInStep, &text.replace("8ms..38.2ms", "8ms..8.2ms"));
    }

    /// One call is not given the time of another.
    #[test]
    fn of_several_calls_that_wait_the_longest_is_named_with_its_own_part() {
        let both = DEVICE.replace(
            "api cudaStreamSynchronize 8ms..38ms",
            "api cudaStreamSynchronize 8ms..20ms\n api cudaDeviceSynchronize 20ms..38ms",
        );
        let found = found(&WaitsInStep, &both.replace("sync stream 8ms..38ms", ""));
        assert_eq!(
            found[0].title,
            "75 % of the step is spent waiting for the GPU, most in cudaDeviceSynchronize (45 %), called at generate (app.py:12)"
        );
    }

    #[test]
    fn a_wait_for_copies_is_not_sent_to_the_kernels() {
        let copies =
            DEVICE.replace("kernel gemm 2ms..38ms", "copy h2d 2ms..37ms 900000000 pinned\n kernel gemm 37ms..38ms");
        assert!(found(&WaitsInStep, DEVICE)[0].actions[0].contains("kernel table"));
        assert!(found(&WaitsInStep, &copies)[0].actions[0].contains("most of what it does is copies"));
    }

    #[test]
    fn a_wait_for_the_device_needs_no_samples() {
        let without: String =
            DEVICE.lines().filter(|line| !line.contains("samples")).map(|line| format!("{line}\n")).collect();
        let found = found(&WaitsInStep, &without);
        assert_eq!(found[0].title, "75 % of the step is spent waiting for the GPU in cudaStreamSynchronize");
    }

    #[test]
    fn native_frames_tell_a_wait_for_the_device_where_calls_were_not_recorded() {
        let found = found(
            &WaitsInStep,
            "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>generate:12>cudaStreamSynchronize@libcudart.so",
        );
        assert!(
            found[0].title.ends_with("in cudaStreamSynchronize, called at generate (app.py:12)"),
            "{}",
            found[0].title
        );
    }

    #[test]
    fn silent_when_the_step_runs() {
        silent(&WaitsInStep, "track main\n step request 0..1s\n samples 0..1s every 10ms active gil serve>work:5");
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&WaitsInStep, "track main\n step request 0..1s", "stacks were not sampled");
    }
}
