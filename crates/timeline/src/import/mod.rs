//! Readers, one a format; each gives a [`crate::Timeline`].

pub mod native;
