//! Annotations that mark a step: the profiler's own `ProfilerStep#7`, and the markers of serving engines. Their numbers differ
//! each time, so steps of one sort get one name, and the text as it was is kept beside it.

use crate::SliceKind;

/// What an annotation is called as a step; None: it is none.
pub fn step(name: &str) -> Option<&'static str> {
    if name.starts_with("ProfilerStep#") {
        return Some("ProfilerStep");
    }
    if let Some(inside) = name.strip_prefix("step[") {
        return Some(match inside {
            _ if inside.starts_with("DECODE") => "step (decode)",
            _ if inside.starts_with("EXTEND") || inside.starts_with("PREFILL") => "step (prefill)",
            _ if inside.starts_with("MIXED") => "step (mixed)",
            _ => "step",
        });
    }
    // execute_context_1(888)_generation_0(0), execute_15360_context_15(sq15360…)_generation_0(sq0…)
    let rest = name.strip_prefix("execute_")?;
    let context = count(rest, "context_")?;
    let generation = count(rest, "generation_")?;
    Some(match (context, generation) {
        (0, 0) => "execute (empty)",
        (_, 0) => "execute (prefill)",
        (0, _) => "execute (decode)",
        _ => "execute (mixed)",
    })
}

/// What an annotation is: a step where it marks one.
pub fn annotation(name: &str) -> (SliceKind, &str) {
    match step(name) {
        Some(step) => (SliceKind::Step, step),
        None => (SliceKind::Scope, name),
    }
}

/// The number behind a word: how many requests are in that phase.
fn count(text: &str, word: &str) -> Option<u64> {
    let after = &text[text.find(word)? + word.len()..];
    let digits = after.bytes().take_while(u8::is_ascii_digit).count();
    after[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_the_profiler_and_of_engines_are_steps() {
        for (name, expected) in [
            ("ProfilerStep#550", Some("ProfilerStep")),
            ("execute_context_1(888_788544)_generation_0(0)", Some("execute (prefill)")),
            ("execute_context_0(0)_generation_8(8)", Some("execute (decode)")),
            ("execute_15360_context_15(sq15360sk1)_generation_2(sq2)", Some("execute (mixed)")),
            ("step[DECODE bs=8]", Some("step (decode)")),
            ("step[EXTEND bs=1 toks=512]", Some("step (prefill)")),
            ("execute_model", None),
            ("context_1_generation_2", None),
            ("Optimizer.step#SGD.step", None),
        ] {
            assert_eq!(step(name), expected, "{name}");
        }
    }
}
