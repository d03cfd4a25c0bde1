//! Every export is written from the same small timelines and read back.

mod collapsed;
mod lanes;
mod perfetto;
mod pprof;
mod speedscope;
mod timelines;

/// A timeline of a few lines of text: see [`timeline::fixture::text`].
fn parse(text: &str) -> timeline::Timeline {
    timelines::open(&timeline::fixture::Fixture::parse(text))
}
