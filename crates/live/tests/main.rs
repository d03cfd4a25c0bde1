//! The tests of the live view in one program.

mod screens;
mod watching;
