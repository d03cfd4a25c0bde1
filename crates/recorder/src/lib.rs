//! Outside the workload: drains segments and samples from outside into a trace on disk.
