//! What a CUDA (or HIP) call does, by its name: launch work, wait for a device, copy, allocate, load code. A name is classified once, when
//! it is interned ([`crate::Names::call`]); nobody else looks for parts of such names.

use trace::codes::OverheadKind;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ApiClass {
    Launch,
    Sync,
    Copy,
    Allocator,
    Compile,
    Communication,
}

/// Parts of names, the more telling ones first: `cudaFree`, `cuMemFreeAsync`, `cuLibraryLoadData`, `hipModuleLoad`.
const KNOWN: [(&str, ApiClass); 30] = [
    ("nccl", ApiClass::Communication),
    ("rccl", ApiClass::Communication),
    ("Synchronize", ApiClass::Sync),
    ("Memcpy", ApiClass::Copy),
    ("Malloc", ApiClass::Allocator),
    ("MemAlloc", ApiClass::Allocator),
    ("HostAlloc", ApiClass::Allocator),
    ("MemHostRegister", ApiClass::Allocator),
    ("HostRegister", ApiClass::Allocator),
    ("HostUnregister", ApiClass::Allocator),
    ("FreeHost", ApiClass::Allocator),
    ("HostFree", ApiClass::Allocator),
    ("MemFree", ApiClass::Allocator),
    ("cudaFree", ApiClass::Allocator),
    ("hipFree", ApiClass::Allocator),
    ("MemCreate", ApiClass::Allocator),
    ("MemRelease", ApiClass::Allocator),
    ("MemMap", ApiClass::Allocator),
    ("MemUnmap", ApiClass::Allocator),
    ("MemSetAccess", ApiClass::Allocator),
    ("MemAddress", ApiClass::Allocator),
    ("MemRetain", ApiClass::Allocator),
    ("MemImport", ApiClass::Allocator),
    ("MemExport", ApiClass::Allocator),
    ("MemHandle", ApiClass::Allocator),
    ("MemPoolTrim", ApiClass::Allocator),
    ("ModuleLoad", ApiClass::Compile),
    ("LibraryLoad", ApiClass::Compile),
    ("nvrtc", ApiClass::Compile),
    ("cuLink", ApiClass::Compile),
];

/// Parts of names that say more than the class.
const MARKS: [(&str, u16); 12] = [
    ("Launch", mark::LAUNCH),
    ("GraphLaunch", mark::GRAPH_LAUNCH),
    ("HostFunc", mark::HOST_FUNCTION),
    ("Graph", mark::GRAPH),
    ("EventSynchronize", mark::EVENT),
    ("WaitEvent", mark::STREAM_WAIT),
    ("Memset", mark::MEMSET),
    ("Async", mark::ASYNC),
    ("Batch", mark::BATCH),
    ("StreamBeginCapture", mark::BEGIN_CAPTURE),
    ("StreamEndCapture", mark::END_CAPTURE),
    ("lloc", mark::ALLOCATES),
];

mod mark {
    pub const LAUNCH: u16 = 1;
    pub const GRAPH_LAUNCH: u16 = 1 << 1;
    pub const HOST_FUNCTION: u16 = 1 << 2;
    pub const GRAPH: u16 = 1 << 3;
    pub const EVENT: u16 = 1 << 4;
    pub const STREAM_WAIT: u16 = 1 << 5;
    pub const MEMSET: u16 = 1 << 6;
    pub const ASYNC: u16 = 1 << 7;
    pub const BATCH: u16 = 1 << 8;
    pub const BEGIN_CAPTURE: u16 = 1 << 9;
    pub const END_CAPTURE: u16 = 1 << 10;
    pub const ALLOCATES: u16 = 1 << 11;
    pub const RUNTIME: u16 = 1 << 12;
    pub const DRIVER: u16 = 1 << 13;
    pub const HIP: u16 = 1 << 14;
}

/// What the name of a call says. Of a name that is no call's it says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CudaCall {
    class: ApiClass,
    marks: u16,
}

