//! What the libraries that are loaded into the workload share: the session and its segment, the ring of each thread, the
//! settings, the clock of our own cost, and the guard that no panic leaves. What is recorded is the collectors' own.

pub mod call_filter;
pub mod cost;
pub mod guard;
pub mod library;
pub mod place;
pub mod python_stack;
pub mod session;
pub mod settings;

pub use session::thread;
