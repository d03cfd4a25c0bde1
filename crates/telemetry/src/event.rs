//! One event of memory telemetry. What does not change from one event to the next (who, where, which device) is its [`Source`].

use crate::identity::Identity;
use std::sync::Arc;

/// What happened. The numbers are in the sink's files: never renumbered, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum EventType {
    Start = 1,
    Stop = 2,
    Sample = 3,
    Allocation = 4,
    Deallocation = 5,
    Peak = 6,
    Warning = 7,
    Critical = 8,
    Error = 9,
    Cleanup = 10,
    CollectorDegraded = 11,
    CollectorRecovered = 12,
    PhaseEnter = 13,
    PhaseExit = 14,
}

impl EventType {
    pub const ALL: [EventType; 14] = [
        EventType::Start,
        EventType::Stop,
        EventType::Sample,
        EventType::Allocation,
        EventType::Deallocation,
        EventType::Peak,
        EventType::Warning,
        EventType::Critical,
        EventType::Error,
        EventType::Cleanup,
        EventType::CollectorDegraded,
        EventType::CollectorRecovered,
        EventType::PhaseEnter,
        EventType::PhaseExit,
    ];

    pub fn name(self) -> &'static str {
        match self {
            EventType::Start => "start",
            EventType::Stop => "stop",
            EventType::Sample => "sample",
            EventType::Allocation => "allocation",
            EventType::Deallocation => "deallocation",
            EventType::Peak => "peak",
            EventType::Warning => "warning",
            EventType::Critical => "critical",
            EventType::Error => "error",
            EventType::Cleanup => "cleanup",
            EventType::CollectorDegraded => "collector_degraded",
            EventType::CollectorRecovered => "collector_recovered",
            EventType::PhaseEnter => "phase_enter",
            EventType::PhaseExit => "phase_exit",
        }
    }

    pub fn from_name(name: &str) -> Option<EventType> {
        EventType::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn from_number(number: u8) -> Option<EventType> {
        EventType::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// Whether somebody is to look at it.
    pub fn is_alert(self) -> bool {
        matches!(self, EventType::Warning | EventType::Critical | EventType::Error)
    }
}

/// Who said it, of which process and device.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Source {
    pub collector: String,
    pub sampling_interval_ms: u64,
    /// −1: unknown.
    pub pid: i64,
    pub host: String,
    /// −1: host memory.
    pub device_id: i64,
    /// Empty in files from before there were sessions.
    pub session: String,
    pub identity: Identity,
}

/// Bytes. None: it was not measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
    pub active: Option<u64>,
    pub inactive: Option<u64>,
    /// What the allocator took (or gave back, if negative) since the event before.
    pub change: Option<i64>,
    pub used: Option<u64>,
    pub free: Option<u64>,
    pub total: Option<u64>,
}

impl Counters {
    /// Why they cannot be true. Of several reasons the first.
    pub fn contradiction(&self) -> Option<&'static str> {
        let exceeds = |part: Option<u64>| part.zip(self.total).is_some_and(|(part, total)| part > total);
        if exceeds(self.used) {
            return Some("device_used_bytes exceeds device_total_bytes");
        }
        exceeds(self.free).then_some("device_free_bytes exceeds device_total_bytes")
    }

    /// The part of the device that is used. None: not measured, or a device of no size.
    pub fn share_used(&self) -> Option<f64> {
        let (used, total) = self.used.zip(self.total.filter(|total| *total > 0))?;
        Some(used as f64 / total as f64)
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// Since 1970.
    pub time_ns: u64,
    pub kind: EventType,
    pub source: Arc<Source>,
    pub counters: Counters,
    pub context: Option<Arc<str>>,
    /// A JSON object. None: an empty one.
    pub metadata: Option<Arc<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_come_back() {
        for kind in EventType::ALL {
            assert_eq!(EventType::from_name(kind.name()), Some(kind));
            assert_eq!(EventType::from_number(kind as u8), Some(kind));
        }
        assert_eq!((EventType::from_name("Sample"), EventType::from_number(0)), (None, None));
    }

    #[test]
    fn what_exceeds_the_total_is_a_contradiction() {
        let of = |used, free| Counters { used, free, total: Some(10), ..Counters::default() }.contradiction();
        assert_eq!((of(Some(10), Some(10)), of(None, None)), (None, None));
        assert!(of(Some(11), None).is_some_and(|why| why.contains("used")));
        assert!(of(None, Some(u64::MAX)).is_some_and(|why| why.contains("free")));
    }
}
