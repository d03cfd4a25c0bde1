//! Why a process is believed to have died of memory, from how it ended and what was seen of memory until then. What is only likely is not claimed.

/// The part of the memory from which the kernel has little left to give.
pub const NEARLY_FULL: f64 = 0.9;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Death {
    /// The kernel killed it because its control group had no memory left.
    GroupLimit { limit: u64 },
    /// The kernel killed a process of its control group for that; the command then ended with this exit code.
    GroupLimitOfChild { limit: u64, code: i32 },
    /// SIGKILL while memory was nearly full: the kernel's OOM killer, or somebody else. `by_kernel` is false where its count says that it was not.
    KilledWhileFull { share_percent: u8, by_kernel: bool },
    /// A request for GPU memory failed, and the process ended soon after without being given any more.
    RequestFailed { bytes: u64 },
}

impl Death {
    pub fn reason(&self) -> &'static str {
        match self {
            Death::GroupLimit { .. } | Death::GroupLimitOfChild { .. } => "cgroup_oom",
            Death::KilledWhileFull { .. } => "killed_while_memory_full",
            Death::RequestFailed { .. } => "gpu_out_of_memory",
        }
    }
}

/// What was seen of host memory, and how the command ended.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Seen {
    /// By SIGKILL: its own, or that of what a shell ran (exit code 137).
    pub killed: bool,
    /// Else.
    pub code: i32,
    /// How often the kernel killed in its control group: before, and now.
    pub kills: Option<(u64, u64)>,
    pub limit: Option<u64>,
    /// The part of the memory that was in use in the last sample.
    pub share: Option<f64>,
}

impl Seen {
    /// None: nothing says that it was memory.
    pub fn death(&self) -> Option<Death> {
        let limit = self.limit.filter(|_| self.kills.is_some_and(|(before, after)| after > before));
        let full = self.share.filter(|share| *share >= NEARLY_FULL);
        match (self.killed, limit, full) {
            (true, Some(limit), _) => Some(Death::GroupLimit { limit }),
            (true, None, Some(share)) => {
                let by_kernel = self.kills.is_none_or(|(before, after)| after > before);
                Some(Death::KilledWhileFull { share_percent: (share * 100.0) as u8, by_kernel })
            }
            (false, Some(limit), _) if self.code != 0 => Some(Death::GroupLimitOfChild { limit, code: self.code }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_seen_is_claimed() {
        let killed = Seen { killed: true, code: 137, kills: Some((2, 3)), limit: Some(100), share: Some(0.5) };
        assert_eq!(killed.death(), Some(Death::GroupLimit { limit: 100 }));
        let by_somebody = Seen { kills: Some((2, 2)), ..killed };
        assert_eq!(by_somebody.death(), None);
        let full = Seen { share: Some(0.97), ..by_somebody };
        assert_eq!(full.death(), Some(Death::KilledWhileFull { share_percent: 97, by_kernel: false }));
        let uncounted = Seen { kills: None, ..full };
        assert_eq!(uncounted.death(), Some(Death::KilledWhileFull { share_percent: 97, by_kernel: true }));
        assert_eq!(Seen { killed: false, code: 1, ..full }.death(), None, "it ended by itself");
        let child = Seen { killed: false, code: 1, ..killed };
        assert_eq!(child.death(), Some(Death::GroupLimitOfChild { limit: 100, code: 1 }));
        assert_eq!(Seen { code: 0, ..child }.death(), None, "it went on and ended well");
    }
}
