//! How far promised gains miss measured ones, by kind of change, with what is known of all kinds standing in as far as little is known of one.
//!
//! Kinds differ in how far they usually miss (a copy that goes is gone; what a graph of launches reaches is a guess) and less in how much worse than usual the
//! worst are. So each kind has a usual miss of its own, drawn towards that of all kinds by how few fixes it was measured with, and one factor for all
//! says how many usual misses hold nine of ten fixes. `tests/suite/ranges.py` does the same, with each program left out in turn.

/// The part of measured gains that lies inside the range.
const INSIDE_RANGE: f64 = 0.9;
/// All kinds together weigh as much as so many fixes of the kind: with as many of its own, half of its usual miss is its own. A median of eight is known to about a
/// third of itself, which is how much kinds differ. From 4 to 16 the ranges are as good.
const POOL_WEIGHT: f64 = 8.0;
/// A recording's low and high hold 95 % of what its samples allow: of a normal error half lies within this part of that.
const HALF_OF_95: f64 = 0.344;

#[derive(Clone, PartialEq, Debug)]
pub struct Fix {
    pub kind: String,
    pub promised: [f64; 3],
    pub measured: f64,
    pub program: String,
}

impl Fix {
    fn miss(&self) -> f64 {
        (angle(self.measured) - angle(self.promised[1])).abs()
    }
}

/// Measured fixes, and by how much they missed.
#[derive(Clone, PartialEq, Debug)]
pub struct Misses {
    fixes: Vec<Fix>,
    /// Of all kinds.
    usual: f64,
    /// So many usual misses hold nine of ten.
    factor: f64,
}

impl Misses {
    /// None: no fix was measured.
    pub fn of(fixes: Vec<Fix>) -> Option<Misses> {
        let usual = median(fixes.iter().map(Fix::miss).collect())?;
        let mut misses = Misses { fixes, usual, factor: 1.0 };
        let spread = |fix: &Fix| misses.spread(&fix.kind, fix.promised).max(f64::MIN_POSITIVE);
        misses.factor = quantile(misses.fixes.iter().map(|fix| fix.miss() / spread(fix)).collect(), INSIDE_RANGE);
        Some(misses)
    }

    /// What nine of ten gains of a kind miss by at most, as an angle.
    pub fn at_most(&self, kind: &str, promised: [f64; 3]) -> f64 {
        self.factor * self.spread(kind, promised)
    }

    /// The smallest gain that was promised.
    pub fn least(&self) -> f64 {
        self.fixes.iter().map(|fix| fix.promised[1]).fold(f64::INFINITY, f64::min)
    }

    /// What half of them miss by: the usual miss of the kind, and what the samples of this recording leave open. One error has nothing to do with the other.
    fn spread(&self, kind: &str, promised: [f64; 3]) -> f64 {
        self.usual_of(kind).hypot(HALF_OF_95 * sampling(promised))
    }

    /// A median: one program that was understood wrongly must not widen all ranges of its kind. What such programs are worth is in the factor.
    fn usual_of(&self, kind: &str) -> f64 {
        let own: Vec<f64> = self.fixes.iter().filter(|fix| fix.kind == kind).map(Fix::miss).collect();
        let count = own.len() as f64;
        let usual = median(own).unwrap_or(self.usual);
        (count * usual + POOL_WEIGHT * self.usual) / (count + POOL_WEIGHT)
    }
}

/// The error of the samples, as an angle: it goes to both sides. What a range has more on one side is a bound (at worst nothing is gained), and how often
/// that comes true is what measured fixes say.
fn sampling([low, mid, high]: [f64; 3]) -> f64 {
    (angle(mid) - angle(low)).min(angle(high) - angle(mid)).max(0.0)
}

/// Between the two in the middle, as `ranges.py` has it: `stats::median` is always one of the values.
fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    let middle = all.len() / 2;
    match all.len() % 2 {
        0 => Some(all.get(middle.checked_sub(1)?)?.midpoint(all[middle])),
        _ => all.get(middle).copied(),
    }
}

/// The conformal quantile: one more than there are could come next, anywhere between them with the same chance.
fn quantile(mut all: Vec<f64>, part: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    let place = (part * (all.len() as f64 + 1.0)).ceil() as usize;
    all.get(place.saturating_sub(1).min(all.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// Shares are compared as angles, where the same miss weighs the same at a tenth of the step and at nine tenths.
pub fn angle(percent: f64) -> f64 {
    (percent / 100.0).clamp(0.0, 1.0).sqrt().asin()
}

pub fn percent(angle: f64) -> f64 {
    100.0 * angle.clamp(0.0, std::f64::consts::FRAC_PI_2).sin().powi(2)
}
