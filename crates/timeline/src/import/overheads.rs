//! How torch.profiler and Nsight Systems call what CUPTI counts as an overhead.

use crate::OverheadKind;

/// Kineto writes "Command Buffer Full", others the same in other spellings.
pub fn kind_of(name: &str) -> OverheadKind {
    const NAMES: [(&str, OverheadKind); 9] = [
        ("commandbufferfull", OverheadKind::CommandBufferFull),
        ("moduleloading", OverheadKind::ModuleLoading),
        ("loading", OverheadKind::FunctionLoading),
        ("compiler", OverheadKind::DriverCompiler),
        ("flush", OverheadKind::BufferFlush),
        ("instrumentation", OverheadKind::Instrumentation),
        ("resource", OverheadKind::Resource),
        ("bufferrequest", OverheadKind::BufferRequest),
        ("uvm", OverheadKind::UnifiedMemoryStart),
    ];
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    NAMES.iter().find(|(part, _)| plain.contains(part)).map_or(OverheadKind::Other, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_are_known() {
        for (name, kind) in [
            ("Command Buffer Full", OverheadKind::CommandBufferFull),
            ("Lazy Function Loading", OverheadKind::FunctionLoading),
            ("Runtime Triggered Module Loading", OverheadKind::ModuleLoading),
            ("Driver Compiler", OverheadKind::DriverCompiler),
            ("Buffer Flush", OverheadKind::BufferFlush),
            ("BUFFER_FLUSH", OverheadKind::BufferFlush),
            ("Activity Buffer Request", OverheadKind::BufferRequest),
            ("CUDA profiling data flush", OverheadKind::BufferFlush),
            ("Unknown", OverheadKind::Other),
        ] {
            assert_eq!(kind_of(name), kind, "{name}");
        }
    }
}
