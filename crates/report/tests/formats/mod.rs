//! Every export is written from the same small timelines and read back.

mod collapsed;
mod lanes;
mod perfetto;
mod pprof;
mod speedscope;
mod timelines;

fn parse(text: &str) -> timeline::Timeline {
    timeline::Timeline::from_text(text).expect("a timeline")
}
