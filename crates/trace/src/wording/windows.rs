//! The note on a GPU that was recorded in windows: how much of the time, what that costs, or why the cost is not known.

use crate::codes::GpuWindows;
use crate::quantity;

impl GpuWindows {
    pub(super) fn said(&self) -> String {
        let (share, budget) = (percent(self.recorded_ppm, 0), percent(self.budget_ppm, 1));
        if self.whole && self.unlimited {
            let cost = match self.cost_ppm {
                Some(cost) => format!("{} (limit {budget})", percent(cost, 1)),
                None => format!("not known to be below {budget}: {}", self.why_unknown()),
            };
            return format!(
                "GPU work was recorded for {share} of the time; the rest measured the cost of recording: {cost}"
            );
        }
        let cost = match self.cost_ppm {
            Some(cost) => format!("recording slows the program by {}", percent(cost, 1)),
            None => format!("cost of recording not known: {}", self.why_unknown()),
        };
        let how = if self.whole { " (--overhead-budget none records all of it)" } else { "" };
        let windows = if self.count == 1 { "1 window".to_owned() } else { format!("{} windows", self.count) };
        let long = match self.step_ns {
            0 => String::new(),
            step => format!(" long enough for steps of {}", quantity::duration(step)),
        };
        format!(
            "GPU work was recorded for {share} of the time, in {windows}{long}, to cost at most {budget}: {cost}{how}"
        )
    }

    /// The program made too little progress to go by, or ended too soon.
    fn why_unknown(&self) -> String {
        if self.quiet > self.over / 2 {
            let (quiet, over, few) = (self.quiet, self.over, self.few);
            return format!("{quiet} of {over} windows had fewer than {few} waits and graph launches");
        }
        format!("needs {} recorded windows between pauses, got {}", self.needed, self.compared)
    }
}

fn percent(millionths: u64, digits: usize) -> String {
    format!("{:.digits$} %", millionths as f64 / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{Note, NoteCode};

    #[test]
    fn numbers_become_a_sentence_and_an_older_sentence_stays_one() {
        let windows =
            GpuWindows { recorded_ppm: 251_000, budget_ppm: 20_000, cost_ppm: Some(81_000), ..Default::default() };
        let windows = GpuWindows { count: 7, step_ns: 3_000_000_000, ..windows };
        let note = windows.note();
        assert_eq!(GpuWindows::of(&note.args), Some(windows));
        assert_eq!(
            note.said(),
            "GPU work was recorded for 25 % of the time, in 7 windows long enough for steps of 3.00 s, to cost at most 2.0 %: \
             recording slows the program by 8.1 %"
        );
        let older = Note::new(NoteCode::GpuWindows).with("GPU work was recorded for 9 % of the time");
        assert_eq!(older.said(), "GPU work was recorded for 9 % of the time");
        // Anything at all may stand in a file.
        let strange = Note::new(NoteCode::GpuWindows).with(u64::MAX).with("x");
        assert_eq!(strange.said(), u64::MAX.to_string());
    }

    #[test]
    fn a_cost_that_is_not_known_has_a_reason() {
        let short = GpuWindows {
            whole: true,
            unlimited: true,
            over: 4,
            quiet: 1,
            compared: 2,
            needed: 5,
            ..Default::default()
        };
        assert!(short.said().ends_with("needs 5 recorded windows between pauses, got 2"), "{}", short.said());
        let quiet = GpuWindows { over: 4, quiet: 3, few: 8, count: 1, ..Default::default() };
        assert!(quiet.said().contains("in 1 window, to"), "{}", quiet.said());
        assert!(quiet.said().ends_with("3 of 4 windows had fewer than 8 waits and graph launches"), "{}", quiet.said());
    }
}
