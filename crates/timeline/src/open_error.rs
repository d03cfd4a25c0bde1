//! Why a path could not be opened, in words that say what to do, and how much of it is read at most.

use std::path::PathBuf;

/// What can be opened, for those who gave something else.
const READ: &str = "the folder that `inferscope run` writes, a trace of torch.profiler (JSON, plain or gzip, or a folder with \
    one for each rank), an export of Nsight Systems (`nsys export --type sqlite`), a memory snapshot of PyTorch (`torch.cuda.memory._dump_snapshot`), \
    InferScope trace JSON 1.0";

/// Why a path could not be opened. Each says what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("there is no trace at {0}: check the path, or record one with `inferscope run -- <command>`", path.display())]
    Missing { path: PathBuf },
    #[error("{0} is not a trace: {why}. What can be opened: {1}", path.display(), READ)]
    NotATrace { path: PathBuf, why: String },
    #[error("{0} is {looks_like}, which this version does not read. What can be opened: {1}", path.display(), READ)]
    Foreign { path: PathBuf, looks_like: String },
    #[error("{0} is an empty folder: it has no manifest.json, so nothing was recorded there, or it has been removed", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{0} was written by a newer InferScope (format {found}, this one reads up to {known}): install the newer version",
        path.display()
    )]
    NewerVersion { path: PathBuf, found: u64, known: u32 },
    #[error("{0} is damaged: {what}, and no table beside it can be read", file.display())]
    Damaged { file: PathBuf, what: String },
    #[error(
        "{0} unpacks to more than {1}, which is all that a packed trace may become: if you trust it, allow more with \
         --max-unpacked-mb",
        path.display(), trace::quantity::bytes(*most)
    )]
    TooLarge { path: PathBuf, most: u64 },
    #[error("cannot read {0}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

/// What a file may become, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes that a packed file unpacks to.
    pub unpacked: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { unpacked: trace::settings::Reading::default().max_unpacked_mb << 20 }
    }
}
