//! The rules, one a file, and the page that documents them all.

mod attention_fallback;
mod below_roofline;
mod bus_bandwidth_low;
mod calls_in_steps;
mod clock_residual;
mod collectives;
mod collectives_serialized;
mod comm_exposed;
mod comm_share;
mod compile_in_request;
mod compute_bound;
mod conv_layout;
mod copies_exposed;
mod cpu_memory_pressure;
mod cpu_oversubscribed;
mod created_on_cpu;
mod data_parallel;
pub(crate) mod dropped_records;
mod engine_steps;
mod event_loop_blocked;
mod fp32_share;
mod gap;
mod gc_pauses;
mod gil_contention;
mod gpu_shared;
mod graph_breaks;
mod graph_input_copies;
mod graph_not_used;
mod h2d_spike;
mod host_wait;
mod hot_line;
mod implicit_sync;
mod input_pipeline;
mod kernel_drift;
mod kernel_hotspot;
mod known_fusion_missing;
mod launch_bound;
mod launch_queue_full;
mod launch_thread_descheduled;
mod layer_outlier;
mod logging_in_step;
mod logits_to_host;
mod low_occupancy;
mod low_pcie_bandwidth;
mod many_small_copies;
mod memory_bandwidth_bound;
mod module_loading;
mod no_request_waiting;
mod no_steps_found;
mod on_path;
mod overhead_in_window;
mod pageable_async_copy;
pub(crate) mod pcie_saturated;
mod postprocess_tail;
mod prefill_blocks_decode;
mod preprocess_before_first_kernel;
mod python_loop_over_tensors;
mod queue_never_builds;
mod roofline;
mod sampler_share;
mod scheduler_gap;
mod short_kernel_gaps;
mod single_threaded_loader;
mod straggler_rank;
mod sync_api;
mod sync_memcpy;
mod sync_memset;
mod tensor_cores_unused;
mod tf32_off;
mod throttled;
mod unaligned_matmul;
mod unfused_elementwise;
mod unstable_iterations;
pub(crate) mod waits_in_step;
mod warmup_in_window;
mod work_from_before_window;
mod wrong_backend;
mod wrong_numa_node;

use crate::rule::Rule;

/// All of them. The order is that of the page: what the program can change first, the health of the profile last.
pub static RULES: [&dyn Rule; 72] = [
    &host_wait::HostWait,
    &launch_bound::LaunchBound,
    &queue_never_builds::QueueNeverBuilds,
    &launch_queue_full::LaunchQueueFull,
    &short_kernel_gaps::ShortKernelGaps,
    &graph_not_used::GraphNotUsed,
    &graph_input_copies::GraphInputCopies,
    &graph_breaks::GraphBreaks,
    &module_loading::ModuleLoading,
    &compile_in_request::CompileInRequest,
    &pageable_async_copy::PageableAsyncCopy,
    &sync_memcpy::SyncMemcpy,
    &sync_memset::SyncMemset,
    &sync_api::SyncApi,
    &implicit_sync::ImplicitSync,
    &many_small_copies::ManySmallCopies,
    &copies_exposed::CopiesExposed,
    &h2d_spike::H2dSpike,
    &created_on_cpu::CreatedOnCpu,
    &pcie_saturated::PcieSaturated,
    &low_pcie_bandwidth::LowPcieBandwidth,
    &logits_to_host::LogitsToHost,
    &preprocess_before_first_kernel::PreprocessBeforeFirstKernel,
    &postprocess_tail::PostprocessTail,
    &single_threaded_loader::SingleThreadedLoader,
    &input_pipeline::InputPipeline,
    &no_request_waiting::NoRequestWaiting,
    &python_loop_over_tensors::PythonLoopOverTensors,
    &compute_bound::ComputeBound,
    &memory_bandwidth_bound::MemoryBandwidthBound,
    &tf32_off::Tf32Off,
    &tensor_cores_unused::TensorCoresUnused,
    &fp32_share::Fp32Share,
    &unaligned_matmul::UnalignedMatmul,
    &attention_fallback::AttentionFallback,
    &unfused_elementwise::UnfusedElementwise,
    &known_fusion_missing::KnownFusionMissing,
    &below_roofline::BelowRoofline,
    &conv_layout::ConvLayout,
    &low_occupancy::LowOccupancy,
    &kernel_drift::KernelDrift,
    &layer_outlier::LayerOutlier,
    &gpu_shared::GpuShared,
    &kernel_hotspot::KernelHotspot,
    &throttled::Throttled,
    &comm_share::CommShare,
    &comm_exposed::CommExposed,
    &collectives_serialized::CollectivesSerialized,
    &straggler_rank::StragglerRank,
    &bus_bandwidth_low::BusBandwidthLow,
    &wrong_backend::WrongBackend,
    &data_parallel::DataParallel,
    &sampler_share::SamplerShare,
    &prefill_blocks_decode::PrefillBlocksDecode,
    &scheduler_gap::SchedulerGap,
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
    &no_steps_found::NoStepsFound,
    &warmup_in_window::WarmupInWindow,
    &unstable_iterations::UnstableIterations,
    &dropped_records::DroppedRecords,
    &work_from_before_window::WorkFromBeforeWindow,
    &clock_residual::ClockResidual,
    &overhead_in_window::OverheadInWindow,
];

/// Whether the rule with this code says that something is as it should be.
pub fn finds_health(code: &str) -> bool {
    RULES.iter().any(|rule| rule.code() == code && rule.finds_health())
}

/// docs/rules.md, made from the rules themselves.
pub fn page() -> String {
    let mut page = String::from(
        "# The rules\n\n\
         Every rule looks at every recording; none looks at what another said. What they find is ranked by what the step would \
         gain. A rule that lacks what it needs abstains, and the report says why. Gains are computed from the recording: shares \
         that come from samples carry Wilson's 95 % interval, widened where samples of one step resemble each other; measured \
         times carry their spread over the steps. A gain of which only bounds are known, or whose middle was seen elsewhere, says so: \
         [what gains and confidences rest on](whatif.md#the-gains-of-findings).\n\n\
         This page is made from the rules' own documentation: `cargo run -p inferscope-analysis --example rules_page > docs/rules.md`.\n\n\
         | rule | finds |\n|---|---|\n",
    );
    for rule in RULES {
        page += &format!("| [`{0}`](#{0}) | {1} |\n", rule.code(), rule.docs().summary);
    }
    for rule in RULES {
        let docs = rule.docs();
        page += &format!(
            "\n## {}\n\n{}\n\n{}\n\n**Needs:** {}\n\n```text\n{}\n```\n",
            rule.code(),
            docs.summary,
            docs.why,
            docs.needs,
            docs.example
        );
    }
    page + &crate::peaks::page()
}
