//! Why a process died of memory, in sentences: what there was, what it held, how it grew, and what to do next.

use super::failed_request;
use crate::units::{bytes, counted, duration};
use diagnosis::failed_request::{FailedRequest, Stage};
use telemetry::death::Death;
use telemetry::{Event, EventType};

/// What is known of the process.
pub struct PostMortem<'a> {
    pub death: &'a Death,
    pub began_ns: u64,
    pub died_ns: u64,
    /// Oldest first.
    pub events: &'a [&'a Event],
    /// Of GPU memory; none for a process that was not recorded.
    pub request: Option<&'a FailedRequest>,
    pub stage: Stage,
    /// There is a report of the process.
    pub recorded: bool,
}

/// A process that dies so soon was still loading.
const STARTING_NS: u64 = 30_000_000_000;

pub fn sentences(mortem: &PostMortem<'_>) -> Vec<String> {
    let mut said = match (mortem.death, mortem.request) {
        (Death::RequestFailed { .. }, Some(request)) => failed_request::sentences(request),
        (death, _) => vec![cause(death)],
    };
    let samples: Vec<&Event> = mortem.events.iter().copied().filter(|event| event.kind == EventType::Sample).collect();
    if !matches!(mortem.death, Death::RequestFailed { .. }) {
        said.extend(samples.last().and_then(|last| held(last)));
        said.extend(grown(&samples));
    }
    said.push(when(mortem));
    said.extend(mortem.request.map(failed_request::setting));
    said.extend((!mortem.recorded).then(|| {
        "To see who allocates: `inferscope run` it until shortly before, and read the memory section of the report."
            .into()
    }));
    said
}

fn cause(death: &Death) -> String {
    match death {
        Death::GroupLimit { limit } => {
            format!("The kernel killed it: its control group had no memory left (limit {}).", bytes(*limit))
        }
        Death::GroupLimitOfChild { limit, code } => format!(
            "The kernel killed a process of its control group, which had no memory left (limit {}); the command then ended with \
             exit code {code}.",
            bytes(*limit)
        ),
        Death::KilledWhileFull { share_percent, by_kernel: true } => format!(
            "It was killed (SIGKILL) while {share_percent} % of the memory was in use: most likely by the kernel's OOM killer \
             (`dmesg` says so)."
        ),
        Death::KilledWhileFull { share_percent, by_kernel: false } => format!(
            "It was killed (SIGKILL) while {share_percent} % of the memory was in use, and not by the kernel's OOM killer, whose count \
             did not change: by a daemon such as systemd-oomd or earlyoom, or by somebody."
        ),
        Death::RequestFailed { bytes: asked } => format!("A request for {} of GPU memory failed.", bytes(*asked)),
    }
}

/// When in its life. A device that is full while loading, and one that is full at run time, need opposite changes of what a serving engine reserves.
fn when(mortem: &PostMortem<'_>) -> String {
    let of_device = mortem.request.is_some();
    let age = mortem.died_ns.saturating_sub(mortem.began_ns);
    match (mortem.stage, of_device) {
        (Stage::StartUp, true) => {
            "It failed at start-up, before the first step: the weights, or what is reserved at start, do not fit. If a \
             serving engine found no room for its KV cache, raise the share that it reserves (--mem-fraction-static, \
             --gpu-memory-utilization); else load or reserve less."
                .into()
        }
        (Stage::FirstStep, true) => {
            "It failed in the first step: the weights fit, and what a step needs beside them does not. Reserve or load \
             less, or make the first step smaller."
                .into()
        }
        (Stage::RunTime(steps), true) => format!(
            "It failed at run time, after {}: what a step needs at its peak does not fit beside what is held. Lower the share that a \
             serving engine reserves (--mem-fraction-static, --gpu-memory-utilization), or the size of a step.",
            counted(steps, "step")
        ),
        (Stage::StartUp, false) => {
            format!("It died {} after its start, before its first step: at start-up.", duration(age))
        }
        (Stage::FirstStep, false) => format!("It died {} after its start, in its first step.", duration(age)),
        (Stage::RunTime(steps), false) => {
            format!("It died {} after its start, after {}: at run time.", duration(age), counted(steps, "step"))
        }
        (Stage::Unknown, _) if age < STARTING_NS => {
            format!("It died {} after its start: while it was loading, or in its first requests.", duration(age))
        }
        (Stage::Unknown, _) => format!("It died {} after its start: at run time, not while loading.", duration(age)),
    }
}

