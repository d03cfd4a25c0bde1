//! What is known only at the end of a file: the process that device work belongs to, names of processes and threads, devices,
//! and the time that all times count from.

use super::about::About;
use super::load::Loader;
use crate::gpu::Device;
use crate::import::window::drop_far;
use crate::{Process, ProcessIndex};
use std::collections::BTreeMap;

/// Times above this count from 1970, whatever the file says: it was 2001 then.
const EPOCH: u64 = 1_000_000_000_000_000_000;

/// What a file was, for those who put several together.
pub struct Joined {
    /// To its end.
    pub whole: bool,
    pub events: u64,
    pub notes: Vec<String>,
    pub software: BTreeMap<String, String>,
    pub rank: Option<u32>,
    /// Its times are of the world's clock.
    pub absolute: bool,
    /// First and last moment at which something begins.
    pub span: Option<(u64, u64)>,
}

impl Default for Joined {
    fn default() -> Joined {
        let (notes, software) = (Vec::new(), BTreeMap::new());
        Joined { whole: true, events: 0, notes, software, rank: None, absolute: true, span: None }
    }
}

impl Loader<'_> {
    pub fn finish(mut self, about: About) -> Joined {
        // Also where all of it is too far away to be kept: its stream stays, and must be somebody's.
        let any_work = self.builder.work.len() > self.mark.work;
        self.warnings.far = drop_far(self.builder, self.mark);
        let base = about.base.unwrap_or(0);
        self.builder.moments_since(self.mark).for_each(|time| *time = time.saturating_add(base));
        let span = self.builder.moments_since(self.mark).fold(None, |span: Option<(u64, u64)>, time| {
            Some(span.map_or((*time, *time), |(first, last)| (first.min(*time), last.max(*time))))
        });
        let absolute = span.is_none_or(|(first, _)| first > EPOCH);
        if any_work {
            self.own_work(&about);
        }
        self.name(about.rank);
        let notes = self.warnings.lines();
        Joined { whole: true, events: self.all, notes, software: about.software, rank: about.rank, absolute, span }
    }

    /// Gives the file's work to the process that asked for it.
    fn own_work(&mut self, about: &About) {
        let (launcher, placeholder) = (self.launcher(), self.launcher);
        self.builder.work.renumber(|process| {
            if *process == placeholder {
                *process = launcher;
            }
        });
        self.warnings.other_processes = (self.calls.len() as u64).saturating_sub(1);
        for ordinal in &self.devices {
            self.builder.device(Device { process: Some(launcher), ..about.device(*ordinal) });
        }
    }

    /// The process that made most calls; where there are none, the first that there is.
    fn launcher(&mut self) -> ProcessIndex {
        let most = self.calls.iter().max_by_key(|(process, count)| (**count, u32::MAX - process.0));
        let first = self.mark.processes as u32;
        match most {
            Some((process, _)) => *process,
            None if self.builder.timeline.processes.len() > self.mark.processes => ProcessIndex(first),
            None => self.builder.process(Process { program: "not in the file".into(), ..Process::default() }),
        }
    }

    fn name(&mut self, rank: Option<u32>) {
        let timeline = &mut self.builder.timeline;
        for process in &mut timeline.processes[self.mark.processes..] {
            process.rank = rank;
            if let Some(name) = self.process_names.remove(&process.pid) {
                process.program = name;
            }
        }
        for track in &mut timeline.tracks[self.mark.tracks..] {
            let process = &timeline.processes[track.process.0 as usize];
            if let Some(name) = self.thread_names.get(&(process.pid, i64::from(track.tid))) {
                // "thread 5617 (python3)": the number is known.
                let inside =
                    name.strip_prefix(&format!("thread {} (", track.tid)).and_then(|rest| rest.strip_suffix(')'));
                track.name = inside.unwrap_or(name).trim().into();
            }
        }
    }
}
