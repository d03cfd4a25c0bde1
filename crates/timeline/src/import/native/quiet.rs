//! Calls code that may panic on hostile input, and turns the panic into a sentence instead of a message and a crash.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}
static HOOK: Once = Once::new();

/// What `call` touched must not be used again after an error, other than to be dropped.
pub fn quietly<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    // The hook prints; only panics inside `call`, on this thread, are kept from it.
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !QUIET.get() {
                before(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    QUIET.set(outer);
    result.unwrap_or_else(|_| Err("its content makes no sense".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error() {
        assert_eq!(quietly(|| Ok(3)), Ok(3));
        assert!(quietly(|| -> Result<(), String> { panic!("not seen") }).is_err());
    }
}
