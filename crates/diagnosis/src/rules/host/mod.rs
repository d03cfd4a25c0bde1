//! What the host runs or waits for: hot lines, locks, garbage collection, logging, cores and memory.

pub(crate) mod cpu_memory_pressure;
pub(crate) mod cpu_oversubscribed;
pub(crate) mod event_loop_blocked;
pub(crate) mod gc_pauses;
pub(crate) mod gil_contention;
pub(crate) mod hot_line;
pub(crate) mod launch_thread_descheduled;
pub(crate) mod logging_in_step;
pub(crate) mod waits_in_step;
pub(crate) mod wrong_numa_node;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "host",
    title: "Python and the CPU",
    summary: "What the CPU runs or waits for: hot functions, locks, garbage collection, logging, cores and memory.",
    is_of_recording: false,
    rules: &[
        &hot_line::HotLine,
        &waits_in_step::WaitsInStep,
        &gil_contention::GilContention,
        &event_loop_blocked::EventLoopBlocked,
        &gc_pauses::GcPauses,
        &logging_in_step::LoggingInStep,
        &launch_thread_descheduled::LaunchThreadDescheduled,
        &cpu_oversubscribed::CpuOversubscribed,
        &cpu_memory_pressure::CpuMemoryPressure,
        &wrong_numa_node::WrongNumaNode,
    ],
};
