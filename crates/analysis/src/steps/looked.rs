//! A step in which operators were looked at takes longer for it: it is set apart, and in no figure.

use super::reason::Excluded;
use super::{Step, StepSource, Steps};
use crate::operators;
use crate::steps::spans::Spans;
use std::collections::HashMap;
use timeline::{Timeline, TrackIndex};

/// Hands the steps that overlap a look on their own thread to [`Steps::looked_at`]. Of a recording without steps the looks are cut out.
pub fn set_apart(timeline: &Timeline, steps: &mut Steps) {
    let mut spans: HashMap<TrackIndex, Vec<(u64, u64)>> = HashMap::new();
    for look in operators::looks(timeline) {
        spans.entry(look.track).or_default().push(look.span());
    }
    if spans.is_empty() {
        return;
    }
    let spans: HashMap<TrackIndex, Spans> =
        spans.into_iter().map(|(track, spans)| (track, Spans::union(spans))).collect();
    let looked_at = |step: &Step| spans.get(&step.track).is_some_and(|spans| spans.overlap(step.start, step.end) > 0);
    if steps.source == StepSource::Whole {
        let rest = |step: &Step| match spans.get(&step.track) {
            Some(looks) => {
                let left = Spans::union(vec![(step.start, step.end)]).minus(looks);
                left.all().iter().map(|(start, end)| Step { start: *start, end: *end, ..*step }).collect()
            }
            None => vec![*step],
        };
        let left: Vec<Step> = steps.steps.iter().flat_map(rest).collect();
        if !left.is_empty() {
            steps.steps = left;
        }
        return;
    }
    let (apart, kept): (Vec<Step>, Vec<Step>) = steps.steps.iter().copied().partition(looked_at);
    // Slowed steps say more than none.
    if kept.is_empty() || apart.is_empty() {
        return;
    }
    steps.reason.with_operators = Some(Excluded { count: apart.len() as u64, of: steps.steps.len() as u64 });
    (steps.steps, steps.looked_at) = (kept, apart);
}

#[cfg(test)]
mod tests {
    use crate::steps::reason::Excluded;
    use crate::steps::{StepSource, Steps};
    use timeline::Timeline;

    fn find(text: &str) -> Steps {
        Steps::find(&Timeline::from_text(text).unwrap(), None)
    }

    #[test]
    fn steps_with_operators_are_in_no_figure() {
        let steps =
            "track main\n repeat 20 every 10ms\n step r 0..5ms\n end\n step r 300ms..390ms\n step r 400ms..490ms\n";
        let looked = find(&format!(
            "{steps} op aten::mm 301ms..302ms args {{\"turn\":[0,0]}}\n op aten::mm 480ms..481ms args {{\"turn\":[0,1]}}"
        ));
        assert_eq!((looked.count(), looked.looked_at.len(), looked.max()), (20, 2, 5_000_000));
        assert_eq!(looked.reason.with_operators, Some(Excluded { count: 2, of: 22 }));
        assert_eq!(find(steps).max(), 90_000_000);
        // Another thread's look slows that one.
        let other = find(&format!("{steps} track other\n op aten::mm 301ms..302ms args {{\"turn\":[0,0]}}"));
        assert_eq!((other.count(), other.looked_at.len()), (22, 0));
    }

    #[test]
    fn a_recording_without_steps_is_looked_at_around_the_looks() {
        let steps = find(
            "track main\n samples 0..100ms every 1ms active gil main>work:5\n op aten::mm 30ms..31ms args {\"turn\":[0,0]}\n op aten::mm 50ms..60ms args {\"turn\":[0,1]}",
        );
        assert_eq!(steps.source, StepSource::Whole);
        let parts: Vec<(u64, u64)> =
            steps.steps.iter().map(|step| (step.start / 1_000_000, step.end / 1_000_000)).collect();
        assert_eq!(parts, [(0, 30), (60, 99)]);
    }

    #[test]
    fn where_every_step_was_looked_at_they_stay() {
        let steps = find("track main\n step r 0..5ms\n op aten::mm 1ms..2ms args {\"turn\":[0,0]}");
        assert_eq!((steps.count(), steps.looked_at.len()), (1, 0));
    }
}
