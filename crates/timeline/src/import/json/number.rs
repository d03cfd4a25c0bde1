//! Decimal text to integers without ever being a floating-point number: an f64 that holds microseconds since 1970 resolves
//! only a quarter of one.

/// Digits that a result may have: more than any time, and far from overflow.
const MOST_DIGITS: i64 = 25;

/// `text` × 10^`power`, rounded half away from zero. None for what is no decimal number, or absurdly large.
pub fn scaled(text: &str, power: i64) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = || whole.bytes().chain(part.bytes());
    if digits().next().is_none() || !digits().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let zeros = digits().take_while(|digit| *digit == b'0').count();
    let significant = (digits().count() - zeros) as i64;
    // Digits before the point of the result.
    let before = whole.len() as i64 - zeros as i64 + i64::from(exponent) + power;
    if significant == 0 || before < 0 {
        return Some(0);
    }
    if before > MOST_DIGITS {
        return None;
    }
    let mut result = 0i128;
    let mut rest = digits().skip(zeros);
    for _ in 0..before {
        result = result * 10 + i128::from(rest.next().map_or(0, |digit| digit - b'0'));
    }
    result += i128::from(rest.next().is_some_and(|digit| digit >= b'5'));
    i64::try_from(if negative { -result } else { result }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_become_nanoseconds_exactly() {
        for (text, nanos) in [
            ("0", 0),
            ("0.000", 0),
            ("1", 1000),
            ("1.5", 1500),
            ("0.001", 1),
            ("0.0005", 1),
            ("0.0004", 0),
            ("0.00004", 0),
            ("-2.25", -2250),
            ("1e3", 1_000_000),
            ("1.234567e3", 1_234_567),
            ("25E-1", 2500),
            ("1000000000000000.001", 1_000_000_000_000_000_001),
            ("1790000000123456.789", 1_790_000_000_123_456_789),
            ("000000000000000000000000000000000007", 7000),
        ] {
            assert_eq!(scaled(text, 3), Some(nanos), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_or_absurd_is_none() {
        for text in ["", "-", ".", "e", "1e", "1x", "1.2.3", "NaN", "1e99", "1e99999999999", "9223372036854775808"] {
            assert_eq!(scaled(text, 3), None, "{text}");
        }
        assert_eq!(scaled("1e-999999999", 3), Some(0));
        assert_eq!(scaled("0e99", 3), Some(0));
        assert_eq!(scaled(&"9".repeat(100_000), 0), None);
        assert_eq!(scaled("-9223372036854775808", 0), Some(i64::MIN));
    }
}
