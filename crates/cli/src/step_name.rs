//! `--step NAME` that the trace does not have: which name may have been meant, else which there are.

use crate::failure::Failure;
use analysis::spelling::nearest_of;
use std::collections::HashMap;
use std::fmt::Display;
use timeline::{NameIndex, SliceKind, Timeline};

/// As many as fit a line.
const MOST_NAMES: usize = 5;

/// `trace` is how the user calls it.
pub fn not_found(timeline: &Timeline, wanted: &str, trace: impl Display) -> Failure {
    let names = names(timeline);
    let near = nearest_of(wanted, names.iter().copied());
    let hint = match (near, names.as_slice()) {
        (Some(near), _) => format!("did you mean {near:?}?"),
        (None, []) => "it has no steps or scopes: mark them with `inferscope.step()`".into(),
        (None, all) => {
            let named: Vec<String> = all.iter().take(MOST_NAMES).map(|name| format!("{name:?}")).collect();
            let more = all.len().saturating_sub(MOST_NAMES);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("it has {}{rest}", named.join(", "))
        }
    };
    Failure::bad_input(format_args!("no step or scope is called {wanted:?} in {trace}: {hint}"))
}

/// The steps, scopes and NVTX ranges, steps first, and of each those with most time first.
fn names(timeline: &Timeline) -> Vec<&str> {
    let slices = &timeline.slices;
    let mut times: HashMap<(u8, u32), u64> = HashMap::new();
    for index in 0..slices.len() {
        let rank = match slices.kind(index) {
            SliceKind::Step => 0,
            SliceKind::Scope => 1,
            SliceKind::Nvtx => 2,
            _ => continue,
        };
        let time = times.entry((rank, slices.name[index])).or_default();
        *time = time.saturating_add(slices.dur[index]);
    }
    let mut ranked: Vec<((u8, u32), u64)> = times.into_iter().collect();
    ranked.sort_by_key(|((rank, name), time)| (*rank, u64::MAX - time, *name));
    ranked.into_iter().map(|((_, name), _)| timeline.names.text(NameIndex(name))).collect()
}
