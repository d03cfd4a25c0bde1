//! What is collected from Python itself, by hooks that CPython calls with the GIL held.

mod arguments;
mod callable;
pub mod calls;
mod docs;
pub mod gc;
pub mod gil;
mod json;
mod refs;
pub mod scopes;
pub mod text;
