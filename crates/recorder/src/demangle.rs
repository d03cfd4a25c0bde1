//! Kernels as people wrote them: `void at::native::reduce_kernel<512, ...>(...)` instead of what the compiler made of it. Done once
//! a name, outside the workload, so that every reader of the trace sees the same.

use cpp_demangle::{DemangleOptions, Symbol};

/// Deeper names than a template library writes are hostile, and the demangler recurses.
const DEEPEST: u32 = 96;

/// The C++ name, if it is one.
pub(crate) fn demangle(name: &str) -> Option<String> {
    if !name.starts_with("_Z") {
        return None;
    }
    let options = DemangleOptions::new().recursion_limit(DEEPEST).no_return_type();
    let symbol = Symbol::new(name).ok()?;
    let text = symbol.demangle_with_options(&options).ok()?;
    // "(anonymous namespace)" and the like are fine; an empty name is none.
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn cpp_names_are_read_and_others_left_alone() {
        let name = "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEEEviT0_T1_";
        let read = demangle(name).unwrap();
        assert!(
            read.starts_with("at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>"),
            "{read}"
        );
        for other in ["triton_poi_fused_add_0", "ampere_sgemm_32x32", "_Z", "_Zfoo\u{e9}", "", "_ZNSt"] {
            assert_eq!(demangle(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_made_to_recurse_does_no_harm() {
        let _ = demangle(&format!("_Z1f{}i", "P".repeat(4000)));
        let _ = demangle(&format!("_ZN{}E", "1aI".repeat(1300)));
    }
}
