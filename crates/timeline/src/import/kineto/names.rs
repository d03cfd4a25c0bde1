//! Names of events to names of the timeline, each looked at once: a Python function comes apart into function, file and line,
//! a module's call is a layer, an annotation may mark a step.

use super::event::Sort;
use crate::import::json::fields::Raw;
use crate::import::markers::{self, annotation};
use crate::import::overheads;
use crate::{Builder, NameIndex, SliceKind};
use std::collections::HashMap;

#[derive(Clone, Copy)]
pub struct Named {
    pub name: NameIndex,
    pub kind: SliceKind,
    /// The code of an overhead; 0 of everything else.
    pub id: u32,
}

/// By sort and by the text in the file. A file that gives every event its own name pays for each once.
#[derive(Default)]
pub struct Names(HashMap<Sort, HashMap<Box<str>, Named>>);

impl Names {
    pub fn get(&mut self, builder: &mut Builder, sort: Sort, raw: Raw<'_>) -> Named {
        let known = self.0.entry(sort).or_default();
        if let Some(named) = known.get(raw.0) {
            return *named;
        }
        let named = name(builder, sort, &raw.text().unwrap_or_default());
        known.insert(raw.0.into(), named);
        named
    }
}

fn name(builder: &mut Builder, sort: Sort, text: &str) -> Named {
    // Kineto's first versions wrote the steps among the operators.
    if sort == Sort::Annotation || sort == Sort::Op && markers::step(text).is_some() {
        let (kind, name) = annotation(builder, text);
        return Named { name, kind, id: 0 };
    }
    let (kind, text, file, line) = match sort {
        Sort::Python => match (python(text), text.strip_prefix("nn.Module: ")) {
            (_, Some(module)) => (SliceKind::Layer, module, "", 0),
            (Some((function, file, line)), _) => (SliceKind::Call, function, file, line),
            (None, _) => (SliceKind::CCall, text, "", 0),
        },
        Sort::Op => (SliceKind::CCall, text, "", 0),
        Sort::Overhead => (SliceKind::Overhead, text, "", 0),
        _ => (SliceKind::ApiCall, text, "", 0),
    };
    let name = if text.is_empty() { NameIndex(0) } else { builder.name(text, file, line) };
    let id = if kind == SliceKind::Overhead { overheads::kind_of(text) as u32 } else { 0 };
    Named { name, kind, id }
}

/// "torch/nn/modules/module.py(1739): _call_impl" as function, file and line; None for what is not Python code.
fn python(text: &str) -> Option<(&str, &str, u32)> {
    let (place, function) = text.split_once("): ")?;
    let (file, line) = place.rsplit_once('(')?;
    Some((function, file, line.parse().ok()?)).filter(|_| !function.is_empty() && !file.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart_as_they_were_made() {
        let mut builder = Builder::default();
        for (sort, text, kind, expected) in [
            (
                Sort::Python,
                "torch/nn/module.py(17): _call_impl",
                SliceKind::Call,
                ("_call_impl", "torch/nn/module.py", 17),
            ),
            (Sort::Python, "<frozen os>(7): get", SliceKind::Call, ("get", "<frozen os>", 7)),
            (Sort::Python, "nn.Module: Linear_0", SliceKind::Layer, ("Linear_0", "", 0)),
            (Sort::Python, "<built-in function len>", SliceKind::CCall, ("<built-in function len>", "", 0)),
            (Sort::Python, "a(x): y", SliceKind::CCall, ("a(x): y", "", 0)),
            (Sort::Annotation, "ProfilerStep#3", SliceKind::Step, ("ProfilerStep", "", 0)),
            (Sort::Op, "ProfilerStep#3", SliceKind::Step, ("ProfilerStep", "", 0)),
            (Sort::Annotation, "load", SliceKind::Scope, ("load", "", 0)),
            (Sort::Op, "aten::add", SliceKind::CCall, ("aten::add", "", 0)),
        ] {
            let named = name(&mut builder, sort, text);
            let found = builder.timeline.names.get(named.name);
            assert_eq!((named.kind, (&*found.text, &*found.file, found.line)), (kind, expected), "{text}");
        }
    }
}
