//! Snapshots that are damaged or hostile: cut anywhere, with code in them, with loops, bombs, numbers of any size and lengths that lie.

use crate::snapshot::{event, of_devices, open, snapshot};
use crate::support::Random;
use timeline::fixture::pickle::Py;
use timeline::{OpenError, State};

fn refused(bytes: &[u8]) -> String {
    let error = open(bytes).expect_err("refused");
    assert!(matches!(error, OpenError::NotATrace { .. } | OpenError::Foreign { .. }), "{error:?}");
    let said = error.to_string();
    assert_eq!(said.lines().count(), 1);
    said
}

#[test]
fn whatever_would_run_code_is_refused_with_what_it_asks_for() {
    for (bytes, words) in [
        (&b"\x80\x02cposix\nsystem\nX\x02\x00\x00\x00ls\x85R."[..], "import posix.system"),
        (b"\x80\x04\x8c\x05posix\x8c\x06system\x93.", "import posix.system"),
        (b"\x80\x04}\x94}\x81.", "make an object of a class"),
        (b"\x80\x02}q\x00}R.", "call a function"),
        (b"\x80\x02}q\x00}b.", "set the state of an object"),
        (b"(dp0\niposix\nsystem\n.", "import posix.system"),
        (b"(dp0\n(oq.", "call a function"),
        (b"\x80\x02\x82\x01.", "use an extension"),
        (b"\x80\x02}q\x00Q.", "fetch an object"),
        (b"\x80\x05\x97.", "buffer from outside"),
    ] {
        let said = refused(bytes);
        assert!(said.contains(words) && said.contains("nothing in a pickle is executed"), "{said}");
    }
    // The code may come last: what stands before it is not believed either.
    let mut late = snapshot().pickle(4);
    late.pop();
    late.extend(b"cos\nsystem\n.");
    assert!(refused(&late).contains("import os.system"));
}

#[test]
fn a_cut_file_opens_up_to_there() {
    for (protocol, devices) in (0..=5).flat_map(|protocol| [(protocol, 1), (protocol, 2)]) {
        let whole = of_devices(devices).pickle(protocol);
        let mut most = 0;
        for length in (3..whole.len()).step_by(7) {
            match open(&whole[..length]) {
                Ok(timeline) => {
                    let events = timeline.memory.events.len();
                    assert!(events >= most, "protocol {protocol}: {events} events of {length} bytes, {most} of fewer");
                    most = events;
                    assert_eq!(timeline.info.state, State::Cut { events: Some(events as u64) });
                    assert!(timeline.memory.cut);
                    let said = timeline.notes_said().remove(0);
                    assert!(said.contains("ends too early") && said.contains("the rest is missing"), "{said}");
                }
                Err(error) => assert!(most == 0 && error.to_string().contains("ends too early"), "{error}"),
            }
        }
        assert_eq!(most, 6, "protocol {protocol}");
    }
}

#[test]
fn numbers_of_any_size_are_taken_or_left_out_and_counted() {
    let large = |size: i128| {
        Py::dict([("action", "alloc".into()), ("addr", 1.into()), ("size", Py::Int(size)), ("time_us", 5.into())])
    };
    let sizes = [1 << 63, (1 << 64) - 1, 1 << 64, i128::MAX, -1, 0];
    let timeline =
        open(&Py::dict([("device_traces", vec![Py::List(sizes.map(large).to_vec())].into())]).pickle(4)).unwrap();
    let kept: Vec<u64> = timeline.memory.events.iter().map(|event| event.bytes).collect();
    assert_eq!(kept, [1 << 63, u64::MAX, 0]);
    assert!(timeline.notes_said()[0].starts_with("3 events, blocks or segments"));
    // An integer of two thousand bytes, and one whose length is more than there is.
    let mut bytes = b"\x80\x02}X\x08\x00\x00\x00segments\x8b\xd0\x07\x00\x00".to_vec();
    bytes.extend([1; 2000]);
    bytes.extend(b"s.");
    assert!(open(&bytes).unwrap().memory.is_empty());
    assert!(refused(b"\x80\x02\x8b\xff\xff\xff\x7f").contains("ends too early"));
}

