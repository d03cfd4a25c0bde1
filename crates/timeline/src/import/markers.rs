//! Annotations that mark a step: the profiler's own `ProfilerStep#7`, and the markers of serving engines. Their numbers differ
//! each time, so steps of one sort get one name, and the text as it was is kept beside it.

use crate::{Builder, EnginePhase, NameIndex, SliceKind};

/// What an annotation is as a step: what steps of its sort are called, and what an engine does in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marker {
    pub name: &'static str,
    pub phase: Option<EnginePhase>,
}

/// None: it marks no step.
pub fn step(name: &str) -> Option<Marker> {
    let of = |name, phase| Some(Marker { name, phase });
    if name.starts_with("ProfilerStep#") {
        return of("ProfilerStep", None);
    }
    if let Some(inside) = name.strip_prefix("step[") {
        return match inside {
            _ if inside.starts_with("DECODE") => of("step (decode)", Some(EnginePhase::Decode)),
            _ if inside.starts_with("EXTEND") || inside.starts_with("PREFILL") => {
                of("step (prefill)", Some(EnginePhase::Prefill))
            }
            _ if inside.starts_with("MIXED") => of("step (mixed)", Some(EnginePhase::Mixed)),
            _ => of("step", None),
        };
    }
    // execute_context_1(888)_generation_0(0), execute_15360_context_15(sq15360…)_generation_0(sq0…)
    let rest = name.strip_prefix("execute_")?;
    match (count(rest, "context_")?, count(rest, "generation_")?) {
        (0, 0) => of("execute (empty)", None),
        (_, 0) => of("execute (prefill)", Some(EnginePhase::Prefill)),
        (0, _) => of("execute (decode)", Some(EnginePhase::Decode)),
        _ => of("execute (mixed)", Some(EnginePhase::Mixed)),
    }
}

/// What an annotation is, and its name: a step where it marks one.
pub fn annotation(builder: &mut Builder, text: &str) -> (SliceKind, NameIndex) {
    match step(text) {
        Some(marker) => {
            let name = builder.name(marker.name, "", 0);
            if let Some(phase) = marker.phase {
                builder.engine_step(name, phase);
            }
            (SliceKind::Step, name)
        }
        None if text.is_empty() => (SliceKind::Scope, NameIndex(0)),
        None => (SliceKind::Scope, builder.name(text, "", 0)),
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
        use EnginePhase::{Decode, Mixed, Prefill};
        for (name, expected) in [
            ("ProfilerStep#550", Some(("ProfilerStep", None))),
            ("execute_context_1(888_788544)_generation_0(0)", Some(("execute (prefill)", Some(Prefill)))),
            ("execute_context_0(0)_generation_8(8)", Some(("execute (decode)", Some(Decode)))),
            ("execute_15360_context_15(sq15360sk1)_generation_2(sq2)", Some(("execute (mixed)", Some(Mixed)))),
            ("step[DECODE bs=8]", Some(("step (decode)", Some(Decode)))),
            ("step[EXTEND bs=1 toks=512]", Some(("step (prefill)", Some(Prefill)))),
            ("step[IDLE]", Some(("step", None))),
            ("step (prefill)", None),
            ("execute (decode)", None),
            ("execute_model", None),
            ("context_1_generation_2", None),
            ("Optimizer.step#SGD.step", None),
        ] {
            let expected = expected.map(|(name, phase)| Marker { name, phase });
            assert_eq!(step(name), expected, "{name}");
        }
    }
}
