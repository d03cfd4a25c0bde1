//! What to do in a program without PyTorch, by the code of the rule: CUDA's own calls instead of PyTorch's.

/// Words of PyTorch and of what is built on it.
const WORDS: [&str; 12] = [
    "torch",
    "non_blocking",
    "pin_memory",
    "DataLoader",
    ".item()",
    "tensor.",
    "model.",
    "model =",
    "F.linear",
    "x.to(",
    "async_op",
    "AutoModel",
];

const INSTEAD: [(&str, &[&str]); 29] = [
    (
        "attention-fallback",
        &["Use a fused kernel for attention, in BF16 or FP16: FlashAttention, cuDNN's, or the framework's own."],
    ),
    (
        "collectives-serialized",
        &[
            "Put the buffers together and exchange once; or let NCCL do them at once: ncclGroupStart(); ... ncclGroupEnd();",
        ],
    ),
    (
        "comm-exposed",
        &[
            "Exchange one half while the other is computed: two micro-batches, with the exchange in a stream of its own.",
            "Make it faster where it cannot be hidden: fused with the kernel after it, or through symmetric memory.",
        ],
    ),
    ("compute-bound", &["Or cheaper arithmetic, if the results allow it: FP8 or INT8 kernels of the library."]),
    (
        "conv-layout",
        &["Keep images and filters with their channels last, from the first layer to the last: CUDNN_TENSOR_NHWC."],
    ),
    (
        "copies-exposed",
        &["Copy the next batch while this one is computed: a second stream, pinned memory and cudaMemcpyAsync."],
    ),
    (
        "fp32-share",
        &[
            "Half precision for the whole model: BF16 or FP16 weights and inputs.",
            "Or only where it is safe: products of BF16 matrices, summed up in FP32.",
        ],
    ),
    ("graph-input-copies", &["Write the inputs where the graph reads them: the kernel before it can do that."]),
    (
        "implicit-sync",
        &[
            "Keep the value on the GPU: decide there, by a mask or inside the kernel, instead of on the host.",
            "If the host needs it, read it one step later: cudaMemcpyAsync into pinned memory, and wait for its event then.",
        ],
    ),
    (
        "kernel-hotspot",
        &[
            "See whether it has less to do: a smaller or cheaper type (BF16, FP8), fewer elements, no padding.",
            "See whether a library has a faster one: cuBLASLt, cuDNN, CUTLASS.",
        ],
    ),
    (
        "launch-bound",
        &[
            "Launch the step as one CUDA graph: capture it once with cudaStreamBeginCapture, then cudaGraphLaunch.",
            "Fuse small kernels, by hand or by the framework's compiler.",
        ],
    ),
    (
        "logits-to-host-each-step",
        &[
            "Choose on the GPU and copy only what was chosen: the largest, or a sample, found by a kernel.",
            "Copy into pinned memory with cudaMemcpyAsync, and launch the next work before reading it.",
        ],
    ),
    (
        "low-occupancy",
        &["Or let other work run beside them, in a second stream: parts that do not depend on each other."],
    ),
    (
        "many-small-copies",
        &[
            "Put them together on the host, in one pinned buffer, and copy once.",
            "Make on the device what can be made there: indices, masks, positions.",
        ],
    ),
    (
        "memory-bandwidth-bound",
        &[
            "Go over the data fewer times: put neighbouring operations into one kernel.",
            "Move fewer bytes: BF16 instead of FP32, weights in INT8 or FP8.",
        ],
    ),
    (
        "pageable-async-copy",
        &["Copy from pinned memory: cudaHostAlloc, or cudaHostRegister for a buffer that is there already."],
    ),
    (
        "pcie-saturated",
        &[
            "Send fewer bytes: small types cross as they are, and become floats on the device.",
            "Copy the next batch in a stream of its own while this one is computed: cudaMemcpyAsync from pinned memory.",
        ],
    ),
    ("preprocess-before-first-kernel", &["Do it on the GPU: nvJPEG for images, kernels for the rest."]),
    (
        "python-loop-over-tensors",
        &["Do all rounds in one operation over stacked arrays: a batched product, a mask instead of an if."],
    ),
    (
        "queue-never-builds",
        &[
            "Let the host run ahead: no copy to the host and no synchronisation between the launches of a step.",
            "Make launching cheaper than the work: CUDA graphs.",
        ],
    ),
    (
        "short-kernel-gaps",
        &[
            "Put small kernels together, by hand or with fused operations of the library.",
            "Replay the step as a CUDA graph, whose kernels start closer together: cudaStreamBeginCapture, cudaGraphLaunch.",
        ],
    ),
    (
        "sync-api",
        &[
            "Leave cudaDeviceSynchronize and cudaStreamSynchronize out of the step: a stream runs its work in order by itself.",
            "To measure, record cudaEvent_t and read them after the step; to order two streams, cudaStreamWaitEvent.",
        ],
    ),
    (
        "sync-memcpy",
        &[
            "Copy without waiting: cudaMemcpyAsync in a stream, from and to pinned memory (cudaHostAlloc).",
            "Make data on the device that it is for, instead of copying it there.",
        ],
    ),
    (
        "sync-memset",
        &[
            "Set it in the stream of the work: cudaMemsetAsync.",
            "Or do not set it, where every element is written anyway.",
        ],
    ),
    (
        "tensor-cores-unused",
        &[
            "Use a type that tensor cores have: FP16 or BF16; for FP32 data cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH).",
        ],
    ),
    (
        "tf32-off",
        &[
            "Allow TF32: cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH).",
            "Or use half the bytes as well: BF16 weights and inputs.",
        ],
    ),
    (
        "unaligned-matmul",
        &[
            "Pad the side to a multiple of 64 once, when the model is loaded.",
            "Choose widths, heads and batches that are multiples of 8 (16 for FP8).",
        ],
    ),
    ("unfused-elementwise", &["Put them into one kernel, by hand or by the framework's compiler."]),
    (
        "waits-in-step",
        &[
            "Wait less often: every copy to the host and every synchronisation drains the device, which is then idle until the next launch arrives.",
            "Copy results out with cudaMemcpyAsync into pinned memory, and read them one step later.",
        ],
    ),
];

