//! `no-request-waiting`: the step waits for work, and nothing else of the program runs meanwhile: the load sets the pace, not the code.

use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::{gap, on_path};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::rules::pipeline::preprocess_before_first_kernel;
use crate::threshold::{Threshold, Unit};
use analysis::frames::{WAITS, is};
use analysis::host::step_samples::{Doing, StepSample};
use analysis::host::waits::{DEEPEST_WAIT, For, waits_for};
use analysis::phrase;
use analysis::steps::spans::Spans;
use timeline::{Name, ProcessIndex, StackIndex, TrackIndex};

pub const CODE: RuleCode = RuleCode::new("no-request-waiting");

pub struct NoRequestWaiting;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "any server waits now and then; a tenth is more than that");
const MIN_QUIET_SHARE: Threshold = Threshold::new(
    CODE,
    "min_quiet_share",
    0.8,
    Unit::Share,
    "where other threads or the GPU are busy during the wait, it is not for requests",
);

/// Functions that take the next request, by the end of their file's path. What an event loop waits for, or one who asks whether a socket or a pipe is
/// ready, may as well be the answer that a request needs: `selectors.py` alone takes nothing.
const TAKING_FUNCTIONS: [(&str, &[&str]); 8] = [
    ("queue.py", &["get"]),
    ("asyncio/queues.py", &["get"]),
    ("multiprocessing/queues.py", &["get"]),
    ("multiprocessing/connection.py", &["recv", "recv_bytes", "poll", "accept"]),
    ("socket.py", &["accept"]),
    ("zmq/sugar/socket.py", &["recv", "recv_multipart", "poll"]),
    ("zmq/sugar/poll.py", &["poll"]),
    ("socketserver.py", &["serve_forever", "get_request"]),
];

