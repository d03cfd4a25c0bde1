//! What the rules about idle devices share: the device that could save the most, the place to name, and the proof.

use crate::action::{Action, Precondition};
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::calls_in_steps;
use crate::measures::proof;
use crate::rule::{Case, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::Threshold;
use crate::wording::device::WRONG_CLOCK;
use crate::wording::origin::not_recorded;
use analysis::idle::{Cause, DeviceIdle, Measure, Wait, Who, Zone, by_line};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, Tally, wilson};
use replay::Change;
use replay::gain::Gain;
use timeline::cuda_calls::CudaCall;
use timeline::gpu::WorkKind;
use timeline::{CollectorCode, TrackIndex};

pub struct Gap<'a> {
    pub device: &'a DeviceIdle,
    pub tally: Tally,
    pub share: Share,
    measure: Measure,
}

/// The device with the most idle time of a kind. None: no device was recorded, or none has any.
pub fn most<'a>(case: &'a Case, measure: Measure) -> Option<Gap<'a>> {
    let gap = |device: &'a DeviceIdle| {
        let tally = *device.sums.tally(measure);
        Gap { device, tally, share: error(case, measure, &tally), measure }
    };
    let most = case.idle().iter().map(gap).max_by(|a, b| a.share.mid.total_cmp(&b.share.mid));
    most.filter(|gap| gap.share.mid > 0.0)
}

/// The gaps are measured; where samples say what the host did in them, their error comes on top.
fn error(case: &Case, measure: Measure, tally: &Tally) -> Share {
    let measured = tally.measured();
    let sampled = matches!(measure, Measure::Lead | Measure::Tail | Measure::HostGap) && !case.breakdown.by_calls;
    if !sampled || case.samples.period_ns == 0 {
        return measured;
    }
    let seen = wilson(tally.mid(), tally.whole / case.samples.period_ns as f64);
    Share { low: measured.low.min(seen.low), mid: measured.mid, high: measured.high.max(seen.high) }
}

/// Why nothing can be said about launches, where nothing can: there is work, and no call that asked for it.
pub fn without_launches(case: &Case) -> Option<String> {
    let gpu = case.gpu()?;
    if gpu.clock.early > 0 {
        return gpu.launch.is_none().then(|| WRONG_CLOCK.into());
    }
    let missing = || not_recorded(case.timeline, CollectorCode::Launches, "launch calls not recorded");
    gpu.launch.is_none().then(missing)
}

/// Why nothing can be said about what the host does while a device is idle: for most of that time nothing was seen.
pub fn unseen(case: &Case, level: f64) -> Option<String> {
    if !case.idle().is_empty() && !case.breakdown.by_calls {
        // A handful of samples would put the whole gap on one line.
        if let Some(reason) = case.without_samples().filter(|_| !case.samples.all.is_empty()) {
            return Some(reason);
        }
    }
    // Where launched work does not begin, it does not matter what the host does.
    let unknown = |device: &DeviceIdle| device.ns(Cause::Unknown) - device.held_ns();
    let share = |device: &DeviceIdle| unknown(device) as f64 / device.window_ns.max(1) as f64;
    let device = case.idle().iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let unknown = unknown(device);
    (share(device) >= level && unknown > device.idle_ns().saturating_sub(unknown)).then(|| {
        format!(
            "no call or sample shows what the CPU does in {} of the GPU's idle time",
            phrase::percent(unknown as f64 / device.idle_ns().max(1) as f64)
        )
    })
}

