//! Ranges that keep their word. A recording gives a gain with the error of its samples; what else a fix changes it cannot show. How far promised
//! gains were from measured ones, for fixes of programs that were really made, is in `measured.csv`: from that comes the range that holds nine of ten of
//! them (`misses`). The middle stays where the recording puts it.

mod misses;

use crate::finding::Finding;
use misses::{Fix, Misses, angle, percent};
use replay::gain::{ChangeKind, Gain, GainBy};
use std::sync::OnceLock;

/// Measured fixes: kind of change, what was promised (low, mid, high), what was measured, the program. `tests/suite/calibrate.py` writes it,
/// `tests/suite/ranges.py` says what ranges without the program itself hold.
const MEASURED: &str = include_str!("measured.csv");

/// The findings with gains as measured fixes say.
pub fn calibrated(findings: Vec<Finding>) -> Vec<Finding> {
    static KNOWN: OnceLock<Option<Misses>> = OnceLock::new();
    let Some(misses) = KNOWN.get_or_init(|| Misses::of(read(MEASURED))) else { return findings };
    let one = |finding: Finding| Finding { gain: finding.gain.map(|gain| ranged(gain, misses)), ..finding };
    findings.into_iter().map(one).collect()
}

/// Of gains smaller than any whose fix was measured nothing is known.
fn ranged(gain: Gain, misses: &Misses) -> Gain {
    if gain.mid >= misses.least() { corrected(gain, misses) } else { gain }
}

fn corrected(gain: Gain, misses: &Misses) -> Gain {
    let derived = [gain.low, gain.mid, gain.high];
    let by = misses.at_most(gain.kind.name(), derived);
    let [low, high] = [-by, by].map(|by| percent(angle(gain.mid) + by));
    // Where the recording does not show what a fix reaches, fixes that were measured on one machine do not show it of another: the bounds stay.
    let (least, most) = match gain.by {
        GainBy::Bounded | GainBy::Prior => (gain.low, gain.high),
        GainBy::Replay | GainBy::Recorded => (gain.mid, gain.mid),
    };
    Gain { low: low.min(least), high: high.max(most), derived: Some(derived), ..gain }
}

fn read(table: &str) -> Vec<Fix> {
    let fix = |line: &str| {
        let mut fields = line.split(',');
        let kind = fields.next().filter(|kind| ChangeKind::ALL.iter().any(|known| known.name() == *kind))?.to_owned();
        let mut number = || fields.next()?.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let fix =
            Fix { kind, promised: [number()?, number()?, number()?], measured: number()?, program: String::new() };
        Some(Fix { program: fields.next()?.trim().to_owned(), ..fix })
    };
    table.lines().skip(1).filter_map(fix).collect()
}

#[cfg(test)]
mod tests;
