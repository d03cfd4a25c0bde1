//! The names of counters (`counters.name`). They are on disk: never changed, never used for something else.

// Of a thread or a process: what the kernel's scheduler gave it.
pub const CPU_NS: &str = "cpu_ns";
pub const RUNQUEUE_WAIT_NS: &str = "runqueue_wait_ns";
pub const TIMESLICES: &str = "timeslices";
pub const VOLUNTARY_SWITCHES: &str = "voluntary_switches";
pub const INVOLUNTARY_SWITCHES: &str = "involuntary_switches";

// Of a process: its memory.
pub const RSS_BYTES: &str = "rss_bytes";
pub const PSS_BYTES: &str = "pss_bytes";
pub const SWAP_BYTES: &str = "swap_bytes";
pub const MINOR_FAULTS: &str = "minor_faults";
pub const MAJOR_FAULTS: &str = "major_faults";
pub const NUMA_REMOTE_BYTES: &str = "numa_remote_bytes";

// Of the machine: pressure (PSI), and what the recorder itself takes.
pub const PSI_MEMORY_SOME_US: &str = "psi_memory_some_us";
pub const PSI_MEMORY_FULL_US: &str = "psi_memory_full_us";
pub const PSI_CPU_SOME_US: &str = "psi_cpu_some_us";
pub const PSI_IO_SOME_US: &str = "psi_io_some_us";
pub const PSI_IO_FULL_US: &str = "psi_io_full_us";
pub const RECORDER_CPU_NS: &str = "recorder_cpu_ns";

// Of a device.
pub const GPU_UTILISATION_PERCENT: &str = "gpu_utilisation_percent";
pub const GPU_MEMORY_BANDWIDTH_UTILISATION_PERCENT: &str = "gpu_memory_bandwidth_utilisation_percent";
pub const GPU_MEMORY_USED_BYTES: &str = "gpu_memory_used_bytes";
pub const GPU_MEMORY_TOTAL_BYTES: &str = "gpu_memory_total_bytes";
pub const GPU_PROCESS_MEMORY_BYTES: &str = "gpu_process_memory_bytes";
pub const GPU_OTHER_PROCESSES_MEMORY_BYTES: &str = "gpu_other_processes_memory_bytes";
pub const GPU_SM_CLOCK_MHZ: &str = "gpu_sm_clock_mhz";
pub const GPU_MEMORY_CLOCK_MHZ: &str = "gpu_memory_clock_mhz";
pub const GPU_POWER_MW: &str = "gpu_power_mw";
pub const GPU_TEMPERATURE_C: &str = "gpu_temperature_c";
pub const GPU_THROTTLE_REASONS: &str = "gpu_throttle_reasons";
pub const GPU_PCIE_LINK_GEN: &str = "gpu_pcie_link_gen";
pub const GPU_PCIE_LINK_WIDTH: &str = "gpu_pcie_link_width";
pub const GPU_PCIE_RX_BYTES_PER_S: &str = "gpu_pcie_rx_bytes_per_s";
pub const GPU_PCIE_TX_BYTES_PER_S: &str = "gpu_pcie_tx_bytes_per_s";
pub const GPU_ECC_CORRECTED: &str = "gpu_ecc_corrected";
pub const GPU_ECC_UNCORRECTED: &str = "gpu_ecc_uncorrected";

// Of a file of torch.profiler.
pub const TORCH_ALLOCATED_BYTES: &str = "torch_allocated_bytes";
pub const TORCH_RESERVED_BYTES: &str = "torch_reserved_bytes";

/// Bytes on each NUMA node. Counters have fixed names; machines with more nodes are seen as far as these go.
pub const NUMA_NODE_BYTES: [&str; 16] = [
    "numa_node0_bytes",
    "numa_node1_bytes",
    "numa_node2_bytes",
    "numa_node3_bytes",
    "numa_node4_bytes",
    "numa_node5_bytes",
    "numa_node6_bytes",
    "numa_node7_bytes",
    "numa_node8_bytes",
    "numa_node9_bytes",
    "numa_node10_bytes",
    "numa_node11_bytes",
    "numa_node12_bytes",
    "numa_node13_bytes",
    "numa_node14_bytes",
    "numa_node15_bytes",
];
