//! When memory is worth an alert: a threshold that is crossed for long enough is one alert, not one for each sample, and it is over only
//! when memory has clearly fallen below it again.

use crate::event::EventType;

/// Shares of the device's memory, 0 to 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    pub warning: Option<f64>,
    pub critical: Option<f64>,
    /// How far below a threshold the share has to fall before the alert is over.
    pub hysteresis: f64,
    /// How long the share has to stay above before it is an alert.
    pub hold_ns: u64,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { warning: Some(0.8), critical: Some(0.95), hysteresis: 0.05, hold_ns: 0 }
    }
}

impl Thresholds {
    /// Why they cannot be followed.
    pub fn contradiction(&self) -> Option<String> {
        let named = [("warning", self.warning), ("critical", self.critical)];
        for (name, value) in named {
            if let Some(value) = value.filter(|value| !(*value > 0.0 && *value <= 1.0)) {
                return Some(format!(
                    "the {name} threshold must be more than 0 % and at most 100 %, got {:.0} %",
                    value * 100.0
                ));
            }
        }
        match (self.warning, self.critical) {
            (Some(warning), Some(critical)) if warning >= critical => Some(format!(
                "the warning threshold ({:.0} %) must be below the critical one ({:.0} %)",
                warning * 100.0,
                critical * 100.0
            )),
            _ if !(0.0..1.0).contains(&self.hysteresis) => Some("the hysteresis must be between 0 % and 100 %".into()),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    Fine,
    Warning,
    Critical,
}

/// The alerts of one device.
#[derive(Debug)]
pub struct Alerts {
    thresholds: Thresholds,
    level: Level,
    /// The level that the share has reached and since when, while it is not held for long enough.
    pending: Option<(Level, u64)>,
}

impl Alerts {
    pub fn new(thresholds: Thresholds) -> Alerts {
        Alerts { thresholds, level: Level::Fine, pending: None }
    }

    /// One sample. Some: it is an alert.
    pub fn see(&mut self, time_ns: u64, share: f64) -> Option<EventType> {
        let reached = self.reached(share);
        if reached <= self.level {
            self.pending = None;
            self.level = self.level.min(self.kept(share)).max(reached);
            return None;
        }
        let since = match self.pending {
            // A clock that goes back begins anew.
            Some((level, since)) if level >= reached && since <= time_ns => since,
            Some((_, since)) if since <= time_ns => since,
            _ => time_ns,
        };
        self.pending = Some((reached, since));
        if time_ns - since < self.thresholds.hold_ns {
            return None;
        }
        (self.level, self.pending) = (reached, None);
        Some(if reached == Level::Critical { EventType::Critical } else { EventType::Warning })
    }

    fn reached(&self, share: f64) -> Level {
        let above = |threshold: Option<f64>| threshold.is_some_and(|threshold| share >= threshold);
        match (above(self.thresholds.critical), above(self.thresholds.warning)) {
            (true, _) => Level::Critical,
            (_, true) => Level::Warning,
            _ => Level::Fine,
        }
    }

    /// The level that an alert keeps, though the share has fallen a little.
    fn kept(&self, share: f64) -> Level {
        self.reached(share + self.thresholds.hysteresis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(thresholds: Thresholds, shares: &[f64]) -> Vec<(usize, EventType)> {
        let mut alerts = Alerts::new(thresholds);
        let see = |(at, share): (usize, &f64)| alerts.see(at as u64 * 1_000, *share).map(|kind| (at, kind));
        shares.iter().enumerate().filter_map(see).collect()
    }

    #[test]
    fn one_crossing_is_one_alert() {
        use EventType::{Critical, Warning};
        let plain = Thresholds::default();
        assert_eq!(seen(plain, &[0.5, 0.81, 0.9, 0.96, 0.99, 0.5]), [(1, Warning), (3, Critical)]);
        assert_eq!(seen(plain, &[0.81, 0.79, 0.81, 0.78, 0.82]), [(0, Warning)], "it flickers around the threshold");
        assert_eq!(seen(plain, &[0.81, 0.7, 0.81]), [(0, Warning), (2, Warning)], "it has fallen meanwhile");
        assert_eq!(seen(plain, &[0.99, 0.85, 0.99]), [(0, Critical), (2, Critical)]);
        assert_eq!(seen(plain, &[0.96, 0.92, 0.96]), [(0, Critical)]);
    }

    #[test]
    fn a_peak_shorter_than_the_hold_is_none() {
        let held = Thresholds { hold_ns: 2_000, ..Thresholds::default() };
        assert_eq!(seen(held, &[0.9, 0.5, 0.9, 0.9, 0.9, 0.9]), [(4, EventType::Warning)]);
    }

    #[test]
    fn a_clock_that_goes_back_does_not_end_it() {
        let mut alerts = Alerts::new(Thresholds { hold_ns: 10, ..Thresholds::default() });
        assert_eq!(
            (alerts.see(100, 0.9), alerts.see(5, 0.9), alerts.see(16, 0.9)),
            (None, None, Some(EventType::Warning))
        );
    }

    #[test]
    fn thresholds_that_contradict_are_refused() {
        let of = |warning, critical| Thresholds { warning, critical, ..Thresholds::default() }.contradiction();
        assert_eq!((of(Some(0.8), Some(0.9)), of(None, None), of(Some(1.0), None)), (None, None, None));
        assert!(of(Some(0.9), Some(0.9)).is_some_and(|why| why.contains("below the critical one")));
        assert!(of(Some(0.0), None).is_some() && of(None, Some(1.2)).is_some() && of(Some(f64::NAN), None).is_some());
    }
}
