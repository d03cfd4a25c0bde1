//! The overhead budget: with one, the GPU is recorded in windows, so that the average cost stays under it. What recording costs is
//! told by the program's own progress calls (waits and graph launches): the time between two of them in recorded and unrecorded windows.

use std::time::Duration;
use trace::codes::GpuWindows;

/// Long enough that steps of up to a second lie whole in it, and that switching, which takes CUPTI some milliseconds at most,
/// does not show.
const WINDOW: Duration = Duration::from_secs(2);
/// Longer steps have longer windows, up to this.
const WIDEST: Duration = Duration::from_secs(20);
/// The first windows only find out what recording costs.
const FIRST: Duration = Duration::from_millis(250);
/// Progress calls so soon after a switch may be slow by the switch itself: what a window costs is told by the later ones.
const SETTLE: Duration = Duration::from_millis(20);
/// Progress calls in a window that say something.
const FEW: u64 = 5;
/// A window with fewer may last this long.
const WITHOUT_PROGRESS: Duration = Duration::from_secs(2);
/// Recorded at least so much, whatever it costs: a recording without events is none.
const LEAST: f64 = 0.02;
/// Longest time without a look.
const LONGEST: Duration = Duration::from_secs(60);
/// What recording is taken to cost while that is not known, of a program that asked for windows: launches alone, one after the
/// other, pay a third at most.
const UNKNOWN: f64 = 0.3;
/// Windows in which the cost has to be told by a program that did not; else all of it is recorded.
const PATIENT: u64 = 8;
/// Windows after which steps that are longer have theirs, even if the cost is not known: it may never be.
const LOOKED: u64 = 20;
/// Recorded windows between unrecorded ones whose cost is remembered, and the fewest from which it is told. A program that
/// starts, or changes what it does meanwhile, spoils one or two: the middle one counts.
const MOST_PAIRS: usize = 15;
const FEWEST_PAIRS: usize = 5;

/// How many waits and graph launches there were so far, and when the last of them was.
#[derive(Clone, Copy)]
pub struct ProgressCalls {
    pub count: u64,
    pub last: u64,
}

impl ProgressCalls {
    /// Nanoseconds from one progress call to the next since `first`, exactly; None where they are too few to say something.
    fn pace_since(self, first: Option<ProgressCalls>) -> Option<f64> {
        let first = first?;
        let seen = self.count.saturating_sub(first.count);
        (seen >= FEW).then(|| self.last.saturating_sub(first.last) as f64 / seen as f64)
    }
}

pub struct RecordingWindows {
    /// A share: 0.02.
    budget: f64,
    /// Nanoseconds from one progress call to the next in the last unrecorded and the last recorded window, if they had enough.
    before: Option<f64>,
    recorded: Option<f64>,
    /// Recorded against unrecorded, the latest pairs.
    pairs: Vec<f64>,
    /// Nobody asked for windows: everything is recorded, as long as it is cheap enough.
    whole: bool,
    pub recording: bool,
    since: u64,
    /// The first ones of this window that count.
    first: Option<ProgressCalls>,
    lasts: Duration,
    pub count: u64,
    /// How long a step takes that the program marks, in nanoseconds, and the longest that has ended in this window; 0: none.
    step: u64,
    longest: u64,
    /// Windows that are over, and those of them in which too few waits and graph launches were.
    over: u64,
    quiet: u64,
    /// Nanoseconds recorded and not recorded so far.
    pub total: [u64; 2],
    /// Of the recorded ones, those before the program became fast: they have cost nothing that is to be paid back.
    slow: u64,
}

impl RecordingWindows {
    /// Begins unrecorded, to know what the program does without us.
    pub fn new(percent: f64, now: u64) -> RecordingWindows {
        RecordingWindows {
            budget: percent / 100.0,
            before: None,
            recorded: None,
            pairs: Vec::with_capacity(MOST_PAIRS + 1),
            whole: false,
            recording: false,
            since: now,
            first: None,
            lasts: FIRST,
            count: 0,
            step: 0,
            longest: 0,
            over: 0,
            quiet: 0,
            total: [0; 2],
            slow: 0,
        }
    }

    /// Goes on from a recording of everything that began at `began`, of a program that is `fast` since then, and may go back to it.
    pub fn from_whole(percent: f64, began: u64, fast: u64, now: u64) -> RecordingWindows {
        let (total, slow) = ([now.saturating_sub(began), 0], fast.saturating_sub(began));
        RecordingWindows { whole: true, recording: true, count: 1, total, slow, ..RecordingWindows::new(percent, now) }
    }

    /// The program has marked steps that ended since the last look, and the longest took so many nanoseconds; 0: none ended.
    pub fn see_step(&mut self, longest: u64) {
        self.longest = self.longest.max(longest);
    }

    /// So long that a whole step lies inside wherever it begins, slowed down as it is by being recorded.
    fn whole_step(&self) -> Duration {
        let recorded = self.step as f64 * (1.0 + self.cost().unwrap_or(UNKNOWN));
        Duration::from_nanos((2.0 * recorded) as u64).min(WIDEST)
    }

