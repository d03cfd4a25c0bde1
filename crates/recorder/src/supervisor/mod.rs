//! The supervisor: what `inferscope run`, `attach` and `record` are. It has the recorder as a child, starts it again when it is
//! killed, and tells it when to complete the trace. It holds nothing of the trace, and has one thread.

mod line;
mod recorder_process;

pub(crate) use line::Completed;

use crate::fork::{Forked, fork};
use crate::outcome::{Error, Exit, Outcome};
use crate::output;
use crate::plan::Plan;
use crate::protocol::Order;
use line::{Answer, Line};
use std::io;
use std::time::{Duration, Instant};
use trace::codes::{Note, NoteCode};

pub(crate) struct Supervisor<'a> {
    plan: Plan<'a>,
    recorder: Option<Child>,
    /// How many recorders were killed, or ended by themselves before they should.
    restarts: u32,
    /// When a recorder may be started again, and how long that was put off.
    next_start: Instant,
    delay: Duration,
    /// Why the last one could not go on.
    refused: Option<String>,
}

struct Child {
    process: Forked,
    line: Line,
    started: Instant,
}

/// A recorder that lived less than this died of something that will kill the next one too: that one is put off.
const SHORT_LIFE: Duration = Duration::from_secs(1);
const FIRST_DELAY: Duration = Duration::from_millis(10);
const MOST_DELAY: Duration = Duration::from_secs(1);
/// Between two looks at a recorder that lives. Its end wakes us before that.
const LOOK: Duration = Duration::from_millis(100);
/// With the command at its end somebody waits for us: after so many recorders in a row that did not complete the trace we
/// leave that to `analyze`.
const MOST_ATTEMPTS: u32 = 20;

impl<'a> Supervisor<'a> {
    /// Starts the recorder. Everything that can fail fails here, before the workload runs, and then leaves nothing behind.
    pub fn start(plan: Plan<'a>) -> Result<Supervisor<'a>, Error> {
        let (next_start, delay) = (Instant::now(), Duration::ZERO);
        let mut supervisor = Supervisor { plan, recorder: None, restarts: 0, next_start, delay, refused: None };
        supervisor.start_recorder().map_err(|error| Error::io("cannot start the recorder", error))?;
        while let Some(child) = &mut supervisor.recorder {
            let open = child.line.listen(LOOK);
            if child.line.answer() == Answer::Ready {
                return Ok(supervisor);
            }
            if !open {
                supervisor.bury();
            }
        }
        let Some(why) = supervisor.refused.take() else {
            // It was killed before it could say anything.
            supervisor.tend();
            return Ok(supervisor);
        };
        let path = supervisor.plan.output.shown.clone();
        supervisor.discard();
        Err(Error::Output { path, why })
    }

    /// For the process that becomes the command: tells the recorder that it is there.
    pub fn announcement(&self) -> impl Fn() + Send + Sync + 'static {
        let announce = self.recorder.as_ref().map(|child| child.line.announcement());
        move || announce.iter().for_each(|announce| announce())
    }

    /// The process that is recorded, for recorders that are started from now on.
    pub fn watches(&mut self, pid: u32) {
        self.plan.root = Some(pid);
    }

    /// Starts the recorder again where it is gone. Returns how soon to call this again.
    pub fn tend(&mut self) -> Duration {
        if self.recorder.as_ref().is_some_and(|child| !child.process.has_ended()) {
            return LOOK;
        }
        self.bury();
        let wait = self.next_start.saturating_duration_since(Instant::now());
        if wait.is_zero() && self.start_recorder().is_err() {
            self.put_off(Duration::ZERO);
        }
        wait.min(LOOK)
    }

    /// The recorder has ended. Returns what it completed; without that it should not have, and the next one is put off.
    fn bury(&mut self) -> Option<Completed> {
        let mut child = self.recorder.take()?;
        let life = child.started.elapsed();
        child.process.wait();
        // What it had said is there by now.
        while child.line.listen(Duration::ZERO) && child.line.has_more() {}
        self.restarts += 1;
        self.put_off(life);
        match child.line.answer() {
            Answer::Completed(completed) => return Some(completed),
            Answer::Refused(why) => self.refused = Some(why),
            _ => self.refused = None,
        }
        None
    }

    fn put_off(&mut self, life: Duration) {
        let at_once = life >= SHORT_LIFE || self.restarts <= 1;
        self.delay = if at_once { Duration::ZERO } else { (self.delay * 2).clamp(FIRST_DELAY, MOST_DELAY) };
        self.next_start = Instant::now() + self.delay;
    }

    fn start_recorder(&mut self) -> io::Result<()> {
        let (near, far) = Line::pair()?;
        let (plan, restarts) = (&self.plan, self.restarts);
        let keep = [plan.descriptors(), vec![far.raw()]].concat();
        let process = fork("inferscope-rec", &keep, || recorder_process::record(plan, far, restarts))?;
        self.recorder = Some(Child { process, line: near, started: Instant::now() });
        Ok(())
    }

    /// There is nothing to record after all: leaves nothing behind.
    pub fn discard(mut self) {
        if let Some(child) = self.recorder.take() {
            if !child.line.order(Order::Discard) {
                child.process.kill();
            }
            child.process.wait();
        }
        output::discard(&self.plan.output.trace, &self.plan.output.segments);
    }

    /// Has the trace completed. `exit`: how the command ended.
    pub fn finish(mut self, exit: Option<Exit>) -> Ended<'a> {
        let order = Order::End(exit);
        self.plan.end = Some(exit);
        let mut attempts = 0;
        let completed = loop {
            match &mut self.recorder {
                Some(child) => {
                    child.line.order(order);
                    while child.line.listen(LOOK) {}
                    if let Some(completed) = self.bury() {
                        break completed;
                    }
                    attempts += 1;
                }
                None if attempts >= MOST_ATTEMPTS => break self.given_up(),
                None => {
                    std::thread::sleep(self.next_start.saturating_duration_since(Instant::now()));
                    if self.start_recorder().is_err() {
                        attempts += 1;
                        self.put_off(Duration::ZERO);
                    }
                }
            }
        };
        // A program that is told of its trace may record itself anew at once.
        self.plan.root_lock = None;
        let outcome = Outcome {
            trace: Some(self.plan.output.shown.clone()),
            notes: completed.notes.iter().map(Note::said).collect(),
            exit: exit.unwrap_or(Exit::Code(0)),
        };
        Ended { outcome, whole: completed.whole, plan: self.plan }
    }

    fn given_up(&self) -> Completed {
        let why = self.refused.as_deref().unwrap_or("it was killed each time");
        let note = Note::new(NoteCode::NotCompletedByRecorder).with(MOST_ATTEMPTS).with(why);
        Completed { whole: false, notes: vec![note.with(self.plan.output.shown.display())] }
    }
}

/// A recording that has ended. The segments folder is still there, for whoever wants to be told something in it.
pub(crate) struct Ended<'a> {
    pub outcome: Outcome,
    whole: bool,
    plan: Plan<'a>,
}

impl Ended<'_> {
    /// Gives the shared memory back, unless it still holds what the disk did not take.
    pub fn remove_segments(self) -> Outcome {
        if self.whole {
            output::remove_segments(&self.plan.output.segments);
        }
        self.outcome
    }
}
