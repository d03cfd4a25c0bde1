//! The rules, one a file, in a folder by family, and the page that documents them all.

pub(crate) mod communication;
pub(crate) mod compute;
pub(crate) mod copies;
pub(crate) mod health;
pub(crate) mod host;
pub(crate) mod launch;
pub(crate) mod serving;

use crate::rule::Rule;
use crate::rule_code::RuleCode;

/// All of them. The order is that of the page: what the program can change first, the health of the profile last.
pub static RULES: [&dyn Rule; 72] = [
    &launch::host_wait::HostWait,
    &launch::launch_bound::LaunchBound,
    &launch::queue_never_builds::QueueNeverBuilds,
    &launch::launch_queue_full::LaunchQueueFull,
    &launch::short_kernel_gaps::ShortKernelGaps,
    &launch::graph_not_used::GraphNotUsed,
    &launch::graph_input_copies::GraphInputCopies,
    &launch::graph_breaks::GraphBreaks,
    &launch::module_loading::ModuleLoading,
    &launch::compile_in_request::CompileInRequest,
    &copies::pageable_async_copy::PageableAsyncCopy,
    &copies::sync_memcpy::SyncMemcpy,
    &copies::sync_memset::SyncMemset,
    &copies::sync_api::SyncApi,
    &copies::implicit_sync::ImplicitSync,
    &copies::many_small_copies::ManySmallCopies,
    &copies::copies_exposed::CopiesExposed,
    &copies::h2d_spike::H2dSpike,
    &copies::created_on_cpu::CreatedOnCpu,
    &copies::pcie_saturated::PcieSaturated,
    &copies::low_pcie_bandwidth::LowPcieBandwidth,
    &copies::logits_to_host::LogitsToHost,
    &host::preprocess_before_first_kernel::PreprocessBeforeFirstKernel,
    &host::postprocess_tail::PostprocessTail,
    &host::single_threaded_loader::SingleThreadedLoader,
    &host::input_pipeline::InputPipeline,
    &serving::no_request_waiting::NoRequestWaiting,
    &host::python_loop_over_tensors::PythonLoopOverTensors,
    &compute::compute_bound::ComputeBound,
    &compute::memory_bandwidth_bound::MemoryBandwidthBound,
    &compute::tf32_off::Tf32Off,
    &compute::tensor_cores_unused::TensorCoresUnused,
    &compute::fp32_share::Fp32Share,
    &compute::unaligned_matmul::UnalignedMatmul,
    &compute::attention_fallback::AttentionFallback,
    &compute::unfused_elementwise::UnfusedElementwise,
    &compute::known_fusion_missing::KnownFusionMissing,
    &compute::below_roofline::BelowRoofline,
    &compute::conv_layout::ConvLayout,
    &compute::low_occupancy::LowOccupancy,
    &compute::kernel_drift::KernelDrift,
    &compute::layer_outlier::LayerOutlier,
    &compute::gpu_shared::GpuShared,
    &compute::kernel_hotspot::KernelHotspot,
    &compute::throttled::Throttled,
    &communication::comm_share::CommShare,
    &communication::comm_exposed::CommExposed,
    &communication::collectives_serialized::CollectivesSerialized,
    &communication::straggler_rank::StragglerRank,
    &communication::bus_bandwidth_low::BusBandwidthLow,
    &communication::wrong_backend::WrongBackend,
    &communication::data_parallel::DataParallel,
    &serving::sampler_share::SamplerShare,
    &serving::prefill_blocks_decode::PrefillBlocksDecode,
    &serving::scheduler_gap::SchedulerGap,
    &host::hot_line::HotLine,
    &host::waits_in_step::WaitsInStep,
    &host::gil_contention::GilContention,
    &host::event_loop_blocked::EventLoopBlocked,
    &host::gc_pauses::GcPauses,
    &host::logging_in_step::LoggingInStep,
    &host::launch_thread_descheduled::LaunchThreadDescheduled,
    &host::cpu_oversubscribed::CpuOversubscribed,
    &host::cpu_memory_pressure::CpuMemoryPressure,
    &host::wrong_numa_node::WrongNumaNode,
    &health::no_steps_found::NoStepsFound,
    &health::warmup_in_window::WarmupInWindow,
    &health::unstable_iterations::UnstableIterations,
    &health::dropped_records::DroppedRecords,
    &health::work_from_before_window::WorkFromBeforeWindow,
    &health::clock_residual::ClockResidual,
    &health::overhead_in_window::OverheadInWindow,
];

/// The rule of this code; None for rules of the user.
pub fn find(code: RuleCode) -> Option<&'static dyn Rule> {
    RULES.into_iter().find(|rule| rule.code() == code)
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
         This page is made from the rules' own documentation: `cargo run -p inferscope-diagnosis --example rules_page > docs/rules.md`.\n\n\
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
    page + &crate::measures::reach::page()
}
