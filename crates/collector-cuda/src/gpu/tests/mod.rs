//! What of the GPU's collector can be shown without a GPU, a file each.

mod buffers;
mod kept;
mod lifecycle_lock;
mod windows;
