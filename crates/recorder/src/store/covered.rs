//! Which ring records are on disk: per segment and ring, the first record that is not. Beside that, how much was lost of a
//! segment up to there. Stands in the footer of every file that is filled from rings, for the rings that it has records of, and
//! of those that count losses: the farthest of all files is where a recovery goes on, and nothing is counted twice.

use std::collections::BTreeMap;
use std::fmt;
use trace::tables::Table;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Covered(BTreeMap<String, BTreeMap<u32, u64>>);

/// How far each table that is filled from rings has got. They are closed one after the other, slices last: a recorder that is
/// killed in between leaves rows of the others on disk that the slices' footer does not cover yet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct OnDisk {
    pub slices: Covered,
    pub gpu: Covered,
    pub allocations: Covered,
    pub blocks: Covered,
    /// What is counted in the table of losses, which is closed before slices: by the same numbers as in `lost` and `counter`.
    pub losses: Covered,
}

/// Numbers from here on are no rings. The losses of a segment, by their place in a list of reasons.
const LOST: u32 = 1 << 31;
/// What its collectors counted on the status page, by collector and counter.
const COUNTERS: u32 = LOST + (1 << 16);

/// In place of a ring's number: records of this segment that were lost, for the reason of that number.
pub(crate) fn lost(reason: usize) -> u32 {
    LOST + reason as u32
}

/// In place of a ring's number: a counter of the status page.
pub(crate) fn counter(collector: usize, counter: usize) -> u32 {
    COUNTERS + ((collector as u32) << 8) + counter as u32
}

impl OnDisk {
    pub fn of(&mut self, table: Table) -> Option<&mut Covered> {
        match table {
            Table::Slices => Some(&mut self.slices),
            Table::Gpu => Some(&mut self.gpu),
            Table::Allocations => Some(&mut self.allocations),
            Table::Blocks => Some(&mut self.blocks),
            Table::Losses => Some(&mut self.losses),
            _ => None,
        }
    }
}

impl Covered {
    pub fn set(&mut self, segment: &str, ring: u32, next: u64) {
        let rings = match self.0.get_mut(segment) {
            Some(rings) => rings,
            None => self.0.entry(segment.to_owned()).or_default(),
        };
        let entry = rings.entry(ring).or_default();
        *entry = next.max(*entry);
    }

    pub fn get(&self, segment: &str, ring: u32) -> u64 {
        self.0.get(segment).and_then(|rings| rings.get(&ring)).copied().unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over what is farther.
    pub fn merge(&mut self, other: &Covered) {
        for (segment, rings) in &other.0 {
            rings.iter().for_each(|(ring, next)| self.set(segment, *ring, *next));
        }
    }

    /// Forgets segments that are gone: nobody will ask for them again.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|segment, _| keep(segment));
    }

    /// Ignores what it cannot read: the worst that follows is that a record is read twice.
    pub fn parse(text: &str) -> Covered {
        let mut covered = Covered::default();
        for entry in text.split(';') {
            let mut parts = entry.rsplitn(3, ':');
            let (next, ring, segment) = (parts.next(), parts.next(), parts.next());
            if let (Some(Ok(next)), Some(Ok(ring)), Some(segment)) =
                (next.map(str::parse), ring.map(str::parse), segment)
            {
                covered.set(segment, ring, next);
            }
        }
        covered
    }
}

impl fmt::Display for Covered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.iter().flat_map(|(segment, rings)| rings.iter().map(move |(r, n)| (segment, r, n)));
        for (number, (segment, ring, next)) in entries.enumerate() {
            write!(f, "{}{segment}:{ring}:{next}", if number > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_and_keeps_the_farthest() {
        let mut covered = Covered::default();
        covered.set("12-34", 0, 7);
        covered.set("12-34", 3, 1);
        covered.set("5-6", 0, 9);
        assert_eq!(Covered::parse(&covered.to_string()), covered);
        covered.merge(&Covered::parse("12-34:0:5;12-34:3:8"));
        assert_eq!((covered.get("12-34", 0), covered.get("12-34", 3), covered.get("x", 0)), (7, 8, 0));
        assert_eq!(Covered::parse("nonsense;a:b;1:2:x"), Covered::default());
    }
}
