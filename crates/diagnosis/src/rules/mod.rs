//! The rules, one a file, in a folder by family. A family lists its own; this file only puts the families in order.

pub(crate) mod communication;
pub(crate) mod compute;
pub(crate) mod copies;
pub(crate) mod dataflow;
pub(crate) mod health;
pub(crate) mod host;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod pipeline;
pub(crate) mod serving;

mod pages;

use crate::finding::Finding;
use crate::rule::{Family, Rule, Shown};
use crate::rule_code::RuleCode;
pub use pages::pages;
use std::borrow::Cow;
use timeline::Timeline;

/// Whether the rule with this code says that something is as it should be.
pub fn finds_health(code: RuleCode) -> bool {
    RULES.iter().any(|rule| rule.code() == code && rule.finds_health())
}

/// A finding's title as it stands alone: before what is as it should be, that it is.
pub fn headline(finding: &Finding) -> Cow<'_, str> {
    match finds_health(finding.code) {
        true => format!("Healthy: {}", finding.title).into(),
        false => finding.title.as_str().into(),
    }
}

/// What the program can change first, the health of the recording last. Reports list rules in this order where nothing else decides.
pub static FAMILIES: [Family; 10] = FAMILIES_IN_ORDER;

const FAMILIES_IN_ORDER: [Family; 10] = [
    launch::FAMILY,
    copies::FAMILY,
    pipeline::FAMILY,
    dataflow::FAMILY,
    compute::FAMILY,
    communication::FAMILY,
    serving::FAMILY,
    host::FAMILY,
    memory::FAMILY,
    health::FAMILY,
];

const COUNT: usize = {
    let (mut count, mut family) = (0, 0);
    while family < FAMILIES_IN_ORDER.len() {
        count += FAMILIES_IN_ORDER[family].rules.len();
        family += 1;
    }
    count
};

/// The rules of all families.
pub static RULES: [&dyn Rule; COUNT] = {
    let mut all: [&dyn Rule; COUNT] = [FAMILIES_IN_ORDER[0].rules[0]; COUNT];
    let (mut filled, mut family) = (0, 0);
    while family < FAMILIES_IN_ORDER.len() {
        let rules = FAMILIES_IN_ORDER[family].rules;
        let mut place = 0;
        while place < rules.len() {
            all[filled] = rules[place];
            filled += 1;
            place += 1;
        }
        family += 1;
    }
    all
};

/// Whether a rule has anything to look at in such a recording: of a snapshot of memory, all else is not missing, but not asked.
pub fn fits(timeline: &Timeline, code: RuleCode) -> bool {
    !analysis::memory::is_all(timeline) || memory::FAMILY.rules.iter().any(|rule| rule.code() == code)
}

/// The rule of this code; None for rules of the user.
pub fn find(code: RuleCode) -> Option<&'static dyn Rule> {
    RULES.into_iter().find(|rule| rule.code() == code)
}

/// What a finding shows by the nature of its rule.
pub fn shown(finding: &Finding) -> Option<Shown> {
    find(finding.code)?.shows()
}

/// The family that has this rule; None for rules of the user.
pub fn family(code: RuleCode) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.rules.iter().any(|rule| rule.code() == code))
}
