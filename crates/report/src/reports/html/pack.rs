//! Packs number columns for the page: LEB128 varints in base64, optionally as zigzag differences. A million sorted
//! times take about 2 bytes each this way, and `assets/data.js` reads them back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A column of numbers that do not lie near each other.
pub fn plain(values: impl IntoIterator<Item = u64>) -> String {
    let mut bytes = Vec::new();
    values.into_iter().for_each(|value| varint(&mut bytes, value));
    STANDARD.encode(bytes)
}

/// A column of numbers that lie near their neighbours.
pub fn delta(values: impl IntoIterator<Item = i64>) -> String {
    let mut bytes = Vec::new();
    let mut last = 0i64;
    for value in values {
        let step = value.wrapping_sub(last);
        last = value;
        varint(&mut bytes, ((step << 1) ^ (step >> 63)) as u64);
    }
    STANDARD.encode(bytes)
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_bytes_that_the_page_expects() {
        assert_eq!(STANDARD.decode(plain([0, 127, 128, 300])).unwrap(), [0, 127, 128, 1, 172, 2]);
        assert_eq!(STANDARD.decode(delta([5, 4, 4])).unwrap(), [10, 1, 0]);
    }
}
