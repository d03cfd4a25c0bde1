//! What idle time is read from: what all numbers of devices are made from, and what the host was seen doing.

use crate::device::gpu::DeviceInputs;
use crate::host::StepContext;
use crate::host::step_samples::StepSamples;
use crate::steps::chosen::Chosen;
use std::ops::Deref;

#[derive(Clone, Copy)]
pub struct IdleInputs<'c> {
    pub device: DeviceInputs<'c>,
    pub samples: &'c StepSamples,
    /// Recorded calls say what the steps' threads did, not samples.
    pub by_calls: bool,
    /// The steps that are replayed.
    pub chosen: Option<&'c Chosen>,
}

impl<'c> IdleInputs<'c> {
    pub fn new(context: &'c StepContext, chosen: Option<&'c Chosen>) -> IdleInputs<'c> {
        IdleInputs { device: context.into(), samples: &context.samples, by_calls: context.breakdown.by_calls, chosen }
    }

    /// Whether a moment lies in a step that is replayed.
    pub fn is_replayed(&self, time: u64) -> bool {
        self.chosen.is_some_and(|chosen| chosen.has(time))
    }
}

impl<'c> Deref for IdleInputs<'c> {
    type Target = DeviceInputs<'c>;

    fn deref(&self) -> &DeviceInputs<'c> {
        &self.device
    }
}
