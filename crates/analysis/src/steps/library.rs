//! Ranges that libraries mark for themselves: they repeat as well as steps do, and are parts of one. Known by the NVTX domain that
//! a library gives its ranges, and by the names of those that stand in no domain. One that is not known here still has to explain
//! the recording (see `score`).

/// Domains, in small letters and without a leading "lib".
const DOMAINS: [&str; 46] = [
    "nccl",
    "rccl",
    "nvshmem",
    "ucx",
    "ucp",
    "nixl",
    "mpi",
    "cccl",
    "cub",
    "thrust",
    "tsl",
    "xla",
    "cudnn",
    "cublas",
    "cublaslt",
    "cusparse",
    "cusparselt",
    "cusolver",
    "cufft",
    "curand",
    "cutensor",
    "cutensornet",
    "custatevec",
    "cutlass",
    "cudss",
    "tensorrt",
    "cufile",
    "gds",
    "kvikio",
    "cudf",
    "rmm",
    "raft",
    "cuml",
    "cuvs",
    "cugraph",
    "cuspatial",
    "cucim",
    "dali",
    "nvjpeg",
    "nvimgcodec",
    "npp",
    "nvcomp",
    "openacc",
    "openmp",
    "osrt",
    "cupti",
];

/// What names of operators and of a library's own regions begin with, in no domain or written by torch.profiler.
const NAMES: [&str; 33] = [
    "aten::",
    "autograd::",
    "torch::",
    "torch.",
    "prims::",
    "prim::",
    "quantized::",
    "torchvision::",
    "c10",
    "nccl",
    "gloo:",
    "mpi:",
    "FSDP::",
    "FullyShardedDataParallel.",
    "DistributedDataParallel.",
    "DataParallel.",
    "Optimizer.",
    "enumerate(DataLoader)",
    "Torch-Compiled Region",
    "## Call CompiledFxGraph",
    "CompiledFunction",
    "TorchDynamo",
    "Pregraph bytecode",
    "PyTorch Profiler",
    "record_param_comms",
    "cub::",
    "thrust::",
    "cudnn",
    "cublas",
    "XlaModule",
    "Xla",
    "Thunk:",
    "TSL:",
];

pub fn is_domain(domain: &str) -> bool {
    let small = domain.to_ascii_lowercase();
    let bare = small.strip_prefix("lib").unwrap_or(&small);
    // "cudnn_frontend" is cuDNN's, "rafting" is not RAFT's.
    let whole = |rest: &str| !rest.starts_with(|letter: char| letter.is_ascii_alphabetic());
    DOMAINS.iter().any(|known| bare.strip_prefix(known).is_some_and(whole))
}

pub fn is_range(name: &str) -> bool {
    NAMES.iter().any(|start| name.starts_with(start))
}

/// The domain that stands in the arguments of an NVTX range, as JSON writes it.
pub fn domain(args: &str) -> Option<&str> {
    let after = args.split_once("\"domain\":")?.1.trim_start().strip_prefix('"')?;
    let mut escaped = false;
    let ends = |letter: char| {
        let ends = letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
        ends
    };
    Some(&after[..after.find(ends)?]).filter(|domain| !domain.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_of_libraries_are_known_however_they_are_written() {
        for domain in ["NCCL", "CCCL", "TSL", "cuDNN", "libcudf", "libkvikio", "cudnn_frontend", "cuBLASLt", "TensorRT"]
        {
            assert!(is_domain(domain), "{domain}");
        }
        for domain in ["", "serving", "rafting", "my nccl", "library", "Xlab"] {
            assert!(!is_domain(domain), "{domain}");
        }
    }

    #[test]
    fn ranges_of_libraries_are_known_by_how_they_begin() {
        assert!(
            ["ncclAllReduce", "nccl:all_reduce", "aten::mm", "XlaModule:#hlo_module=jit_f#"]
                .iter()
                .all(|n| is_range(n))
        );
        assert!(!["forward", "request", "generate aten::"].iter().any(|name| is_range(name)));
    }

    #[test]
    fn the_domain_is_read_from_the_arguments() {
        assert_eq!(domain(r#"{"domain":"NCCL","category":3}"#), Some("NCCL"));
        assert_eq!(domain(r#"{"category":3, "domain": "a \"b\" c"}"#), Some(r#"a \"b\" c"#));
        assert_eq!(domain(r#"{"domain":""}"#), None);
        assert_eq!(domain(r#"{"domain":"never closed"#), None);
        assert_eq!(domain(r#"{"domain":7}"#), None);
    }
}
