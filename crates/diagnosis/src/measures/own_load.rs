//! What recording takes of the machine while steps run: the recorder's own processor time. It is nobody else's load, and where it is most of what a thread
//! waited for, a fix of the program would gain nothing.

use crate::action::Action;
use crate::rule::Case;
use analysis::host::series::Nature;
use analysis::phrase;
use analysis::stats::share::Share;
use timeline::{TrackIndex, counters};

/// More than this of a wait is its main part.
const MAJORITY: f64 = 0.5;

/// Cores that the recorder kept busy while a step was open anywhere; 0 where it was not recorded.
pub fn cores(case: &Case) -> f64 {
    let steps = case.windows.across(|_| true);
    let Some(counter) = case.readings.host(counters::RECORDER_CPU_NS) else { return 0.0 };
    // Several threads of it may run at once: more than passed.
    let growth = case.readings.inside(counter, &steps, TrackIndex(0), &Nature::Count);
    growth.map_or(0.0, |growth| growth.tally.part / steps.total().max(1) as f64)
}

/// How a wait for a core is shared between the recorder and everybody else.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CoreWait {
    /// Mostly the recorder's: it may have taken this share of the steps.
    Ours(f64),
    /// What is left of it without the recorder.
    Others(Share),
}

/// A thread cannot have waited longer for the recorder than that ran: so much is taken from what is blamed on others.
pub fn taken_out(share: Share, cores: f64) -> CoreWait {
    let own = cores.min(share.mid);
    match own > MAJORITY * share.mid && own > 0.0 {
        true => CoreWait::Ours(own),
        false => {
            let less = |part: f64| (part - own).max(0.0);
            CoreWait::Others(Share { low: less(share.low), mid: less(share.mid), high: share.high })
        }
    }
}

/// What to do about it.
pub fn actions(case: &Case) -> Vec<Action> {
    let rate = case.timeline.info.settings.rate_hz.filter(|rate| *rate > 1.0);
    let lower = rate.map_or(50, |rate| (rate / 4.0).max(1.0) as u64);
    Action::all([
        format!("Record with fewer samples, and judge by that: inferscope run --rate {lower} -- ..."),
        "Leave a core to the recorder: give the program one thread less than there are cores.".to_owned(),
    ])
}

/// The recorder keeps the stacks of one process below this part of a core: faster sampling is cut there (docs/internals/overhead.md).
const MAX_SAMPLER_CORES: f64 = 0.2;
/// A program that waits longer than this part of its steps for a core has none to lend.
const MAX_RUN_QUEUE_SHARE: f64 = 0.01;
/// So many times as often is worth another recording, up to what a user can read of it in a minute.
const MIN_RATE_RATIO: f64 = 5.0;
const HIGHEST_RATE: f64 = 500.0;

/// How to have more samples the next time. More often is advised only where what recording took, and how long the program waited for a core, were measured and leave
/// room for it: on full cores the sampler takes the time that it is to measure.
pub fn more_samples(case: &Case) -> String {
    let rate = case.timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0);
    let more = rate.map(|rate| (MIN_RATE_RATIO * rate).min(HIGHEST_RATE).floor()).filter(|more| Some(*more) > rate);
    let cores = cores(case);
    let waits = case.run_queue.as_ref().map(|growth| growth.tally.mid());
    match (rate, more, waits) {
        (Some(rate), Some(more), Some(waits)) if cores > 0.0 => match waits <= MAX_RUN_QUEUE_SHARE
            && cores * more / rate <= MAX_SAMPLER_CORES
        {
            true => format!("Record longer, or sample more often: inferscope run --rate {more} -- <command>."),
            false => format!("Record longer: at {rate} Hz {}, and more samples would slow the program.", text(cores)),
        },
        _ => "Record longer.".into(),
    }
}

/// `Recording takes 0.4 cores`.
pub fn text(cores: f64) -> String {
    format!("recording takes {} of a core while the steps run", phrase::percent(cores))
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::Timeline;

    #[test]
    fn what_the_recorder_ran_inside_the_steps_is_cores() {
        let of = |counter: &str| {
            let text = format!("track main\n repeat 20 every 100ms\n step r 0..50ms\n end\n {counter}");
            cores(&Case::new(&Timeline::from_text(&text).unwrap(), None))
        };
        let half = of("counter host recorder_cpu_ns 0..2s every 100ms grows 50ms");
        assert!((half - 0.5).abs() < 0.05, "{half}");
        // Its threads may take more than one core.
        assert!((of("counter host recorder_cpu_ns 0..2s every 100ms grows 200ms") - 2.0).abs() < 0.2);
        assert_eq!((of(""), of("counter host recorder_cpu_ns 0=5 2s=5")), (0.0, 0.0));
    }

    /// Twenty steps at 100 Hz; what the recorder runs and how long the thread waits for a core in each 100 ms.
    fn advice(rate: &str, own: &str, waits: &str) -> String {
        let text = format!(
            "{rate}\n track main\n repeat 20 every 100ms\n step r 0..100ms\n samples 0..100ms every 10ms active gil f:1\n end\n {waits}\n {own}"
        );
        more_samples(&Case::new(&Timeline::from_text(&text).unwrap(), None))
    }

    #[test]
    fn more_samples_are_advised_only_where_there_is_room_for_them() {
        let own = |grows: &str| format!("counter host recorder_cpu_ns 0..2s every 100ms grows {grows}");
        let waits = |grows: &str| format!("counter runqueue_wait_ns 0..2s every 100ms grows {grows}");
        let free = advice("rate 100", &own("2ms"), &waits("0.5ms"));
        assert_eq!(free, "Record longer, or sample more often: inferscope run --rate 500 -- <command>.");
        assert!(advice("rate 20", &own("2ms"), &waits("0.5ms")).contains("--rate 100 "));
        // Five times as much would be a quarter of a core.
        let loaded = advice("rate 100", &own("5ms"), &waits("0.5ms"));
        assert!(loaded.starts_with("Record longer: at 100 Hz recording takes 5.0 % of a core"), "{loaded}");
        let full = advice("rate 100", &own("2ms"), &waits("5ms"));
        assert!(full.starts_with("Record longer: at 100 Hz") && !full.contains("--rate"), "{full}");
        // Not measured, or as fast already.
        for (rate, own, waits) in [
            ("rate 100", String::new(), waits("0.5ms")),
            ("rate 100", own("2ms"), String::new()),
            ("", own("2ms"), waits("0.5ms")),
            ("rate 500", own("2ms"), waits("0.5ms")),
            ("rate 1000", own("2ms"), waits("0.5ms")),
        ] {
            assert_eq!(advice(rate, &own, &waits), "Record longer.");
        }
    }

    #[test]
    fn it_is_taken_out_of_a_wait_and_where_it_is_most_of_it_the_wait_is_ours() {
        let share = Share { low: 0.1, mid: 0.3, high: 0.4 };
        assert_eq!(taken_out(share, 0.0), CoreWait::Others(share));
        let CoreWait::Others(left) = taken_out(share, 0.12) else { panic!("the recorder had the smaller part") };
        assert!(left.low == 0.0 && (left.mid - 0.18).abs() < 1e-9 && left.high == 0.4, "{left:?}");
        assert_eq!((taken_out(share, 0.2), taken_out(share, 3.0)), (CoreWait::Ours(0.2), CoreWait::Ours(0.3)));
        assert_eq!(taken_out(Share::default(), 0.0), CoreWait::Others(Share::default()));
    }
}
