//! What memory comes to, for somebody who asks whether there is a risk: a few figures, the risks that follow from them, and the folder that both are written to.

use crate::bundle::utc;
use crate::event::Event;
use crate::json;
use crate::query::is_oom;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Parts of the device, and of what is reserved, from which tools of this kind warn.
pub const HIGH_UTILIZATION: f64 = 0.85;
pub const FRAGMENTED: f64 = 0.3;

/// Of one device or allocator. None: it was not measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Figures {
    pub backend: String,
    /// At the end.
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
    /// Handed out at most.
    pub peak: Option<u64>,
    /// Of the device in use at most, by everybody or as far as that is known.
    pub used: Option<u64>,
    pub total: Option<u64>,
    pub ooms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Risks {
    pub oom_occurred: bool,
    pub high_utilization: bool,
    pub fragmentation: bool,
}

impl Risks {
    pub fn any(self) -> bool {
        self.oom_occurred || self.high_utilization || self.fragmentation
    }
}

impl Figures {
    pub fn gap(&self) -> Option<u64> {
        self.reserved.zip(self.allocated).map(|(reserved, allocated)| reserved.saturating_sub(allocated))
    }

    /// The part of the device that was in use at most.
    pub fn utilization(&self) -> Option<f64> {
        let (used, total) = self.used.zip(self.total.filter(|total| *total > 0))?;
        Some(used as f64 / total as f64)
    }

    /// The part of what is reserved that is not handed out.
    pub fn fragmentation(&self) -> Option<f64> {
        let (gap, reserved) = self.gap().zip(self.reserved.filter(|reserved| *reserved > 0))?;
        Some(gap as f64 / reserved as f64)
    }

    pub fn risks(&self) -> Risks {
        Risks {
            oom_occurred: self.ooms > 0,
            high_utilization: self.utilization().is_some_and(|share| share >= HIGH_UTILIZATION),
            fragmentation: self.fragmentation().is_some_and(|share| share >= FRAGMENTED),
        }
    }
}

/// Gathers the figures of telemetry: of the device that was fullest.
#[derive(Debug, Default)]
pub struct Gathered {
    figures: Figures,
}

impl Gathered {
    pub fn add(&mut self, event: &Event) {
        let (figures, counters) = (&mut self.figures, &event.counters);
        figures.ooms += u64::from(is_oom(event));
        if counters.allocated.is_some() {
            (figures.allocated, figures.reserved) = (counters.allocated, counters.reserved);
            figures.peak = figures.peak.max(counters.allocated);
        }
        let fuller = counters.share_used() > figures.utilization();
        if fuller || figures.backend.is_empty() && counters.used.is_some() {
            (figures.used, figures.total) = (counters.used, counters.total);
            figures.backend = if event.source.device_id < 0 { "host" } else { "device" }.into();
        }
    }

    pub fn finish(self) -> Figures {
        self.figures
    }
}

/// The folder of a diagnosis.
pub struct Folder<'a> {
    pub source: &'a str,
    pub time_ns: u64,
    pub figures: &'a Figures,
    /// What to do, a sentence each.
    pub suggestions: &'a [String],
    pub events: &'a [Event],
    /// Where it ran. Never variables: whoever diagnoses is not whom it is of.
    pub environment: Value,
    pub report: Value,
}

impl Folder<'_> {
    /// Writes it; the folder must not be there yet. It appears whole or not at all.
    pub fn write(&self, place: &Path) -> io::Result<()> {
        if place.symlink_metadata().is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is there already"));
        }
        let name = place.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
        let unfinished = place.with_file_name(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&unfinished)?;
        let written = self.files(&unfinished).and_then(|()| fs::rename(&unfinished, place));
        if written.is_err() {
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }

    pub fn summary(&self) -> Value {
        let (figures, risks) = (self.figures, self.figures.risks());
        json!({
            "backend": figures.backend,
            "allocated_bytes": figures.allocated,
            "reserved_bytes": figures.reserved,
            "peak_bytes": figures.peak,
            "total_bytes": figures.total,
            "allocator_gap_bytes": figures.gap(),
            "utilization_ratio": figures.utilization(),
            "fragmentation_ratio": figures.fragmentation(),
            "num_ooms": figures.ooms,
            "risk_flags": {
                "oom_occurred": risks.oom_occurred,
                "high_utilization": risks.high_utilization,
                "fragmentation_warning": risks.fragmentation,
            },
            "suggestions": self.suggestions,
        })
    }

    fn files(&self, folder: &Path) -> io::Result<()> {
        let events: Vec<Value> = self.events.iter().map(|event| Value::Object(json::object(event))).collect();
        let manifest = json!({
            "schema": 1,
            "created_at_utc": utc(self.time_ns),
            "source": self.source,
            "event_count": events.len(),
            "risk_detected": self.figures.risks().any(),
            "files": ["environment.json", "telemetry_timeline.json", "diagnostic_summary.json", "report.json", "manifest.json"],
        });
        let files = [
            ("environment.json", &self.environment),
            ("telemetry_timeline.json", &json!({ "events": events })),
            ("diagnostic_summary.json", &self.summary()),
            ("report.json", &self.report),
            ("manifest.json", &manifest),
        ];
        files.iter().try_for_each(|(name, value)| fs::write(folder.join(name), format!("{value:#}\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risks_follow_from_the_figures() {
        let fine = Figures {
            allocated: Some(80),
            reserved: Some(100),
            used: Some(84),
            total: Some(100),
            ..Figures::default()
        };
        assert_eq!(fine.risks(), Risks::default());
        let full = Figures { used: Some(85), ..fine.clone() };
        assert!(full.risks().high_utilization && full.risks().any());
        let split = Figures { allocated: Some(70), ..fine.clone() };
        assert!(split.risks().fragmentation && !split.risks().high_utilization);
        assert!(Figures { ooms: 1, ..fine }.risks().oom_occurred);
        assert_eq!(Figures::default().risks(), Risks::default(), "what was not measured is no risk");
    }

    #[test]
    fn the_folder_is_written_once() {
        let place = std::env::temp_dir().join(format!("inferscope-risk-{}", std::process::id()));
        let _ = fs::remove_dir_all(&place);
        let figures = Figures { backend: "host".into(), ooms: 2, ..Figures::default() };
        let folder = Folder {
            source: "t",
            time_ns: 0,
            figures: &figures,
            suggestions: &[],
            events: &[],
            environment: json!({}),
            report: json!({}),
        };
        folder.write(&place).unwrap();
        assert_eq!(fs::read_dir(&place).unwrap().count(), 5);
        assert!(folder.write(&place).is_err());
        assert_eq!(folder.summary()["risk_flags"]["oom_occurred"], true);
        fs::remove_dir_all(place).unwrap();
    }
}
