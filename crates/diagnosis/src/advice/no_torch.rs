//! What to do in a program without PyTorch: CUDA's own calls instead of PyTorch's, as the rule of the finding says.

use crate::rule_code::RuleCode;
use crate::rules;

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

/// The actions without those of PyTorch; in their place what does the same without it.
pub fn instead(code: RuleCode, actions: &[String]) -> Vec<String> {
    let generic = rules::find(code).map_or(&[][..], |rule| rule.without_torch());
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
    use crate::rule::Rule;
    use crate::rules::RULES;
    use crate::rules::compute::kernel_hotspot::KernelHotspot;

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
            let known = rule.contains("fn without_torch(");
            let threads = line.contains(", torch.set_num_threads");
            assert!(known || threads || ONLY_TORCH.contains(&name), "{name} advises only PyTorch: {line}");
        }
        assert!(seen > 20, "{seen}");
    }

    #[test]
    fn what_is_free_of_it_stays_where_it_is() {
        let said = |code: &'static str, actions: &[&str]| {
            instead(RuleCode::new(code), &actions.iter().map(|action| (*action).to_owned()).collect::<Vec<_>>())
        };
        let generic = KernelHotspot.without_torch();
        assert_eq!(
            said("kernel-hotspot", &["Use torch.bfloat16.", "Or torch.compile(model).", "ncu --set full"]),
            [generic[0], generic[1], "ncu --set full"]
        );
        let threads = "Let fewer compute at once: OMP_NUM_THREADS=4, torch.set_num_threads(4).";
        assert_eq!(said("cpu-oversubscribed", &[threads]), ["Let fewer compute at once: OMP_NUM_THREADS=4."]);
        assert_eq!(said("data-parallel", &["torchrun serve.py"]), ["torchrun serve.py"]);
    }
}