impl CudaCall {
    /// Classifies a name. Of a name in a timeline [`crate::Names::call`] knows the answer.
    pub fn of(name: &str) -> CudaCall {
        let api = match name {
            // `cuLaunchKernel` is the driver's, `cudaLaunchKernel` the runtime's, `cublasCreate` neither's.
            _ if name.starts_with("cuda") => mark::RUNTIME,
            _ if name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(char::is_uppercase)) => mark::DRIVER,
            _ if name.starts_with("hip") => mark::HIP,
            _ => 0,
        };
        // Every part but these has a capital letter or belongs to one that has: most Python functions end here.
        let plain = !name.bytes().any(|letter| letter.is_ascii_uppercase());
        if plain && !["ccl", "nvrtc", "lloc"].iter().any(|part| name.contains(part)) {
            return CudaCall { class: ApiClass::Launch, marks: api };
        }
        let class = KNOWN.iter().find(|(part, _)| name.contains(part)).map_or(ApiClass::Launch, |known| known.1);
        let marks = MARKS.iter().filter(|(part, _)| name.contains(part)).fold(api, |marks, known| marks | known.1);
        CudaCall { class, marks }
    }

    /// What is in no list gives work to a device, or is short.
    pub fn class(self) -> ApiClass {
        self.class
    }

    /// A call of CUDA's runtime, of its driver, or of HIP's.
    pub fn is_api(self) -> bool {
        self.has(mark::RUNTIME) || self.has(mark::DRIVER) || self.has(mark::HIP)
    }

    pub fn is_runtime(self) -> bool {
        self.has(mark::RUNTIME)
    }

    pub fn is_driver(self) -> bool {
        self.has(mark::DRIVER)
    }

    /// Its name says that it launches: a kernel, a graph, a function of the host.
    pub fn is_launch(self) -> bool {
        self.class == ApiClass::Launch && self.has(mark::LAUNCH)
    }

    pub fn launches_graph(self) -> bool {
        self.has(mark::GRAPH_LAUNCH)
    }

    /// In a capture it becomes a kernel of the graph.
    pub fn launches_kernel(self) -> bool {
        self.has(mark::LAUNCH) && !self.launches_graph() && !self.has(mark::HOST_FUNCTION)
    }

    /// The host waits: `cudaStreamSynchronize`, `cuCtxSynchronize`.
    pub fn waits(self) -> bool {
        self.class == ApiClass::Sync
    }

    /// The host waits for an event, which need not be the latest work.
    pub fn waits_for_event(self) -> bool {
        self.waits() && self.has(mark::EVENT)
    }

    /// Makes a stream wait; the host goes on.
    pub fn makes_stream_wait(self) -> bool {
        self.has(mark::STREAM_WAIT)
    }

    pub fn copies(self) -> bool {
        self.class == ApiClass::Copy
    }

    pub fn is_async(self) -> bool {
        self.has(mark::ASYNC)
    }

    /// `cudaMemcpy`, `cuMemcpyDtoH_v2`: a copy whose name does not say otherwise.
    pub fn is_blocking_copy(self) -> bool {
        self.copies() && !self.is_async() && !self.has(mark::BATCH)
    }

    /// `cudaMemset`, `cuMemsetD8_v2`; not `cudaGraphAddMemsetNode`.
    pub fn is_blocking_memset(self) -> bool {
        self.has(mark::MEMSET) && !self.is_async() && !self.has(mark::GRAPH)
    }

    /// Takes memory, where others of its class give it back.
    pub fn allocates(self) -> bool {
        self.class == ApiClass::Allocator && self.has(mark::ALLOCATES)
    }

    pub fn begins_capture(self) -> bool {
        self.has(mark::BEGIN_CAPTURE)
    }

    pub fn ends_capture(self) -> bool {
        self.has(mark::END_CAPTURE)
    }

    fn has(self, mark: u16) -> bool {
        self.marks & mark != 0
    }
}

/// What CUPTI calls an overhead is not always the profiler's: the driver's queue may be full, or it loads code, with or without one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverheadOf {
    Profiler,
    /// The queue was full: a wait for the device.
    Queue,
    Loading,
}

