//! Since when each finding is there, and which were there before: a finding of one window is gone in the next, and who watches should see it go.

use crate::model::Finding;
use std::collections::HashMap;

/// What is gone is shown this long.
const FADES_AFTER: u64 = 60_000_000_000;
/// More are not remembered: a program may have any number of places.
const MOST: usize = 200;

#[derive(Default)]
pub struct History {
    known: HashMap<(String, String), Known>,
}

struct Known {
    since: u64,
    last: u64,
    finding: Finding,
}

impl History {
    /// Fills in how long each has been found, and adds those that are not found any more. `now` is the end of the window.
    pub fn add(&mut self, findings: &mut Vec<Finding>, now: u64) {
        // Whoever watches has gone back: what was found later is not yet there.
        self.known.retain(|_, known| known.last <= now && now - known.last <= FADES_AFTER);
        for finding in findings.iter_mut() {
            let key = (finding.code.clone(), finding.place.clone());
            if self.known.len() >= MOST && !self.known.contains_key(&key) {
                continue;
            }
            let known =
                self.known.entry(key).or_insert_with(|| Known { since: now, last: now, finding: finding.clone() });
            finding.for_ns = now - known.since.min(now);
            (known.last, known.finding) = (now, finding.clone());
        }
        let mut gone: Vec<&Known> = self.known.values().filter(|known| known.last < now).collect();
        gone.sort_by_key(|known| (std::cmp::Reverse(known.last), known.finding.title.clone()));
        let faded = gone.into_iter().map(|known| Finding { gone_ns: Some(now - known.last), ..known.finding.clone() });
        findings.extend(faded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn found(code: &str) -> Finding {
        Finding { code: code.into(), place: "a.py:1".into(), ..Finding::default() }
    }

    #[test]
    fn a_finding_has_an_age_and_is_shown_for_a_while_after_it_is_gone() {
        let mut history = History::default();
        let mut at = |now: u64, codes: &[&str]| {
            let mut findings: Vec<Finding> = codes.iter().copied().map(found).collect();
            history.add(&mut findings, now * SECOND);
            findings.into_iter().map(|one| (one.code, one.for_ns / SECOND, one.gone_ns)).collect::<Vec<_>>()
        };
        assert_eq!(at(10, &["leak"]), [("leak".into(), 0, None)]);
        assert_eq!(at(12, &["gc-pauses", "leak"]), [("gc-pauses".into(), 0, None), ("leak".into(), 2, None)]);
        assert_eq!(at(15, &["gc-pauses"]), [("gc-pauses".into(), 3, None), ("leak".into(), 2, Some(3 * SECOND))]);
        assert_eq!(at(80, &[]), []);
        // Back in time.
        assert_eq!(at(11, &["leak"]), [("leak".into(), 0, None)]);
    }

    #[test]
    fn any_number_of_places_takes_little_memory() {
        let mut history = History::default();
        for place in 0..1000 {
            let mut one = vec![Finding { place: place.to_string(), ..found("hot-line") }];
            history.add(&mut one, SECOND);
        }
        assert_eq!(history.known.len(), MOST);
    }
}
