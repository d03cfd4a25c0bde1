//! Sentences and names of before there were codes, as traces of format version 1 and JSON 1.0 have them, to codes. Used for those files only:
//! in a newer one such a text is somebody's own, and means nothing to us.

use crate::{LossReason, NameIndex, Note, NoteCode, OverheadKind, RecordingWindow, SliceKind, Timeline};
use std::collections::HashMap;

/// The sentences of version 0.1.0, frozen: today's wording may change.
const LOSSES: [(&str, LossReason); 18] = [
    ("records overwritten before they could be written to disk", LossReason::Overwritten),
    ("records overwritten while the recorder was started again", LossReason::OverwrittenDuringRestart),
    ("records of an unknown kind", LossReason::UnknownRecord),
    ("records of a device of which a part was overwritten", LossReason::IncompleteDeviceRecord),
    ("rows dropped while the disk took nothing", LossReason::RowsNotWritten),
    ("samples dropped because the recorder could not keep up", LossReason::RecorderLate),
    ("records that found no room in shared memory", LossReason::NoRoom),
    ("errors inside the collector, survived", LossReason::CollectorErrors),
    ("begins and ends that did not pair", LossReason::Unpaired),
    ("names or metadata cut to 4096 bytes", LossReason::TextCut),
    ("functions beyond the limit, not recorded", LossReason::TooManyFunctions),
    ("records that CUPTI dropped or that found no room", LossReason::DroppedByCupti),
    ("pieces of work without a time", LossReason::WorkWithoutTime),
    ("records of a kind that this version does not know", LossReason::UnknownCuptiRecord),
    ("ranges, domains or names beyond the limit", LossReason::TooManyRanges),
    ("stack samples skipped because the machine or the sampler was late", LossReason::SamplerLate),
    ("stacks that could not be read because they changed meanwhile", LossReason::StackChanged),
    ("stack samples dropped while the disk took nothing", LossReason::SamplesNotWritten),
];

const OVERHEADS: [(&str, OverheadKind); 8] = [
    ("CUDA compiles", OverheadKind::DriverCompiler),
    ("CUPTI flushes", OverheadKind::BufferFlush),
    ("CUPTI instruments", OverheadKind::Instrumentation),
    ("CUPTI makes resources", OverheadKind::Resource),
    ("CUDA loads a module", OverheadKind::ModuleLoading),
    ("CUDA loads a function", OverheadKind::FunctionLoading),
    ("the command buffer is full", OverheadKind::CommandBufferFull),
    ("CUPTI asks for a buffer", OverheadKind::BufferRequest),
];

const NO_PYTHON: &str = "no stacks: no Python process was seen";
const NO_PACKAGE: &str = "scopes and calls are recorded only of programs that import inferscope themselves: the Python \
                          package is not installed beside the command (INFERSCOPE_PACKAGE=FOLDER names it)";

const WINDOWS: [(&str, RecordingWindow); 2] =
    [("GPU recording on", RecordingWindow::On), ("GPU recording off", RecordingWindow::Off)];

fn find<T: Copy>(list: &[(&str, T)], text: &str) -> Option<T> {
    list.iter().find(|(known, _)| *known == text).map(|(_, code)| *code)
}

pub fn loss(text: &str) -> Option<LossReason> {
    find(&LOSSES, text)
}

/// Those notes of which readers must know what they mean. All others stay the sentences that they are.
pub fn note(sentence: &str) -> Note {
    let kept_out = || {
        let (who, reason) = sentence.strip_prefix("no scopes and calls of ")?.split_once(": ")?;
        let number = |text: &str| text.trim_end_matches(')').parse().ok();
        let (count, first) = match who.strip_prefix("process ") {
            Some(pid) => (1, number(pid)?),
            None => {
                let (count, first) = who.split_once(" Python processes (process ")?;
                (count.parse().ok()?, number(first.strip_suffix(" first)")?)?)
            }
        };
        let note = Note::new(NoteCode::NotInjected).with(reason).of(first);
        Some(Note { processes: count, ..note })
    };
    let whole = [NoteCode::NoPython, NoteCode::NoPackage].map(Note::new);
    let known = whole.into_iter().zip([NO_PYTHON, NO_PACKAGE]).find(|(_, text)| *text == sentence);
    known.map(|(note, _)| note).or_else(kept_out).unwrap_or_else(|| Note::sentence(sentence))
}

/// The same in place.
pub fn code(note: &mut Note) {
    if let (NoteCode::Sentence, [sentence]) = (note.code, note.args.as_slice()) {
        *note = self::note(sentence);
    }
}

/// Gives overheads their kind, and makes turns of recording in windows of the marks that said so.
pub fn slices(timeline: &mut Timeline) {
    let mut codes: HashMap<u32, (SliceKind, SliceKind, u32)> = HashMap::new();
    for name in 0..timeline.names.len() as u32 {
        let text = timeline.names.text(NameIndex(name));
        let window = find(&WINDOWS, text).map(|window| (SliceKind::Mark, SliceKind::RecordingWindow, window as u32));
        let overhead = find(&OVERHEADS, text).map(|kind| (SliceKind::Overhead, SliceKind::Overhead, kind as u32));
        codes.extend(window.or(overhead).map(|code| (name, code)));
    }
    for index in 0..if codes.is_empty() { 0 } else { timeline.slices.len() } {
        match codes.get(&timeline.slices.name[index]) {
            Some((from, to, id)) if timeline.slices.kind(index) == *from => {
                timeline.slices.set_kind(index, *to, *id);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_readers_act_on_have_their_code() {
        for (sentence, code) in [
            (NO_PYTHON, NoteCode::NoPython),
            (NO_PACKAGE, NoteCode::NoPackage),
            ("no scopes and calls of process 12: it ended early", NoteCode::NotInjected),
            ("no scopes and calls of 3 Python processes (process 12 first): it: ended", NoteCode::NotInjected),
            ("no scopes and calls of nobody", NoteCode::Sentence),
            ("no stacks of process 7: permission denied", NoteCode::Sentence),
        ] {
            let note = note(sentence);
            assert_eq!(note.code, code, "{sentence}");
            // What has no code is said as it was written.
            assert!(code != NoteCode::Sentence || note.said() == sentence, "{}", note.said());
        }
    }

    #[test]
    fn marks_become_turns_and_overheads_have_their_kind() {
        let text = "track main\n mark GPU~recording~on 1ms\n mark GPU~recording~off 2ms\n \
            overhead CUPTI~flushes 3ms..4ms\n overhead else 5ms..6ms";
        let mut timeline = Timeline::from_text(text).unwrap();
        let turns = |timeline: &Timeline| -> Vec<_> {
            (0..timeline.slices.len()).filter_map(|index| timeline.slices.recording_window(index)).collect()
        };
        assert_eq!(turns(&timeline), []);
        slices(&mut timeline);
        assert_eq!(turns(&timeline), [RecordingWindow::On, RecordingWindow::Off]);
        let kinds: Vec<_> = (0..timeline.slices.len())
            .filter(|index| timeline.slices.kind(*index) == SliceKind::Overhead)
            .map(|index| timeline.slices.overhead(index))
            .collect();
        assert_eq!(kinds, [OverheadKind::BufferFlush, OverheadKind::Other]);
    }
}
