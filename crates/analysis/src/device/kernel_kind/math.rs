//! The type in which a kernel computes and whether it uses tensor cores, by its name.

use super::Class;

/// The types of operands that devices have peaks for, in the order of the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Math {
    F64 = 0,
    F32 = 1,
    /// FP32 in memory, rounded for tensor cores.
    Tf32 = 2,
    F16 = 3,
    Bf16 = 4,
    F8 = 5,
    I8 = 6,
}

impl Math {
    /// Of one element in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Math::F64 => 8,
            Math::F32 | Math::Tf32 => 4,
            Math::F16 | Math::Bf16 => 2,
            Math::F8 | Math::I8 => 1,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Math::F64 => "FP64",
            Math::F32 => "FP32",
            Math::Tf32 => "TF32",
            Math::F16 => "FP16",
            Math::Bf16 => "BF16",
            Math::F8 => "FP8",
            Math::I8 => "INT8",
        }
    }

    /// As PyTorch's profiler writes the type of a tensor.
    pub fn of_type(text: &str) -> Option<Math> {
        Some(match text {
            "float" => Math::F32,
            "double" => Math::F64,
            "c10::Half" => Math::F16,
            "c10::BFloat16" => Math::Bf16,
            "signed char" => Math::I8,
            _ if text.starts_with("c10::Float8") => Math::F8,
            _ => return None,
        })
    }
}

pub fn of(name: &str, low: &str, class: Class, tensor_cores: Option<bool>) -> Option<Math> {
    let has = |words: &[&str]| words.iter().any(|word| low.contains(word));
    if let Some(letters) = low.split("nvjet_").nth(1) {
        return nvjet(letters);
    }
    if let Some(types) = name.split("Cijk_").nth(1) {
        return rocblas(types);
    }
    let multiplies = matches!(class, Class::Matmul | Class::Gemv | Class::Convolution);
    match () {
        () if has(&["tf32"]) => Some(Math::Tf32),
        () if has(&["e4m3", "e5m2", "fp8", "float8"]) => Some(Math::F8),
        () if has(&["bf16", "bfloat16", "df16b"]) => Some(Math::Bf16),
        () if has(&["fp16", "f16f16", "_f16_", "_f16", "hgemm", "h16816", "h1688", "h884", "half"]) => Some(Math::F16),
        () if has(&["dgemm", "f64f64", "d884", "<double", ", double"]) => Some(Math::F64),
        () if multiplies && has(&["i8i8", "imma", "i16832", "int8"]) => Some(Math::I8),
        // Tensor cores know no FP32: operands of such a kernel are rounded to TF32.
        () if multiplies && tensor_cores == Some(true) && has(&["s1688"]) => Some(Math::Tf32),
        () if has(&["sgemm", "f32f32", "ffma", "scudnn", "_f32_", "<float", ", float"]) => Some(Math::F32),
        () => None,
    }
}

/// `tst`: operands, accumulation, result; with two letters for the two operands of FP8.
fn nvjet(text: &str) -> Option<Math> {
    let word = text.split('_').find(|word| !word.starts_with("sm"))?;
    match word.chars().next()? {
        't' => Some(Math::Bf16),
        'h' => Some(Math::F16),
        's' => Some(Math::Tf32),
        'd' => Some(Math::F64),
        'q' | 'r' | 'o' => Some(Math::F8),
        _ => None,
    }
}

/// `Alik_Bljk_BBS_…`: the types of operands, result and accumulation.
fn rocblas(text: &str) -> Option<Math> {
    match text.split('_').nth(2)?.chars().next()? {
        'B' => Some(Math::Bf16),
        'H' => Some(Math::F16),
        'S' => Some(Math::F32),
        'D' => Some(Math::F64),
        'F' => Some(Math::F8),
        'I' => Some(Math::I8),
        _ => None,
    }
}

pub fn tensor_cores(has: &dyn Fn(&[&str]) -> bool) -> Option<bool> {
    const WITH: [&str; 17] = [
        "tensorop",
        "tensor16x8",
        "tensor8x8",
        "s1688",
        "s16816",
        "h16816",
        "h1688",
        "s884",
        "h884",
        "wmma",
        "hmma",
        "imma",
        "nvjet",
        "warpgroup",
        "gmma",
        "_mi16x16",
        "_mi32x32",
    ];
    const WITHOUT: [&str; 9] = ["simt", "ffma", "sgemm", "hgemm", "dgemm", "gemmsn", "gemv", "scudnn", "cgemm"];
    match () {
        () if has(&WITH) => Some(true),
        () if has(&WITHOUT) => Some(false),
        () if has(&["flash", "fmha"]) && has(&["bf16", "bfloat16", "half", "f16", "e4m3"]) => Some(true),
        () => None,
    }
}