pub fn overhead_of(kind: OverheadKind) -> OverheadOf {
    match kind {
        OverheadKind::CommandBufferFull => OverheadOf::Queue,
        OverheadKind::DriverCompiler | OverheadKind::ModuleLoading | OverheadKind::FunctionLoading => {
            OverheadOf::Loading
        }
        _ => OverheadOf::Profiler,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_and_loading_are_not_the_profilers() {
        assert_eq!(overhead_of(OverheadKind::CommandBufferFull), OverheadOf::Queue);
        assert_eq!(overhead_of(OverheadKind::FunctionLoading), OverheadOf::Loading);
        assert_eq!(overhead_of(OverheadKind::BufferFlush), OverheadOf::Profiler);
    }

    #[test]
    fn calls_are_known_by_their_names() {
        let all = [
            ("cudaLaunchKernel", ApiClass::Launch),
            ("cudaLaunchKernelExC_v11060", ApiClass::Launch),
            ("cudaGraphLaunch", ApiClass::Launch),
            ("cudaMemsetAsync", ApiClass::Launch),
            ("cudaStreamSynchronize", ApiClass::Sync),
            ("hipDeviceSynchronize", ApiClass::Sync),
            ("cuMemcpyHtoDAsync_v2", ApiClass::Copy),
            ("cudaMalloc", ApiClass::Allocator),
            ("cudaFree", ApiClass::Allocator),
            ("cudaFreeAsync", ApiClass::Allocator),
            ("cuMemFree_v2", ApiClass::Allocator),
            ("cudaHostAlloc", ApiClass::Allocator),
            ("cuModuleLoadData", ApiClass::Compile),
            ("cuLibraryLoadData", ApiClass::Compile),
            ("ncclAllReduce", ApiClass::Communication),
        ];
        for (name, class) in all {
            assert_eq!(CudaCall::of(name).class(), class, "{name}");
        }
    }

    #[test]
    fn a_name_says_whose_call_it_is() {
        let whose = |name| {
            let call = CudaCall::of(name);
            (call.is_runtime(), call.is_driver(), call.is_api())
        };
        assert_eq!(whose("cudaLaunchKernel"), (true, false, true));
        assert_eq!(whose("cuLaunchKernel"), (false, true, true));
        assert_eq!(whose("hipLaunchKernel"), (false, false, true));
        for other in ["cublasCreate", "custom", "aten::mm", "", "cu"] {
            assert_eq!(whose(other), (false, false, false), "{other}");
        }
    }

    #[test]
    fn what_blocks_and_what_launches_is_told_apart() {
        let of = CudaCall::of;
        assert!(of("cudaMemcpy").is_blocking_copy() && of("cuMemcpyDtoH_v2").is_blocking_copy());
        assert!(!of("cudaMemcpyAsync").is_blocking_copy() && !of("cudaMemcpyBatchAsync").is_blocking_copy());
        assert!(of("cudaMemset").is_blocking_memset() && !of("cudaMemsetAsync").is_blocking_memset());
        assert!(!of("cudaGraphAddMemsetNode").is_blocking_memset());
        assert!(of("cudaGraphLaunch").launches_graph() && !of("cudaGraphLaunch").launches_kernel());
        assert!(of("cudaLaunchKernelExC_v11060").launches_kernel() && !of("cudaLaunchHostFunc").launches_kernel());
        assert!(of("cudaLaunchHostFunc").is_launch() && !of("cudaEventRecord").is_launch());
        assert!(of("cudaEventSynchronize").waits_for_event() && !of("cudaStreamSynchronize").waits_for_event());
        assert!(of("cudaStreamWaitEvent").makes_stream_wait() && !of("cudaStreamWaitEvent").waits());
        assert!(of("cudaMalloc").allocates() && of("cudaHostAlloc").allocates() && !of("cudaFree").allocates());
        assert!(of("cuStreamBeginCapture_v2").begins_capture() && of("cudaStreamEndCapture").ends_capture());
    }

    /// Names without a capital letter are not searched for every part: none of the parts may be missed in them.
    #[test]
    fn every_part_is_found_in_a_name_of_nothing_else() {
        for (part, class) in KNOWN {
            assert_eq!(CudaCall::of(part).class(), class, "{part}");
        }
        for (part, mark) in MARKS {
            assert!(CudaCall::of(part).has(mark), "{part}");
        }
    }
}
