//! What a kernel is called where there is little room: the name of a C++ template says its types, too, and may fill a page.

/// Without its return type.
pub fn plain(name: &str) -> &str {
    name.strip_prefix("void ").unwrap_or(name)
}

/// Without its return type, as far as a line allows.
pub fn short(name: &str) -> String {
    const MOST: usize = 70;
    let plain = plain(name);
    match plain.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain.to_owned(),
    }
}

/// Without its return type, its template's and its own parameters: `at::native::reduce_kernel`.
pub fn bare(name: &str) -> String {
    let plain = plain(name).replace("(anonymous namespace)::", "");
    plain.split(['<', '(']).next().filter(|bare| !bare.is_empty()).unwrap_or(&plain).to_owned()
}

/// As a title names it: the last part of its bare name, as far as that fits beside the rest.
pub fn brief(name: &str) -> String {
    const MOST: usize = 32;
    let bare = bare(name);
    // A kernel that only wraps its template's argument is known by that: `cutlass::Kernel2<cutlass_75_…>`.
    let inner = name.split_once('<').and_then(|(_, inside)| inside.split([',', '<', '>', '(']).next());
    let last = match (last(&bare), inner) {
        (wrapper, Some(inner)) if wrapper.starts_with("Kernel") && !inner.is_empty() => self::last(inner),
        (last, _) => last,
    };
    match last.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &last[..end]),
        None => last.to_owned(),
    }
}

/// The last part of a bare name: `reduce_kernel`.
pub fn last(bare: &str) -> &str {
    bare.rsplit("::").next().unwrap_or(bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_leaves_more_out() {
        let name =
            "void at::native::(anonymous namespace)::layer_norm<float, std::array<char*, 3ul> >(int, float const*)";
        assert_eq!(plain(name), &name[5..]);
        assert_eq!(short(name), format!("{}…", &name[5..75]));
        assert_eq!(brief(name), "layer_norm");
        assert_eq!(brief("void cutlass::Kernel2<cutlass_80_simt_sgemm>(T)"), "cutlass_80_simt_sgemm");
        assert_eq!((bare(name).as_str(), last(&bare(name))), ("at::native::layer_norm", "layer_norm"));
    }

    /// A name is what a program says: whatever it is, something is left of it.
    #[test]
    fn a_name_without_a_template_stays_and_none_becomes_empty() {
        for name in ["gemm", "<unknown>", "(anonymous namespace)", "é🙂<"] {
            assert_eq!((plain(name), short(name).as_str()), (name, name));
            assert!(!bare(name).is_empty() && !last(&bare(name)).is_empty(), "{name}");
        }
        assert_eq!(short(&"é".repeat(71)), "é".repeat(70) + "…");
    }
}
