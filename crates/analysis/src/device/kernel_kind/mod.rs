//! What a kernel's name tells: what it computes, in which type, with tensor cores or without, and how its operands are aligned. Names are
//! the libraries' own (cuBLAS, cuDNN, CUTLASS, PyTorch, Triton, rocBLAS); what a name does not say is not guessed.

mod math;

pub use math::Math;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Class {
    Matmul,
    /// A matrix times a vector or a few: limited by memory whatever the type.
    Gemv,
    Convolution,
    /// Fused attention.
    Attention,
    Softmax,
    Norm,
    Elementwise,
    Reduction,
    /// Copies, concatenations and conversions inside the device.
    Copy,
    /// Between the layouts of images.
    Layout,
    /// Sorting, the largest few, random choice: what a sampler does.
    Choose,
    Gather,
    Collective,
    #[default]
    Other,
}

impl Class {
    /// Little arithmetic for each byte: memory sets the pace of large ones.
    pub fn streams(self) -> bool {
        matches!(
            self,
            Class::Softmax
                | Class::Norm
                | Class::Elementwise
                | Class::Reduction
                | Class::Copy
                | Class::Layout
                | Class::Gather
        )
    }
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Kind {
    pub class: Class,
    /// The type of its operands.
    pub math: Option<Math>,
    pub tensor_cores: Option<bool>,
    /// Elements that an operand's rows are aligned to.
    pub align: Option<u32>,
    /// The smaller side of the tile of the result that one block computes.
    pub tile: Option<u32>,
    /// It does what several plain kernels would do: written by a compiler, or for many tensors at once.
    pub fused: bool,
}

impl Kind {
    pub fn of(name: &str) -> Kind {
        let low = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| low.contains(word));
        let class = class(&has);
        let tensor_cores = match class {
            Class::Matmul | Class::Gemv | Class::Convolution | Class::Attention => math::tensor_cores(&has),
            _ => None,
        };
        Kind {
            class,
            math: math::of(name, &low, class, tensor_cores),
            tensor_cores,
            align: number_after(&low, &["_aligna", "_align"]),
            tile: tile(&low),
            fused: has(&["triton", "multi_tensor_apply", "foreach"]),
        }
    }

    /// Whether rows lie so that the fastest loads cannot be used. None: the name does not say.
    pub fn unaligned(&self) -> Option<bool> {
        Some(self.align? < 16 / self.math?.bytes())
    }
}

fn class(has: &dyn Fn(&[&str]) -> bool) -> Class {
    let rules: [(Class, &[&str]); 15] = [
        (
            Class::Collective,
            &[
                "nccl",
                "rccl",
                "all_reduce",
                "allreduce",
                "all_gather",
                "allgather",
                "reduce_scatter",
                "cross_device_reduce",
            ],
        ),
        (
            Class::Attention,
            &[
                "flash_",
                "flash::",
                "flashattn",
                "batchdecodewithpaged",
                "batchprefill",
                "fmha",
                "attn_fwd",
                "paged_attention",
                "unified_attention",
                "native_sdpa",
                "mha_fwd",
            ],
        ),
        (Class::Layout, &["nchwtonhwc", "nhwctonchw", "nchw2nhwc", "nhwc2nchw"]),
        (
            Class::Convolution,
            &[
                "fprop",
                "dgrad",
                "wgrad",
                "implicit_gemm",
                "implicit_convolve",
                "conv2d",
                "conv_depthwise",
                "winograd",
                "scudnn",
                "convolution",
            ],
        ),
        (Class::Gemv, &["gemv", "gemmsn", "gemmk1", "dot_kernel", "splitkreduce"]),
        (Class::Matmul, &["gemm", "nvjet", "cijk_", "matmul", "s16816", "triton_mm", "triton_tem", "bmm_"]),
        (Class::Softmax, &["softmax"]),
        (
            Class::Norm,
            &[
                "layer_norm",
                "layernorm",
                "rms_norm",
                "rmsnorm",
                "batch_norm",
                "bn_fw",
                "group_norm",
                "groupnorm",
                "rowwisemoments",
            ],
        ),
        (
            Class::Choose,
            &[
                "sort",
                "topk",
                "argmax",
                "argmin",
                "argmaxops",
                "multinomial",
                "sampling",
                "cumsum",
                "scan_by_key",
                "devicescan",
                "tensor_kernel_scan",
            ],
        ),
        (
            Class::Copy,
            &[
                "direct_copy",
                "catarraybatchedcopy",
                "copy_kernel",
                "bfloat16_copy",
                "float16_copy",
                "bfloat16tofloat",
                "loadwithcast",
                "transpose",
            ],
        ),
        (Class::Reduction, &["reduce_kernel", "reduce_1block", "triton_red", "triton_per"]),
        (Class::Gather, &["index", "gather", "scatter", "embedding"]),
        (
            Class::Elementwise,
            &[
                "elementwise",
                "triton_poi",
                "foreach",
                "multi_tensor_apply",
                "act_and_mul",
                "rotary",
                "gelu",
                "silu",
                "fillfunctor",
            ],
        ),
        (Class::Norm, &["norm"]),
        (Class::Choose, &["sampler"]),
    ];
    rules.iter().find(|(_, words)| has(words)).map_or(Class::Other, |(class, _)| *class)
}

/// The number right after the first of the words.
fn number_after(text: &str, words: &[&str]) -> Option<u32> {
    let found = words.iter().find_map(|word| {
        text.match_indices(word)
            .map(|(at, word)| &text[at + word.len()..])
            .find(|rest| rest.starts_with(|one: char| one.is_ascii_digit()))
    })?;
    digits(found).0
}

fn digits(text: &str) -> (Option<u32>, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

/// The first word like `128x64`, `tilesize128x64x32` or `mt128x64x32`: the shape of the instruction (`tensor16x8x16`, `mi16x16x1`) is none.
fn tile(text: &str) -> Option<u32> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric()).find_map(|word| {
        let plain = ["tilesize", "mt", "t"].iter().find_map(|start| word.strip_prefix(start)).unwrap_or(word);
        let (first, rest) = digits(plain);
        let (second, _) = digits(rest.strip_prefix('x')?);
        Some(first?.min(second?)).filter(|tile| (4..=512).contains(tile))
    })
}

#[cfg(test)]
mod tests;
