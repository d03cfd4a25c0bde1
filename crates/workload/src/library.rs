//! What differs between the in-target libraries, all in one place: a library says which it is when its session starts. Only the
//! path of a record does not ask: for that a library writes through `thread::under_gil` or `thread::concurrent`.

use trace::Kind;
use trace::settings::cuda_size_mb;
use trace::status::Collector;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Library {
    /// The Python extension: whoever writes holds the GIL.
    Python,
    /// What the CUDA driver and NVTX load into any program: threads write at the same time.
    Cuda,
}

impl Library {
    /// Whether threads write one at a time.
    pub(crate) fn holds_gil(self) -> bool {
        self == Library::Python
    }

    /// Whether calls are kept in the segment while they are open: only Python's are recorded by their end.
    pub(crate) fn keeps_open_calls(self) -> bool {
        self == Library::Python
    }

    /// The size of its segment, out of what the user allows a process.
    pub(crate) fn segment_bytes(self, trace_size_mb: u32) -> usize {
        let size_mb = match self {
            Library::Python => trace_size_mb,
            Library::Cuda => cuda_size_mb(trace_size_mb),
        };
        (size_mb as usize) << 20
    }

    /// The collector that is on whenever there is a session.
    pub(crate) fn always_on(self) -> Option<Collector> {
        match self {
            Library::Python => Some(Collector::Scopes),
            Library::Cuda => None,
        }
    }

    /// Who counts a record of this kind that found no room.
    pub(crate) fn collector_of(self, kind: u16) -> Collector {
        match (Kind::from_u16(kind), self) {
            (Some(Kind::Call | Kind::CCall), _) => Collector::Calls,
            (Some(Kind::Gc), _) => Collector::Gc,
            (Some(Kind::ApiCall), _) => Collector::Launches,
            (Some(Kind::Nvtx), _) => Collector::Nvtx,
            (Some(Kind::LayerBegin | Kind::LayerEnd), _) => Collector::Layers,
            (Some(Kind::Op), _) => Collector::Ops,
            (Some(Kind::Block), _) => Collector::Blocks,
            (_, Library::Python) => Collector::Scopes,
            (_, Library::Cuda) => Collector::Gpu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_record_is_counted_by_the_collector_that_wrote_it() {
        for library in [Library::Python, Library::Cuda] {
            assert_eq!(library.collector_of(Kind::CCall as u16), Collector::Calls);
            assert_eq!(library.collector_of(Kind::LayerEnd as u16), Collector::Layers);
            assert_eq!(library.collector_of(Kind::ApiCall as u16), Collector::Launches);
        }
        assert_eq!(Library::Python.collector_of(Kind::Mark as u16), Collector::Scopes);
        assert_eq!(Library::Cuda.collector_of(Kind::Mark as u16), Collector::Gpu);
        assert_eq!(Library::Cuda.collector_of(u16::MAX), Collector::Gpu, "kinds to come have a counter, too");
    }

    #[test]
    fn the_cuda_library_takes_its_share_of_what_the_python_part_is_allowed() {
        assert_eq!(Library::Python.segment_bytes(100), 100 << 20);
        assert_eq!(Library::Cuda.segment_bytes(100), (cuda_size_mb(100) as usize) << 20);
        assert!(Library::Cuda.segment_bytes(100) < Library::Python.segment_bytes(100));
    }
}
