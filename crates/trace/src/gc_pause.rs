//! What a garbage collection did, in the one number that its record has room for. Records of before hold the generation alone, which is at most 2: they say
//! that the counts are not known.

/// Bits of the number: the generation, the objects that cannot be collected, the collected ones plus one.
const GENERATION_BITS: u32 = 2;
const UNCOLLECTABLE_BITS: u32 = 4;
const COLLECTED_AT: u32 = GENERATION_BITS + UNCOLLECTABLE_BITS;

const MOST_GENERATION: u32 = (1 << GENERATION_BITS) - 1;
const MOST_UNCOLLECTABLE: u32 = (1 << UNCOLLECTABLE_BITS) - 1;
const MOST_COLLECTED: u32 = (1 << (32 - COLLECTED_AT)) - 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GcPause {
    pub generation: u32,
    /// None: not known. Both counts end at the most that fits: 67 million, and 15.
    pub found: Option<Found>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    pub collected: u32,
    pub uncollectable: u32,
}

impl GcPause {
    pub fn pack(self) -> u32 {
        let generation = self.generation.min(MOST_GENERATION);
        let counts = self.found.map_or(0, |found| {
            let uncollectable = found.uncollectable.min(MOST_UNCOLLECTABLE);
            (found.collected.min(MOST_COLLECTED) + 1) << COLLECTED_AT | uncollectable << GENERATION_BITS
        });
        generation | counts
    }

    pub fn unpack(number: u32) -> GcPause {
        let collected = (number >> COLLECTED_AT).checked_sub(1);
        let uncollectable = (number >> GENERATION_BITS) & MOST_UNCOLLECTABLE;
        let found = collected.map(|collected| Found { collected, uncollectable });
        GcPause { generation: number & MOST_GENERATION, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_counts_end_at_the_most_that_fits() {
        let of = |generation, collected, uncollectable| GcPause {
            generation,
            found: Some(Found { collected, uncollectable }),
        };
        for pause in [of(0, 0, 0), of(2, 700, 3), of(1, MOST_COLLECTED, MOST_UNCOLLECTABLE)] {
            assert_eq!(GcPause::unpack(pause.pack()), pause);
        }
        let most = of(3, MOST_COLLECTED, MOST_UNCOLLECTABLE);
        assert_eq!(GcPause::unpack(of(9, u32::MAX, u32::MAX).pack()), most);
    }

    #[test]
    fn a_record_of_before_is_a_generation_without_counts() {
        for generation in 0..3 {
            assert_eq!(GcPause::unpack(generation), GcPause { generation, found: None });
            assert_eq!(GcPause { generation, found: None }.pack(), generation);
        }
    }
}
