//! Who may begin or end a recording of the GPU: one thread at a time, and none waits for itself.

#[path = "../src/gpu/door.rs"]
mod door;

use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// There is one door, and tests run side by side.
static ONE: Mutex<()> = Mutex::new(());
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_thread_that_comes_back_to_it_is_not_made_to_wait() {
    let _one = ONE.lock().unwrap();
    let inside = door::enter(LONG).expect("nobody is inside");
    assert!(door::enter(LONG).is_none(), "at once, or this test takes a minute");
    drop(inside);
    assert!(door::enter(Duration::ZERO).is_some(), "it is open again");
}

#[test]
fn another_thread_waits_for_it_but_not_for_ever() {
    let _one = ONE.lock().unwrap();
    let inside = door::enter(LONG).expect("nobody is inside");
    let impatient = std::thread::spawn(|| door::enter(Duration::from_millis(1)).is_some());
    assert!(!impatient.join().unwrap());
    let (waits, seen) = channel();
    let patient = std::thread::spawn(move || {
        waits.send(()).unwrap();
        door::enter(LONG).is_some()
    });
    seen.recv().unwrap();
    drop(inside);
    assert!(patient.join().unwrap());
}

#[test]
fn a_fork_does_not_inherit_it() {
    let _one = ONE.lock().unwrap();
    let inside = door::enter(LONG).expect("nobody is inside");
    // SAFETY: the child does nothing but look at the door, and ends without any goodbye.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let open = door::enter(Duration::ZERO).is_some();
        // SAFETY: plain system call.
        unsafe { libc::_exit(i32::from(!open)) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    drop(inside);
}
