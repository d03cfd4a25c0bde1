//! Readers, one a format; each gives a [`crate::Timeline`].

pub mod inferscope_json;
pub mod native;
