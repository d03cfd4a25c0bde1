//! What `inferscope verify` says: the fixes that there are, what is predicted of one, and what the runs with and without it showed.

pub mod json;

use crate::style::{Ink, Style};
use analysis::phrase;
use diagnosis::RuleCode;
use diagnosis::fixes::FIXES;
use diagnosis::verify::{
    Basis, Experiment, FixState, Interval, Measure, Outcome, Output, PredictedGain, Prediction, Run,
};
use std::io::{self, Write};

/// For stderr, before the rounds.
pub fn announce(prediction: &Prediction) -> String {
    let basis = basis(&prediction.basis);
    match prediction.gain {
        Some(gain) => format!("predicted {} %: {basis}", number(-gain.mid / 100.0)),
        None => format!("no prediction: {basis}; measuring anyway"),
    }
}

pub fn write(experiment: &Experiment, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let ink = match experiment.measured {
        Some((_, Outcome::Confirmed | Outcome::More | Outcome::Faster)) => Ink::Good,
        _ => Ink::Warn,
    };
    let fix = experiment.chosen.fix;
    writeln!(out, "{}: {}", experiment.chosen.title(), style.ink(ink, &style.plain(&answer(experiment))))?;
    writeln!(out)?;
    let basis = basis(&experiment.prediction.basis);
    let lines = [
        ("Fix", fix.what.to_owned()),
        ("Applied", applied(experiment)),
        ("Predicted", experiment.prediction.gain.map_or_else(|| format!("nothing: {basis}"), |_| basis.clone())),
        ("Measured", measured(experiment)),
        ("Without", spread(&experiment.measure, &experiment.without)),
        ("With", spread(&experiment.measure, &experiment.with)),
        ("Output", output(experiment.output()).to_owned()),
        ("Risk", fix.risk.to_owned()),
    ];
    lines.iter().try_for_each(|(word, text)| writeln!(out, "{word:<9}  {}", style.plain(text)))
}

/// The fixes that can be switched.
pub fn list(style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for fix in &FIXES {
        writeln!(out, "{}", style.ink(Ink::Heading, fix.name))?;
        let rules: Vec<&str> = fix.rules().into_iter().map(RuleCode::as_str).collect();
        let rules = if rules.is_empty() { "none".to_owned() } else { rules.join(", ") };
        for (word, text) in [("rules", rules.as_str()), ("does", fix.what), ("risk", fix.risk)] {
            writeln!(out, "  {word:<5}  {}", style.plain(text))?;
        }
    }
    Ok(())
}

fn basis(basis: &Basis) -> String {
    match basis {
        Basis::Finding(title) => title.clone(),
        Basis::Skipped(rule, reason) => format!("{rule} was skipped: {reason}"),
        Basis::NoFinding(rule) => format!("no {rule} finding in this recording"),
        Basis::NoRule => "no rule recommends this fix".into(),
    }
}

fn answer(experiment: &Experiment) -> String {
    match experiment.measured {
        Some((interval, outcome)) => sentence(experiment.prediction.gain, interval, outcome),
        None => "inconclusive: a run took no time".into(),
    }
}

fn applied(experiment: &Experiment) -> String {
    match experiment.with.first().map(|run| &run.fix) {
        Some(FixState::Applied(what)) => what.clone(),
        _ => "set in the environment; no Python process confirmed that it was read".into(),
    }
}

fn output(output: Output) -> &'static str {
    match output {
        Output::Same => "identical with and without the fix",
        Output::Differs => "differs only with the fix: compare the results",
        Output::Unstable => "differs from run to run, also without the fix",
    }
}

fn measured(experiment: &Experiment) -> String {
    let rounds = phrase::counted(experiment.with.len() as u64, "round");
    match &experiment.measure {
        Measure::Step(name) => {
            let runs = experiment.with.iter().chain(&experiment.without);
            let steps = phrase::counted(runs.map(|run| run.times.steps).min().unwrap_or(0) as u64, "step");
            format!("mean of step \"{name}\"; {rounds}, at least {steps} a run")
        }
        Measure::Process => format!("the whole process (it marks no steps); {rounds}"),
    }
}

/// `12.3 ms (12.1 ms to 12.6 ms)`.
fn spread(measure: &Measure, runs: &[Run]) -> String {
    let times: Vec<f64> = runs.iter().map(|run| measure.of_run(run)).collect();
    let say = |ns: f64| phrase::duration(ns.max(0.0) as u64);
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let (low, high) = times.iter().fold((f64::MAX, 0f64), |(low, high), time| (low.min(*time), high.max(*time)));
    format!("{} ({} to {})", say(mean), say(low), say(high))
}

/// `predicted −18 % (−12 to −22), measured −16.4 % (95 % interval −17.8 to −14.9): confirmed`.
fn sentence(predicted: Option<PredictedGain>, measured: Interval, outcome: Outcome) -> String {
    let interval = format!("{} to {}", number(measured.low), number(measured.high));
    let said = match outcome {
        Outcome::Confirmed => "confirmed".to_owned(),
        Outcome::Less if measured.high >= 0.0 => "not confirmed: no gain, or less than predicted".to_owned(),
        Outcome::Less => "faster, but by less than predicted".to_owned(),
        Outcome::More => "faster, by more than predicted".to_owned(),
        Outcome::Faster => "faster".to_owned(),
        Outcome::Slower => "slower: leave it".to_owned(),
        Outcome::NoDifference => "no difference (within 1 %)".to_owned(),
        Outcome::CannotTell => {
            format!("inconclusive: the interval is {interval} %; use more --rounds or a quieter machine")
        }
    };
    let before = match predicted {
        Some(gain) => format!(
            "predicted {} % ({} to {}), ",
            number(-gain.mid / 100.0),
            number(-gain.low / 100.0),
            number(-gain.high / 100.0)
        ),
        None => String::new(),
    };
    format!("{before}measured {} % (95 % interval {interval}): {said}", number(measured.mid))
}

/// A fraction in percent, with its sign: `−16.4`, `+3.0`. Two wild runs give intervals without an end, which is all to say.
fn number(fraction: f64) -> String {
    if fraction > 10.0 {
        return "over +1000".into();
    }
    phrase::signed(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_both_with_their_ranges() {
        let gain = Some(PredictedGain { low: 12.0, mid: 18.0, high: 22.0 });
        let measured = Interval { mid: -0.164, low: -0.178, high: -0.149 };
        assert_eq!(
            sentence(gain, measured, Outcome::Confirmed),
            "predicted −18.0 % (−12.0 to −22.0), measured −16.4 % (95 % interval −17.8 to −14.9): confirmed"
        );
        let wide = Interval { mid: 0.01, low: -0.03, high: 0.05 };
        let said = sentence(None, wide, Outcome::CannotTell);
        assert!(said.contains("inconclusive: the interval is −3.0 to +5.0 %"), "{said}");
        assert_eq!(number(2.8e9), "over +1000");
        assert_eq!((number(-0.00004), number(1.5), number(0.0304)), ("0.0".into(), "+150".into(), "+3.0".into()));
    }

    #[test]
    fn a_prediction_says_what_it_rests_on() {
        let code = diagnosis::rules::RULES[0].code();
        let of = |gain, basis| announce(&Prediction { rule: Some(code), gain, basis });
        let gain = Some(PredictedGain { low: 12.0, mid: 18.0, high: 22.0 });
        assert_eq!(of(gain, Basis::Finding("GPU idle".into())), "predicted −18.0 %: GPU idle");
        let said = format!("no prediction: no {code} finding in this recording; measuring anyway");
        assert_eq!(of(None, Basis::NoFinding(code)), said);
    }
}
