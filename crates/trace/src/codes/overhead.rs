//! What CUPTI calls an overhead: `slices.id` where `slices.kind` is 10.

super::codes! {
    /// Not every one is the profiler's: the driver's queue may be full, or it loads code, with or without a profiler.
    pub enum OverheadKind {
        /// Of a kind that this version does not know.
        Other = 1, "other";
        DriverCompiler = 2, "driver-compiler";
        BufferFlush = 3, "buffer-flush";
        Instrumentation = 4, "instrumentation";
        Resource = 5, "resource";
        ModuleLoading = 6, "triggered-module-loading";
        FunctionLoading = 7, "function-loading";
        /// A launch waits for the device.
        CommandBufferFull = 8, "command-buffer-full";
        BufferRequest = 9, "buffer-request";
        UnifiedMemoryStart = 10, "unified-memory-start";
    }
}

impl OverheadKind {
    /// By CUPTI's own number, `CUpti_ActivityOverheadKind`.
    pub fn from_cupti(number: u32) -> OverheadKind {
        match number {
            1 => OverheadKind::DriverCompiler,
            0x1_0000 => OverheadKind::BufferFlush,
            0x2_0000 => OverheadKind::Instrumentation,
            0x3_0000 => OverheadKind::Resource,
            0x4_0000 => OverheadKind::ModuleLoading,
            0x5_0000 => OverheadKind::FunctionLoading,
            0x6_0000 => OverheadKind::CommandBufferFull,
            0x7_0000 => OverheadKind::BufferRequest,
            0x8_0000 => OverheadKind::UnifiedMemoryStart,
            _ => OverheadKind::Other,
        }
    }
}
