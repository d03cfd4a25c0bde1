//! How much a trace may take while it is read: flags of every command that opens one.

use crate::config::Layer;
use clap::Args;

#[derive(Args, Debug)]
pub struct Reading {
    /// Maximum memory for reading a trace [default: what is free]
    #[arg(long, value_name = "MB", allow_negative_numbers = true, hide_short_help = true)]
    max_memory_mb: Option<String>,

    /// Maximum unpacked size of a gzip file [default: 16384]
    #[arg(long, value_name = "MB", allow_negative_numbers = true, hide_short_help = true)]
    max_unpacked_mb: Option<String>,
}

impl Reading {
    pub fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        layer.flag("max_memory_mb", "--max-memory-mb", self.max_memory_mb.as_deref());
        layer.flag("max_unpacked_mb", "--max-unpacked-mb", self.max_unpacked_mb.as_deref());
        layer
    }
}
