//! What devices did, as the file says it: kernels, copies, memsets and waits, with the stream that they ran in.

use super::args::Args;
use super::copies;
use super::event::{Event, Sort};
use super::load::Loader;
use crate::gpu::{Job, Shape, Site, WorkExtra, WorkKind, detail};
use crate::import::json::fields::Raw;

impl Loader<'_> {
    pub(super) fn work(&mut self, event: &Event<'_>, sort: Sort) {
        let Some((start, dur)) = self.span(event) else { return };
        let args = Args::of(event.args);
        let name = self.names.get(self.builder, sort, event.name).name;
        // Where the arguments do not say it, the process is the device and the thread the stream ("stream 7").
        let device = number(args.device).or_else(|| number(event.process)).unwrap_or(0);
        let stream = number(args.stream).or_else(|| number(event.thread)).unwrap_or(0);
        let site = Site { process: self.launcher, device, context: args.context.small(), stream };
        let text = || event.name.0.trim_matches('"');
        let (kind, detail) = match sort {
            Sort::Memcpy => (WorkKind::Memcpy, copies::copy(text())),
            Sort::Memset => (WorkKind::Memset, u32::from(detail::DEVICE)),
            Sort::Sync => (WorkKind::Sync, copies::wait(args.sync.text().as_deref().unwrap_or_else(text))),
            _ => (WorkKind::Kernel, 0),
        };
        let shape = Shape::given(args.grid.sides(), args.block.sides(), args.registers.small(), args.shared.small());
        let more = WorkExtra {
            bytes: args.bytes.whole().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
            detail,
            graph: args.graph.small(),
            node: args.node.whole().unwrap_or(0) as u64,
        };
        if kind != WorkKind::Sync {
            self.devices.insert(device);
        }
        let correlation = args.correlation.small();
        self.builder.work(Job { site, kind, name, start, dur, correlation, shape, more });
    }
}

/// A number, or the one at the end of words.
fn number(value: Raw<'_>) -> Option<u32> {
    let digits = value.0.trim_matches('"').trim().trim_start_matches(|letter: char| !letter.is_ascii_digit());
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_numbers_or_words_with_one() {
        let of = |text| number(Raw(text));
        assert_eq!([of("7"), of("\"stream 7\""), of("\"7\"")], [Some(7); 3]);
        assert_eq!([of(""), of("\"Trace\""), of("\"stream 7 high\"")], [None; 3]);
    }
}
