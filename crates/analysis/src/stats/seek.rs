//! Finds a place in a sorted list from where the last one was: who asks goes forward in time, so that the next is mostly close by.

/// Sets `near` to how many of the sorted items fit: a few more than the last time, as a rule, but any number is found.
pub fn seek<T>(all: &[T], near: &mut usize, fits: impl Fn(&T) -> bool) {
    let back = *near > all.len() || *near > 0 && !fits(&all[*near - 1]);
    *near = if back { all.partition_point(fits) } else { further(all, *near, fits) };
}

/// How many of the sorted items fit, where the first `from` do: in steps that double, so that it costs by how far it is.
pub fn further<T>(all: &[T], from: usize, fits: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while let Some(item) = all.get(low + step - 1) {
        if !fits(item) {
            break;
        }
        low += step;
        step *= 2;
    }
    let high = (low + step - 1).min(all.len());
    low + all[low..high].partition_point(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_from_every_other() {
        for count in 0..40usize {
            let all: Vec<usize> = (0..count).collect();
            for (from, to) in (0..=count + 1).flat_map(|from| (0..=count).map(move |to| (from, to))) {
                let mut near = from;
                seek(&all, &mut near, |item| *item < to);
                assert_eq!(near, to, "from {from} of {count}");
            }
        }
    }
}
