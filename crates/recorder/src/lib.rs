//! The recorder: everything that happens outside the workload while it is recorded.
//! launch → drain → sample → store → finish.

mod arguments;
mod command;
mod counters;
mod cpu;
mod demangle;
mod device;
mod dictionary;
mod drain;
mod file_names;
mod finish;
mod fork;
mod found_devices;
mod host;
mod inject;
mod journal;
mod launch;
mod lock;
mod make_way;
pub mod manifest;
mod memory;
mod messages;
mod native;
mod newest;
mod note_json;
mod notes;
mod outcome;
mod output;
mod ownership;
mod pace;
mod package;
mod plan;
mod private;
mod proc;
mod processes;
mod protocol;
pub mod readings;
mod recorded_settings;
mod recording;
mod recover;
mod resume;
mod settings;
mod shared;
mod signals;
mod store;
mod supervisor;
mod sweep;
mod trace_copy;
mod unfinished;
mod watch;
pub mod watched;
mod witness;

pub use device::report::{DeviceReport, DevicesReport};
pub use newest::POINTER;
pub use outcome::{Error, Exit, Outcome, Recovered, SourceCost};
pub use output::TRACES;
pub use settings::{Budget, Calls, GpuDetail, Settings};
pub use trace_copy::TraceCopy;
pub use unfinished::{Completed, Unfinished};

use command::Command;
use cpu::permission::Unreadable;
use inject::Injection;
use launch::Running;
use lock::{Lock, Refused};
use manifest::Manifest;
use output::Output;
use plan::{Alone, Plan};
use protocol::Caller;
use protocol::Order;
use signals::Signals;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use supervisor::Supervisor;
use trace::codes::{Note, NoteCode};

/// Starts a command and records it until it ends. Signals and the exit pass through.
pub fn run(settings: &Settings, command: &[OsString]) -> Result<Outcome, Error> {
    run_and(settings, command, |_| ())
}

/// The same; `meanwhile` is called with the command's pid some times a second, and must be quick.
pub fn run_and(settings: &Settings, command: &[OsString], mut meanwhile: impl FnMut(u32)) -> Result<Outcome, Error> {
    let command = Command::resolve(command)?;
    if let Some(outer) = launch::outer_recorder() {
        return run_unrecorded(&command, outer);
    }
    sweep::sweep();
    let mut signals = Signals::block_and_tell_apart();
    let package = package::find();
    let output = Output::create(settings, &command.short)?;
    let injection = Injection::plan(settings, package.as_deref(), std::env::var_os);
    let variables = launch::environment(launch::told(settings, &output), package.as_deref(), &injection);
    let trace = output.trace.clone();
    let mut plan = plan(settings, output, command.described.clone(), Alone::Run);
    plan.manifest.arguments = arguments::digest(&command.arguments);
    plan.injected = package.is_some();
    plan.notes.extend(injection.notes);
    if package.is_none() {
        plan.notes.push(Note::new(NoteCode::NoPackage));
    }
    let mut supervisor = Supervisor::start(plan)?;
    let running = match Running::start(&command, variables, &signals, supervisor.announcement()) {
        Ok(running) => running,
        Err(error) => {
            supervisor.discard();
            return Err(error);
        }
    };
    let pid = running.pid();
    supervisor.watches(pid);
    remember(settings, &trace);
    let exit = running.wait(&mut signals, || {
        meanwhile(pid);
        supervisor.tend()
    });
    Ok(supervisor.finish(Some(exit)).remove_segments())
}

fn plan<'a>(settings: &Settings, output: Output, described: String, alone: Alone<'a>) -> Plan<'a> {
    let mut manifest = Manifest::new(described, settings, trace::Source::detect());
    manifest.attached = matches!(alone, Alone::Attach);
    manifest.id = output::trace_id(&output.segments);
    manifest.segments = Some(output.segments.to_string_lossy().into_owned());
    let notes = output.note.iter().cloned().collect();
    let settings = settings.clone();
    Plan { settings, output, manifest, notes, alone, injected: false, root: None, root_lock: None, end: None }
}

/// A command inside a recorded command: its processes are recorded by the outer recorder already.
fn run_unrecorded(command: &Command, outer: u32) -> Result<Outcome, Error> {
    let mut signals = Signals::block_and_tell_apart();
    let rest = || Duration::MAX;
    let exit = Running::start(command, Vec::new(), &signals, || ())?.wait(&mut signals, rest);
    let note = Note::new(NoteCode::RecordedByAnother).with(outer);
    Ok(Outcome { trace: None, exit, notes: vec![note.said()] })
}

/// Records a process that was not started by us, until it ends, `duration` has passed, or Ctrl-C. `begun` is called when
/// nothing can prevent that any more.
pub fn attach(
    settings: &Settings,
    pid: u32,
    duration: Option<Duration>,
    begun: impl FnOnce(),
) -> Result<Outcome, Error> {
    let missing = || Error::NoSuchProcess { pid };
    let stat = proc::stat(pid).filter(|stat| proc::alive(pid, stat.start_ticks)).ok_or_else(missing)?;
    let start_ticks = stat.start_ticks;
    if stat.is_kernel {
        return Err(Error::KernelThread { pid });
    }
    if settings.stack_rate_hz() > 0 {
        let hint = |why: String| format!("{why} With --no-stacks its threads and memory can still be recorded.");
        cpu::permission::check(pid).map_err(|why| match why {
            Unreadable::Ended => missing(),
            Unreadable::Forbidden(why) => Error::NotPermitted { pid, why: hint(why) },
        })?;
    }
    let lock = claim(pid)?;
    sweep::sweep();
    let mut signals = Signals::block();
    let program = proc::program(pid);
    // Nothing is brought into a process that runs already.
    let settings = &Settings { gpu_detail: GpuDetail::Off, layers: false, ops: false, ..settings.clone() };
    let output = Output::create(settings, &program)?;
    let end = duration.map(|duration| Instant::now() + duration);
    let trace = output.trace.clone();
    let mut plan = plan(settings, output, program, Alone::Attach);
    plan.manifest.arguments = arguments::digest(&command::arguments_of(pid));
    (plan.root, plan.root_lock) = (Some(pid), lock);
    let mut supervisor = Supervisor::start(plan)?;
    remember(settings, &trace);
    begun();
    while proc::alive(pid, start_ticks) && end.is_none_or(|end| Instant::now() < end) {
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        let came = signals.next(left.min(supervisor.tend()).min(Duration::from_millis(50)));
        if came.is_some_and(|came| [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&came.number)) {
            break;
        }
    }
    Ok(supervisor.finish(None).remove_segments())
}