/// It ended by itself, and nothing was seen to fail.
pub fn ended_while_full(code: i32, share: f64) -> String {
    format!(
        "It ended with exit code {code} while {:.0} % of the host's memory was in use. No request for memory was seen to fail: whether it ran out \
         of memory is not known.",
        share * 100.0
    )
}

fn process_bytes(event: &Event) -> Option<u64> {
    serde_json::from_str::<serde_json::Value>(event.metadata.as_deref()?).ok()?.get("process_bytes")?.as_u64()
}

fn held(last: &Event) -> Option<String> {
    let counters = &last.counters;
    let (used, total) = counters.used.zip(counters.total)?;
    let own = process_bytes(last).map_or(String::new(), |own| format!(", {} of it by this process", bytes(own)));
    Some(format!("In the last sample {} of {} were in use{own}.", bytes(used), bytes(total)))
}

/// How the process grew since it last held less than half of what it held in the end.
fn grown(samples: &[&Event]) -> Option<String> {
    let series: Vec<(u64, u64)> =
        samples.iter().filter_map(|event| Some((event.time_ns, process_bytes(event)?))).collect();
    let (end, most) = *series.last()?;
    let (start, least) = *series.iter().rev().find(|(_, bytes)| *bytes <= most / 2).or_else(|| series.first())?;
    let time = end.saturating_sub(start);
    if most <= least || time == 0 {
        return None;
    }
    let rate = ((most - least) as f64 / (time as f64 / 1e9)) as u64;
    Some(format!("It grew by {} in the last {} ({} per second).", bytes(most - least), duration(time), bytes(rate)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use telemetry::{Counters, Source};

    #[test]
    fn it_says_what_there_was_and_how_it_grew() {
        let source = Arc::new(Source::default());
        let event = |second: u64, own: u64| Event {
            time_ns: second * 1_000_000_000,
            kind: EventType::Sample,
            source: Arc::clone(&source),
            counters: Counters { used: Some(own + 10), total: Some(100 << 20), ..Counters::default() },
            context: None,
            metadata: Some(format!("{{\"process_bytes\":{own}}}").into()),
        };
        let all = [event(1, 10 << 20), event(2, 12 << 20), event(4, 90 << 20)];
        let events: Vec<&Event> = all.iter().collect();
        let death = Death::GroupLimit { limit: 100 << 20 };
        let (request, stage, recorded) = (None, Stage::Unknown, false);
        let mortem = PostMortem {
            death: &death,
            began_ns: 0,
            died_ns: 4_100_000_000,
            events: &events,
            request,
            stage,
            recorded,
        };
        let said = sentences(&mortem);
        assert_eq!(said[0], "The kernel killed it: its control group had no memory left (limit 100 MiB).");
        assert_eq!(said[1], "In the last sample 90.0 MiB of 100 MiB were in use, 90.0 MiB of it by this process.");
        assert_eq!(said[2], "It grew by 78.0 MiB in the last 2.00 s (39.0 MiB per second).");
        assert!(said[3].starts_with("It died 4.10 s after its start: while it was loading"), "{said:?}");
        let without = sentences(&PostMortem { events: &[], died_ns: 90_000_000_000, ..mortem });
        assert!(without.len() == 3 && without[1].contains("at run time"), "{without:?}");
    }
}
