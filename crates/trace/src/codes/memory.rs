//! What was done with memory: by the CUDA driver, and by a framework's allocator.

super::codes! {
    /// What the driver was asked for: `allocations.operation`. Memory of the virtual memory management is created as a handle, mapped to addresses, and lives until it is released and unmapped.
    pub enum MemoryOperation {
        Alloc = 1, "malloc";
        Free = 2, "free";
        /// An allocation that CUDA refused; `bytes` is what was asked for.
        Failed = 3, "failed";
        Create = 4, "create";
        Release = 5, "release";
        Map = 6, "map";
        Unmap = 7, "unmap";
        /// The handle of mapped memory, once more.
        Retain = 8, "retain";
        /// A handle to memory that this or another process has exported.
        Import = 9, "import";
        Export = 10, "export";
        /// Addresses alone: they take no memory.
        Reserve = 11, "reserve";
        Unreserve = 12, "unreserve";
        /// Another process's `cudaMalloc`, opened here.
        OpenShared = 13, "open-shared";
        CloseShared = 14, "close-shared";
    }
}

super::codes! {
    /// What a framework's allocator did with a block: `blocks.operation`.
    pub enum BlockOperation {
        Alloc = 1, "alloc";
        Free = 2, "free";
        /// It had none for so many bytes, and the driver gave it none.
        OutOfMemory = 3, "out-of-memory";
    }
}

super::codes! {
    /// Why the stack of a block was asked for: `blocks.stack_reason`.
    pub enum StackReason {
        /// A block of [`crate::block::LARGE_BLOCK`] and more, or a request that failed.
        Large = 1, "large";
        /// The allocator had to ask the driver for memory.
        Growth = 2, "growth";
        /// Its bytes were met by the sampling: of any block of so many, with the same probability.
        Sampled = 3, "sampled";
    }
}

super::codes! {
    /// Why a stack that was asked for is not there: `blocks.stack_missing`.
    pub enum StackMissing {
        /// The thread runs no Python.
        NoPython = 1, "no-python";
        /// The interpreter was ending.
        Ending = 2, "ending";
        /// As many different stacks as are kept were seen before.
        TooMany = 3, "too-many";
        /// Another thread was writing a new stack at this moment.
        Busy = 4, "busy";
        /// The frames were not what they were when reading them was tried.
        Unreadable = 5, "unreadable";
    }
}

impl MemoryOperation {
    /// What gives something back: it counts from the begin of the call. Everything else counts from its end. Then no address is given
    /// out again before it was given back, whatever threads call at the same time.
    pub fn gives_back(self) -> bool {
        use MemoryOperation::{CloseShared, Free, Release, Unmap, Unreserve};
        matches!(self, Free | Release | Unmap | Unreserve | CloseShared)
    }
}
