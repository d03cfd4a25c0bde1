//! Asks the devices at intervals, as long as a process of the workload lives. What a device cannot answer is not asked
//! again; one that is lost is said to be and left alone. Slow questions have a thread of their own.

use super::nvml::NoNvml;
use super::{Device, Question, Silence};
use crate::counters::Counters;
use crate::messages::{Message, Outbox};
use crate::pace::Pace;
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace::codes::{Note, NoteCode};
use trace::counters as counter_names;
use trace::tables::HOST;

#[derive(Clone)]
pub(crate) struct Sampler {
    pub hertz: f64,
    pub shared: Shared,
    pub outbox: Outbox,
    pub stop: Arc<AtomicBool>,
}

/// A device, with the questions that it still answers.
pub(super) struct Asked {
    device: Box<dyn Device>,
    questions: Vec<Question>,
    processes: bool,
    rounds: u32,
}

impl Asked {
    pub fn new(device: Box<dyn Device>, slow: bool) -> Asked {
        let questions = Question::ALL.into_iter().filter(|question| question.is_slow() == slow).collect();
        Asked { device, questions, processes: !slow, rounds: 0 }
    }

    /// One round of questions: an answer each to `take`. Err: the device is lost, and why.
    pub fn ask(&mut self, mut take: impl FnMut(Question, u64)) -> Result<(), String> {
        let mut lost = None;
        let (device, seldom) = (&mut self.device, self.rounds.is_multiple_of(10));
        self.rounds = self.rounds.wrapping_add(1);
        self.questions.retain(|question| match lost {
            Some(_) => false,
            None if question.is_seldom() && !seldom => true,
            None => match device.ask(*question) {
                Ok(value) => {
                    take(*question, value);
                    true
                }
                Err(Silence::Now) => true,
                Err(Silence::Ever(_)) => false,
                Err(Silence::Lost(why)) => {
                    lost = Some(why);
                    false
                }
            },
        });
        lost.map_or(Ok(()), Err)
    }

    /// Bytes that processes hold, by pid; several entries of one process are added up.
    pub fn memory(&mut self) -> Vec<(u32, u64)> {
        if !self.processes {
            return Vec::new();
        }
        match self.device.processes() {
            Ok(mut found) => {
                found.sort();
                found.dedup_by(|next, kept| {
                    let same = next.0 == kept.0;
                    kept.1 += if same { next.1 } else { 0 };
                    same
                });
                found
            }
            Err(Silence::Now) => Vec::new(),
            Err(_) => {
                self.processes = false;
                Vec::new()
            }
        }
    }
}

impl Sampler {
    /// Samples until told to stop. Ends at once where there is no device.
    pub fn run(self) {
        let notes = self.shared.notes.clone();
        notes.guard("the device samples", || self.sample_all());
    }

    fn sample_all(&self) {
        let (devices, nvidia) = super::all();
        if let Err(NoNvml::Broken(why)) = nvidia {
            self.shared.notes.add(Note::new(NoteCode::NoNvidiaSamples).with(why));
        }
        if devices.is_empty() {
            return;
        }
        self.shared.devices.set(devices.iter().map(|device| device.about().clone()).collect());
        let often = Duration::from_secs_f64(1.0 / self.hertz.clamp(0.01, 1000.0));
        let twins: Vec<Asked> = devices.iter().map(|device| Asked::new(device.twin(), true)).collect();
        let slow = self.clone();
        let slow = std::thread::Builder::new().name("pcie".into()).spawn(move || {
            let notes = slow.shared.notes.clone();
            notes.guard("the device samples", || slow.sample(twins, often.max(Duration::from_secs(1))));
        });
        self.sample(devices.into_iter().map(|device| Asked::new(device, false)).collect(), often);
        // It may be in the middle of a question: NVML's takes 20 ms, which are waited for, amdgpu's a second, which is not.
        if let Ok(slow) = slow {
            slow.thread().unpark();
            let end = Instant::now() + Duration::from_millis(100);
            while !slow.is_finished() && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    fn sample(&self, mut devices: Vec<Asked>, often: Duration) {
        let mut counters = Counters::new(Arc::clone(&self.shared.dictionary));
        let mut pace = Pace::new(often);
        while !self.stop.load(Ordering::Acquire) && !devices.is_empty() {
            pace.run(|| devices.retain_mut(|device| self.round(device, &mut counters)));
            self.send(&mut counters);
            let rest = pace.next().saturating_duration_since(Instant::now());
            std::thread::park_timeout(rest.clamp(Duration::from_millis(1), Duration::from_millis(200)));
        }
        // Curves reach the end: what was last seen unchanged is said.
        counters.forget(|_, _| true);
        self.send(&mut counters);
    }

    fn send(&self, counters: &mut Counters) {
        let rows = counters.take();
        if !rows.is_empty() {
            self.outbox.send(Message::Counters(rows));
        }
    }

    /// Asks one device. False: there is nothing more to ask it.
    fn round(&self, asked: &mut Asked, counters: &mut Counters) -> bool {
        let living = self.shared.processes.living();
        if living.is_empty() || self.stop.load(Ordering::Acquire) {
            return true;
        }
        let index = asked.device.about().index as i32;
        let done = asked.ask(|question, value| counters.set(HOST, index, question.counter(), value));
        if let Err(why) = done {
            counters.forget(|process, device| process == HOST && device == index);
            let name = &asked.device.about().name;
            self.shared.notes.add(Note::new(NoteCode::DeviceLost).with(index).with(name).with(why));
            return false;
        }
        let listed = asked.memory();
        if super::are_of_our_namespace(&listed) {
            let (mut any, mut others) = (false, 0u64);
            for (pid, bytes) in listed {
                if let Some(process) = living.iter().find(|living| living.pid == pid) {
                    any = true;
                    counters.set(process.number, index, counter_names::GPU_PROCESS_MEMORY_BYTES, bytes);
                } else {
                    others = others.saturating_add(bytes);
                }
            }
            if any {
                counters.set(HOST, index, counter_names::GPU_OTHER_PROCESSES_MEMORY_BYTES, others);
            }
        }
        asked.processes || !asked.questions.is_empty()
    }
}
