//! What the recorder itself saw, and had not put into files when it was killed, is in the trace after a recovery: once.

use super::*;
use crate::dictionary::Frame;
use crate::journal::{JOURNAL, Journal};
use crate::messages::{Message, Sample, channel};
use trace::codes::{CollectorCode, LossReason, Note, NoteCode};
use trace::event::EVENT_SIZE;

/// A bench whose drain keeps a journal, as that of a recording does, and where its samplers send to.
fn recording(name: &str) -> (Bench, crate::messages::Outbox) {
    let mut bench = Bench::new(name);
    let (outbox, inbox) = channel();
    let segments = bench.root.join("segments");
    bench.drain.inbox = inbox;
    bench.drain.keep_in(Journal::resume(&segments, 0).unwrap());
    bench.drain.manifest.segments = Some(segments.to_string_lossy().into_owned());
    bench.drain.manifest.write_in_reserve(&bench.root.join("trace")).unwrap();
    (bench, outbox)
}

fn sample(bench: &Bench, function: &str, time: i64) -> Message {
    let frame = Frame { function, file: "a.py", line: 3 };
    let stack = bench.drain.shared.dictionary.stack([frame].into_iter()).unwrap();
    Message::Samples(vec![Sample { time, process: 1, thread: 7, stack, state: 1 }])
}

fn recovered(bench: &mut Bench) -> Manifest {
    let folder = bench.root.join("trace");
    let lock = crate::lock::Lock::take(&folder.join(trace::tables::LOCK)).unwrap();
    crate::recover::complete(&folder, &bench.root.join("segments"), lock).unwrap().unwrap();
    bench.drain.store = Store::open(&folder).unwrap();
    Manifest::read(&folder).unwrap()
}

#[test]
fn a_kill_before_any_file_was_closed_leaves_samples_with_their_stacks_and_processes() {
    let (mut bench, outbox) = recording("kept-first");
    // Rows carry numbers of processes, which the manifest does not have yet.
    bench.drain.shared.processes.register(1, 0, 5, "init");
    outbox.send(sample(&bench, "decode", 11));
    outbox.send(Message::Loss {
        process: 1,
        collector: CollectorCode::Stacks,
        reason: LossReason::StackChanged,
        count: 4,
    });
    bench.drain.shared.notes.add(Note::new(NoteCode::NoStacks).with("denied").of(3));
    bench.drain.turn();
    let manifest = recovered(&mut bench);
    let programs: Vec<&str> = manifest.processes.iter().map(|process| process.program.as_str()).collect();
    assert_eq!(programs, ["init", "bench"]);
    assert!(manifest.notes.iter().any(|note| note.said() == "no stacks of process 3: denied"), "{:?}", manifest.notes);
    assert!(has(&bench.rows(Table::Samples), &["time_ns: 11", "process: 1", "thread: 7"]));
    assert!(has(&bench.rows(Table::Stacks), &["line: 3"]) && has(&bench.rows(Table::Names), &["\"decode\""]));
    assert!(has(&bench.rows(Table::Losses), &["stack-changed", "count: 4"]));
}

#[test]
fn what_is_in_a_file_already_is_not_taken_from_the_journal_again() {
    let (mut bench, outbox) = recording("kept-again");
    outbox.send(sample(&bench, "decode", 11));
    bench.drain.turn();
    let journal = bench.root.join("segments").join(JOURNAL);
    let before = fs::read(&journal).unwrap();
    assert!(bench.drain.close());
    assert_eq!(fs::metadata(&journal).unwrap().len(), 0, "its rows are in files");
    outbox.send(sample(&bench, "encode", 12));
    bench.drain.turn();
    // As if the kill had come after the files and before the clearing, and what is new had been kept all the same.
    let new = fs::read(&journal).unwrap();
    fs::write(&journal, [&before[..], &new[4..]].concat()).unwrap();
    recovered(&mut bench);
    let samples = bench.rows(Table::Samples);
    assert_eq!(samples.len(), 2, "{samples:#?}");
    let names = bench.rows(Table::Names);
    assert_eq!(names.iter().filter(|name| name.contains("code\"")).count(), 2, "{names:#?}");
}

#[test]
fn losses_that_are_in_files_are_not_counted_again() {
    for (name, cut) in [("kept-losses", false), ("kept-losses-cut", true)] {
        let (mut bench, _outbox) = recording(name);
        // More than the whole segment holds, however much the ring grows.
        let many = SegmentReader::open(bench.segment.path()).unwrap().bytes() as usize / EVENT_SIZE;
        (0..many).for_each(|_| bench.push(Kind::Call, NameId(0), 0, 1, &[]));
        bench.segment.status(status::Collector::Calls).dropped.store(5, Ordering::Relaxed);
        bench.drain.turn();
        assert!(bench.drain.close());
        let before = bench.rows(Table::Losses);
        assert_eq!(before.len(), 2, "{before:#?}");
        let held = bench.rows(Table::Slices).len();
        assert!(has(&before, &["overwritten", &format!("count: {}}}", many - held)]), "{before:#?}");
        if cut {
            // As if the kill had come between the files of losses and of slices: the rings are read again.
            let slices = bench.drain.store.files().of(Table::Slices);
            slices.iter().for_each(|file| fs::remove_file(bench.root.join("trace").join(file.name())).unwrap());
        }
        // What came after is counted, as the difference.
        (0..10).for_each(|_| bench.push(Kind::Call, NameId(0), 0, 1, &[]));
        bench.segment.status(status::Collector::Calls).dropped.store(7, Ordering::Relaxed);
        recovered(&mut bench);
        let losses = bench.rows(Table::Losses);
        assert!(has(&losses, &["\"calls\"", "no-room", "count: 2"]), "{losses:#?}");
        assert_eq!(has(&losses, &["overwritten", "count: 10}"]), cut, "{losses:#?}");
        assert_eq!(losses.len(), if cut { 4 } else { 3 }, "{losses:#?}");
        assert_eq!(bench.rows(Table::Slices).len(), if cut { held } else { held + 10 });
    }
}
