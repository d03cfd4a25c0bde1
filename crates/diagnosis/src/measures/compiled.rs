//! Whether the steps run code of a compiler already: kernels that PyTorch's Inductor made have names that it alone gives.

use crate::action::Precondition;
use crate::rule::Case;
use analysis::phrase;

/// Pointwise, reduction, persistent reduction and template kernels of Inductor.
const COMPILED_PREFIXES: [&str; 4] = ["triton_poi_", "triton_red_", "triton_per_", "triton_tem_"];

/// More than this part of the kernels that a compiler could have made.
const MAJORITY: f64 = 0.5;

/// What the advice to compile needs: it has not been done.
pub fn not_yet(case: &Case) -> Precondition {
    let (mut all, mut made) = (0u64, 0u64);
    for row in case.kernels().iter().flat_map(|device| &device.rows) {
        all += row.count;
        let name = case.timeline.names.text(row.name);
        made += if COMPILED_PREFIXES.iter().any(|start| name.starts_with(start)) { row.count } else { 0 };
    }
    let part = made as f64 / all.max(1) as f64;
    match part > MAJORITY {
        true => {
            Precondition::Fails(format!("{} of its kernels come from torch.compile already", phrase::percent(part)))
        }
        false => Precondition::Holds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::kernels_in_a_row;
    use timeline::Timeline;

    #[test]
    fn kernels_with_names_of_the_compiler_say_that_it_was_there() {
        let of = |names: &[&str]| not_yet(&Case::new(&Timeline::from_text(&kernels_in_a_row(names)).unwrap(), None));
        let why = "67 % of its kernels come from torch.compile already";
        assert_eq!(of(&["triton_poi_fused_add_0", "triton_red_fused_sum_1", "gemm"]), Precondition::Fails(why.into()));
        assert_eq!(of(&["triton_poi_fused_add_0", "gemm"]), Precondition::Holds);
        assert_eq!(of(&["triton_flash_attention"]), Precondition::Holds);
    }
}
