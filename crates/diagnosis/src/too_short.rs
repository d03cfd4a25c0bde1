//! A handful of samples: so few that no share of them can be told from another. Mostly the recording is too short, as of a program that
//! ends at start-up; then it says so, and how the program ended, instead of naming a cause.

use analysis::host::step_samples::LEAST_SAMPLES;
use analysis::origin;
use analysis::stats::share::wilson;
use analysis::{StepContext, phrase};
use timeline::{CollectorCode, Exit, RecordedBy};

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TooFewSamples {
    /// The time that was looked at: all steps together, or the recording.
    ns: u64,
    samples: usize,
    /// How long that must be, at the rate of sampling, to have enough of them.
    least_ns: u64,
}

impl TooFewSamples {
    /// None: there are enough, none were to be taken, or something is known to have kept them out.
    pub fn of(context: &StepContext) -> Option<TooFewSamples> {
        let (timeline, ns, samples) = (context.timeline, context.windows.total(), context.samples.all.len());
        let rate = timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0)?;
        let least_ns = (LEAST_SAMPLES as f64 / rate * 1e9) as u64;
        // Recorded calls and what a device did are exact, however short.
        let told = context.breakdown.by_calls || !timeline.gpu.is_empty();
        let sampled = origin::is_python(timeline) && timeline.info.recorded_by == RecordedBy::InferScope;
        let kept_out = origin::failed(timeline, CollectorCode::Stacks) || origin::samples_damaged(timeline);
        let few = samples < LEAST_SAMPLES && ns > 0;
        (few && sampled && !told && !kept_out).then_some(TooFewSamples { ns, samples, least_ns })
    }

    /// So little time has no more samples, however well it is sampled.
    fn is_short(&self) -> bool {
        self.ns < self.least_ns
    }

    /// `too short: 34.0 ms, 3 samples`
    pub fn reason(&self, context: &StepContext) -> String {
        match self.is_short() {
            true => {
                format!("too short: {}, {}", phrase::duration(self.ns), phrase::counted(self.samples as u64, "sample"))
            }
            false => {
                format!(
                    "only {} inside {}; at least {LEAST_SAMPLES} needed",
                    phrase::counted(self.samples as u64, "stack sample"),
                    context.the_steps()
                )
            }
        }
    }

    /// The same at the end of a sentence that says how long it takes, with what it means for a share.
    pub fn tells_nothing(&self) -> String {
        let short = if self.is_short() { "too short for a breakdown" } else { "too few samples for a breakdown" };
        match self.samples {
            0 => format!("{short}: no samples"),
            samples => {
                let half = phrase::percent_range(wilson(0.5, samples as f64));
                format!("{short}: {} (a true 50 % may show as {half})", phrase::counted(samples as u64, "sample"))
            }
        }
    }

    /// What to do: a program that failed has to be mended first.
    pub fn next_step(&self, context: &StepContext) -> String {
        let least = phrase::duration(self.least_ns);
        let longer = format!("record a longer run, or repeat the work in it: at least {least}");
        match context.timeline.info.exit {
            Some(Exit::Code(0)) | None => format!("R{}.", &longer[1..]),
            Some(_) => format!("Check what the program printed before it ended; then {longer}."),
        }
    }
}

/// How the program ended, as a sentence. None: it was attached to, or goes on.
pub fn ended(exit: Option<Exit>) -> Option<String> {
    Some(match exit? {
        Exit::Code(0) => "The program exited normally (exit code 0).".into(),
        Exit::Code(code) => format!("The program failed: exit code {code}."),
        Exit::Signal(signal) => format!("The program was killed by signal {signal}."),
    })
}

#[cfg(test)]
mod tests {
    use crate::diagnose::{Diagnosis, Options, diagnose};
    use crate::health_topic::HealthTopic;
    use timeline::{Exit, Timeline};