impl Gap<'_> {
    /// The line (else the call) that has most of what fits, and how much of that it has, 0 to 1.
    pub fn top(&self, case: &Case, fits: impl Fn(Zone, Cause) -> bool) -> Option<(Place, f64)> {
        let lines = by_line(case.timeline, &self.device.sums.tops(&fits));
        let all: u64 = lines.iter().map(|(_, ns)| ns).sum();
        // A line of the program tells more than a call, unless most is the driver's own time, in one of its calls.
        let native =
            by_line(case.timeline, &self.device.sums.tops(|zone, cause| fits(zone, cause) && cause == Cause::Native));
        if let Some((place, ns)) = native.into_iter().next().filter(|(place, ns)| place.api.is_some() && *ns > all / 2)
        {
            let place = Place { function: place.api, ..Place::default() };
            return Some((place, ns as f64 / all.max(1) as f64));
        }
        let line = lines.iter().find(|(place, _)| place.function.is_some()).or(lines.first())?;
        Some((line.0.clone(), line.1 as f64 / all.max(1) as f64))
    }

    pub fn evidence(&self, case: &Case, what: &str) -> Vec<Evidence> {
        let each = self.tally.part / case.steps.count().max(1) as f64;
        let text = format!("{} of {} on average: {what}", phrase::duration(each as u64), case.the_step());
        let mut evidence = vec![Evidence::new(text).number("ns", self.tally.part)];
        if let Some((start, end, track)) = self.device.sums.longest(self.measure) {
            let text = format!("longest, {}", phrase::duration(end - start));
            evidence.push(Evidence::at(text, Some(track), start, end));
        }
        let busy = self.device.busy_ns as f64 / self.device.window_ns.max(1) as f64;
        let text = format!("GPU busy {} of {}", phrase::percent(busy), case.steps_time());
        evidence.push(Evidence::new(text).number("busy", busy));
        evidence
    }

    /// The waits of a kind: which call and which lines make them, and how many there are a step.
    fn waits(&self, case: &Case, wait: Wait) -> GapWaits {
        let waits = || self.device.sums.waits.iter().filter(|((one, _, _), _)| *one == wait);
        let count: u64 = waits().map(|(_, (_, count))| count).sum();
        // The call, and the line among the waits that a sample fell into.
        let call = waits().max_by_key(|((_, call, _), (ns, _))| (*ns, u32::MAX - call)).map(|((_, call, _), _)| *call);
        let makers: Vec<(Who, u64)> = waits().map(|((_, _, who), (ns, _))| (*who, *ns)).collect();
        GapWaits {
            call: call.map(|call| case.timeline.names.text(timeline::NameIndex(call)).to_owned()),
            lines: by_line(case.timeline, &makers),
            a_step: count as f64 / case.steps.count().max(1) as f64,
        }
    }

    /// What a copy before such a wait moves, on average. 0: there is none.
    fn copied_back(&self, case: &Case) -> u64 {
        let (work, pieces) = (&case.timeline.gpu.work, &self.device.sums.work[self.measure as usize]);
        let copies = pieces.iter().map(|piece| work.get(*piece as usize)).filter(|one| one.kind == WorkKind::Memcpy);
        let (count, bytes) =
            copies.fold((0, 0), |(count, bytes): (u64, u64), one| (count + 1, bytes.saturating_add(one.bytes)));
        bytes.checked_div(count).unwrap_or(0)
    }

    /// What launching before this code needs: that it does not use what the GPU computed. The host knows nothing of that before it has waited.
    pub fn runs_without_results(&self, case: &Case) -> Precondition {
        let waits = calls_in_steps::find(case, CudaCall::waits, |_| true);
        let mut ends: Vec<u64> = waits.all.iter().map(|call| case.timeline.slices.get(*call as usize).end()).collect();
        ends.sort_unstable();
        let windows = case.windows.all();
        let stretches = &self.device.sums.stretches[self.measure as usize];
        let after_a_wait = |(_, start, _): &&(TrackIndex, u64, u64)| {
            let step =
                windows.iter().filter(|window| window.start <= *start && *start < window.end).map(|one| one.start);
            let from = step.max().unwrap_or(*start);
            ends.partition_point(|end| *end <= *start) > ends.partition_point(|end| *end <= from)
        };
        let asked = stretches.len().min(MOST_STRETCHES);
        match 2 * stretches.iter().take(asked).filter(after_a_wait).count() > asked {
            true => Precondition::Unknown("this code does not use what the GPU computed in the step".into()),
            false => Precondition::Holds,
        }
    }

    /// What would change: the host does not run there, does not wait there, and what it waits for is not copied.
    fn changes(&self) -> Vec<Change> {
        let (sums, place) = (&self.device.sums, self.measure as usize);
        vec![
            Change::Stretches(sums.stretches[place].clone(), 0.0),
            Change::Calls(sums.calls[place].clone(), 0.0),
            Change::Work(sums.work[place].clone(), 0.0),
        ]
    }

    /// What the steps would gain without this time; as a replay without it says, where one can be made.
    pub fn gain(&self, case: &Case, recorded: Share) -> Gain {
        case.gain_of(&self.changes(), recorded)
    }

    /// As sure as the steps repeat it.
    pub fn finding(&self, case: &Case, code: RuleCode, gain: Gain, words: GapWords) -> Finding {
        let GapWords { title, place, evidence, actions } = words;
        Finding {
            code,
            title,
            place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            certainty: Certainty::seen(self.tally.repeats()),
            evidence,
            actions,
            verify: proof::verify(case, gain.mid / 100.0),
        }
    }
}

