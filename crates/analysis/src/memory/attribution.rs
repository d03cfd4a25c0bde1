//! Every byte of a device at every moment, as parts that add up to what its driver counts: blocks in use and cached of the framework's allocator, what
//! others took of the driver, the context with its libraries, other processes, and what is left. Where the parts that were recorded are more than
//! the driver counts, or do not fit each other, within a percent, nothing is attributed and the reason is given.

mod series;
mod sum;

use super::owners::framework_calls;
use crate::origin;
use crate::steps::{StepSource, Steps};
use series::{Settled, User, level_soon};
use sum::Sum;
use timeline::driver_memory::{DriverMemory, MemoryPlace, driver_memory_beside};
use timeline::{Counter, ProcessIndex, Timeline, counters as counter_names};

/// The part of the device's memory by which the sum may be off.
pub const MOST_OFF: f64 = 0.01;
/// Without steps, what comes in this part of a program's time on the device is its start.
const START: u64 = 4;

/// What memory is for, from the bottom of the stack to its top.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum PartKind {
    /// Of processes that the driver lists and that were not recorded.
    OtherProcesses,
    /// In use, and of no process that the driver lists: its own, or of processes that it does not show here.
    Unlisted,
    /// In use before the program's first call; only where the driver does not tell processes apart.
    Before,
    /// The context, code and tables of libraries: what the driver counts beyond the calls up to the end of the first step.
    Context,
    /// Taken of the driver by others than the framework's allocator: libraries, or the program itself.
    Driver,
    /// The same, out of pools (`cudaMallocAsync`).
    DriverPool,
    /// Reserved by the framework's allocator, and not handed out.
    Cached,
    InUse,
    /// What came after the first step and no recorded call explains.
    Hidden,
}

impl PartKind {
    pub const ALL: [PartKind; 9] = [
        PartKind::OtherProcesses,
        PartKind::Unlisted,
        PartKind::Before,
        PartKind::Context,
        PartKind::Driver,
        PartKind::DriverPool,
        PartKind::Cached,
        PartKind::InUse,
        PartKind::Hidden,
    ];

    /// As it stands in files.
    pub fn name(self) -> &'static str {
        match self {
            PartKind::OtherProcesses => "other_processes",
            PartKind::Unlisted => "unlisted",
            PartKind::Before => "before_the_program",
            PartKind::Context => "context",
            PartKind::Driver => "driver",
            PartKind::DriverPool => "driver_pool",
            PartKind::Cached => "torch_cached",
            PartKind::InUse => "torch_in_use",
            PartKind::Hidden => "hidden",
        }
    }
}

/// Whose memory the driver tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Of each process.
    Process,
    /// Only of the device: it lists no process, or numbers them as another PID namespace does.
    Device,
}

/// A device, as the driver of the machine numbers it.
#[derive(Clone, PartialEq, Debug)]
pub struct DeviceAttribution {
    pub device: u32,
    pub found: Result<Attribution, NotAttributed>,
}

/// Why nothing of a device is attributed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NotAttributed {
    /// What the device has in use.
    NotSampled,
    /// What the driver counts is of all MIG instances.
    Mig,
    /// Which of the machine's devices the program used.
    UnknownDevice,
    /// Unified memory moves between host and device.
    UnifiedMemory,
    /// The driver was not asked after the program first took memory, or only when it was over.
    NeverAsked,
    NotAskedInTime,
    /// Memory was taken or given back whenever the driver was asked.
    NeverSettled,
    /// Recorded allocations are this part more than the driver counts.
    MoreThanCounted(f64),
    /// What PyTorch's allocator says that it has reserved is this part of the device off what its recorded calls explain.
    AllocatorApart(f64),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Attribution {
    pub level: Level,
    /// When the driver was asked.
    pub times: Vec<u64>,
    /// What it counted in use.
    pub used: Vec<u64>,
    /// In the order of [`PartKind`]; those that are never above zero are not there.
    pub parts: Vec<Part>,
    /// By which part of `used` recorded parts were more than the driver counts, or than each other, at most.
    pub off: f64,
    /// Times that are left out, because the program took or gave back memory meanwhile.
    pub unsettled: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    pub kind: PartKind,
    /// None: of no recorded process.
    pub process: Option<ProcessIndex>,
    /// At each time.
    pub bytes: Vec<u64>,
    /// At most, also between the times where every change was recorded.
    pub peak: u64,
}

