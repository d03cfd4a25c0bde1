//! Inside the workload: python hooks that write records into the segment and return.
