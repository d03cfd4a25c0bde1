//! What all parts of one recording share.

use crate::dictionary::Dictionary;
use crate::found_devices::Found;
use crate::notes::Notes;
use crate::processes::Processes;
use std::sync::Arc;

#[derive(Clone)]
pub(crate) struct Shared {
    pub dictionary: Arc<Dictionary>,
    pub processes: Processes,
    pub notes: Notes,
    pub devices: Found,
}
