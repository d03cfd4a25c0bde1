//! The end of a recording: sampling stops, what is left is read, and the small files of each table become one. When the disk
//! does not take it, everything stays in shared memory for a later recovery.

use crate::drain::{Drain, FOLDER_REMOVED, Shared};
use crate::manifest::State;
use crate::outcome::Exit;
use crate::proc;
use crate::processes::Processes;
use crate::recording::Recording;
use crate::recover::RESCUED;
use crate::resume::restart_note;
use crate::supervisor::Completed;
use crate::watch::{Seen, explain_missing};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A round of questions takes milliseconds; the slow ones wait for nobody.
const PATIENCE: Duration = Duration::from_millis(500);

impl Recording {
    /// Stops sampling, reads what is left, and makes the trace complete.
    pub fn finish(self, exit: Option<Exit>) -> Completed {
        let notes = self.shared.notes.clone();
        let whole = self.finish_trace(exit);
        Completed { whole, notes: notes.all() }
    }

    /// Says whether nothing is needed from shared memory any more.
    fn finish_trace(mut self, exit: Option<Exit>) -> bool {
        let notes = self.shared.notes.clone();
        self.stop_sampling.store(true, Ordering::Release);
        let seen = self.watch.take().and_then(|watch| {
            watch.thread().unpark();
            watch.join().ok()
        });
        if let Some(device) = self.device.take() {
            device.thread().unpark();
            // A driver that hangs holds its own thread, not the end of the recording.
            let end = Instant::now() + PATIENCE;
            while !device.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !device.is_finished() {
                notes.add("the last samples of devices are missing: their driver did not answer in time");
            }
        }
        self.stop_draining.store(true, Ordering::Release);
        self.drain.thread().unpark();
        self.compactor.thread().unpark();
        let _ = self.compactor.join();
        let Ok(mut drain) = self.drain.join() else {
            notes.add("the trace is not complete: a defect in inferscope; please report it");
            return false;
        };
        let end = trace::clock::monotonic().0;
        let whole = notes.guard("the end of the recording", || finish_drain(&mut drain, &self.segments)) == Some(true);
        let rate_hz = if self.had_samples { 0 } else { self.settings.rate_hz };
        seen.into_iter().for_each(|seen| note_what_was_seen(&seen, rate_hz, self.injected, &self.shared));
        if self.restarts > 0 {
            notes.add(restart_note(self.restarts, drain.lost_away()));
        }
        drain.manifest.ended_ns = Some(end);
        drain.manifest.exit = exit;
        drain.manifest.clock.residual_ns = drain.clock.residual().max(drain.left.residual);
        let living = self.shared.processes.living();
        let ended = living.iter().filter(|living| !proc::alive(living.pid, living.start_ticks));
        ended.for_each(|living| self.shared.processes.ended(living.number));
        drain.manifest.processes = self.shared.processes.all();
        drain.manifest.devices = self.shared.devices.all();
        if whole {
            (drain.manifest.state, drain.manifest.segments) = (State::Complete, None);
        }
        drain.manifest.notes = notes.all();
        let written = drain.manifest.write_in_reserve(&self.trace).is_ok();
        if whole && written {
            return true;
        }
        if !written {
            drain.manifest.state = State::Recording;
            drain.manifest.segments = Some(self.segments.to_string_lossy().into_owned());
            let rescued = self.segments.join(RESCUED);
            let _ = fs::create_dir_all(&rescued).and_then(|()| drain.manifest.write(&rescued));
        }
        let (trace, why) = (self.shown.display(), drain.failing.as_ref().map(ToString::to_string).unwrap_or_default());
        notes.add(format!(
            "the end of the trace could not be written ({why}) and is kept in {}: make room, then run \
             `inferscope analyze {trace}`",
            self.segments.display()
        ));
        false
    }
}

/// `rate_hz`: how often stacks were to be sampled, 0 where it is known that they were.
fn note_what_was_seen(seen: &Seen, rate_hz: u32, injected: bool, shared: &Shared) {
    let Shared { notes, processes, .. } = shared;
    if injected {
        explain_missing(seen, processes, notes);
    }
    if rate_hz > 0 && seen.python.is_empty() {
        notes.add(without_stacks(processes));
    }
    if seen.not_sampled > 0 {
        notes.add("no stacks of some processes: 64 Python processes are sampled at a time");
    }
    if processes.left_out() > 0 {
        notes.add(format!("{} processes beyond 50000 are counted as one", processes.left_out()));
    }
}

/// A Python that was never seen from outside may still have said itself that it ran.
fn without_stacks(processes: &Processes) -> &'static str {
    match processes.all().iter().any(|process| !process.python.is_empty()) {
        true => "no stacks: the program ended before the first sample",
        false => "no stacks: no Python process was seen",
    }
}

/// Reads and writes what is left. True: the trace is whole, and nothing is needed from shared memory any more.
fn finish_drain(drain: &mut Drain, segments: &Path) -> bool {
    let ended = drain.finish();
    if ended.running > 0 {
        let (what, verb) = if ended.running == 1 { ("process", "was") } else { ("processes", "were") };
        drain.shared.notes.add(format!("{} {what} {verb} still running when the recording ended", ended.running));
    }
    if ended.kept {
        return false;
    }
    let restored = drain.store.restored;
    if let Err(error) = drain.store.finish(Some(segments)) {
        drain.shared.notes.add(format!("the trace is in many small files, because they could not be joined: {error}"));
    }
    if drain.store.restored > restored {
        drain.shared.notes.add(FOLDER_REMOVED);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_said_so_itself_ended_before_it_was_sampled() {
        let processes = Processes::default();
        let number = processes.register(7, 1, 1, "python3");
        assert_eq!(without_stacks(&processes), "no stacks: no Python process was seen");
        processes.set_python(number, "3.11.7".into());
        assert_eq!(without_stacks(&processes), "no stacks: the program ended before the first sample");
    }
}
