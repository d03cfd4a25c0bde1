//! The answer in three sentences for a recording of memory alone, a snapshot: what is held, what is wrong with it, what to do first.

use crate::finding::Finding;
use crate::measures::allocators;
use crate::rule::Case;
use analysis::AllocatorMemory;
use analysis::phrase;

/// The part of the peak from which a line is worth naming first.
const MIN_NOTABLE_SHARE: f64 = 0.1;

pub fn say(case: &Case, findings: &[Finding]) -> [String; 3] {
    let largest = case.memory().iter().max_by_key(|one| one.history.reserved_peak.unwrap_or(one.history.peak));
    let held = match largest {
        Some(one) => held(case, one),
        None => "The snapshot holds no memory.".into(),
    };
    match findings.first() {
        Some(finding) => {
            let action = finding.actions.first().map(|action| action.text().to_owned()).unwrap_or_default();
            [held, format!("{}.", finding.title), action]
        }
        None => {
            let events = case.memory().iter().any(|one| one.history.allocs > 0);
            let next = match events {
                true => "Compare it with a later snapshot of the same process: `inferscope diff A B` says what grew.",
                false => "Record events before the next snapshot: torch.cuda.memory._record_memory_history().",
            };
            [held, "No problem found in it.".into(), next.into()]
        }
    }
}

fn held(case: &Case, one: &AllocatorMemory) -> String {
    let name = allocators::name(case, one.allocator);
    let reserved = one.history.reserved_last.map(|bytes| format!(" of {} reserved", phrase::bytes(bytes)));
    let now = format!("{name} has {} in use{}", phrase::bytes(one.in_use()), reserved.unwrap_or_default());
    // Of a file that was cut, what was there before its events is not known, nor is the peak.
    if one.history.allocs == 0 || case.timeline.memory.cut {
        return format!("{now}.");
    }
    let share = |bytes: u64| bytes as f64 / one.peak.bytes.max(1) as f64;
    let most = one.peak.by_place.iter().find(|holder| holder.stack.0 != 0 && share(holder.bytes) >= MIN_NOTABLE_SHARE);
    let by = match (most, one.peak.by_category.first()) {
        (Some(holder), _) => {
            format!(", {} of it from {}", phrase::percent(share(holder.bytes)), phrase::place(&holder.place))
        }
        (None, Some((category, bytes, _))) => format!(", {} of it {}", phrase::percent(share(*bytes)), category.said()),
        (None, None) => String::new(),
    };
    format!("{now}; the peak is {}{by}.", phrase::bytes(one.history.peak))
}
