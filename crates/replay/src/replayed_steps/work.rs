//! What a step would gain if some of its device work were shorter.

use super::ReplayedSteps;
use crate::expression::Change;
use crate::gain::{Gain, Left};
use analysis::device::step_kernels::StepKernels;

impl ReplayedSteps<'_> {
    /// What a step would gain if work took only a part of its time. Of the range of that part, the middle is replayed; its ends are in
    /// proportion.
    pub fn gain_of_work(&self, kernels: &StepKernels, changes: Vec<(Vec<u32>, Left)>) -> Gain {
        let mut left_of: Vec<f32> = vec![1.0; self.timeline.gpu.work.len()];
        let (mut worst, mut usual, mut best) = (0.0, 0.0, 0.0);
        for (work, left) in &changes {
            let ns: f64 = work.iter().map(|index| self.timeline.gpu.work.dur[*index as usize] as f64).sum();
            worst += ns * (1.0 - left.worst);
            usual += ns * (1.0 - left.usual);
            best += ns * (1.0 - left.best);
            work.iter().for_each(|index| left_of[*index as usize] = left.usual as f32);
        }
        let recorded = kernels.saved(self, |index| 1.0 - f64::from(left_of[index])).measured();
        let changes: Vec<Change> =
            changes.into_iter().map(|(work, left)| Change::Work(self.chosen_work(work), left.usual)).collect();
        let gain = self.gain(&changes, recorded);
        let by = |other: f64| if usual > 0.0 { other / usual } else { 1.0 };
        let (low, high) = (gain.low * by(worst), (gain.high * by(best)).min(100.0));
        Gain { low: low.min(gain.mid), high: high.max(gain.mid), ..gain }
    }
}
