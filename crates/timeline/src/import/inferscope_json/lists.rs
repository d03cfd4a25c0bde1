//! The lists beside the events that our own files have: stacks, processes, threads, losses, notes.

use super::load::Loader;
use crate::before_codes;
use crate::import::json::fields::{Raw, fields};
use crate::{LossReason, Note, NoteCode, Process, StackIndex};

/// Notes beyond this are counted, not kept.
const MOST_NOTES: usize = 200;

impl Loader {
    /// One entry of the list called `key`.
    pub fn entry(&mut self, key: &str, text: &str) {
        let read = match key {
            "stacks" => self.stack(text),
            "processes" => self.process(text),
            "threads" => self.thread(text),
            "losses" => self.loss(text),
            _ => self.note(text),
        };
        self.warnings.entries += u64::from(read.is_none());
    }

    fn stack(&mut self, text: &str) -> Option<()> {
        let [id, parent, function, file, line] = take(text, ["id", "parent_id", "function", "file", "line"])?;
        let id = i32::try_from(id.whole()?).ok().filter(|id| *id > 0)?;
        let parent = parent.whole().and_then(|parent| self.stack_ids.get(i32::try_from(parent).ok()?));
        let name = self.builder.name(&function.text()?, &file.text().unwrap_or_default(), 0);
        let index = self.builder.timeline.stacks.push(parent.map(StackIndex), name, line.small());
        self.stack_ids.insert(id, index.0);
        Some(())
    }

    fn process(&mut self, text: &str) -> Option<()> {
        let keys = ["process_id", "parent_process_id", "program", "python_version"];
        let [pid, parent, program, python] = take(text, keys)?;
        let process = Process {
            parent_pid: parent.whole().unwrap_or(0),
            program: program.owned(),
            python: python.owned(),
            ..Process::default()
        };
        self.warnings.processes += u64::from(!self.places.list_process(&mut self.builder, pid, process));
        Some(())
    }

    fn thread(&mut self, text: &str) -> Option<()> {
        let [process, thread, name] = take(text, ["process_id", "thread_id", "name"])?;
        self.places.list_thread(&mut self.builder, process, thread, &name.text().unwrap_or_default());
        Some(())
    }

    fn loss(&mut self, text: &str) -> Option<()> {
        let [collector, reason, what, count] = take(text, ["collector", "reason", "what", "count"])?;
        let count = u64::try_from(count.whole()?).ok()?;
        // Files of before there were codes have the sentence alone.
        let reason = match reason.text() {
            Some(code) => LossReason::from_name(&code),
            None => before_codes::loss(&what.text()?),
        };
        self.builder.loss(None, &collector.text()?, reason.unwrap_or(LossReason::Unknown), count);
        Some(())
    }

    fn note(&mut self, text: &str) -> Option<()> {
        let note = match Raw(text).text() {
            // Files of before there were codes have the sentence alone.
            Some(sentence) => before_codes::note(&sentence),
            None => coded(text)?,
        };
        if self.builder.timeline.notes.len() < MOST_NOTES {
            self.builder.timeline.notes.push(note);
        } else {
            self.warnings.notes += 1;
        }
        Some(())
    }
}

/// A code and its arguments; where a later version has a code that we do not know, the sentence beside it.
fn coded(text: &str) -> Option<Note> {
    let [code, process, processes, args, sentence] = take(text, ["code", "process", "processes", "args", "text"])?;
    let Some(code) = code.text().and_then(|code| NoteCode::from_name(&code)) else {
        return sentence.text().map(Note::sentence);
    };
    let small = |raw: Raw<'_>| raw.whole().and_then(|number| u32::try_from(number).ok());
    let args = serde_json::from_str(args.0).unwrap_or_default();
    Some(Note { code, process: small(process), processes: small(processes).unwrap_or(0), args })
}

/// The fields with these names; None when it is no object.
fn take<'a, const N: usize>(text: &'a str, keys: [&str; N]) -> Option<[Raw<'a>; N]> {
    let mut found = [Raw::default(); N];
    let read = fields(text, |key, value| {
        if let Some(place) = keys.iter().position(|known| *known == key) {
            found[place] = value;
        }
    });
    read.is_ok().then_some(found)
}
