//! `cpu-oversubscribed`: the program's own threads want more cores than there are.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::own_load;
use crate::measures::proof;
use crate::measures::run_queue;
use crate::measures::thread_load::{Thread, threads};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, launch_thread_descheduled, waits_in_step};
use crate::rules::launch::host_wait;
use crate::rules::pipeline::preprocess_before_first_kernel;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::host::step_samples::Doing;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, Tally};
use std::collections::HashMap;
use timeline::{CollectorCode, ProcessIndex, TrackIndex};

pub const CODE: RuleCode = RuleCode::new("cpu-oversubscribed");

pub struct CpuOversubscribed;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "threads that wait for a core for a tenth of their runnable time are in each other's way",
);
const MIN_BUSY_SHARE: Threshold = Threshold::new(
    CODE,
    "min_busy_share",
    0.01,
    Unit::Share,
    "of the steps on a core: a thread with less only wakes up now and then",
);

impl Rule for CpuOversubscribed {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BUSY_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "While steps run, more recorded threads are runnable than the machine has cores, and they wait for each other.",
            why: "The kernel counts every thread's time on a core and in a run queue. Both together, over step time, give how many cores the program wants, less what the recorder itself took. More than there are means that threads are preempted in the middle of their work, caches go cold, and whoever waits for the slowest thread waits longer: the usual cause is several thread pools (OpenMP, BLAS, PyTorch, workers) that each take all cores. The gain is the time the steps' own thread waits for a core, as far as the program's own threads explain it.",
            needs: "Per-thread scheduler counters (collector `threads`) and the number of cores.",
            example: "31.5 runnable threads on 8 cores: 71 % of their time spent waiting for a core",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[
            waits_in_step::CODE,
            preprocess_before_first_kernel::CODE,
            hot_line::CODE,
            host_wait::CODE,
            launch_thread_descheduled::CODE,
        ]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("threads")
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(cores) = case.timeline.info.host.cpu_count.filter(|count| *count > 0) else {
            return Verdict::Abstain("number of cores not recorded".into());
        };
        let steps = case.windows.across(|_| true);
        let threads = threads(case, &steps);
        if threads.is_empty() {
            return Verdict::Abstain(not_recorded(
                case.timeline,
                CollectorCode::Threads,
                "CPU and run-queue time of threads not recorded",
            ));
        }
        // Threads are the stretches: they differ more from each other than from one moment to the next.
        let mut waits = Tally::default();
        threads.iter().for_each(|one| waits.add(one.waited, one.ran + one.waited));
        let time = steps.total() as f64;
        // As long as the recorder ran, a thread of the program may have waited for that: it did not want a core more.
        let wanted = if time > 0.0 { (waits.whole / time - own_load::cores(case)).max(0.0) } else { 0.0 };
        // So much waiting comes from wanting more than there is; what exceeds it comes from other programs.
        let own = 1.0 - cores as f64 / wanted.max(cores as f64);
        if own < case.threshold(MIN_SHARE) || waits.mid() < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        finding(case, cores, wanted, own, &waits, threads).into()
    }
}

