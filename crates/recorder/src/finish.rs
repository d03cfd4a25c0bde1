//! The end of a recording: sampling stops, what is left is read, and the small files of each table become one. When the disk
//! does not take it, everything stays in shared memory for a later recovery.

use crate::drain::Drain;
use crate::file_names::RESCUED;
use crate::manifest::{Process, State};
use crate::outcome::Exit;
use crate::proc;
use crate::processes::{self, Processes};
use crate::recording::Recording;
use crate::shared::Shared;
use crate::supervisor::Completed;
use crate::watch::{MOST_SAMPLERS, WatchedProcesses, explain_missing};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use trace::codes::{Note, NoteCode};
use trace::status::Collector;

/// A round of questions takes milliseconds; the slow ones wait for nobody.
const DEVICE_TIMEOUT: Duration = Duration::from_millis(500);

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
            let end = Instant::now() + DEVICE_TIMEOUT;
            while !device.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
            if !device.is_finished() {
                notes.add(Note::new(NoteCode::DeviceDriverLate));
            }
        }
        self.stop_draining.store(true, Ordering::Release);
        self.drain.thread().unpark();
        self.compactor.thread().unpark();
        let _ = self.compactor.join();
        let Ok(mut drain) = self.drain.join() else {
            notes.add(Note::new(NoteCode::NotCompleteByDefect));
            return false;
        };
        let end = trace::clock::monotonic().0;
        let whole = notes.guard("the end of the recording", || finish_drain(&mut drain, &self.segments)) == Some(true);
        let rate_hz = if self.had_samples { 0 } else { self.settings.stack_rate_hz() };
        seen.into_iter().for_each(|seen| note_what_was_seen(&seen, rate_hz, self.injected, &self.shared));
        if self.restarts > 0 {
            notes.add(Note::new(NoteCode::RecorderRestarted).with(self.restarts).with(drain.lost_away()));
        }
        drain.manifest.ended_ns = Some(end);
        drain.manifest.exit = exit;
        drain.manifest.clock.residual_ns = drain.clock.residual().max(drain.left.residual);
        let living = self.shared.processes.living();
        let ended = living.iter().filter(|living| !proc::alive(living.pid, living.start_ticks));
        ended.for_each(|living| self.shared.processes.ended(living.number));
        drain.manifest.processes = self.shared.processes.all();
        if whole && self.settings.layers && !drain.manifest.processes.iter().any(has_layers) {
            notes.add(Note::new(NoteCode::LayersWithoutTorch));
        }
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
        let note = Note::new(NoteCode::EndKeptInMemory).with(why);
        notes.add(note.with(self.segments.display()).with(trace));
        false
    }
}

/// Whether layers were looked at in it, or why they were not is said.
fn has_layers(process: &Process) -> bool {
    process.collectors.iter().any(|collector| collector.name == Collector::Layers.name() && collector.state != "off")
}

/// `rate_hz`: how often stacks were to be sampled, 0 where it is known that they were.
fn note_what_was_seen(seen: &WatchedProcesses, rate_hz: u32, injected: bool, shared: &Shared) {
    let Shared { notes, processes, .. } = shared;
    if injected {
        explain_missing(seen, processes, notes);
    }
    if rate_hz > 0 && seen.python.is_empty() {
        notes.add(Note::new(without_stacks(processes)));
    }
    if seen.not_sampled > 0 {
        notes.add(Note::new(NoteCode::SampledAtMost).with(MOST_SAMPLERS));
    }
    if processes.left_out() > 0 {
        notes.add(Note::new(NoteCode::ProcessesCountedAsOne).with(processes.left_out()).with(processes::MOST));
    }
}

/// A Python that was never seen from outside may still have said itself that it ran.
fn without_stacks(processes: &Processes) -> NoteCode {
    match processes.all().iter().any(|process| !process.python.is_empty()) {
        true => NoteCode::EndedBeforeFirstSample,
        false => NoteCode::NoPython,
    }
}

/// Reads and writes what is left. True: the trace is whole, and nothing is needed from shared memory any more.
fn finish_drain(drain: &mut Drain, segments: &Path) -> bool {
    let ended = drain.finish();
    if ended.running > 0 {
        drain.shared.notes.add(Note::new(NoteCode::StillRunning).with(ended.running));
    }
    if ended.kept {
        return false;
    }
    let restored = drain.store.restored;
    if let Err(error) = drain.store.finish(Some(segments)) {
        drain.shared.notes.add(Note::new(NoteCode::FilesNotJoined).with(error));
    }
    if drain.store.restored > restored {
        drain.shared.notes.add(Note::new(NoteCode::FilesPutBack));
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
        assert_eq!(without_stacks(&processes), NoteCode::NoPython);
        processes.set_python(number, "3.11.7".into());
        assert_eq!(without_stacks(&processes), NoteCode::EndedBeforeFirstSample);
    }
}
