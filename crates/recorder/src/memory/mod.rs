//! Memory as the kernel sees it: of each process, per NUMA node, and the pressure on the whole machine.

pub(crate) mod group;
pub(crate) mod numa;
pub(crate) mod pressure;
pub(crate) mod process;
