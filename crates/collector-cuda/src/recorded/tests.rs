//! The number that says whether the GPU is recorded right now: it grows with each window, and who waits for one is woken.

use super::{begin, end, now, turn, wait};

/// All in one test: the number is the process's.
#[test]
fn it_grows_with_each_window_and_wakes_who_waits_for_one() {
    assert_eq!(now(), 0);
    turn(true);
    assert_eq!(now(), 0, "nothing is recorded, so nothing opens");
    begin(false);
    let closed = now();
    assert_eq!(closed % 2, 1);
    let waiting = std::thread::spawn(move || {
        // A wait may end for nothing. Without being woken, this one lasts longer than any test.
        while now() == closed {
            wait(closed, 3_600_000);
        }
        now()
    });
    turn(true);
    let open = waiting.join().unwrap();
    assert_eq!(open, closed + 1);
    turn(true);
    assert_eq!(now(), open, "it is open already");
    wait(closed, 3_600_000);
    turn(false);
    turn(true);
    assert_eq!(now(), open + 2);
    end();
    assert_eq!(now(), 0);
    begin(true);
    assert_eq!(now() % 2, 0);
    assert_ne!(now(), 0);
}
