//! Who may begin or end a recording of the GPU: one thread at a time, and none waits for itself.

use super::super::lifecycle_lock::try_acquire;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// There is one lock, and tests run side by side.
static ONE: Mutex<()> = Mutex::new(());
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_thread_that_comes_back_to_it_is_not_made_to_wait() {
    let _one = ONE.lock().unwrap();
    let held = try_acquire(LONG).expect("nobody holds it");
    assert!(try_acquire(LONG).is_none(), "at once, or this test takes a minute");
    drop(held);
    assert!(try_acquire(Duration::ZERO).is_some(), "it is free again");
}

#[test]
fn another_thread_waits_for_it_but_not_for_ever() {
    let _one = ONE.lock().unwrap();
    let held = try_acquire(LONG).expect("nobody holds it");
    let short = std::thread::spawn(|| try_acquire(Duration::from_millis(1)).is_some());
    assert!(!short.join().unwrap());
    let (starts, seen) = channel();
    let long = std::thread::spawn(move || {
        starts.send(()).unwrap();
        try_acquire(LONG).is_some()
    });
    seen.recv().unwrap();
    drop(held);
    assert!(long.join().unwrap());
}

#[test]
fn a_fork_does_not_inherit_it() {
    let _one = ONE.lock().unwrap();
    let held = try_acquire(LONG).expect("nobody holds it");
    // SAFETY: the child does nothing but try the lock, and ends without any exit handler.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let free = try_acquire(Duration::ZERO).is_some();
        // SAFETY: plain system call.
        unsafe { libc::_exit(i32::from(!free)) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    drop(held);
}
