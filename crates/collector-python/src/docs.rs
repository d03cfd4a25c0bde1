//! What `help()` says about the native functions, signatures included.

use std::ffi::CStr;

pub const SCOPE: &CStr = cr#"scope(name, tags=None)
--

Records how long a piece of code takes, as a context manager or a decorator.

Scopes nest; every asyncio task and every thread has its own nesting. Tags are recorded as JSON when the
scope is entered. Exceptions pass through. When nobody records it does nothing.

    with scope("inference_step", tags={"model": "gpt2"}):
        ...

    @scope("tokenize")          # sync and async functions, generators
    def tokenize(text): ...
"#;

pub const SCOPE_TYPE: &CStr =
    c"What scope() and step() give: a context manager and a decorator. May be used any number of times.";

pub const STEP: &CStr = cr#"step(over, name=None, tags=None)
--

Marks one request, batch or iteration: what latencies are measured of.

    with step("request"):
        ...

    for batch in step(batches, name="batch"):     # also `async for`
        ...

A step of a loop begins when its item is handed out and ends when the next one is asked for, or when the loop is left.
"#;

pub const MARK_EVENT: &CStr = cr#"mark_event(name, metadata=None)
--

Records that something happened now, inside the scope that is open here.

    mark_event("cache_miss", metadata={"key": 3})
"#;
