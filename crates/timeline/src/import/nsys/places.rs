//! Processes and threads of the file. A `globalTid` holds machine, process (24 bits) and thread (24 bits).

use crate::{Builder, Process, ProcessIndex, TrackIndex};
use std::collections::HashMap;

#[derive(Default)]
pub struct Places {
    processes: HashMap<i64, ProcessIndex>,
    tracks: HashMap<i64, TrackIndex>,
    /// By `globalPid` and `globalTid`.
    pub process_names: HashMap<i64, String>,
    pub thread_names: HashMap<i64, String>,
    last: Option<(i64, TrackIndex)>,
}

const LOW: i64 = 0xff_ffff;

impl Places {
    pub fn process(&mut self, builder: &mut Builder, global: i64) -> ProcessIndex {
        let global = global & !LOW;
        *self.processes.entry(global).or_insert_with(|| {
            let program = self.process_names.get(&global).cloned().unwrap_or_default();
            builder.process(Process { pid: global >> 24 & LOW, program, ..Process::default() })
        })
    }

    pub fn track(&mut self, builder: &mut Builder, global: i64) -> TrackIndex {
        if let Some((_, track)) = self.last.filter(|last| last.0 == global) {
            return track;
        }
        let process = self.process(builder, global);
        let track = *self.tracks.entry(global).or_insert_with(|| {
            let name = self.thread_names.get(&global).map_or("", String::as_str);
            builder.track(process, (global & LOW) as i32, name)
        });
        self.last = Some((global, track));
        track
    }

    /// The only process that there is, for work of versions that did not say whose it is.
    pub fn only(&self) -> Option<i64> {
        self.processes.keys().next().copied().filter(|_| self.processes.len() == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_global_number_is_a_process_and_a_thread() {
        let (mut places, mut builder) = (Places::default(), Builder::default());
        let global = 281_476_838_981_743;
        let track = places.track(&mut builder, global);
        let other = places.track(&mut builder, global + 1);
        assert_ne!(track, other);
        assert_eq!(builder.timeline.tracks[0].tid, 111);
        assert_eq!((builder.timeline.processes.len(), builder.timeline.processes[0].pid), (1, 111));
        assert_eq!(places.process(&mut builder, 281_476_838_981_632), ProcessIndex(0));
    }
}
