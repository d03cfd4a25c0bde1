//! What a trace says in codes is taken from them alone; what one of format version 1 says in sentences and marks is translated.

use timeline::fixture::{Fixture, TemporaryFolder};
use timeline::{LossReason, NoteCode, RecordingWindow, SliceKind, Timeline};

const TEXT: &str = "process 100 a 3.12
    mark 0 100 10 GPU~recording~on
    mark 0 100 20 GPU~recording~off
    loss 0 stacks 3 stacks that could not be read because they changed meanwhile
    loss 0 calls 4 overwritten";

fn open(version: u32) -> Timeline {
    let folder = TemporaryFolder::new("codes");
    let mut fixture = Fixture::parse(TEXT);
    fixture.manifest["format_version"] = version.into();
    let sentence = "no scopes and calls of process 100: it was started with -I";
    fixture.manifest["notes"] = serde_json::json!([sentence, "no stacks: no Python process was seen"]);
    fixture.write(folder.path());
    timeline::open(folder.path()).unwrap()
}

fn turns(timeline: &Timeline) -> Vec<RecordingWindow> {
    (0..timeline.slices.len()).filter_map(|index| timeline.slices.recording_window(index)).collect()
}

fn losses(timeline: &Timeline) -> Vec<LossReason> {
    timeline.losses.iter().map(|loss| loss.reason).collect()
}

fn notes(timeline: &Timeline) -> Vec<NoteCode> {
    timeline.notes.iter().map(|note| note.code).collect()
}

#[test]
fn sentences_and_marks_of_version_1_become_codes() {
    let timeline = open(1);
    assert_eq!(turns(&timeline), [RecordingWindow::On, RecordingWindow::Off]);
    assert_eq!(losses(&timeline), [LossReason::StackChanged, LossReason::Overwritten]);
    assert_eq!(notes(&timeline), [NoteCode::NotInjected, NoteCode::NoPython]);
}

#[test]
fn the_same_words_in_a_newer_trace_mean_nothing() {
    let timeline = open(2);
    assert_eq!(turns(&timeline), []);
    let marks = (0..timeline.slices.len()).filter(|index| timeline.slices.kind(*index) == SliceKind::Mark);
    assert_eq!(marks.count(), 2, "they are the program's own marks");
    // What was lost counts all the same.
    assert_eq!(losses(&timeline), [LossReason::Unknown, LossReason::Overwritten]);
    assert_eq!(timeline.losses[0].count, 3);
    assert_eq!(notes(&timeline), [NoteCode::Sentence, NoteCode::Sentence]);
}

#[test]
fn a_turn_is_read_as_one() {
    let folder = TemporaryFolder::new("turns");
    Fixture::parse("process 100 a 3.12\n window 0 100 10 on\n window 0 100 20 off").write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    assert_eq!(turns(&timeline), [RecordingWindow::On, RecordingWindow::Off]);
    assert_eq!(timeline.names.text(timeline.slices.get(0).name), "GPU recording on");
}
