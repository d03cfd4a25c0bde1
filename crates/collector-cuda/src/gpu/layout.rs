//! Where the fields of CUPTI's activity records are. Records grow with each CUDA version, but no field that is read here ever
//! moved between 11.8 and 13.4: one table reads them all. tests/cupti_headers checks every line against NVIDIA's headers.

/// A record in a buffer of CUPTI's. Fields are copied out byte by byte: records are packed.
macro_rules! record {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $struct:literal { $($field:ident: $type:ty = $offset:literal, $cupti:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(*const u8);

        impl $name {
            pub const KIND: u32 = $kind;
            /// Bytes that must be there for every field to be read.
            #[allow(dead_code)]
            pub const LENGTH: usize = {
                let ends = [$($offset + size_of::<$type>()),*];
                let (mut longest, mut at) = (0, 0);
                while at < ends.len() {
                    if ends[at] > longest {
                        longest = ends[at];
                    }
                    at += 1;
                }
                longest
            };

            /// # Safety
            /// `at` is a record of this kind with at least `LENGTH` bytes.
            pub unsafe fn new(at: *const u8) -> $name {
                $name(at)
            }

            $(
                pub fn $field(&self) -> $type {
                    // SAFETY: inside the record, by the promise to `new`.
                    unsafe { self.0.add($offset).cast::<$type>().read_unaligned() }
                }
            )*
        }
    };
}

record! {
    /// `CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL`.
    Kernel, 10, "CUpti_ActivityKernel" {
        registers: u16 = 6, "registersPerThread";
        start: u64 = 16, "start";
        end: u64 = 24, "end";
        device: u32 = 40, "deviceId";
        context: u32 = 44, "contextId";
        stream: u32 = 48, "streamId";
        grid_x: u32 = 52, "gridX";
        grid_y: u32 = 56, "gridY";
        grid_z: u32 = 60, "gridZ";
        block_x: u32 = 64, "blockX";
        block_y: u32 = 68, "blockY";
        block_z: u32 = 72, "blockZ";
        shared_static: u32 = 76, "staticSharedMemory";
        shared_dynamic: u32 = 80, "dynamicSharedMemory";
        correlation: u32 = 92, "correlationId";
        name: usize = 104, "name";
        launch_type: u8 = 136, "launchType";
        node: u64 = 144, "graphNodeId";
        graph: u32 = 156, "graphId";
    }
}

record! {
    /// `CUPTI_ACTIVITY_KIND_MEMCPY`.
    Memcpy, 1, "CUpti_ActivityMemcpy" {
        direction: u8 = 4, "copyKind";
        source: u8 = 5, "srcKind";
        target: u8 = 6, "dstKind";
        flags: u8 = 7, "flags";
        bytes: u64 = 8, "bytes";
        start: u64 = 16, "start";
        end: u64 = 24, "end";
        device: u32 = 32, "deviceId";
        context: u32 = 36, "contextId";
        stream: u32 = 40, "streamId";
        correlation: u32 = 44, "correlationId";
        node: u64 = 64, "graphNodeId";
        graph: u32 = 72, "graphId";
    }
}

record! {
    /// `CUPTI_ACTIVITY_KIND_MEMCPY2`: from one device to another.
    MemcpyPeer, 22, "CUpti_ActivityMemcpyPtoP" {
        source: u8 = 5, "srcKind";
        target: u8 = 6, "dstKind";
        flags: u8 = 7, "flags";
        bytes: u64 = 8, "bytes";
        start: u64 = 16, "start";
        end: u64 = 24, "end";
        device: u32 = 32, "deviceId";
        context: u32 = 36, "contextId";
        stream: u32 = 40, "streamId";
        correlation: u32 = 60, "correlationId";
        node: u64 = 72, "graphNodeId";
        graph: u32 = 80, "graphId";
    }
}

record! {
    /// `CUPTI_ACTIVITY_KIND_MEMSET`.
    Memset, 2, "CUpti_ActivityMemset" {
        bytes: u64 = 8, "bytes";
        start: u64 = 16, "start";
        end: u64 = 24, "end";
        device: u32 = 32, "deviceId";
        context: u32 = 36, "contextId";
        stream: u32 = 40, "streamId";
        correlation: u32 = 44, "correlationId";
        flags: u16 = 48, "flags";
        memory: u16 = 50, "memoryKind";
        node: u64 = 64, "graphNodeId";
        graph: u32 = 72, "graphId";
    }
}

record! {
    /// `CUPTI_ACTIVITY_KIND_OVERHEAD`.
    Overhead, 17, "CUpti_ActivityOverhead" {
        sort: u32 = 4, "overheadKind";
        start: u64 = 24, "start";
        end: u64 = 32, "end";
    }
}

record! {
    /// `CUPTI_ACTIVITY_KIND_DEVICE`.
    Device, 8, "CUpti_ActivityDevice" {
        bandwidth: u64 = 8, "globalMemoryBandwidth";
        memory: u64 = 16, "globalMemorySize";
        multiprocessors: u32 = 44, "numMultiprocessors";
        major: u32 = 104, "computeCapabilityMajor";
        minor: u32 = 108, "computeCapabilityMinor";
        ordinal: u32 = 112, "id";
        uuid: [u8; 16] = 120, "uuid";
        name: usize = 136, "name";
        mig: u8 = 145, "isMigEnabled";
        mig_uuid: [u8; 16] = 160, "migUuid";
    }
}

record! {
    /// `CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER`.
    Migration, 25, "CUpti_ActivityUnifiedMemoryCounter" {
        sort: u32 = 4, "counterKind";
        bytes: u64 = 8, "value";
        start: u64 = 16, "start";
        end: u64 = 24, "end";
        source: u32 = 40, "srcId";
        target: u32 = 44, "dstId";
        stream: u32 = 48, "streamId";
    }
}
