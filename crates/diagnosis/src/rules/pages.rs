//! The documentation of the rules, made from the rules themselves: an index, a page for every family, and what devices can do.

use super::FAMILIES;
use crate::measures::reach;
use crate::rule::{Family, Rule, RuleDocs};
use crate::threshold::RuleSettings;

/// Every page by its path under docs/.
pub fn pages() -> Vec<(String, String)> {
    let mut pages = vec![("rules.md".to_owned(), index())];
    pages.extend(FAMILIES.iter().map(|family| (format!("rules/{}.md", family.name), of_family(family))));
    pages.push(("rules/devices.md".to_owned(), format!("{}\n{}", reach::page(), made("../"))));
    pages
}

/// How to make the pages again.
fn made(up: &str) -> String {
    format!(
        "This page is generated from [the rules' own documentation]({up}rules.md): `cargo run -p inferscope-diagnosis --example rules_page`.\n"
    )
}

fn index() -> String {
    let mut page = String::from(
        "# The rules\n\n\
         Every rule runs on every recording, independently of the others. Findings are ranked by how much of the step they are expected to save, and by how sure that \
         is. A rule whose data was not recorded is skipped, and the report says why. Gains are computed from the recording: shares \
         from samples carry Wilson's 95 % interval, widened where samples of one step resemble each other; measured \
         times carry their spread over the steps. A gain that has only bounds, or whose middle was measured elsewhere, says so: \
         [what gains and confidences rest on](whatif.md#the-gains-of-findings).\n\n\
         The thresholds of a rule are on its page with their reasons; [a file of yours](user-rules.md#changing-our-rules) can change them, or switch a rule \
         off, and `inferscope rules explain CODE` shows those in force.\n\n\
         Rules that compare with a GPU's peak take it from [a table of GPUs](rules/devices.md).\n\n\
         These pages are generated from the rules' own documentation: `cargo run -p inferscope-diagnosis --example rules_page`.\n",
    );
    for family in &FAMILIES {
        page += &format!("\n## {}\n\n{}\n\n| rule | finds |\n|---|---|\n", family.title, family.summary);
        for rule in family.rules {
            page += &format!(
                "| [`{0}`](rules/{1}.md#{0}) | {2} |\n",
                rule.code(),
                family.name,
                filled(*rule, rule.docs().summary)
            );
        }
    }
    page
}

fn of_family(family: &Family) -> String {
    let mut page = format!("# {}\n\n{}\n\n{}", family.title, family.summary, made("../"));
    for rule in family.rules {
        page += &of_rule(*rule);
    }
    page
}

/// With the values that hold where nobody changed them.
fn filled(rule: &dyn Rule, text: &str) -> String {
    RuleDocs::filled(text, rule, &RuleSettings::default())
}

fn of_rule(rule: &dyn Rule) -> String {
    let docs = rule.docs();
    let mut page = format!(
        "\n## {}\n\n{}\n\n{}\n\n**Needs:** {}\n\n```text\n{}\n```\n",
        rule.code(),
        filled(rule, docs.summary),
        filled(rule, docs.why),
        filled(rule, docs.needs),
        docs.example
    );
    if !rule.thresholds().is_empty() {
        page += "\n| threshold | value | why |\n|---|---|---|\n";
    }
    for threshold in rule.thresholds() {
        let said = threshold.unit.say(threshold.value);
        page += &format!("| `{}` | {said} | {} |\n", threshold.name, threshold.reason);
    }
    page
}
