//! Stack samples in Chrome trace JSON: one CPU profile a thread, as DevTools writes them and Perfetto reads them, in chunks of
//! new frames, samples and the time between them. `states` beside them says who ran (bit 0) and held the GIL (bit 1).

use super::{Writer, tid};
use crate::json_text::{Event, Separator};
use std::collections::HashSet;
use std::io::{self, Write};
use std::ops::Range;
use timeline::{StackIndex, Timeline, Track};

const SAMPLES_A_CHUNK: usize = 1000;

impl Writer<'_> {
    pub(super) fn samples(&mut self, id: u64, track: &Track, out: &mut impl Write) -> io::Result<()> {
        if track.samples.is_empty() {
            return Ok(());
        }
        let (pid, tid) = (self.pid(Some(track.process)), tid(track.tid));
        let mut micros = 0;
        self.profile(id, pid, tid, "Profile", self.timeline.start);
        self.event.raw(r#""startTime":0}}}"#).send(out)?;
        let mut known = HashSet::new();
        for first in track.samples.clone().step_by(SAMPLES_A_CHUNK) {
            let chunk = first..track.samples.end.min(first + SAMPLES_A_CHUNK);
            self.profile(id, pid, tid, "ProfileChunk", self.timeline.samples.time[first]);
            self.event.raw(r#""cpuProfile":{"nodes":["#);
            let mut nodes = Separator::new();
            for index in chunk.clone() {
                self.nodes(self.timeline.samples.get(index).stack, &mut known, &mut nodes);
            }
            self.event.raw(r#"],"samples":["#);
            self.list(&chunk, |event, timeline, index| _ = event.number(timeline.samples.stack[index].into()));
            self.event.raw(r#"]},"timeDeltas":["#);
            self.list(&chunk, |event, timeline, index| {
                // The format counts whole microseconds; rounding each sample, not each step, keeps errors from adding up.
                let now = timeline.samples.time[index].saturating_sub(timeline.start) / 1000;
                event.number(now.saturating_sub(micros));
                micros = now;
            });
            self.event.raw(r#"],"states":["#);
            self.list(&chunk, |event, timeline, index| _ = event.number(timeline.samples.state[index].into()));
            self.event.raw("]}}}").send(out)?;
        }
        Ok(())
    }

    fn profile(&mut self, id: u64, pid: u64, tid: u64, name: &str, time: u64) {
        self.begin("P", pid, tid, time);
        self.event
            .raw(r#","id":"#)
            .number(id)
            .raw(r#","cat":"disabled-by-default-v8.cpu_profiler","name":""#)
            .raw(name);
        self.event.raw(r#"","args":{"data":{"#);
    }

    fn list(&mut self, chunk: &Range<usize>, mut each: impl FnMut(&mut Event, &Timeline, usize)) {
        for index in chunk.clone() {
            self.event.raw(if index > chunk.start { "," } else { "" });
            each(&mut self.event, self.timeline, index);
        }
    }

    /// The frames of a stack that this profile has not named yet, callers first.
    fn nodes(&mut self, stack: StackIndex, known: &mut HashSet<u32>, separator: &mut Separator) {
        let stacks = &self.timeline.stacks;
        let mut new: Vec<_> = stacks.walk(stack).take_while(|(index, _)| !known.contains(&index.0)).collect();
        if stack.0 == 0 && known.insert(0) {
            new.push((stack, stacks.frame(stack)));
        }
        for (index, frame) in new.into_iter().rev() {
            known.insert(index.0);
            let name = self.timeline.names.get(frame.name);
            self.event.raw(separator.next()).raw(r#"{"id":"#).number(index.0.into());
            if frame.parent.0 != 0 && known.contains(&frame.parent.0) {
                self.event.raw(r#","parent":"#).number(frame.parent.0.into());
            }
            self.event.raw(r#","callFrame":{"functionName":"#).bytes(self.names.get(frame.name)).raw(r#","url":"#);
            // Lines count from 0 in this format.
            self.event
                .text(&name.file)
                .raw(r#","scriptId":0,"lineNumber":"#)
                .signed(i64::from(frame.line) - 1)
                .raw("}}");
        }
    }
}
