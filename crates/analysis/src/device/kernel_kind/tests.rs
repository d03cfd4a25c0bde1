//! What names say, by names that were recorded.

use super::*;

#[test]
fn names_of_libraries_say_what_they_compute_and_how() {
    use Class::*;
    use Math::*;
    for (name, class, math, tensor_cores, unaligned) in [
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x128x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
            Matmul,
            Some(F32),
            Some(false),
            Some(false),
        ),
        (
            "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
            Matmul,
            Some(Tf32),
            Some(true),
            None,
        ),
        (
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
            Matmul,
            Some(Bf16),
            Some(true),
            None,
        ),
        (
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2::Params)",
            Matmul,
            Some(Bf16),
            Some(true),
            Some(true),
        ),
        (
            "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(x)",
            Matmul,
            Some(Bf16),
            Some(true),
            Some(false),
        ),
        (
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(x)",
            Matmul,
            Some(Tf32),
            Some(true),
            Some(true),
        ),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn", Matmul, Some(F16), Some(true), None),
        ("volta_sgemm_128x32_nt", Matmul, Some(F32), Some(false), None),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(x)",
            Matmul,
            Some(F32),
            Some(false),
            Some(true),
        ),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", Matmul, Some(Bf16), Some(true), None),
        ("nvjet_hsh_64x8_64x16_4x1_v_bz_TNN", Matmul, Some(F16), Some(true), None),
        ("nvjet_sss_128x128_32x5_h_bz_TNN", Matmul, Some(Tf32), Some(true), None),
        ("nvjet_qqtst_128x128_128x6_1x2_h_bz_TNT", Matmul, Some(F8), Some(true), None),
        (
            "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x32_MI16x16x1_SN_LDSB1",
            Matmul,
            Some(Bf16),
            Some(true),
            None,
        ),
        (
            "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, cublasGemvTensorStridedBatched<float const>>(x)",
            Gemv,
            Some(F32),
            Some(false),
            None,
        ),
        (
            "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_tensor16x8x8_alignc4_execute_kernel_cudnn",
            Convolution,
            Some(Tf32),
            Some(true),
            None,
        ),
        ("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)", Attention, Some(F32), None, None),
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t>>(x)",
            Attention,
            Some(Bf16),
            Some(true),
            None,
        ),
    ] {
        let kind = Kind::of(name);
        assert_eq!(
            (kind.class, kind.math, kind.tensor_cores, kind.unaligned()),
            (class, math, tensor_cores, unaligned),
            "{name}"
        );
    }
}

#[test]
fn what_pytorch_itself_runs() {
    use Class::*;
    for (name, class, math) in [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)",
            Elementwise,
            Some(Math::Bf16),
        ),
        (
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>>(int)",
            Copy,
            None,
        ),
        (
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float)",
            Norm,
            Some(Math::F32),
        ),
        (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>(float*)",
            Softmax,
            Some(Math::F32),
        ),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(x)",
            Choose,
            Some(Math::F32),
        ),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::Half, sum_functor>>(x)",
            Reduction,
            Some(Math::F16),
        ),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Collective, Some(Math::Bf16)),
        ("triton_poi_fused_add_gelu_0", Elementwise, None),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(x)", Layout, Some(Math::F32)),
        (
            "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2>(x)",
            Gather,
            Some(Math::Bf16),
        ),
        ("spin_kernel(long)", Other, None),
        ("", Other, None),
    ] {
        let kind = Kind::of(name);
        assert_eq!((kind.class, kind.math), (class, math), "{name}");
    }
}

#[test]
fn tiles_are_the_result_and_not_the_instruction() {
    for (name, tile) in [
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", Some(8)),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_32x5_nn", Some(64)),
        ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x64_64x6_tn_align8", Some(64)),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x128x8_stage3", Some(64)),
        ("Cijk_Alik_Bljk_BBS_BH_UserArgs_MT256x16x64_MI16x16x1_SN", Some(16)),
        ("volta_sgemm_32x32_sliced1x4_tn", Some(32)),
        ("vectorized_elementwise_kernel", None),
    ] {
        assert_eq!(Kind::of(name).tile, tile, "{name}");
    }
}
