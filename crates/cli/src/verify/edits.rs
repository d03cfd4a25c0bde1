//! What has to be edited for rules whose fix `verify` cannot switch on, as the rule says it, and how to ask for the gain before the edit.

use diagnosis::Rule;

/// One sentence: there is no switch, and what to do instead.
pub fn edit(rule: &dyn Rule) -> String {
    let code = rule.code();
    let Some(edit) = rule.edit() else {
        return format!(
            "`{code}` needs a code change; `verify` cannot apply it. `inferscope analyze` names the place and what to do; \
             record before and after, and compare with `inferscope diff`"
        );
    };
    let predict = match edit.whatif {
        None => String::new(),
        Some(ask) => format!(" To predict the gain: inferscope whatif TRACE \"{ask}\"."),
    };
    format!(
        "`{code}` needs a code change; `verify` cannot apply it: {}.{predict} Record before and after, and compare with \
         `inferscope diff`",
        edit.what
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnosis::rules::RULES;

    #[test]
    fn edits_are_of_rules_that_no_switch_answers() {
        let mut edits = 0;
        for (rule, edit) in RULES.iter().filter_map(|rule| Some((rule, rule.edit()?))) {
            edits += 1;
            assert_eq!(rule.fix(), None, "{}", rule.code());
            assert!(edit.whatif.is_none_or(|ask| replay::parse(ask).is_ok()), "{edit:?}");
        }
        assert!(edits > 10, "{edits}");
        let said = |code: &str| edit(RULES.into_iter().find(|rule| rule.code() == code).unwrap());
        assert!(said("throttled").contains("inferscope analyze"));
        assert!(said("launch-bound").contains("\"graph steps\""));
    }
}
