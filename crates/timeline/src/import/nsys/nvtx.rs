//! NVTX ranges and marks. Those that PyTorch makes of its operators ("aten::add, op_id = 7, sizes = [[2]]") become the operators
//! that they are; those that mark a step become steps.

use super::load::Loader;
use crate::import::json::LONGEST_ARGS;
use crate::import::markers;
use crate::{SliceExtra, SliceKind};
use std::collections::HashMap;

/// `ENUM_NSYS_EVENT_TYPE`.
const MARK: i64 = 34;
const PUSH_POP: i64 = 59;
const START_END: i64 = 60;
const DOMAIN: i64 = 75;

impl Loader<'_> {
    pub(super) fn nvtx(&mut self) {
        let columns = ["start", "end", "globalTid", "eventType", "text", "textId", "domainId"];
        let mut domains: HashMap<(i64, i64), String> = HashMap::new();
        self.table("NVTX_EVENTS", &columns, |loader, row| {
            if row.number(3) == Some(DOMAIN) {
                let name = row.text(4).or_else(|| loader.text(row.number(5)).map(str::to_owned));
                let key = (row.number(2).unwrap_or(0) >> 24, row.number(6).unwrap_or(0));
                domains.extend(name.map(|name| (key, name)));
            }
        });
        let mut args = String::new();
        self.table("NVTX_EVENTS", &columns, |loader, row| {
            let Some(sort @ (MARK | PUSH_POP | START_END)) = row.number(3) else { return };
            let global = row.number(2).unwrap_or(0);
            let Some((start, dur)) =
                (if sort == MARK { row.number(0).map(|t| (t.max(0) as u64, 0)) } else { loader.span(&row) })
            else {
                return;
            };
            let own = row.text(4);
            let Some(text) = own.as_deref().or_else(|| loader.text(row.number(5))).map(str::to_owned) else { return };
            args.clear();
            let (kind, name) = match operator(&text) {
                Some((name, sizes)) => {
                    if let Some(sizes) = sizes.filter(|sizes| sizes.len() < LONGEST_ARGS) {
                        args.extend(["{\"Input Dims\":", sizes, "}"]);
                    }
                    (SliceKind::CCall, loader.builder.name(name, "", 0))
                }
                None => match markers::step(&text).filter(|_| dur > 0) {
                    Some(_) => {
                        args.extend(["{\"marker\":", &serde_json::Value::from(&*text).to_string(), "}"]);
                        markers::annotation(&mut loader.builder, &text)
                    }
                    None => {
                        if let Some(domain) = domains.get(&(global >> 24, row.number(6).unwrap_or(0))) {
                            args.extend(["{\"domain\":", &serde_json::Value::from(&**domain).to_string(), "}"]);
                        }
                        (SliceKind::Nvtx, loader.builder.name(&text, "", 0))
                    }
                },
            };
            let track = loader.places.track(&mut loader.builder, global);
            let more = SliceExtra { args: (!args.is_empty()).then_some(&*args), ..SliceExtra::default() };
            loader.builder.slice(track, kind, name, start, dur, more);
        });
    }
}

/// The operator of a range that PyTorch made, and the sizes of its inputs as JSON.
fn operator(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, rest) = text.split_once(", ")?;
    if !["op_id = ", "seq = ", "sizes = "].iter().any(|word| rest.starts_with(word)) {
        return None;
    }
    let sizes = rest.find("sizes = ").map(|at| &rest[at + 8..]).and_then(|sizes| {
        let end = sizes.find("]]").map(|end| end + 2)?;
        Some(&sizes[..end])
    });
    let plain = |sizes: &&str| sizes.bytes().all(|byte| byte.is_ascii_digit() || b"[], -".contains(&byte));
    Some((name, sizes.filter(plain)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_operators_come_apart() {
        assert_eq!(operator("aten::view, op_id = 314290"), Some(("aten::view", None)));
        let sized = "aten::mm, seq = 3, op_id = 7, sizes = [[2, 3], [3, 4]], input_op_ids = [[1,0]]";
        assert_eq!(operator(sized), Some(("aten::mm", Some("[[2, 3], [3, 4]]"))));
        assert_eq!(operator("forward, then back"), None);
        assert_eq!(operator("a, sizes = [[\"x\"]]"), Some(("a", None)));
    }
}
