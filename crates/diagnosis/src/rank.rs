//! The order of findings: most to gain first. Where one rule says why and another only where (a loader without workers, and a slow line inside it),
//! and both speak of about the same time, the one that says why comes first.

use crate::finding::Finding;
use crate::rule_code::RuleCode;
use crate::rules;
use replay::gain::Gain;

/// Where what they change says that it is the same time, a cause weighs as much as what it explains if it gains no less than this part of it: less
/// is a detail.
const DETAIL: f64 = 0.2;
/// Where one of them names no change, nothing but their size can tell: the one is no less than this part of the other.
const SAME: f64 = 0.5;

/// The findings in their order. `same_time` says of two gains whether they are of the same time, by what they change; None: that is not known.
pub fn ranked(findings: Vec<Finding>, same_time: impl Fn(&Gain, &Gain) -> Option<bool>) -> Vec<Finding> {
    let gains: Vec<(RuleCode, Gain)> =
        findings.iter().filter_map(|finding| Some((finding.code, finding.gain?))).collect();
    // A cause weighs as much as what it explains, and a little more.
    let weight = |finding: &Finding| {
        let Some(own) = finding.gain else { return -1.0 };
        let codes = rules::find(finding.code).map_or(&[][..], |rule| rule.explains());
        let explained = codes.iter().flat_map(|code| gains.iter().filter(move |one| one.0 == *code).map(|one| one.1));
        let same = |other: &Gain| {
            own.mid > 0.0
                && own.mid >= DETAIL * other.mid
                && same_time(&own, other).unwrap_or(own.mid >= SAME * other.mid)
        };
        explained.filter(same).fold(own.mid, |all, other| all.max(other.mid + 0.001))
    };
    // Without a gain: some say what sets the pace, the others only show it.
    let pace = |finding: &Finding| finding.gain.is_none() && sets_pace(finding);
    let mut ranked = findings;
    ranked.sort_by(|a, b| {
        let severe = pace(b).cmp(&pace(a)).then(b.severity.cmp(&a.severity));
        weight(b).total_cmp(&weight(a)).then(severe).then(b.confidence.total_cmp(&a.confidence))
    });
    ranked
}

pub fn sets_pace(finding: &Finding) -> bool {
    rules::find(finding.code).is_some_and(|rule| rule.sets_pace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use analysis::place::Place;

    fn finding(code: &'static str, gain: Option<f64>, severity: Severity) -> Finding {
        let gain = gain.map(|mid| Gain::recorded(mid, mid, mid));
        let (title, verify, place) = (String::new(), String::new(), Place::default());
        Finding {
            code: RuleCode::new(code),
            title,
            place,
            gain,
            severity,
            confidence: 0.9,
            evidence: Vec::new(),
            actions: Vec::new(),
            verify,
        }
    }

    #[test]
    fn what_is_known_to_be_changed_decides_and_not_how_much_it_gains() {
        let both =
            || vec![finding("hot-line", Some(60.0), Severity::High), finding("gc-pauses", Some(40.0), Severity::High)];
        let order = |same: Option<bool>| ranked(both(), |_, _| same)[0].code;
        assert_eq!([order(None), order(Some(true)), order(Some(false))], ["gc-pauses", "gc-pauses", "hot-line"]);
    }

    #[track_caller]
    fn order(findings: Vec<Finding>) -> Vec<RuleCode> {
        ranked(findings, |_, _| None).iter().map(|finding| finding.code).collect()
    }

    #[test]
    fn most_to_gain_comes_first_and_a_cause_before_what_it_explains() {
        let of = |code, gain| finding(code, Some(gain), Severity::Medium);
        assert_eq!(order(vec![of("sync-api", 10.0), of("launch-bound", 30.0)]), ["launch-bound", "sync-api"]);
        assert_eq!(
            order(vec![
                of("hot-line", 62.0),
                of("preprocess-before-first-kernel", 60.0),
                of("single-threaded-loader", 55.0)
            ]),
            ["single-threaded-loader", "hot-line", "preprocess-before-first-kernel"]
        );
        for cause in ["pageable-async-copy", "many-small-copies", "sync-memcpy", "logits-to-host-each-step"] {
            assert_eq!(order(vec![of("copies-exposed", 40.0), of(cause, 30.0)]), [cause, "copies-exposed"]);
        }
        // Another time: a tenth of it is logging.
        assert_eq!(order(vec![of("hot-line", 62.0), of("logging-in-step", 6.0)]), ["hot-line", "logging-in-step"]);
    }

    #[test]
    fn without_a_gain_what_sets_the_pace_comes_before_what_shows_it() {
        let of = |code| finding(code, None, Severity::Info);
        let all = vec![
            finding("hot-line", None, Severity::Low),
            of("kernel-hotspot"),
            of("compute-bound"),
            finding("host-wait", Some(2.0), Severity::Low),
        ];
        assert_eq!(order(all), ["host-wait", "compute-bound", "hot-line", "kernel-hotspot"]);
    }
}
