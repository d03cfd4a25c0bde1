//! The collectives of each device inside the steps: how long they take, how much of that no other kernel hides, and what they move where that was
//! recorded. What the rules about communication share.

use crate::rule::Case;
use analysis::device::kernel_kind::{Class, Math};
use analysis::device::step_kernels::StepKernels;
use analysis::stats::share::Tally;
use analysis::steps::spans::Spans;
use timeline::{NameIndex, SliceKind};

pub fn is_collective(case: &Case, device: &StepKernels, index: usize) -> bool {
    device.kind(case, index).class == Class::Collective
}

/// The device whose collectives take most of the steps' time, and which part.
pub fn most<'a>(case: &'a Case) -> Option<(&'a StepKernels, f64)> {
    case.most_kernels(|row| row.kind.class == Class::Collective)
}

/// When collectives run, and when they run with no other kernel beside them.
pub fn spans(case: &Case, device: &StepKernels) -> (Spans, Spans) {
    let work = &case.timeline.gpu.work;
    let (mut those, mut others) = (Vec::new(), Vec::new());
    device.each(case, |_, index| {
        let all = if is_collective(case, device, index) { &mut those } else { &mut others };
        all.push((work.start[index], work.end(index)));
    });
    let those = Spans::union(those);
    let exposed = those.minus(&Spans::union(others));
    (those, exposed)
}

pub fn tally(device: &StepKernels, spans: &Spans) -> Tally {
    let mut tally = Tally::default();
    for window in &device.windows {
        tally.add(spans.overlap(window.start, window.end) as f64, (window.end - window.start) as f64);
    }
    tally
}

/// What one collective moves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message {
    /// The piece of work.
    pub index: u32,
    pub bytes: f64,
    pub ranks: f64,
    /// Bytes on the bus for each byte of the message.
    pub factor: f64,
}

/// Collectives whose operator says what they move.
pub fn messages(case: &Case, device: &StepKernels) -> Vec<Message> {
    let (timeline, work) = (case.timeline, &case.timeline.gpu.work);
    let mut found = Vec::new();
    device.each(case, |_, index| {
        let Some(launch) = work.launch(index).filter(|_| is_collective(case, device, index)) else { return };
        let slices = &timeline.slices;
        let track = timeline.tracks.partition_point(|track| track.slices.end <= launch);
        let first = timeline.tracks.get(track).map_or(launch, |track| track.slices.start);
        // The operator around the call is among the slices right before it.
        let around = (first.max(launch.saturating_sub(64))..launch).rev().find(|at| {
            slices.kind(*at) == SliceKind::CCall
                && slices.get(*at).end() > slices.start[launch]
                && timeline.names.text(NameIndex(slices.name[*at])) == "record_param_comms"
        });
        found.extend(
            around.and_then(|at| slices.args(at)).and_then(message).map(|one| Message { index: index as u32, ..one }),
        );
    });
    found
}

fn message(text: &str) -> Option<Message> {
    let field = |key: &str| {
        let start = text.find(&format!("\"{key}\":"))? + key.len() + 3;
        Some(text[start..].trim_start().trim_start_matches('"').split([',', '"', '}']).next().unwrap_or("").trim())
    };
    let number = |key: &str| field(key)?.parse::<f64>().ok();
    let (elements, ranks) =
        (number("In msg nelems")?.max(number("Out msg nelems").unwrap_or(0.0)), number("Group size")?);
    let size = match field("dtype")? {
        "Float" => 4,
        "Half" | "BFloat16" => 2,
        "Double" | "Long" => 8,
        "Int" => 4,
        "Char" | "Byte" | "Bool" => 1,
        other => Math::of_type(other)?.bytes(),
    };
    let share = (ranks - 1.0) / ranks;
    let factor = match field("Collective name")? {
        "allreduce" => 2.0 * share,
        "allgather" | "_allgather_base" | "reduce_scatter" | "_reduce_scatter_base" | "all_to_all" | "all_to_allv" => {
            share
        }
        "broadcast" | "reduce" | "send" | "recv" => 1.0,
        _ => return None,
    };
    (ranks >= 2.0 && elements > 0.0).then_some(Message { index: 0, bytes: elements * f64::from(size), ranks, factor })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_a_collective_say_what_it_moves() {
        let text = r#"{"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"Group size":8,"dtype":"BFloat16"}"#;
        assert_eq!(message(text), Some(Message { index: 0, bytes: 2000.0, ranks: 8.0, factor: 1.75 }));
        for wrong in
            ["", "{}", &text.replace("allreduce", "barrier"), &text.replace(":8", ":1"), &text.replace("1000", "x")]
        {
            assert_eq!(message(wrong), None, "{wrong}");
        }
    }
}
