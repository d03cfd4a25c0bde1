//! The list of the machine's devices on its way from the sampler, which finds them, to the manifest.

use crate::manifest::Device;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Clone, Default)]
pub(crate) struct Found(Arc<Mutex<Vec<Device>>>);

impl Found {
    pub fn of(devices: Vec<Device>) -> Found {
        Found(Arc::new(Mutex::new(devices)))
    }

    pub fn set(&self, devices: Vec<Device>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = devices;
    }

    pub fn all(&self) -> Vec<Device> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
