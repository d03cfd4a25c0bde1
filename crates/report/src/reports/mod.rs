//! What a person or a program reads about one recording, one format a module.

pub mod analysis_json;
pub mod brief;
pub mod html;
pub mod markdown;
pub(crate) mod step_times;
pub mod text;
