//! What one call of an operator costs at the least: operations and bytes, from the sizes and types of its arguments.

use super::args;
use crate::device::kernel_kind::Math;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum What {
    Matmul,
    Convolution,
    Attention,
    /// Reads its tensors and writes one.
    Stream,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    pub what: What,
    pub math: Math,
    /// Of one call.
    pub flops: f64,
    pub bytes: f64,
    /// Of a matrix product: rows and columns of the result, and what is summed over.
    pub sides: Option<[u64; 3]>,
}

impl What {
    pub fn of(name: &str) -> Option<What> {
        let plain = name.strip_prefix("aten::").map(|plain| plain.strip_suffix('_').unwrap_or(plain));
        match plain {
            None if name.contains("gemm_a16w16") => Some(What::Matmul),
            None => None,
            Some("mm" | "addmm" | "bmm" | "baddbmm" | "linear" | "addmm_activation" | "scaled_mm") => {
                Some(What::Matmul)
            }
            Some(plain) if ["_addmm_activation", "_scaled_mm"].contains(&plain) => Some(What::Matmul),
            Some("cudnn_convolution" | "miopen_convolution" | "convolution" | "_convolution" | "conv2d") => {
                Some(What::Convolution)
            }
            Some(plain)
                if plain.starts_with("_scaled_dot_product_")
                    && !plain.ends_with("_math")
                    && !plain.contains("backward") =>
            {
                Some(What::Attention)
            }
            Some(
                "add" | "sub" | "mul" | "div" | "gelu" | "relu" | "silu" | "sigmoid" | "tanh" | "exp" | "pow" | "clamp"
                | "clamp_min" | "neg" | "sqrt" | "rsqrt" | "abs" | "sin" | "cos" | "erf" | "masked_fill"
                | "native_layer_norm" | "_softmax" | "cudnn_batch_norm" | "native_batch_norm",
            ) => Some(What::Stream),
            _ => None,
        }
    }
}

/// The cost and the shapes in words. None: the arguments do not say it.
pub fn of(what: What, name: &str, text: &str) -> Option<(Cost, String)> {
    let (dims, types) = (args::dims(text), args::types(text));
    let tensors: Vec<&Vec<u64>> = dims.iter().filter(|dims| !dims.is_empty()).collect();
    let shapes = tensors.iter().map(|dims| format!("{dims:?}")).collect::<Vec<_>>().join(" ");
    let math = types.iter().find_map(|one| Math::of_type(one))?;
    let size = f64::from(math.bytes());
    let count = |dims: &[u64]| dims.iter().map(|side| *side as f64).product::<f64>();
    let (flops, bytes, sides) = match what {
        What::Matmul => {
            let [batch, m, k, n] = product(name, &dims)?;
            let b = batch as f64;
            let (mf, kf, nf) = (m as f64, k as f64, n as f64);
            (2.0 * b * mf * kf * nf, size * b * (mf * kf + kf * nf + mf * nf), Some([m, n, k]))
        }
        What::Convolution => {
            let (flops, elements) = convolution(name, &dims, text)?;
            (flops, size * elements, None)
        }
        What::Attention => {
            let [query, key, value] = [dims.first()?, dims.get(1)?, dims.get(2)?];
            let [.., heads, rows, width] = query[..] else { return None };
            let [.., keys, _] = key[..] else { return None };
            let outer: f64 = count(&query[..query.len() - 3]) * heads as f64;
            let causal = args::scalars(text).contains(&"True");
            let flops = 4.0 * outer * rows as f64 * keys as f64 * width as f64 * if causal { 0.5 } else { 1.0 };
            (flops, size * (2.0 * count(query) + count(key) + count(value)), None)
        }
        What::Stream => {
            let all: f64 = tensors.iter().map(|dims| count(dims)).sum();
            let result = result(&tensors)
                .map_or_else(|| tensors.iter().map(|dims| count(dims)).fold(0.0, f64::max), |sides| count(&sides));
            (result, size * (all + result), None)
        }
    };
    let usable = flops.is_finite() && bytes > 0.0 && flops > 0.0;
    usable.then_some((Cost { what, math, flops, bytes, sides }, shapes))
}

/// The sizes that tensors are stretched to where they meet, last sides first to meet: a column and a row give a whole matrix. None: they do not
/// fit, as the weights of a normalisation over other sides.
fn result(tensors: &[&Vec<u64>]) -> Option<Vec<u64>> {
    let sides = tensors.iter().map(|dims| dims.len()).max()?;
    let side = |from_last: usize| {
        let met = tensors.iter().filter_map(|dims| dims.len().checked_sub(from_last + 1).map(|at| dims[at]));
        met.filter(|side| *side != 1).try_fold(1, |all, side| (all == 1 || all == side).then_some(side))
    };
    (0..sides).map(side).collect()
}

/// Batch, rows, inner side and columns of a matrix product.
fn product(name: &str, dims: &[Vec<u64>]) -> Option<[u64; 4]> {
    let get = |place: usize| dims.get(place).map(Vec::as_slice);
    let plain = name.trim_start_matches("aten::");
    let (a, b) = match plain {
        "addmm" | "baddbmm" | "_addmm_activation" | "addmm_" => (get(1)?, get(2)?),
        _ => (get(0)?, get(1)?),
    };
    match (a, b) {
        // Weights lie as [columns, inner side].
        ([outer @ .., k], [n, _]) if plain == "linear" || plain.contains("gemm_a16w16") => {
            Some([1, outer.iter().fold(1, |all, side| u64::saturating_mul(all, *side)), *k, *n])
        }
        ([m, k], [_, n]) => Some([1, *m, *k, *n]),
        ([batch, m, k], [_, _, n]) => Some([*batch, *m, *k, *n]),
        _ => None,
    }
}