/// What a rule says of a gap, besides what it costs.
pub struct GapWords {
    pub title: String,
    pub place: Place,
    pub evidence: Vec<Evidence>,
    pub actions: Vec<Action>,
}

/// Calls that wait, and what makes them.
struct GapWaits {
    call: Option<String>,
    /// Those that a sample fell into, the one that costs the most first.
    lines: Vec<(Place, u64)>,
    a_step: f64,
}

impl GapWaits {
    fn place(&self) -> Place {
        let place = self.lines.first().map(|(place, _)| place.clone()).unwrap_or_default();
        Place { api: self.call.clone(), ..place }
    }

    /// The line; of several the one that has most.
    fn at(&self) -> String {
        let at = at(&self.place());
        if self.lines.len() > 1 { at.replacen(", at ", ", mostly at ", 1) } else { at }
    }

    /// Each line with its part. None: there is one, and the title names it.
    fn evidence(&self) -> Option<Evidence> {
        let all: u64 = self.lines.iter().map(|(_, ns)| ns).sum();
        let part = |(place, ns): &(Place, u64)| {
            format!("{} at {}", phrase::percent(*ns as f64 / all.max(1) as f64), phrase::place(place))
        };
        let parts: Vec<String> = self.lines.iter().take(MOST_LINES).map(part).collect();
        let lines = self.lines.len() as f64;
        let text = format!("of this time, by line (samples): {}", parts.join(", "));
        (lines > 1.0).then(|| Evidence::new(text).number("lines", lines))
    }
}

/// Asked whether a wait comes before: what holds for as many holds for the program.
const MOST_STRETCHES: usize = 256;
/// As many as fit a sentence.
const MOST_LINES: usize = 3;

/// `, at engine.py:88`; nothing where the line is not known.
pub fn at(place: &Place) -> String {
    match place.function {
        Some(_) => format!(", at {}", phrase::line(place)),
        None => String::new(),
    }
}

/// `3`, `1.5`: how many a step.
pub fn each(count: f64) -> String {
    if count >= 9.5 || (count - count.round()).abs() < 0.05 { format!("{count:.0}") } else { format!("{count:.1}") }
}

/// Why such a wait costs, and what else the documentation of its rule says.
macro_rules! why_a_wait_costs {
    ($more:literal) => {
        concat!(
            "A CPU that waits for the GPU in the middle of a step starts launching again only when the GPU has run dry. The idle time ",
            "after it counts, up to the length of the wait: without the wait the CPU would have been ahead by that much. ",
            $more
        )
    };
}
pub(crate) use why_a_wait_costs;

/// What the rules of the waits need.
pub const NEEDS_WAITS: &str =
    "GPU operations with their launch calls (`--gpu-detail launch`); stack samples for the line.";

/// A wait in the middle of a step, and the GPU idle after it: what the rules of the waits have in common. `first` says, given the
/// call and the mean bytes of the copies before it, what the host does; `level` is the part of the step from which its rule speaks.
pub fn after_a_wait(
    case: &Case,
    level: Threshold,
    (measure, wait): (Measure, Wait),
    first: impl Fn(&str, u64) -> String,
    actions: Vec<Action>,
) -> Verdict {
    if let Some(reason) = without_launches(case) {
        return Verdict::Abstain(reason);
    }
    let Some(gap) = most(case, measure) else { return Verdict::Silent };
    let min_share = case.threshold(level);
    // A host that has lost its lead launches late for a while: that costs more than the gap after the wait.
    let idle = gap.share.mid >= min_share;
    let late = if idle { 0.0 } else { case.gain(&gap.changes(), Share::default()).share().mid };
    if !idle && late < min_share {
        return Verdict::Silent;
    }
    let waits = gap.waits(case, wait);
    let call = waits.call.as_deref().unwrap_or("a call");
    let (what, part) = if idle { ("idle", gap.share.mid) } else { ("work delayed by", late) };
    let title = format!(
        "GPU {what} {} of {}: the CPU {}{}",
        phrase::percent(part),
        case.the_step(),
        first(call, gap.copied_back(case)),
        waits.at()
    );
    let what =
        format!("idle after {call}, {} times per step, counted up to the length of the wait", each(waits.a_step));
    let evidence = gap.evidence(case, &what).into_iter().chain(waits.evidence()).collect();
    let words = GapWords { title, place: waits.place(), evidence, actions };
    gap.finding(case, level.rule, gap.gain(case, gap.share), words).into()
}