/// The actions without those of PyTorch; in their place what does the same without it.
pub fn instead(code: &str, actions: &[String]) -> Vec<String> {
    let generic = INSTEAD.iter().find(|(rule, _)| *rule == code).map_or(&[][..], |(_, all)| all);
    let mut fitting = Vec::new();
    let mut said = false;
    for action in actions {
        // Beside other ways there is one of PyTorch, which goes.
        let action = match action.split_once(", torch.set_num_threads") {
            Some((others, _)) => format!("{others}."),
            None => action.clone(),
        };
        if !WORDS.iter().any(|word| action.contains(word)) {
            fitting.push(action);
        } else if !std::mem::replace(&mut said, true) {
            fitting.extend(generic.iter().map(|text| (*text).to_owned()));
        }
    }
    // Advice that needs a translation is better than none.
    if fitting.is_empty() { actions.to_vec() } else { fitting }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::RULES;

    #[test]
    fn the_table_is_of_rules_and_free_of_what_it_replaces() {
        for (code, texts) in INSTEAD {
            assert!(RULES.iter().any(|rule| rule.code() == code), "{code}");
            for text in texts {
                assert!(!WORDS.iter().any(|word| text.contains(word)), "{text}");
            }
        }
    }

    /// These speak only of programs that have been seen to use PyTorch, or of its profiler.
    const ONLY_TORCH: [&str; 10] = [
        "below_roofline",
        "compile_in_request",
        "created_on_cpu",
        "data_parallel",
        "graph_breaks",
        "input_pipeline",
        "known_fusion_missing",
        "overhead_in_window",
        "single_threaded_loader",
        "work_from_before_window",
    ];

    #[test]
    fn no_rule_is_forgotten() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
        let mut seen = 0;
        let inside = |folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let families = inside(folder).filter(|path| path.is_dir());
        for path in families.flat_map(inside).filter(|path| path.is_file()) {
            let (text, name) = (std::fs::read_to_string(&path).unwrap(), path.file_stem().unwrap().to_str().unwrap());
            let rule = text.split("mod tests").next().unwrap();
            // An action stands on a line of its own and begins like a sentence.
            let action =
                |line: &str| line.trim().strip_prefix('"').is_some_and(|text| text.starts_with(char::is_uppercase));
            let torch = |line: &str| action(line) && WORDS.iter().any(|word| line.contains(word));
            let Some(line) = rule.lines().find(|line| torch(line)) else { continue };
            seen += 1;
            let known = INSTEAD.iter().any(|(code, _)| text.contains(&format!("\"{code}\"")));
            let threads = line.contains(", torch.set_num_threads");
            assert!(known || threads || ONLY_TORCH.contains(&name), "{name} advises only PyTorch: {line}");
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn what_is_free_of_it_stays_where_it_is() {
        let said = |code: &str, actions: &[&str]| {
            instead(code, &actions.iter().map(|action| (*action).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(
            said("kernel-hotspot", &["Use torch.bfloat16.", "Or torch.compile(model).", "ncu --set full"]),
            [INSTEAD[9].1[0], INSTEAD[9].1[1], "ncu --set full"]
        );
        let threads = "Let fewer compute at once: OMP_NUM_THREADS=4, torch.set_num_threads(4).";
        assert_eq!(said("cpu-oversubscribed", &[threads]), ["Let fewer compute at once: OMP_NUM_THREADS=4."]);
        assert_eq!(said("data-parallel", &["torchrun serve.py"]), ["torchrun serve.py"]);
    }
}
