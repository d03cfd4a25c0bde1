//! Stacks get numbers from several threads, from programs that make up code as they go, and when the table is full.

use super::*;
use std::collections::{HashMap, HashSet};
use std::sync::{Barrier, Mutex};

/// A segment's names, as texts.
#[derive(Default)]
struct Names(Mutex<(HashMap<String, u32>, u32)>);

impl Names {
    fn limited(most: u32) -> Names {
        Names(Mutex::new((HashMap::new(), most)))
    }

    fn intern(&self, text: &str) -> NameId {
        let mut all = self.0.lock().unwrap();
        let (next, most) = (all.0.len() as u32 + 1, all.1);
        match all.0.get(text) {
            Some(number) => NameId(*number),
            None if most != 0 && next > most => NameId::INLINE,
            None => {
                all.0.insert(text.to_owned(), next);
                NameId(next)
            }
        }
    }

    /// Functions and lines of a stack, innermost first.
    fn stack(&self, mut at: NameId) -> Vec<(String, u32)> {
        let texts: HashMap<u32, String> =
            self.0.lock().unwrap().0.iter().map(|(text, id)| (*id, text.clone())).collect();
        let mut all = Vec::new();
        while at != NameId::NONE {
            let frame = StackFrame::read(&texts[&at.0]).expect("a frame");
            all.push((texts[&frame.function.0].clone(), frame.line));
            at = frame.parent;
        }
        all
    }
}

/// A frame whose function and line are told from its identity and instruction.
fn frame(identity: u64, instruction: i32) -> RawFrame {
    RawFrame { code: 0x1000, identity, instruction }
}

fn describe(frame: &RawFrame, into: &mut [u8; MAX_TEXT]) -> Option<(usize, u32)> {
    let text = format!("f{}", frame.identity);
    into[..text.len()].copy_from_slice(text.as_bytes());
    Some((text.len(), frame.instruction as u32))
}

fn interns(texts: &Names) -> (impl Fn(&str) -> NameId, impl Fn(&StackFrame) -> NameId) {
    let frame = |frame: &StackFrame| {
        let mut text = String::new();
        frame.write(&mut text);
        texts.intern(&text)
    };
    (|text: &str| texts.intern(text), frame)
}

fn number(names: &StackNames, texts: &Names, frames: &[RawFrame]) -> Result<NameId, StackMissing> {
    names.of(frames, interns(texts), describe)
}

#[test]
fn a_stack_has_one_number_and_stands_for_its_frames() {
    let (names, texts) = (StackNames::new(1).unwrap(), Names::default());
    let outer = frame(1, 7);
    let stack = number(&names, &texts, &[frame(3, 30), frame(2, 20), outer]).unwrap();
    assert_eq!(texts.stack(stack), [("f3".into(), 30), ("f2".into(), 20), ("f1".into(), 7)]);
    let before = texts.0.lock().unwrap().0.len();
    assert_eq!(number(&names, &texts, &[frame(3, 30), frame(2, 20), outer]), Ok(stack));
    assert_eq!(texts.0.lock().unwrap().0.len(), before, "nothing new is written");
    // Another line, and another caller.
    let line = number(&names, &texts, &[frame(3, 31), frame(2, 20), outer]).unwrap();
    let called = number(&names, &texts, &[frame(3, 30), outer]).unwrap();
    assert_eq!(texts.stack(line)[1..], texts.stack(stack)[1..]);
    assert_eq!(texts.stack(called), [("f3".into(), 30), ("f1".into(), 7)]);
    assert_eq!(names.used.load(Ordering::Relaxed), 5, "the frames outside are shared");
}

/// The address of code says nothing of it: here all has the same.
#[test]
fn code_that_comes_and_goes_at_one_address_keeps_apart() {
    let (names, texts) = (StackNames::new(1).unwrap(), Names::default());
    let all: HashSet<NameId> = (0..1000).map(|at| number(&names, &texts, &[frame(at, 1)]).unwrap()).collect();
    assert_eq!(all.len(), 1000);
}

#[test]
fn a_hundred_thousand_stacks_are_bounded_and_the_rest_is_told_apart() {
    let (names, texts) = (StackNames::new(1).unwrap(), Names::default());
    let outer = frame(u64::MAX, 1);
    let all: Vec<_> = (0..100_000).map(|at| number(&names, &texts, &[frame(at, 1), outer])).collect();
    let (read, beyond) = all.split_at(MOST as usize - 1);
    assert!(read.iter().all(Result::is_ok));
    assert!(beyond.iter().all(|one| *one == Err(StackMissing::TooMany)));
    let distinct: HashSet<_> = read.iter().flatten().collect();
    assert_eq!(distinct.len(), read.len());
    assert_eq!(number(&names, &texts, &[frame(5, 1), outer]), all[5], "what is known stays so");
}

#[test]
fn a_full_table_of_names_is_too_many_and_breaks_no_stack() {
    let (names, texts) = (StackNames::new(1).unwrap(), Names::limited(5));
    let stack = [frame(3, 1), frame(2, 1), frame(1, 1)];
    assert_eq!(number(&names, &texts, &stack), Err(StackMissing::TooMany));
    assert!(number(&names, &texts, &stack[1..]).is_ok(), "its outer part had room");
    assert_eq!(number(&names, &texts, &stack), Err(StackMissing::TooMany));
}

#[test]
fn a_frame_without_a_name_is_unreadable_and_lets_go() {
    let (names, texts) = (StackNames::new(1).unwrap(), Names::default());
    let none = names.of(&[frame(1, 1)], interns(&texts), |_, _| None);
    assert_eq!(none, Err(StackMissing::Unreadable));
    let no_text = |_: &RawFrame, into: &mut [u8; MAX_TEXT]| {
        into[0] = 0xff;
        Some((1, 1))
    };
    assert_eq!(names.of(&[frame(1, 1)], interns(&texts), no_text), Err(StackMissing::Unreadable));
    assert!(number(&names, &texts, &[frame(1, 1)]).is_ok(), "others can write");
}

#[test]
fn threads_agree_on_numbers_and_nobody_waits() {
    let (names, texts) = (StackNames::new(1).unwrap(), Names::default());
    let (threads, barrier) = (4, Barrier::new(4));
    let mut seen = HashMap::new();
    let all: Vec<Vec<_>> = std::thread::scope(|scope| {
        let work = || {
            barrier.wait();
            let one = |at: u64| number(&names, &texts, &[frame(at % 300, 1), frame(at % 7, 2)]);
            (0..20_000).map(one).collect()
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    for (at, result) in all.iter().flat_map(|one| one.iter().enumerate()) {
        match result {
            Ok(name) => assert_eq!(*seen.entry((at % 300, at % 7)).or_insert(*name), *name),
            Err(why) => assert_eq!(*why, StackMissing::Busy),
        }
    }
    for ((inner, outer), name) in seen {
        assert_eq!(texts.stack(name), [(format!("f{inner}"), 1), (format!("f{outer}"), 2)]);
    }
    assert!((0..300).all(|at| number(&names, &texts, &[frame(at, 1), frame(at % 7, 2)]).is_ok()), "nobody holds it");
}
