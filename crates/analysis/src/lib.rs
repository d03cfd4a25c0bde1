//! A Timeline in, metrics out.
