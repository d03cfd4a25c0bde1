//! What has to be edited for rules whose fix no switch can make, and what answers the question before the edit.

/// Rule, the edit, and what `inferscope whatif` can be asked meanwhile.
const EDITS: &[(&str, &str, &str)] = &[
    (
        "implicit-sync",
        "keep the value on the GPU, or read it once after the loop instead of .item() in each step",
        "remove sync-api",
    ),
    ("sync-api", "take the synchronize call out of the step, or wait for one event", "remove sync-api"),
    ("sync-memcpy", "copy with non_blocking=True from and to pinned memory, and wait once", "remove api:cudaMemcpy*"),
    ("logits-to-host-each-step", "sample on the GPU and copy only the chosen tokens", "remove copy:d2h"),
    ("many-small-copies", "put the small tensors into one and copy that", "scale copy:h2d 0.1"),
    (
        "launch-bound",
        "torch.compile(model, mode=\"reduce-overhead\"), or capture the step in a CUDA graph",
        "graph steps",
    ),
    (
        "short-kernel-gaps",
        "torch.compile(model, mode=\"reduce-overhead\"), or capture the step in a CUDA graph",
        "graph steps",
    ),
    ("queue-never-builds", "launch ahead of the GPU: no wait in the step, or a CUDA graph", "graph steps"),
    ("host-wait", "take the host's work out of the step, or do it while the GPU works", ""),
    ("preprocess-before-first-kernel", "prepare the next batch in another thread or process", ""),
    ("postprocess-tail", "hand results to another thread and begin the next step", ""),
    ("logging-in-step", "log every hundredth step, or through a queue", ""),
    ("gil-contention", "move the other thread's work into a process", ""),
    ("compile-in-request", "call every shape once before the first request, or mark the size dynamic", ""),
];

/// One sentence: there is no switch, and what to do instead.
pub fn edit(code: &str) -> String {
    let known = EDITS.iter().find(|(rule, _, _)| *rule == code);
    let Some((_, what, ask)) = known else {
        return format!(
            "the fix of {code} is an edit of the program, and no switch makes it: `inferscope analyze` names the place and \
             what to do; record before and after, and compare with `inferscope diff`"
        );
    };
    let meanwhile = match *ask {
        "" => String::new(),
        ask => format!("; what it would gain: inferscope whatif TRACE \"{ask}\""),
    };
    format!(
        "the fix of {code} is an edit of the program, and no switch makes it: {what}{meanwhile}; record before and after, \
         and compare with `inferscope diff`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::fixes::FIXES;

    #[test]
    fn edits_are_of_rules_that_there_are_and_that_no_switch_answers() {
        for (code, _, ask) in EDITS {
            assert!(diagnosis::rules::RULES.iter().any(|rule| rule.code() == *code), "{code}");
            assert!(!FIXES.iter().any(|fix| fix.rules.contains(code)), "{code}");
            assert!(ask.is_empty() || replay::parse(ask).is_ok(), "{ask}");
        }
        assert!(edit("throttled").contains("inferscope analyze"));
        assert!(edit("launch-bound").contains("\"graph steps\""));
    }
}