/// Operations, and elements read and written.
fn convolution(name: &str, dims: &[Vec<u64>], text: &str) -> Option<(f64, f64)> {
    let sizes = |place: usize| <[u64; 4]>::try_from(dims.get(place)?.as_slice()).ok();
    let ([batch, channels, height, width], [out, per_group, rows, columns]) = (sizes(0)?, sizes(1)?);
    let scalars = args::scalars(text);
    let side = |place: usize| scalars.get(place).and_then(|text| args::sides(text));
    // The vendors' calls have no bias before them, and padding first.
    let (stride, padding) = if name.contains("cudnn") || name.contains("miopen") {
        (side(3).or_else(|| side(2)), side(2))
    } else {
        (side(3), side(4))
    };
    let (stride, padding) = (stride?, padding.unwrap_or([0, 0]));
    let result = |size: u64, kernel: u64, at: usize| {
        size.saturating_add(padding[at].saturating_mul(2))
            .checked_sub(kernel)
            .map(|left| (left / stride[at].max(1)).saturating_add(1))
    };
    let (high, wide) = (result(height, rows, 0)? as f64, result(width, columns, 1)? as f64);
    let results = batch as f64 * out as f64 * high * wide;
    let product = |sides: [u64; 3]| sides.iter().map(|side| *side as f64).product::<f64>();
    let each = product([per_group, rows, columns]);
    let inputs = batch as f64 * product([channels, height, width]);
    Some((2.0 * results * each, inputs + out as f64 * each + results))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(name: &str, dims: &str, kind: &str, scalars: &str) -> Option<Cost> {
        let text = format!(r#"{{"Input Dims":{dims},"Input type":["{kind}","{kind}"],"Concrete Inputs":{scalars}}}"#);
        of(What::of(name)?, name, &text).map(|one| one.0)
    }

    #[test]
    fn products_of_matrices() {
        let half = "c10::BFloat16";
        let mm = cost("aten::mm", "[[128,256],[256,64]]", half, "[]").unwrap();
        assert_eq!(
            (mm.flops, mm.bytes, mm.sides),
            (2.0 * 128.0 * 256.0 * 64.0, 2.0 * (128.0 * 256.0 + 256.0 * 64.0 + 128.0 * 64.0), Some([128, 64, 256]))
        );
        assert_eq!(
            cost("aten::addmm", "[[512],[141,512],[512,2048]]", half, "[]").unwrap().sides,
            Some([141, 2048, 512])
        );
        assert_eq!(cost("aten::linear", "[[4,10,512],[100,512]]", half, "[]").unwrap().sides, Some([40, 100, 512]));
        assert_eq!(
            cost("aten::bmm", "[[12,50,64],[12,64,50]]", "float", "[]").unwrap().flops,
            2.0 * 12.0 * 50.0 * 64.0 * 50.0
        );
        assert_eq!(cost("aten::mm", "[[128,256]]", half, "[]"), None);
        assert_eq!(cost("aten::mm", "[[2,2],[2,2]]", "long int", "[]"), None);
    }

    #[test]
    fn convolutions_attention_and_streams() {
        let conv = cost(
            "aten::conv2d",
            "[[4,3,224,224],[768,3,16,16],[768]]",
            "float",
            r#"["","","","[16, 16]","[0, 0]","[1, 1]","1"]"#,
        )
        .unwrap();
        assert_eq!(conv.flops, 2.0 * 4.0 * 768.0 * 14.0 * 14.0 * 3.0 * 256.0);
        let vendor = cost(
            "aten::cudnn_convolution",
            "[[4,3,224,224],[768,3,16,16]]",
            "float",
            r#"["","","[0, 0]","[16, 16]","[1, 1]","1"]"#,
        )
        .unwrap();
        assert_eq!(vendor.flops, conv.flops);
        let attention = cost(
            "aten::_scaled_dot_product_flash_attention",
            "[[2,8,128,64],[2,8,256,64],[2,8,256,64]]",
            "c10::Half",
            "[]",
        )
        .unwrap();
        assert_eq!(attention.flops, 4.0 * 2.0 * 8.0 * 128.0 * 256.0 * 64.0);
        assert_eq!(cost("aten::add_", "[[1000],[1000]]", "float", "[]").unwrap().bytes, 12000.0);
        assert_eq!(cost("aten::view", "[[1000]]", "float", "[]"), None);
        // Small ones that are stretched give a large result; weights that lie along another side do not stretch anything.
        assert_eq!(
            cost("aten::mul", "[[16,1,1],[50,100]]", "float", "[]").unwrap().bytes,
            4.0 * (16.0 + 5000.0 + 80000.0)
        );
        assert_eq!(
            cost("aten::native_batch_norm", "[[2,3,8,8],[3]]", "float", "[]").unwrap().bytes,
            4.0 * (384.0 + 3.0 + 384.0)
        );
    }
}
