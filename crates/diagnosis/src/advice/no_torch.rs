//! What to do in a program without PyTorch: CUDA's own calls instead of PyTorch's, as the rule of the finding says.

use crate::action::Action;
use crate::rule_code::RuleCode;
use crate::rules;

/// The actions without those of PyTorch; in their place what does the same without it.
pub fn instead(code: RuleCode, actions: &[Action]) -> Vec<Action> {
    let generic = rules::find(code).map_or(&[][..], |rule| rule.without_torch());
    let mut fitting = Vec::new();
    let mut said = false;
    for action in actions {
        match action.without_torch() {
            Some(action) => fitting.push(action),
            None if std::mem::replace(&mut said, true) => {}
            None => fitting.extend(generic.iter().map(|text| action.instead(*text))),
        }
    }
    // Advice that needs a translation is better than none.
    if fitting.is_empty() { actions.to_vec() } else { fitting }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Rule;
    use crate::rules::RULES;
    use crate::rules::compute::kernel_hotspot::KernelHotspot;

    /// Words of PyTorch and of what is built on it.
    const WORDS: [&str; 12] = [
        "torch",
        "non_blocking",
        "pin_memory",
        "DataLoader",
        ".item()",
        "tensor.",
        "model.to(",
        "model =",
        "F.linear",
        "x.to(",
        "async_op",
        "AutoModel",
    ];

    #[test]
    fn what_rules_say_instead_is_free_of_what_it_replaces() {
        let mut seen = 0;
        for text in RULES.iter().flat_map(|rule| rule.without_torch()) {
            seen += 1;
            assert!(!WORDS.iter().any(|word| text.contains(word)), "{text}");
        }
        assert!(seen > 29, "{seen}");
    }

    /// These speak only of programs that have been seen to use PyTorch, or of its profiler.
    const ONLY_TORCH: [&str; 21] = [
        "batchable_loop",
        "below_roofline",
        "compile_in_request",
        "created_on_cpu",
        "data_parallel",
        "dependent_chain",
        "dtype_churn",
        "graph_breaks",
        "growing_concat",
        "input_pipeline",
        "known_fusion_missing",
        "overhead_in_window",
        "padding_waste",
        "per_element_loop",
        "repeated_work",
        // What PyTorch's allocator holds is only there with PyTorch.
        "cudamalloc_in_steady_state",
        "leak",
        "memory_near_full",
        "reserved_unused",
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
            if rule.contains("Action::torch(") {
                seen += 1;
                let known = rule.contains("fn without_torch(");
                assert!(known || ONLY_TORCH.contains(&name), "{name} advises only PyTorch");
            }
            // An action of PyTorch is marked as one. It begins like a sentence, which no other string with its words does.
            for line in rule.lines().map(str::trim) {
                let text = line.strip_prefix("format!(").unwrap_or(line).strip_prefix('"').unwrap_or_default();
                let torch = text.starts_with(char::is_uppercase) && WORDS.iter().any(|word| text.contains(word));
                assert!(!torch || !line.ends_with(".into(),"), "{name}: {line}");
            }
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn what_is_free_of_it_stays_where_it_is() {
        let said = |code: &'static str, actions: &[Action]| {
            let instead = instead(RuleCode::new(code), actions);
            instead.iter().map(|action| action.text().to_owned()).collect::<Vec<String>>()
        };
        let generic = KernelHotspot.without_torch();
        let actions = [Action::torch("Use BF16."), Action::torch("Or compile it."), "ncu --set full".into()];
        assert_eq!(said("kernel-hotspot", &actions), [generic[0], generic[1], "ncu --set full"]);
        let threads =
            Action::new("Let fewer compute at once").by("OMP_NUM_THREADS=4").or_torch("torch.set_num_threads(4)");
        assert_eq!(threads.text(), "Let fewer compute at once: OMP_NUM_THREADS=4, torch.set_num_threads(4).");
        assert_eq!(said("cpu-oversubscribed", &[threads]), ["Let fewer compute at once: OMP_NUM_THREADS=4."]);
        assert_eq!(said("data-parallel", &[Action::torch("torchrun serve.py")]), ["torchrun serve.py"]);
        // Words decide nothing: what a rule does not mark stays.
        assert_eq!(said("kernel-hotspot", &["Call torchvision's own.".into()]), ["Call torchvision's own."]);
    }
}
