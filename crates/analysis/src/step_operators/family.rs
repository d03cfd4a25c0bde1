//! What sort of work an operator is, by its name: what would make it faster depends on that.

/// Names are those of PyTorch's dispatcher; what is none of these has no advice of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Family {
    /// Matrix products and convolutions.
    Product,
    Attention,
    /// Picks rows of a table.
    Lookup,
    /// Reads and writes every element once: activations, normalisations, arithmetic.
    Elementwise,
    /// Reads overlapping windows of an image: pooling, interpolation.
    Window,
    /// Moves or converts data.
    Copy,
    Other,
}

impl Family {
    pub fn of(name: &str) -> Family {
        let Some(name) = name.rsplit("::").next().filter(|_| name.contains("::")) else { return Family::Other };
        // In place it is the same work.
        let name = name.strip_suffix('_').unwrap_or(name);
        match name {
            _ if name.contains("backward") => Family::Other,
            _ if name.trim_start_matches('_').starts_with("scaled_dot_product_") => Family::Attention,
            _ if name.contains("pool") || name.starts_with("upsample_") || name.starts_with("grid_sampler") => {
                Family::Window
            }
            _ if name.contains("convolution") || name.starts_with("conv") => Family::Product,
            "mm" | "bmm" | "addmm" | "baddbmm" | "addbmm" | "addmv" | "mv" | "dot" | "linear" | "matmul"
            | "_addmm_activation" | "mkldnn_linear" | "_scaled_mm" => Family::Product,
            "embedding"
            | "_embedding_bag"
            | "_embedding_bag_forward_only"
            | "embedding_bag"
            | "index"
            | "index_select"
            | "gather"
            | "take"
            | "take_along_dim"
            | "scatter"
            | "scatter_add"
            | "index_put"
            | "_index_put_impl"
            | "index_add" => Family::Lookup,
            "copy" | "clone" | "contiguous" | "_to_copy" | "to" | "cat" | "stack" | "repeat" | "constant_pad_nd"
            | "roll" | "flip" | "_reshape_copy" | "reshape" => Family::Copy,
            "add"
            | "sub"
            | "rsub"
            | "mul"
            | "div"
            | "addcmul"
            | "addcdiv"
            | "pow"
            | "neg"
            | "exp"
            | "log"
            | "sqrt"
            | "rsqrt"
            | "abs"
            | "sin"
            | "cos"
            | "erf"
            | "tanh"
            | "sigmoid"
            | "relu"
            | "gelu"
            | "silu"
            | "mish"
            | "elu"
            | "leaky_relu"
            | "hardtanh"
            | "hardswish"
            | "hardsigmoid"
            | "clamp"
            | "clamp_min"
            | "clamp_max"
            | "where"
            | "masked_fill"
            | "eq"
            | "ne"
            | "gt"
            | "ge"
            | "lt"
            | "le"
            | "maximum"
            | "minimum"
            | "softplus"
            | "_softmax"
            | "_log_softmax"
            | "_safe_softmax"
            | "native_layer_norm"
            | "native_group_norm"
            | "softmax"
            | "log_softmax"
            | "layer_norm"
            | "group_norm"
            | "batch_norm"
            | "rms_norm"
            | "instance_norm"
            | "native_batch_norm"
            | "_native_batch_norm_legit_no_training"
            | "_fused_rms_norm"
            | "bitwise_and"
            | "bitwise_or"
            | "bitwise_not"
            | "logical_not"
            | "logical_and"
            | "logical_or" => Family::Elementwise,
            _ => Family::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_the_name_of_the_operator() {
        for (name, family) in [
            ("aten::addmm", Family::Product),
            ("aten::convolution", Family::Product),
            ("mkldnn::_convolution_pointwise", Family::Product),
            ("aten::_scaled_dot_product_flash_attention_for_cpu", Family::Attention),
            ("aten::scaled_dot_product_attention", Family::Attention),
            ("aten::max_pool2d_with_indices", Family::Window),
            ("aten::layer_norm", Family::Elementwise),
            ("aten::embedding", Family::Lookup),
            ("aten::relu_", Family::Elementwise),
            ("aten::native_layer_norm", Family::Elementwise),
            ("aten::_to_copy", Family::Copy),
            ("aten::convolution_backward", Family::Other),
            ("my_ops::quantum", Family::Other),
            ("add", Family::Other),
        ] {
            assert_eq!(Family::of(name), family, "{name}");
        }
    }
}