impl Part {
    pub fn end(&self) -> u64 {
        self.bytes.last().copied().unwrap_or(0)
    }
}

/// Of each device that recorded processes took memory of.
pub fn measure(timeline: &Timeline, steps: &Steps) -> Vec<DeviceAttribution> {
    let blocks = timeline.memory.allocators.iter().any(|one| one.device.is_some());
    if origin::is_snapshot(timeline) || timeline.gpu.allocations.is_empty() && !blocks {
        return Vec::new();
    }
    let driver = driver_memory_beside(&timeline.gpu.allocations, &framework_calls(timeline));
    let used: Vec<&Counter> = named(timeline, counter_names::GPU_MEMORY_USED_BYTES).collect();
    let mut users: Vec<(Result<u32, NotAttributed>, User)> = Vec::new();
    for (process, ordinal) in who(timeline, &driver) {
        let machine = machine_device(timeline, &used, process, ordinal);
        users.push((machine, User::new(timeline, &driver, process, ordinal)));
    }
    if let Some(why) = users.iter().find_map(|(device, _)| device.as_ref().err()) {
        let device = users.first().map_or(0, |(_, user)| user.ordinal);
        return vec![DeviceAttribution { device, found: Err(*why) }];
    }
    let mut numbers: Vec<u32> = users.iter().filter_map(|(device, _)| device.ok()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let of = |device: u32| {
        let own = users.iter().filter(|(number, _)| *number == Ok(device)).map(|(_, user)| user);
        let used = used.iter().copied().find(|counter| number(counter) == device);
        let found = match used {
            Some(used) => Device { timeline, steps, device, used, users: own.collect() }.attribute(&driver),
            None => Err(NotAttributed::NotSampled),
        };
        DeviceAttribution { device, found }
    };
    numbers.into_iter().map(of).collect()
}

fn named<'a>(timeline: &'a Timeline, name: &'static str) -> impl Iterator<Item = &'a Counter> {
    timeline.counters.iter().filter(move |counter| &*counter.name == name && !counter.time.is_empty())
}

/// The number of the device that a counter is of.
fn number(counter: &Counter) -> u32 {
    u32::try_from(counter.tid.unwrap_or(0)).unwrap_or(0)
}

/// Processes with the devices that they took memory of, by their own ordinals.
fn who(timeline: &Timeline, driver: &DriverMemory) -> Vec<(ProcessIndex, u32)> {
    let places = driver.places.iter().filter_map(|place| match place.place {
        MemoryPlace::Device(ordinal) if !place.points.is_empty() => Some((place.process, ordinal)),
        _ => None,
    });
    let blocks = timeline.memory.allocators.iter().filter_map(|one| Some((one.process, one.device?)));
    let mut all: Vec<(ProcessIndex, u32)> = places.chain(blocks).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The machine's number of what is `ordinal` to a process. Err: why that is not known.
fn machine_device(
    timeline: &Timeline,
    used: &[&Counter],
    process: ProcessIndex,
    ordinal: u32,
) -> Result<u32, NotAttributed> {
    let devices = &timeline.gpu.devices;
    let plain = |uuid: &str| uuid.trim_start_matches("GPU-").to_ascii_lowercase();
    let own = devices.iter().find(|device| device.process == Some(process) && device.ordinal == ordinal);
    let uuid = own.map(|device| plain(&device.uuid)).unwrap_or_default();
    if uuid.starts_with("mig") {
        return Err(NotAttributed::Mig);
    }
    let same = |device: &&timeline::gpu::Device| device.process.is_none() && plain(&device.uuid) == uuid;
    match devices.iter().find(same).filter(|_| !uuid.is_empty()) {
        Some(device) => Ok(device.ordinal),
        None => match used {
            [] => Err(NotAttributed::NotSampled),
            [only] => Ok(number(only)),
            _ => Err(NotAttributed::UnknownDevice),
        },
    }
}

/// One device, with those who took memory of it.
struct Device<'a> {
    timeline: &'a Timeline,
    steps: &'a Steps,
    device: u32,
    used: &'a Counter,
    users: Vec<&'a User<'a>>,
}

impl Device<'_> {
    fn attribute(&self, driver: &DriverMemory) -> Result<Attribution, NotAttributed> {
        let managed = |user: &&User| {
            let place = |place: &timeline::driver_memory::PlaceMemory| {
                place.process == user.process && place.place == MemoryPlace::Managed && !place.points.is_empty()
            };
            driver.places.iter().any(place)
        };
        if self.users.iter().any(managed) {
            return Err(NotAttributed::UnifiedMemory);
        }
        let settled = Settled::of(self.used, &self.users);
        if settled.times.is_empty() {
            return Err(match settled.left_out {
                0 => NotAttributed::NeverAsked,
                _ => NotAttributed::NeverSettled,
            });
        }
        let processes = named(self.timeline, counter_names::GPU_PROCESS_MEMORY_BYTES);
        let processes: Vec<&Counter> = processes.filter(|counter| number(counter) == self.device).collect();
        let listed = |user: &User| processes.iter().copied().find(|one| one.process == Some(user.process));
        let each: Option<Vec<&Counter>> = self.users.iter().map(|user| listed(user)).collect();
        match each.map(|each| self.by_process(&settled, &each)) {
            // Another process's, or of a process that took its memory elsewhere: the device as a whole may still tell.
            Some(Ok(found)) => Ok(found),
            Some(Err(why)) => self.by_device(&settled).map_err(|_| why),
            None => self.by_device(&settled),
        }
    }

    /// The driver tells of each process what it has.
    fn by_process(&self, settled: &Settled, listed: &[&Counter]) -> Result<Attribution, NotAttributed> {
        let mut sum = Sum::new(self, settled, Level::Process);
        let others = named(self.timeline, counter_names::GPU_OTHER_PROCESSES_MEMORY_BYTES);
        let others = others.into_iter().find(|counter| number(counter) == self.device);
        let mut kept: Vec<Option<i128>> = vec![None; self.users.len()];
        for (time, used) in settled.samples() {
            let mut rest = i128::from(used);
            for (at, user) in self.users.iter().enumerate() {
                let live = user.at(time);
                // Before the driver lists it, it has what its calls say.
                let own = i128::from(level_soon(listed[at], time).unwrap_or(live.total()));
                let own = if user.is_over(time) { 0 } else { own };
                rest -= own;
                let left = own - i128::from(live.total());
                sum.live(user, live);
                sum.left(Some(user.process), left, self.warm(user, time), &mut kept[at]);
            }
            let theirs = others.and_then(|counter| level_soon(counter, time)).map(i128::from);
            sum.add(PartKind::OtherProcesses, None, theirs.unwrap_or(rest).min(rest.max(0)));
            sum.add(PartKind::Unlisted, None, theirs.map_or(rest.min(0), |theirs| rest - theirs));
            sum.next(used);
        }
        sum.finish()
    }

    /// The driver tells only what the device has in use.
    fn by_device(&self, settled: &Settled) -> Result<Attribution, NotAttributed> {
        let mut sum = Sum::new(self, settled, Level::Device);
        let first = self.users.iter().filter_map(|user| user.first()).min().unwrap_or(u64::MAX);
        let before = self.used.time.iter().zip(&self.used.value).take_while(|(time, _)| **time < first);
        let before = before.map(|(_, value)| i128::from((*value).max(0))).min().unwrap_or(0);
        let mut kept = None;
        for (time, used) in settled.samples() {
            let mut rest = i128::from(used);
            sum.add(PartKind::Before, None, before.min(rest));
            rest -= before.min(rest);
            for user in &self.users {
                let live = user.at(time);
                rest -= i128::from(live.total());
                sum.live(user, live);
            }
            let warm = self.users.iter().any(|user| self.warm(user, time));
            sum.left(None, rest, warm, &mut kept);
            sum.next(used);
        }
        sum.finish()
    }

    /// Whether the start of the program is over: what comes now is not of its first step.
    fn warm(&self, user: &User, time: u64) -> bool {
        let steps = self.steps.steps.first().filter(|_| self.steps.source != StepSource::Whole);
        let from = user.first().unwrap_or(self.timeline.start);
        let last = self.used.time.last().copied().unwrap_or(from);
        let end = steps.map_or(from + last.saturating_sub(from) / START, |step| step.end.max(from));
        time > end
    }
}

#[cfg(test)]
mod tests;
