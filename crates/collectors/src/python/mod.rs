//! What is collected from Python itself, by hooks that CPython calls with the GIL held.

pub mod after_import;
mod arguments;
mod callable;
pub mod calls;
pub mod cuda;
mod docs;
pub mod gc;
pub mod gil;
mod json;
pub mod layers;
mod refs;
pub mod scopes;
pub mod text;
mod wrong_arguments;