fn finding(case: &Case, cores: u64, wanted: f64, own: f64, waits: &Tally, threads: Vec<Thread>) -> Finding {
    let time = case.windows.across(|_| true).total() as f64;
    let busy: Vec<&Thread> = threads.iter().filter(|one| one.ran >= case.threshold(MIN_BUSY_SHARE) * time).collect();
    let names: HashMap<(ProcessIndex, i32), (TrackIndex, &timeline::Track)> = case
        .timeline
        .tracks
        .iter()
        .enumerate()
        .map(|(number, track)| ((track.process, track.tid), (TrackIndex(number as u32), track)))
        .collect();
    let sampled =
        |one: &&&Thread| names.get(&(one.process, one.tid)).is_some_and(|(_, track)| !track.samples.is_empty());
    let python = busy.iter().filter(sampled).count();
    let text = format!("{} busy, {python} of them sampled in Python", phrase::counted(busy.len() as u64, "thread"));
    let mut evidence = vec![Evidence::new(text).number("threads", busy.len() as f64).number("cores wanted", wanted)];
    for one in threads.iter().take(3) {
        let known = names.get(&(one.process, one.tid));
        let name = known.map(|(_, track)| track.name.to_string()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| one.tid.to_string());
        let (ran, waited) = (phrase::duration(one.ran as u64), phrase::duration(one.waited as u64));
        let mut line = Evidence::new(format!("thread {name} ran {ran} and waited {waited} for a core"));
        line.track = known.map(|(track, _)| *track);
        evidence.push(line.number("ns", one.waited));
    }
    let explained = (own / waits.mid()).min(1.0);
    let share = case.run_queue.as_ref().map(|growth| run_queue::bounds(growth).scaled(explained));
    if let Some(growth) = &case.run_queue {
        evidence.extend(run_queue::stretches(case, growth, "the steps' thread had no core"));
    }
    // A step that waits for its own threads waits longer by what they wait for a core.
    let pool = case.share(|one| one.doing == Doing::Waiting).0.scaled(own);
    let plus = |share: Share| Share { low: share.low, mid: share.mid + pool.mid, high: share.high + pool.high };
    let gain = share.map(|share| case.gain_of_host(plus(share)));
    Finding {
        code: CODE,
        title: format!(
            "{wanted:.1} runnable threads on {}: {} of their time spent waiting for a core",
            phrase::counted(cores, "core"),
            phrase::percent(waits.mid())
        ),
        place: Place::default(),
        gain,
        severity: gain.map_or(Severity::Low, |gain| Severity::of(gain.share())),
        certainty: Certainty::seen(waits.measured().surely_above(case.threshold(MIN_SHARE) / 2.0) * waits.repeats()),
        evidence,
        actions: vec![
            Action::new(format!("Limit all thread pools together to {cores} threads"))
                .by(&format!("OMP_NUM_THREADS={cores} (with one worker)"))
                .or_torch(&format!("torch.set_num_threads({cores})")),
            "With several worker processes, divide: cores / workers for each of OMP_NUM_THREADS, MKL_NUM_THREADS, OPENBLAS_NUM_THREADS.".into(),
            "Stop pools from spinning while they wait: OMP_WAIT_POLICY=passive.".into(),
        ],
        verify: proof::verify(case, gain.map_or(0.0, |gain| gain.mid / 100.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn text(cores: u32, threads: u32, ran: u32, waited: u32) -> String {
        let counters = format!(
            "counter cpu_ns 0..2s every 100ms grows {ran}ms\n counter runqueue_wait_ns 0..2s every 100ms grows {waited}ms\n"
        );
        let mut text = format!(
            "host cpus {cores}\n track main\n repeat 20 every 100ms\n step request 0..100ms\n end\n {counters}"
        );
        (1..threads).for_each(|number| text += &format!("track omp-{number}\n {counters}"));
        text
    }

    #[test]
    fn more_threads_than_cores_that_wait_for_each_other() {
        let found = found(&CpuOversubscribed, &text(2, 8, 25, 75));
        assert_eq!(found[0].title, "8.0 runnable threads on 2 cores: 75 % of their time spent waiting for a core");
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 75.0).abs() < 0.1 && found[0].confidence() > 0.5, "{:?}", found[0]);
        assert!(found[0].actions[0].contains("OMP_NUM_THREADS=2"));
    }

    /// What waits while the recorder runs wants no core more.
    #[test]
    fn silent_when_the_recorder_takes_the_core_that_is_missing() {
        let threads = text(2, 3, 70, 30);
        let title = &found(&CpuOversubscribed, &threads)[0].title;
        assert!(title.starts_with("3.0 runnable threads on 2 cores"), "{title}");
        silent(&CpuOversubscribed, &format!("{threads} counter host recorder_cpu_ns 0..2s every 100ms grows 100ms"));
    }

    #[test]
    fn silent_when_cores_suffice_or_another_program_takes_them() {
        silent(&CpuOversubscribed, &text(8, 8, 95, 5));
        silent(&CpuOversubscribed, &text(8, 2, 50, 50));
    }

    #[test]
    fn abstains_without_counters_or_cores() {
        abstains(&CpuOversubscribed, "host cpus 4\n track main\n step request 0..1s", "not recorded");
        abstains(&CpuOversubscribed, &text(2, 8, 25, 75).replace("host cpus 2", ""), "number of cores");
    }
}
