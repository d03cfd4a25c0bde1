//! Memory of a command, a process or the machine, sampled from outside: what `track` and `monitor` have in common.

mod killed;
mod options;
mod session;
mod stream;
mod words;

pub use options::Options;
pub use session::watch;
