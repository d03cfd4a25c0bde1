//! Opens a trace into one Timeline on one clock.
