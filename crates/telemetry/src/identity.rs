//! Which of the processes of a distributed job this is, from the variables that its launcher sets: torchrun, Open MPI, Slurm.

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Identity {
    pub job: Option<String>,
    pub rank: Option<u32>,
    pub local_rank: Option<u32>,
    pub world_size: Option<u32>,
}

/// Rank, rank on its machine, number of ranks: the first launcher of whom the rank is known counts.
const LAUNCHERS: [[&str; 3]; 3] = [
    ["RANK", "LOCAL_RANK", "WORLD_SIZE"],
    ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"],
    ["SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"],
];
const JOBS: [&str; 2] = ["TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"];

impl Identity {
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Identity {
        let number = |name: &str| variable(name)?.trim().parse::<u32>().ok();
        let found = LAUNCHERS.iter().find(|names| number(names[0]).is_some());
        let job = JOBS.iter().find_map(|name| variable(name).filter(|job| !job.is_empty()));
        let [rank, local_rank, world_size] = found.map_or([None; 3], |names| names.map(number));
        let identity = Identity { job, rank, local_rank, world_size };
        match identity.contradiction() {
            None => identity,
            // Left over from another job: better no rank than a wrong one.
            Some(_) => Identity { job: identity.job, ..Identity::default() },
        }
    }

    /// Why it cannot be true.
    pub fn contradiction(&self) -> Option<&'static str> {
        if self.world_size == Some(0) {
            return Some("world_size must be at least 1");
        }
        let outside = |rank: Option<u32>| rank.zip(self.world_size).is_some_and(|(rank, size)| rank >= size);
        if outside(self.rank) {
            return Some("rank must be less than world_size");
        }
        outside(self.local_rank).then_some("local_rank must be less than world_size")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Identity {
        Identity::of(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn every_launcher_is_known() {
        let torchrun = of(&[("RANK", "3"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "8"), ("TORCHELASTIC_RUN_ID", "job")]);
        assert_eq!(
            torchrun,
            Identity { job: Some("job".into()), rank: Some(3), local_rank: Some(1), world_size: Some(8) }
        );
        let slurm = of(&[("SLURM_PROCID", "2"), ("SLURM_NTASKS", "4"), ("SLURM_JOB_ID", "77")]);
        assert_eq!((slurm.rank, slurm.world_size, slurm.job.as_deref()), (Some(2), Some(4), Some("77")));
        assert_eq!(of(&[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2")]).rank, Some(0));
    }

    #[test]
    fn what_cannot_be_is_no_rank() {
        assert_eq!(of(&[("RANK", "8"), ("WORLD_SIZE", "8")]), Identity::default());
        assert_eq!(of(&[("RANK", "-1")]), Identity::default());
        assert_eq!(of(&[]), Identity::default());
    }
}