impl Rule for NoRequestWaiting {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_QUIET_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The step waits at a queue or socket for the next request for {min_share} of its time or more, while no other thread of the program and no GPU is busy.",
            why: "A server that waits while nothing else runs has nothing to do: faster code would only make it wait longer. It needs more concurrent requests, or fewer machines. If another thread or process of the recording runs during the wait, or waits for a socket or a child itself, the step waits for that one, and this rule stays silent; also where the program has a child whose stacks were not sampled (nothing shows that it is idle), and for an event loop with nothing to run: a step that awaits an answer looks the same as none. The gain is the wait itself: with requests always queued, a step would take that much less.",
            needs: "Stack samples inside the steps (at least {stack_samples}), of all processes the program started.",
            example: "Server idle 71 % of the step: waiting for the next request, at serve (server.py:88)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[waits_in_step::CODE, preprocess_before_first_kernel::CODE, host_wait::CODE, hot_line::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Input)
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = case.without_samples() {
            return Verdict::Abstain(reason);
        }
        let waits = |one: &StepSample| one.doing == Doing::Waiting && takes_on_top(case, case.sample(one).stack);
        let found = match on_path::find(case, case.threshold(MIN_SHARE), "waiting for a request", takes, waits) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        };
        let all: Vec<&StepSample> = case.samples.all.iter().filter(|one| waits(one)).collect();
        let (busy, others, children) = (at_work(case), Others::find(case), unsampled_children(case));
        let quiet = all.iter().filter(|one| {
            let (time, half) = (case.sample(one).time, case.samples.period_ns / 2);
            busy.overlap(time, time.saturating_add(1)) == 0
                && children.overlap(time, time.saturating_add(1)) == 0
                && !others.run(case.track(one), time.saturating_sub(half), time.saturating_add(half))
        });
        let quiet = quiet.count() as f64 / all.len().max(1) as f64;
        if quiet < case.threshold(MIN_QUIET_SHARE) || all.is_empty() {
            return Verdict::Silent;
        }
        let gain = found.gain(case, 0.0);
        let mut evidence = vec![
            Evidence::new(format!(
                "in {} of the samples of this wait no other thread runs and the GPU is idle",
                phrase::percent(quiet)
            ))
            .number("quiet", quiet),
        ];
        evidence.extend(found.evidence);
        let finding = Finding {
            code: CODE,
            title: format!("Server idle {} of {}: waiting for the next request{}", phrase::percent(found.share.mid), case.the_step(), gap::at(&found.place)),
            place: found.place,
            gain: Some(gain),
            severity: Severity::Low,
            certainty: Certainty::seen(found.confidence * quiet),
            evidence,
            actions: vec![
                "Send more concurrent requests before changing any code: the server has capacity left.".into(),
                "To measure the server alone, start the step after taking the request: request = queue.get(), then with step(\"request\"): ...".into(),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

fn takes(name: &Name) -> bool {
    TAKING_FUNCTIONS
        .iter()
        .any(|(file, functions)| functions.contains(&on_path::last(name)) && on_path::in_file(name, file))
}

/// Whether what waits was called to take a request: by frames that do nothing but wait, up to the one that takes it. Above `serve_forever` there
/// is also all that a handler waits for.
fn takes_on_top(case: &Case, mut stack: StackIndex) -> bool {
    for _ in 0..DEEPEST_WAIT {
        let frame = case.timeline.stacks.frame(stack);
        let name = case.timeline.names.get(frame.name);
        if takes(name) {
            return true;
        }
        if case.frames.bits(frame.name) & (WAITS | is::NATIVE) == 0
            && !on_path::in_file(name, "multiprocessing/connection.py")
        {
            return false;
        }
        stack = frame.parent;
    }
    false
}

/// When the program has children that nobody looked at: what they do is not known.
fn unsampled_children(case: &Case) -> Spans {
    let processes = &case.timeline.processes;
    let sampled =
        |index: usize| case.timeline.tracks_of(ProcessIndex(index as u32)).any(|track| !track.samples.is_empty());
    let parent = |index: usize| {
        let pid = Some(processes[index].parent_pid).filter(|pid| *pid != 0)?;
        processes.iter().position(|process| process.pid == pid).filter(|parent| *parent != index)
    };
    // What stands around a program that was looked at (a shell) only waits for it.
    let descends = |index: usize| {
        let line = std::iter::successors(parent(index), |at| parent(*at));
        line.take(processes.len()).any(sampled)
    };
    let unseen = (0..processes.len()).filter(|index| !sampled(*index) && descends(*index));
    let lives =
        |index: usize| (processes[index].started_ns.unwrap_or(0), processes[index].ended_ns.unwrap_or(u64::MAX));
    Spans::union(unseen.map(lives).collect())
}

/// When any device works.
fn at_work(case: &Case) -> Spans {
    let work = &case.timeline.gpu.work;
    Spans::union(
        (0..work.len())
            .filter(|index| work.kind(*index).is_busy())
            .map(|index| (work.start[index], work.end(index)))
            .collect(),
    )
}

/// When which thread was seen at something that the step may wait for: running, or waiting for a socket or a child of its own.
struct Others(Vec<(u64, TrackIndex)>);

impl Others {
    fn find(case: &Case) -> Others {
        let mut all = Vec::new();
        for (number, track) in case.timeline.tracks.iter().enumerate() {
            let asks = |stack: StackIndex| {
                matches!(waits_for(case.timeline, &case.frames, stack), For::Io | For::Child)
                    && !takes_on_top(case, stack)
            };
            let at_it = track.samples.clone().filter(|index| {
                let sample = case.timeline.samples.get(*index);
                sample.active || asks(sample.stack)
            });
            all.extend(at_it.map(|index| (case.timeline.samples.time[index], TrackIndex(number as u32))));
        }
        all.sort_unstable();
        Others(all)
    }

    /// Whether another thread was then.
    fn run(&self, track: TrackIndex, from: u64, to: u64) -> bool {
        let first = self.0.partition_point(|one| one.0 < from);
        self.0[first..].iter().take_while(|one| one.0 < to).any(|one| one.1 != track)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(stack: &str, client: &str) -> String {
        format!(
            "track main\n repeat 40 every 50ms\n step turn 0..50ms\n samples 0..30ms every 1ms serve@server.py:88>{stack}\n\
             samples 30ms..50ms every 1ms active gil serve@server.py:90>forward@model.py:9\n end\n\
             track client\n repeat 40 every 50ms\n samples 0..50ms every 1ms {client} client@client.py:4\n end"
        )
    }
    const GET: &str = "get@/usr/lib/python3.12/queue.py:171>wait@/usr/lib/python3.12/threading.py:355";

    #[test]
    fn a_server_with_nothing_to_do() {
        let found = found(&NoRequestWaiting, &steps(GET, ""));
        assert_eq!(found[0].title, "Server idle 60 % of the step: waiting for the next request, at server.py:88");
        assert!((found[0].gain.unwrap().mid - 60.0).abs() < 1.0);
    }

    #[test]
    fn silent_when_another_thread_makes_the_request_and_for_other_waits() {
        silent(&NoRequestWaiting, &steps(GET, "active"));
        silent(&NoRequestWaiting, &steps("acquire@/usr/lib/python3.12/threading.py:355", ""));
    }

    /// A request is open, and what it awaits is not another request.
    #[test]
    fn silent_inside_a_step_that_awaits_an_answer_or_a_child() {
        let std = "/usr/lib/python3.12";
        let base = format!("{std}/asyncio/base_events.py");
        let select = format!("select@{std}/selectors.py:468");
        let answer = format!("run@{std}/asyncio/runners.py:194>run_forever@{base}:600>_run_once@{base}:1900>{select}");
        let child = format!("run@{std}/subprocess.py:550>communicate@{std}/subprocess.py:1209>{select}");
        let query = format!("serve_forever@{std}/socketserver.py:235>handle@server.py:90>readinto@{std}/socket.py:707");
        for stack in [answer, child, query] {
            silent(&NoRequestWaiting, &steps(&stack, ""));
        }
        // The server itself waits there.
        let idle = steps(&format!("serve_forever@{std}/socketserver.py:235>{select}"), "");
        assert!(found(&NoRequestWaiting, &idle)[0].title.starts_with("Server idle 60 % of the step"));
    }

    /// Another thread asks a socket for what the queue is to give; nobody looked at what a child does.
    #[test]
    fn silent_where_the_answer_may_come_from_outside() {
        let client = "client@client.py:4>readinto@/usr/lib/python3.12/socket.py:707";
        silent(&NoRequestWaiting, &steps(GET, "").replace("client@client.py:4", client));
        let mut timeline = timeline::Timeline::from_text(&steps(GET, "")).unwrap();
        let parent_pid = timeline.processes[0].pid;
        timeline.processes.push(timeline::Process {
            pid: 77,
            parent_pid,
            program: "ffmpeg".into(),
            ..Default::default()
        });
        assert_eq!(NoRequestWaiting.look(&Case::new(&timeline, None)), Verdict::Silent);
    }

    #[test]
    fn abstains_without_samples() {
        abstains(&NoRequestWaiting, "track main\n step r 0..1s", "not sampled");
    }
}