/// The recorder that the Python package starts for its own process. The package waits for the file `ready`, which tells it
/// where to record to and with which settings. `report` is called with the trace's folder when the trace is complete, and
/// says where the report is; the package is told after that. It is told whether the program goes on meanwhile.
pub fn record(
    settings: &Settings,
    ready: &Path,
    pid: u32,
    report: impl Fn(&Path, bool) -> Option<PathBuf>,
) -> Result<Outcome, Error> {
    let missing = || Error::NoSuchProcess { pid };
    let start_ticks = proc::stat(pid).map(|stat| stat.start_ticks).ok_or_else(missing)?;
    let lock = claim(pid)?;
    sweep::sweep();
    // The workload decides when this ends: a signal to the whole group must not cut the recording short.
    let _signals = Signals::block();
    let (described, short) = command::describe_process(pid);
    let arguments = arguments::digest(&command::arguments_of(pid));
    let output = Output::create(settings, &short)?;
    let told = launch::told(settings, &output);
    let trace = output.trace.clone();
    let caller = || Caller::new(&output.segments, pid, start_ticks);
    let (caller, kept) = (caller(), caller());
    let mut plan = plan(settings, output, described, Alone::Record { caller: kept, report: &report });
    plan.manifest.arguments = arguments;
    (plan.root, plan.root_lock) = (Some(pid), lock);
    let mut supervisor = Supervisor::start(plan)?;
    if let Err(error) = caller.tell_ready(ready, &told) {
        supervisor.discard();
        return Err(Error::io(format!("cannot write {}", ready.display()), error));
    }
    remember(settings, &trace);
    let order = loop {
        supervisor.tend();
        if let Some(order) = caller.asks() {
            break order;
        }
    };
    if order == Order::Discard {
        supervisor.discard();
        return Ok(Outcome { trace: None, exit: Exit::Code(0), notes: Vec::new() });
    }
    caller.make_way();
    let ended = supervisor.finish(None);
    ended.outcome.trace.iter().for_each(|trace| caller.report(trace, &report));
    Ok(ended.remove_segments())
}

/// A trace without a name of its own is found by the one that it got.
fn remember(settings: &Settings, trace: &Path) {
    if settings.output.is_some() {
        newest::remember(trace);
    }
}

fn claim(pid: u32) -> Result<Option<Lock>, Error> {
    match Lock::process(pid) {
        Ok(lock) => Ok(Some(lock)),
        Err(Refused::Held(holder)) => Err(Error::AlreadyRecorded { pid, holder }),
        // No place for locks: better to record than not.
        Err(Refused::Io(_)) => Ok(None),
    }
}

/// Completes a trace whose recorder was killed, from the segments that it left. None: there is nothing to do.
/// Whoever wants to read a trace that may not be changed uses [`Unfinished`].
pub fn recover(trace: &Path) -> Result<Option<Recovered>, Error> {
    let unfinished = Unfinished::find(trace, |_| true)?;
    Ok(unfinished.map_or(Ok(None), Unfinished::complete)?.map(|completed| completed.recovered))
}

/// Whether a recorder is at work on the trace.
pub fn is_recording(trace: &Path) -> bool {
    Lock::is_held(&trace.join(trace::tables::LOCK)).unwrap_or(false)
}

/// Where a trace of this program goes that was given no place.
pub fn new_trace(program: &str) -> PathBuf {
    Path::new(TRACES).join(output::new_name(program))
}

/// What each source of outside samples costs for this process, for `doctor`.
pub fn source_costs(pid: u32) -> Vec<SourceCost> {
    let mut costs = watch::costs::measure(pid);
    costs.extend(device::report::costs());
    costs
}

/// The devices of this machine, and what each of them cannot tell, for `doctor`.
pub fn devices() -> DevicesReport {
    device::report::report()
}

/// The CUDA library in the package beside this command, which brings the GPU's collectors in.
pub fn cuda_library() -> Option<PathBuf> {
    package::find().and_then(|package| inject::library(&package))
}

/// Injection variables of CUDA and NVTX that somebody else has set, with what they are set to.
pub fn taken_injections() -> Vec<(&'static str, PathBuf)> {
    inject::taken()
}

/// Whether the stacks of this process can be sampled; if not, which setting forbids it.
pub fn can_sample(pid: u32) -> Result<(), String> {
    cpu::permission::check(pid).map_err(|why| why.to_string())
}

/// The Python package beside this command, whose `_inject` folder brings the collectors in.
pub fn package() -> Option<PathBuf> {
    package::find()
}

/// What one process of a recording may take of shared memory, in bytes: with less, segments go to disk.
pub fn shared_memory(settings: &Settings) -> u64 {
    output::wanted(settings)
}

/// Whether the kernel gives native stacks; if not, which setting forbids it.
pub fn can_see_native() -> Result<(), String> {
    native::permission::check()
}