    /// True when the other kind of window begins now.
    pub fn turn(&mut self, now: u64, progress: ProgressCalls) -> bool {
        if self.first.is_none() && progress.last >= self.since + SETTLE.as_nanos() as u64 {
            self.first = Some(progress);
        }
        let passed = now.saturating_sub(self.since);
        let pace = progress.pace_since(self.first);
        // A window without enough progress calls is worth waiting for, but not for ever.
        let longest = if pace.is_none() { self.lasts.max(WITHOUT_PROGRESS) } else { self.lasts };
        if passed < longest.as_nanos() as u64 {
            return false;
        }
        self.over += 1;
        self.quiet += u64::from(pace.is_none());
        if self.recording {
            self.recorded = pace;
        } else {
            self.compare(pace);
        }
        self.total[usize::from(!self.recording)] += passed;
        self.recording = !self.recording;
        self.count += u64::from(self.recording);
        (self.since, self.first) = (now, None);
        if self.longest > 0 {
            // One that is unlike the others, as the first one often is, is forgotten after some windows.
            self.step = std::mem::take(&mut self.longest).max(self.step.min(WIDEST.as_nanos() as u64) / 4 * 3);
        }
        self.lasts = self.length();
        true
    }

    /// Whether the window that has just begun is recorded: CUPTI may have refused.
    pub fn settle(&mut self, recording: bool) -> bool {
        self.count -= u64::from(self.recording && !recording);
        self.recording = recording;
        recording
    }

    /// Holds the recorded window against the unrecorded ones on both sides of it: a machine that gets slower or faster
    /// meanwhile is neither.
    fn compare(&mut self, after: Option<f64>) {
        let before = std::mem::replace(&mut self.before, after);
        if let (Some(before), Some(recorded), Some(after)) = (before, self.recorded.take(), after) {
            self.pairs.push(2.0 * recorded / (before + after));
            if self.pairs.len() > MOST_PAIRS {
                self.pairs.remove(0);
            }
        }
    }

    /// How much longer a progress call takes when it is recorded. None: not known.
    pub fn cost(&self) -> Option<f64> {
        if self.pairs.len() < FEWEST_PAIRS {
            return None;
        }
        let mut sorted = self.pairs.clone();
        sorted.sort_by(f64::total_cmp);
        Some((sorted[sorted.len() / 2] - 1.0).max(0.0))
    }

    /// The share of the time that may be recorded. None: not known yet.
    fn share(&self) -> Option<f64> {
        self.cost().map(|cost| if cost <= self.budget { 1.0 } else { (self.budget / cost).clamp(LEAST, 1.0) })
    }

    fn length(&self) -> Duration {
        let share = match self.share() {
            // Half and half is found out soonest.
            None if self.whole && self.count < PATIENT => return FIRST,
            None if self.whole => 1.0,
            None => (self.budget / UNKNOWN).min(0.5),
            Some(share) => share,
        };
        if share == 1.0 {
            // Looked at again and again until it is sure, and then now and then: a program changes what it does.
            let sure = self.pairs.len() >= MOST_PAIRS || self.whole && self.share().is_none();
            let lasts = if sure { LONGEST } else { FIRST.mul_f64(self.pairs.len() as f64) };
            return if self.recording { lasts.max(self.whole_step()) } else { FIRST };
        }
        let looking = self.pairs.len() < FEWEST_PAIRS && (self.over < LOOKED || self.step == 0);
        let window = if looking { FIRST } else { WINDOW.max(self.whole_step()) };
        let (recorded, unrecorded) = (self.total[0].saturating_sub(self.slow) as f64, self.total[1] as f64);
        if self.recording {
            // The time before was for this window, or for one of the first, if only then the cost became known.
            let saved = unrecorded * share / (1.0 - share) - recorded;
            return Duration::from_nanos(saved.max(0.0) as u64).clamp(FIRST, window);
        }
        // What the recorded windows took beyond their share so far is paid back here.
        let wanted = (recorded + window.as_nanos() as f64) * (1.0 - share) / share - unrecorded;
        let least = WINDOW.mul_f64(0.05);
        let longest = LONGEST.mul_f64(window.div_duration_f64(WINDOW).max(1.0));
        Duration::from_nanos(wanted.max(0.0) as u64).clamp(least, longest)
    }

    /// Nanoseconds recorded and not recorded until `now`: the window that is open counts as well.
    pub fn times(&self, now: u64) -> [u64; 2] {
        let mut total = self.total;
        total[usize::from(!self.recording)] += now.saturating_sub(self.since);
        total
    }

    /// What recording costs, where that is known.
    pub fn measured(&self, now: u64) -> Option<trace::status::WindowCost> {
        let [recorded, paused] = self.times(now).map(|time| time as f64);
        let millionths = |part: f64| (part * 1e6).round() as u64;
        let recorded_ppm = millionths(recorded / (recorded + paused).max(1.0));
        self.cost().map(|cost| trace::status::WindowCost { recorded_ppm, cost_ppm: millionths(cost) })
    }

    /// For the report, which words it.
    pub fn counted(&self, now: u64) -> GpuWindows {
        let total = self.times(now);
        let millionths = |part: f64| (part * 1e6).round() as u64;
        let longer = self.whole_step() > WINDOW && self.whole_step() < WIDEST;
        GpuWindows {
            recorded_ppm: millionths(total[0] as f64 / ((total[0] + total[1]) as f64).max(1.0)),
            budget_ppm: millionths(self.budget),
            cost_ppm: self.cost().map(millionths),
            count: self.count,
            whole: self.whole,
            unlimited: self.share().is_none_or(|share| share == 1.0),
            over: self.over,
            quiet: self.quiet,
            few: FEW,
            compared: self.pairs.len() as u64,
            needed: FEWEST_PAIRS as u64,
            step_ns: if longer { self.step } else { 0 },
        }
    }
}
