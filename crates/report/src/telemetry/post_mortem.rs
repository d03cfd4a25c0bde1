//! Why a process died of memory, in sentences: what there was, what it held, how it grew, and what to do next.

use crate::units::{bytes, duration};
use telemetry::bundle::Death;
use telemetry::{Event, EventType};

/// What is known of the process.
pub struct PostMortem<'a> {
    pub death: &'a Death,
    pub began_ns: u64,
    pub died_ns: u64,
    /// Oldest first.
    pub events: &'a [&'a Event],
}

/// A process that dies so soon was still loading.
const STARTING_NS: u64 = 30_000_000_000;

pub fn sentences(mortem: &PostMortem<'_>) -> Vec<String> {
    let mut said = vec![match mortem.death {
        Death::GroupLimit { limit } => {
            format!("The kernel killed it: its control group had no memory left (limit {}).", bytes(*limit))
        }
        Death::KilledWhileFull { share_percent } => format!(
            "It was killed (SIGKILL) while {share_percent} % of the memory was in use: most likely by the kernel's OOM killer \
             (`dmesg` says so)."
        ),
    }];
    let samples: Vec<&Event> = mortem.events.iter().copied().filter(|event| event.kind == EventType::Sample).collect();
    said.extend(samples.last().and_then(|last| held(last)));
    said.extend(grown(&samples));
    let age = mortem.died_ns.saturating_sub(mortem.began_ns);
    said.push(match age < STARTING_NS {
        true => format!("It died {} after its start: while it was loading, or in its first requests.", duration(age)),
        false => format!("It died {} after its start: at run time, not while loading.", duration(age)),
    });
    said.push(
        "To see who allocates: `inferscope run` it until shortly before, and read the memory section of the report."
            .into(),
    );
    said
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
        let mortem = PostMortem { death: &death, began_ns: 0, died_ns: 4_100_000_000, events: &events };
        let said = sentences(&mortem);
        assert_eq!(said[0], "The kernel killed it: its control group had no memory left (limit 100 MiB).");
        assert_eq!(said[1], "In the last sample 90.0 MiB of 100 MiB were in use, 90.0 MiB of it by this process.");
        assert_eq!(said[2], "It grew by 78.0 MiB in the last 2.00 s (39.0 MiB per second).");
        assert!(said[3].starts_with("It died 4.10 s after its start: while it was loading"), "{said:?}");
        let without = sentences(&PostMortem { events: &[], died_ns: 90_000_000_000, ..mortem });
        assert!(without.len() == 3 && without[1].contains("at run time"), "{without:?}");
    }
}
