//! One part of a step's time, and how whole nanoseconds are shared out so that parts add up.

use crate::frames::NativeFunction;
use crate::place::Place;
use timeline::{NameIndex, Timeline};

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum PartKind {
    /// Running Python, holding the GIL.
    Python,
    /// Running native code or a system call.
    Native,
    /// Not running: the frame on top says at what.
    Waiting,
    /// Waiting for a device.
    Gpu,
    Gil,
    Gc,
    /// Ready to run, but without a core.
    Descheduled,
    /// No sample or call tells.
    Unknown,
}

impl PartKind {
    pub const ALL: [PartKind; 8] = [
        PartKind::Python,
        PartKind::Native,
        PartKind::Waiting,
        PartKind::Gpu,
        PartKind::Gil,
        PartKind::Gc,
        PartKind::Descheduled,
        PartKind::Unknown,
    ];

    pub fn name(self) -> &'static str {
        match self {
            PartKind::Python => "Python",
            PartKind::Native => "native code",
            PartKind::Waiting => "waiting",
            PartKind::Gpu => "waiting for the GPU",
            PartKind::Gil => "waiting for the GIL",
            PartKind::Gc => "garbage collection",
            PartKind::Descheduled => "waiting for a core",
            PartKind::Unknown => "unknown",
        }
    }

    /// As it follows a percentage in a sentence.
    pub fn verb(self) -> &'static str {
        match self {
            PartKind::Python => "runs Python",
            PartKind::Native => "runs native code",
            PartKind::Waiting => "waits",
            PartKind::Gpu => "waits for the GPU",
            PartKind::Gil => "waits for the GIL",
            PartKind::Gc => "collects garbage",
            PartKind::Descheduled => "waits for a core",
            PartKind::Unknown => "was not sampled",
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// The function, or what the kind is called.
    pub label: String,
    /// Empty: it has no place in a file.
    pub file: String,
    /// 0: unknown.
    pub line: u32,
    pub kind: PartKind,
    /// In all steps together.
    pub total_ns: u64,
    /// The mean of a step.
    pub ns: u64,
    /// Of all steps together, 0 to 1.
    pub share: f64,
    /// What most of it is in, where the line calls native code and that is known.
    pub native: Option<NativeFunction>,
}

impl Part {
    /// What it does there, for a reader who knows its line: `native code (libz: deflate)`. None: plain Python.
    pub fn doing(&self) -> Option<String> {
        match (self.kind, &self.native) {
            (PartKind::Python, None) => None,
            (PartKind::Python, Some(native)) => Some(format!("in {}", native.said())),
            (kind, None) => Some(kind.name().to_owned()),
            (kind, Some(native)) => Some(format!("{} ({})", kind.name(), native.said())),
        }
    }

    /// Where it is, as a finding says it.
    pub fn place(&self) -> Place {
        Place {
            function: Some(self.label.clone()),
            file: Some(self.file.clone()).filter(|file| !file.is_empty()),
            line: Some(self.line).filter(|line| *line > 0),
            ..Place::default()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Key {
    pub kind: PartKind,
    pub name: NameIndex,
    pub line: u32,
}

impl Key {
    /// A part without a place.
    pub fn of(kind: PartKind) -> Key {
        Key { kind, name: NameIndex(u32::MAX), line: 0 }
    }

    pub fn part(&self, timeline: &Timeline, total_ns: u64, ns: u64, whole: u64) -> Part {
        let (label, file) = match self.name {
            NameIndex(u32::MAX) => (self.kind.name().to_owned(), String::new()),
            NameIndex(0) => ("(stack not recorded)".to_owned(), String::new()),
            name => (timeline.names.text(name).to_owned(), timeline.names.get(name).file.to_string()),
        };
        let share = if whole > 0 { total_ns as f64 / whole as f64 } else { 0.0 };
        Part { label, file, line: self.line, kind: self.kind, total_ns, ns, share, native: None }
    }
}

/// Shares `total` out in proportion to the weights, to the last unit: the largest remainders get what rounding left.
pub fn apportion(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |weight: u64| u128::from(total) * u128::from(weight);
    let mut parts: Vec<u64> = weights.iter().map(|weight| (exact(*weight) / sum) as u64).collect();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|place| (u128::MAX - exact(weights[*place]) % sum, *place));
    let left = total - parts.iter().sum::<u64>();
    order.into_iter().take(left as usize).for_each(|place| parts[place] += 1);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_last_nanosecond() {
        for (total, weights) in
            [(100, vec![1, 1, 1]), (7, vec![0, 5, 9, 2]), (u64::MAX, vec![u64::MAX, 3, u64::MAX / 2]), (1, vec![1, 1])]
        {
            let parts = apportion(total, &weights);
            assert_eq!(parts.iter().map(|part| u128::from(*part)).sum::<u128>(), u128::from(total));
        }
        assert_eq!(apportion(100, &[1, 1, 1]), [34, 33, 33]);
        assert_eq!((apportion(5, &[]), apportion(5, &[0, 0])), (vec![], vec![0, 0]));
    }
}
