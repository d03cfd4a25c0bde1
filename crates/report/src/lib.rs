//! An analysis in, bytes out: text, JSON, Chrome.
