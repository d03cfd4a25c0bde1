//! What a CUDA (or HIP) call does to the host, by its name: give work to a device, wait for one, copy, take memory, load code.

use crate::{OverheadKind, Timeline};

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
const KNOWN: [(&str, ApiClass); 26] = [
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
    ("MemPoolTrim", ApiClass::Allocator),
    ("ModuleLoad", ApiClass::Compile),
    ("LibraryLoad", ApiClass::Compile),
    ("nvrtc", ApiClass::Compile),
    ("cuLink", ApiClass::Compile),
];

pub fn class_of(call: &str) -> ApiClass {
    KNOWN.iter().find(|(part, _)| call.contains(part)).map_or(ApiClass::Launch, |(_, class)| *class)
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

/// The class of every name that a timeline has, so that a call costs a look into a list.
pub struct Classes(Vec<ApiClass>);

impl Classes {
    pub fn new(timeline: &Timeline) -> Classes {
        let name = |index: u32| class_of(timeline.names.text(crate::NameIndex(index)));
        Classes((0..timeline.names.len() as u32).map(name).collect())
    }

    pub fn of(&self, name: u32) -> ApiClass {
        self.0.get(name as usize).copied().unwrap_or(ApiClass::Launch)
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
            assert_eq!(class_of(name), class, "{name}");
        }
    }
}