    fn of(text: &str, exit: Option<Exit>) -> Diagnosis {
        let mut timeline = Timeline::from_text(text).unwrap();
        timeline.info.exit = exit;
        diagnose(&timeline, &Options::default())
    }

    /// Ready for most of its time, and without a core: one look at a start-up that says nothing of what follows.
    const DIED: &str = "rate 100\n track main\n samples 0..30ms every 10ms active gil main:1>load:2\n \
        counter runqueue_wait_ns 0..34ms every 17ms grows 10ms\n end 34ms";

    #[test]
    fn a_program_that_dies_at_once_is_too_short_and_says_how_it_ended() {
        let diagnosis = of(DIED, Some(Exit::Code(1)));
        assert_eq!(
            diagnosis.answer,
            [
                "The recording lasts 34.0 ms; too short for a breakdown: 3 samples (a true 50 % may show as 13 to 87 %).",
                "The program failed: exit code 1. Not enough data to identify a cause.",
                "Check what the program printed before it ended; then record a longer run, or repeat the work in it: at least 200 ms.",
            ]
        );
        assert!(diagnosis.findings.iter().all(|finding| finding.gain.is_none()), "{:?}", diagnosis.findings);
        assert_eq!(diagnosis.bottleneck.kind, crate::BottleneckKind::Unknown);
        let samples = diagnosis.health.iter().find(|line| line.topic == HealthTopic::Samples).unwrap();
        assert_eq!(samples.text, "too short: 34.0 ms, 3 samples");
        let reasons: Vec<_> = diagnosis.abstentions.iter().filter(|one| one.code == "hot-line").collect();
        assert_eq!(reasons[0].reason, "too short: 34.0 ms, 3 samples");
    }

    #[test]
    fn how_it_ended_is_said_of_a_signal_and_of_nothing_that_goes_on() {
        let second = |exit| of(DIED, exit).answer[1].clone();
        assert!(second(Some(Exit::Signal(9))).starts_with("The program was killed by signal 9. Not enough data"));
        assert!(second(Some(Exit::Code(0))).starts_with("The program exited normally (exit code 0). Not"));
        assert!(second(None).starts_with("Not enough data"));
        assert!(of(DIED, None).answer[2].starts_with("Record a longer run"), "{:?}", of(DIED, None).answer);
        let none = of("rate 100\n track main\n mark m 0ms\n end 34ms", Some(Exit::Code(0)));
        assert!(none.answer[0].ends_with("34.0 ms; too short for a breakdown: no samples."), "{:?}", none.answer);
    }

    #[test]
    fn one_that_is_long_enough_is_not_called_short() {
        let few = of("rate 100\n track main\n samples 0..30ms every 10ms active gil main:1\n end 10s", None);
        assert!(few.answer[0].contains("too few samples for a breakdown"), "{:?}", few.answer);
        let long = of("rate 100\n track main\n samples 0..1s every 10ms active gil main:1\n end 1s", None);
        assert!(long.answer[0].ends_with("100 % of its busiest thread runs Python."), "{:?}", long.answer);
        // What was not to be sampled has other words.
        let off = of("rate 0\n track main\n mark m 0ms\n end 34ms", None);
        assert!(off.answer[0].ends_with("stacks not sampled."), "{:?}", off.answer);
    }

    /// Pauses are measured in many steps: few samples do not make them unsure.
    #[test]
    fn what_was_measured_in_many_steps_keeps_its_gain() {
        let diagnosis = of(
            "rate 100\n track main\n repeat 60 every 2ms\n step request 0..1ms\n gc 2 200us..600us\n end\n sample 500us active gil main:1",
            None,
        );
        let gc = diagnosis.findings.iter().find(|finding| finding.code == "gc-pauses").unwrap();
        assert!(gc.gain.unwrap().mid > 30.0, "{gc:?}");
        assert!(diagnosis.answer[0].contains("too short for a breakdown: 1 sample"), "{:?}", diagnosis.answer);
    }
}
