//! What a note on recording in windows carries: numbers, of which [`crate::wording`] makes a sentence.

use super::{Note, NoteCode};

/// What the collector counted of its windows. The order of the fields is that of the note's arguments, and so part of the format.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GpuWindows {
    /// Of the time, in millionths.
    pub recorded_ppm: u64,
    /// What recording may cost, and what it was measured to cost.
    pub budget_ppm: u64,
    pub cost_ppm: Option<u64>,
    /// Recorded windows.
    pub count: u64,
    /// Everything was to be recorded, had the cost allowed it.
    pub whole: bool,
    /// Nothing kept it from that: pauses were made only to measure the cost.
    pub unlimited: bool,
    /// Windows that are over; of these, those with fewer than `few` waits and graph launches.
    pub over: u64,
    pub quiet: u64,
    pub few: u64,
    /// Recorded windows between two pauses: how many there were, and how many are needed.
    pub compared: u64,
    pub needed: u64,
    /// Windows were made longer for steps of so many nanoseconds. 0: they were not.
    pub step_ns: u64,
}

impl GpuWindows {
    pub fn note(&self) -> Note {
        let cost = self.cost_ppm.map_or(String::new(), |cost| cost.to_string());
        let numbers = [
            self.recorded_ppm.to_string(),
            self.budget_ppm.to_string(),
            cost,
            self.count.to_string(),
            u64::from(self.whole).to_string(),
            u64::from(self.unlimited).to_string(),
            self.over.to_string(),
            self.quiet.to_string(),
            self.few.to_string(),
            self.compared.to_string(),
            self.needed.to_string(),
            self.step_ns.to_string(),
        ];
        numbers.into_iter().fold(Note::new(NoteCode::GpuWindows), Note::with)
    }

    /// None: not the arguments that this version writes. Before there were numbers, the one argument was a sentence.
    pub(crate) fn of(args: &[String]) -> Option<GpuWindows> {
        let number = |at: usize| args.get(at)?.parse::<u64>().ok();
        Some(GpuWindows {
            recorded_ppm: number(0)?,
            budget_ppm: number(1)?,
            cost_ppm: number(2),
            count: number(3)?,
            whole: number(4)? == 1,
            unlimited: number(5)? == 1,
            over: number(6)?,
            quiet: number(7)?,
            few: number(8)?,
            compared: number(9)?,
            needed: number(10)?,
            step_ns: number(11)?,
        })
    }
}
