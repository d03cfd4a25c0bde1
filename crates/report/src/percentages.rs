//! Percentages that add up: rounded so that together they are a hundred, as a reader who adds them up expects.

/// Shares `whole` units out in proportion to the weights, to the last unit: the largest remainders get what rounding left.
/// All are 0 where there is nothing to share it by.
pub fn shared(whole: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let exact = |weight: u64| u128::from(whole) * u128::from(weight);
    let mut shares: Vec<u64> = weights.iter().map(|weight| (exact(*weight) / sum) as u64).collect();
    let left = whole - shares.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|place| (u128::MAX - exact(weights[*place]) % sum, *place));
    order.into_iter().take(left as usize).for_each(|place| shares[place] += 1);
    shares
}

/// `33.4 %`, one for each weight, that add up to 100.0. `<0.1 %` is what is there but rounds to nothing.
pub fn texts(weights: &[u64]) -> Vec<String> {
    let text = |(weight, tenths): (&u64, u64)| match (weight, tenths) {
        (1.., 0) => "<0.1 %".to_owned(),
        (_, tenths) => format!("{}.{} %", tenths / 10, tenths % 10),
    };
    weights.iter().zip(shared(1000, weights)).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_shares_add_up() {
        assert_eq!(shared(100, &[1, 1, 1]), [34, 33, 33]);
        for weights in [vec![1, 1, 1], vec![7, 0, 5, 9, 2], vec![u64::MAX, 3, u64::MAX / 2], vec![1; 999]] {
            assert_eq!(shared(1000, &weights).iter().sum::<u64>(), 1000, "{weights:?}");
        }
        assert_eq!((shared(1000, &[]), shared(1000, &[0, 0])), (vec![], vec![0, 0]));
    }

    #[test]
    fn what_is_small_is_not_nothing() {
        assert_eq!(texts(&[1, 1, 1]), ["33.4 %", "33.3 %", "33.3 %"]);
        assert_eq!(texts(&[1_000_000, 1, 0]), ["100.0 %", "<0.1 %", "0.0 %"]);
    }
}
