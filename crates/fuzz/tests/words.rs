//! Words that readers know: names, categories and keys that mean something to an import or a rule.

pub const KERNELS: [&str; 12] = [
    "gemm",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
    "ampere_sgemm_128x64_nn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
    "flash_fwd_kernel",
    "softmax_warp_forward",
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "nchwToNhwcKernel",
    "triton_poi_fused_add_0",
    "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32",
    "indexSelectLargeIndex",
    "",
];

pub const CALLS: [&str; 16] = [
    "cudaLaunchKernel",
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaStreamWaitEvent",
    "cudaEventRecord",
    "cudaMemcpy",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaMalloc",
    "cudaFree",
    "cudaGraphLaunch",
    "cudaStreamBeginCapture",
    "cuModuleLoadData",
    "hipLaunchKernel",
    "cuLaunchKernelEx",
];

pub const HOST: [&str; 20] = [
    "ProfilerStep#1",
    "ProfilerStep#2",
    "execute_context_1(512)_generation_3(3)",
    "step[DECODE bs=3]",
    "aten::mm",
    "aten::addmm",
    "aten::conv2d",
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_attention_math",
    "aten::item",
    "aten::copy_",
    "aten::nonzero",
    "nn.Module: Linear_0",
    "app/serve.py(12): tokenise",
    "/usr/lib/python3.12/logging/__init__.py(1500): info",
    "torch/_dynamo/convert_frame.py(5): compile",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "record_param_comms",
    "## Call CompiledFxGraph ##",
    "request",
];

pub const COPIES: [&str; 6] = [
    "Memcpy HtoD (Pageable -> Device)",
    "Memcpy HtoD (Pinned -> Device)",
    "Memcpy DtoH (Device -> Pageable)",
    "Memcpy DtoD (Device -> Device)",
    "Memcpy PtoP (Device -> Device)",
    "Memset (Device)",
];

/// Of torch.profiler, of all ages.
pub const CATEGORIES: [&str; 18] = [
    "kernel",
    "Kernel",
    "gpu_memcpy",
    "gpu_memset",
    "cuda_runtime",
    "Runtime",
    "cuda_driver",
    "cuda_sync",
    "cpu_op",
    "python_function",
    "user_annotation",
    "gpu_user_annotation",
    "ac2g",
    "async_cpu_to_gpu",
    "fwdbwd",
    "overhead",
    "cpu_instant_event",
    "Trace",
];