#[test]
fn loops_and_bombs_end() {
    // A list that holds itself, as frames of an event and as the traces.
    let looped = b"\x80\x02}(X\x0d\x00\x00\x00device_traces]q\x00h\x00aX\x08\x00\x00\x00segmentsh\x00u.";
    assert!(open(looped).unwrap().memory.is_empty());
    // A million lists, each in the one before; and marks without end.
    let nested = [b"\x80\x02".to_vec(), b"]".repeat(200_000), b"a".repeat(199_999), b".".to_vec()].concat();
    refused(&nested);
    refused(&[b"\x80\x02".to_vec(), vec![b'('; 1 << 20], b".".to_vec()].concat());
    // Doubled twenty times over by references: a list of a million would be 2^20 of them.
    let mut doubled = b"\x80\x02]q\x00Ka".to_vec();
    for number in 0..20u8 {
        doubled.extend([b']', b'q', number + 1, b'(', b'h', number, b'h', number, b'e']);
    }
    doubled.push(b'.');
    refused(&doubled);
}

#[test]
fn more_values_than_a_snapshot_has_are_refused() {
    // One list of blocks in very many segments: each would be a copy of it.
    let mut bytes = b"\x80\x02]q\x00(".to_vec();
    for _ in 0..3000 {
        bytes.extend(b"}q\x05(X\x04\x00\x00\x00sizeK\x01X\x05\x00\x00\x00stateX\x08\x00\x00\x00inactiveu");
    }
    bytes.extend(b"e0]q\x01(");
    let copy = b"}(X\x07\x00\x00\x00addressK\x01X\x0a\x00\x00\x00total_sizeK\x01X\x06\x00\x00\x00blocksh\x00u";
    bytes.extend(copy.repeat(2000));
    bytes.extend(b"e.");
    assert!(refused(&bytes).contains("more values than a memory snapshot"));
}

#[test]
fn lengths_of_frames_that_lie_end_nothing_and_take_nothing() {
    let good = snapshot().pickle(4);
    for length in [0, 1, 7, 1 << 40, u64::MAX] {
        let mut lying = good.clone();
        lying[3..11].copy_from_slice(&u64::to_le_bytes(length));
        assert_eq!(open(&lying).unwrap().memory.events.len(), 6);
    }
    let inside = [&good[..11], b"\x95\x04\x00\x00\x00\x00\x00\x00\x00", &good[11..]].concat();
    assert!(refused(&inside).contains("a frame begins inside another one"));
}

#[test]
fn other_pickles_are_named_by_what_they_hold() {
    let said = refused(&Py::dict([("state_dict", Py::None), ("epoch", 3.into())]).pickle(4));
    assert!(said.contains("no memory snapshot of PyTorch (its keys: state_dict, epoch)"), "{said}");
    assert!(refused(&Py::List(vec![1.into()]).pickle(4)).contains("neither segments nor traces"));
    for broken in [&b"\x80\x07}."[..], b"\x80\x04.", b"\x80\x02h\x07.", b"\x80\x02u.", b"\x80\x04\xff", b"(lp\n."] {
        refused(broken);
    }
}

#[test]
fn times_that_go_back_or_cannot_be_keep_the_order() {
    let events = [500, 400, 0, 600, 8_000_000_000_000_000].map(|time| event("alloc", time + 1, 512, time));
    let timeline = open(&Py::dict([("device_traces", vec![Py::List(events.to_vec())].into())]).pickle(4)).unwrap();
    let times: Vec<u64> = timeline.memory.events.iter().map(|event| event.time).collect();
    assert_eq!(times, [500_000, 500_000, 500_000, 600_000, 600_000]);
    let order: Vec<u64> = timeline.memory.events.iter().map(|event| event.address).collect();
    assert_eq!(order, [501, 401, 1, 601, 8_000_000_000_000_001]);
}

#[test]
fn random_damage_never_ends_the_reader() {
    let whole = [0, 2, 4].map(|protocol| snapshot().pickle(protocol));
    let mut random = Random(7);
    for round in 0..600 {
        let mut bytes = whole[round % 3].clone();
        for _ in 0..=random.below(6) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        if let Ok(timeline) = open(&bytes) {
            assert!(timeline.memory.events.len() <= 12 && timeline.end >= timeline.start);
        }
    }
}
