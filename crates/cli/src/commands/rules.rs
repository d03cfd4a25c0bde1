//! `inferscope rules`: the rules and the metrics that user rules can ask for, what one of them means, and whether a file of
//! user rules is right.

use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::rule_file::RuleFile;
use crate::{output, rule_file, terminal};
use analysis::phrase;
use analysis::spelling::nearest_of;
use clap::{Args, Subcommand};
use diagnosis::named::METRICS;
use diagnosis::rules::{self, RULES};
use diagnosis::{Rule, RuleDocs, RuleSettings};
use report::Ink;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope rules list
  inferscope rules explain hot-line
  inferscope rules check .inferscope_rules.yaml")]
pub struct Rules {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List all rules, built-in and your own, and the metrics
    List {
        /// Your rules file [default: the nearest .inferscope_rules.yaml]
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
    },
    /// Explain a rule or a metric
    Explain {
        /// The rule's code, or the metric's name
        code: String,

        /// Your rules file [default: the nearest .inferscope_rules.yaml]
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
    },
    /// Check a rules file and print every error with its line
    Check {
        /// Your rules file
        file: PathBuf,
    },
}

pub fn run(settings: &Settings, rules: &Rules) -> Result<Ending, Failure> {
    match &rules.action {
        Action::List { rules } => list(settings, &rule_file::load(settings, rules.as_deref())?)?,
        Action::Explain { code, rules } => explain(settings, code, &rule_file::load(settings, rules.as_deref())?)?,
        Action::Check { file } => return check(file),
    }
    Ok(Ending::FINE)
}

/// A page of faults is enough to see what is wrong.
const MOST_FAULTS: usize = 100;

fn check(file: &Path) -> Result<Ending, Failure> {
    match rule_file::check(file)? {
        Ok(rules) => {
            let word = if rules.own.len() == 1 { "rule" } else { "rules" };
            let changes = match rules.ours.counts() {
                (0, 0) => String::new(),
                (off, values) => {
                    format!(", {off} built-in off, {} changed", phrase::counted(values as u64, "threshold"))
                }
            };
            let count = rules.own.len();
            output::write_to(None, |out| writeln!(out, "{}: {count} {word}{changes}, no errors", file.display()))?;
            Ok(Ending::FINE)
        }
        Err(faults) => {
            faults.iter().take(MOST_FAULTS).for_each(terminal::say);
            if faults.len() > MOST_FAULTS {
                terminal::say(format_args!("{}: {} more", file.display(), faults.len() - MOST_FAULTS));
            }
            Ok(Ending::Code(5))
        }
    }
}

fn list(settings: &Settings, file: &RuleFile) -> Result<(), Failure> {
    let style = terminal::stdout_style(&settings.color);
    let ours = RULES.iter().map(|rule| {
        let off = file.ours.off(rule.code()).map(|origin| format!("off ({origin}): ")).unwrap_or_default();
        let summary = RuleDocs::filled(rule.docs().summary, *rule, &file.ours);
        (rule.code().to_string(), off + &summary)
    });
    let yours = file.own.iter().map(|rule| (rule.name.clone(), format!("{} ({})", rule.text, rule.origin)));
    let metrics =
        METRICS.iter().map(|metric| (metric.name.to_owned(), format!("[{}] {}", metric.unit.name(), metric.what)));
    let sections: [(&str, Vec<(String, String)>); 3] =
        [("Rules", ours.collect()), ("Your rules", yours.collect()), ("Metrics", metrics.collect())];
    output::write_to(None, |out| {
        let mut first = true;
        for (title, lines) in sections.iter().filter(|section| !section.1.is_empty()) {
            let gap = if std::mem::take(&mut first) { "" } else { "\n" };
            writeln!(out, "{gap}{}", style.ink(Ink::Heading, title))?;
            let width = lines.iter().map(|line| line.0.len()).max().unwrap_or(0);
            for (name, what) in lines {
                writeln!(out, "  {name:width$}  {}", style.plain(what))?;
            }
        }
        Ok(())
    })
}

fn explain(settings: &Settings, code: &str, file: &RuleFile) -> Result<(), Failure> {
    let style = terminal::stdout_style(&settings.color);
    let facts: Vec<(&str, String)> = if let Some(rule) = RULES.iter().find(|rule| rule.code() == code) {
        of_ours(*rule, &file.ours)
    } else if let Some(rule) = file.own.iter().find(|rule| rule.name == code) {
        vec![
            ("defined at", rule.origin.clone()),
            ("finds", rule.text.clone()),
            ("suggests", rule.suggestions.join("; ")),
            ("severity", rule.severity.name().into()),
        ]
    } else if let Some(metric) = METRICS.iter().find(|metric| metric.name == code) {
        vec![("metric", metric.what.into()), ("unit", metric.unit.name().into())]
    } else {
        let codes = RULES.iter().map(|rule| rule.code().as_str()).chain(file.own.iter().map(|rule| rule.name.as_str()));
        let near = nearest_of(code, codes.chain(METRICS.iter().map(|metric| metric.name)));
        let hint = near.map_or("`inferscope rules list` shows all".into(), |near| format!("did you mean {near}?"));
        return Err(Failure::usage(format!("no rule or metric is called {code:?}: {hint}")));
    };
    output::write_to(None, |out| {
        writeln!(out, "{}", style.ink(Ink::Heading, code))?;
        facts.iter().try_for_each(|(word, text)| writeln!(out, "  {word}: {}", style.plain(text)))
    })
}

/// With the values in force, and where each comes from.
fn of_ours(rule: &dyn Rule, settings: &RuleSettings) -> Vec<(&'static str, String)> {
    let docs = rule.docs();
    let filled = |text: &str| RuleDocs::filled(text, rule, settings);
    let mut facts = vec![
        ("finds", filled(docs.summary)),
        ("why", filled(docs.why)),
        ("needs", filled(docs.needs)),
        ("says", docs.example.into()),
    ];
    facts.extend(rules::family(rule.code()).map(|family| ("family", format!("{} ({})", family.name, family.title))));
    if let Some(origin) = settings.off(rule.code()) {
        facts.push(("off", origin.to_owned()));
    }
    for threshold in rule.thresholds() {
        let value = threshold.unit.say(settings.value(*threshold));
        let from = match settings.origin(*threshold) {
            Some(origin) => format!("{origin}; default {}", threshold.unit.say(threshold.value)),
            None => "default".into(),
        };
        facts.push(("threshold", format!("{} = {value} ({from}): {}", threshold.name, threshold.reason)));
    }
    facts
}
