//! Readers, one a format; each gives a [`crate::Timeline`].

pub mod inferscope_json;
mod json;
pub mod kineto;
pub mod known;
pub mod markers;

pub mod native;
pub mod nsys;
pub mod overheads;
pub mod snapshot;
mod window;
