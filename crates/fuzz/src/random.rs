//! Choices from a seed, and damage to text and bytes: values of JSON swapped, repeated and made absurd, lines moved, bytes
//! changed. The same seed always makes the same input.

pub struct Random(u64);

/// Numbers at which readers break: limits of types, signs, exponents, too many digits.
pub const NUMBERS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "0.001",
    "-0.0005",
    "1e3",
    "1e18",
    "1e308",
    "-1e308",
    "1e-300",
    "4294967295",
    "4294967296",
    "-2147483649",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890.123456789",
    "NaN",
    "Infinity",
    "0x10",
    "00012",
];

/// Text at which readers break.
const TEXTS: [&str; 16] = [
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\uD83D\\uDE00\"",
    "\"\u{202e}<script>`|*\"",
    "\"-\"",
    "\"#\"",
    "\"../../etc\"",
    "\"99999999999999999999\"",
    "null",
    "true",
    "[]",
    "{}",
    "[[[[]]]]",
    "{\"a\":{\"a\":{\"a\":1}}}",
    "\"\\x\"",
];

impl Random {
    pub fn new(seed: u64) -> Random {
        // Seeds that follow each other must not give inputs that do.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random((mixed ^ (mixed >> 31)).max(1))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Mostly small, so that times, ids and lengths meet; now and then absurd.
    pub fn number(&mut self, small: usize) -> String {
        match self.below(20) {
            0 => self.pick(&NUMBERS).to_owned(),
            1 => format!("-{}", self.below(small)),
            2 => format!("{}.{:03}", self.below(small), self.below(1000)),
            _ => self.below(small).to_string(),
        }
    }

    /// A few bytes changed, taken out or doubled.
    pub fn bytes(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(bytes.len());
            if bytes.is_empty() {
                return;
            }
            let end = (at + 1 + self.below(40)).min(bytes.len());
            match self.below(6) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => bytes[at] = [0, 0xff, 0x7f, 0x80][self.below(4)],
                3 => drop(bytes.drain(at..end)),
                4 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
                _ => bytes.truncate(at),
            }
        }
    }

    /// A few characters changed for others, many of them punctuation of YAML, or taken out.
    pub fn yaml(&mut self, text: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            let at = self.below(text.len());
            if text.is_empty() {
                return;
            }
            match self.below(3) {
                0 => text[at] = self.pick(b"{}[]&*!|>%@`:-?,#'\"\n\t \\\0"),
                1 => text[at] = self.below(128) as u8,
                _ => drop(text.drain(at..text.len().min(at + 1 + self.below(9)))),
            }
        }
    }

    /// Whole values of JSON exchanged, repeated, taken out or made absurd; sometimes bytes.
    pub fn json(&mut self, text: &mut Vec<u8>) {
        for _ in 0..1 + self.below(3) {
            let values = values(text);
            if values.is_empty() {
                return self.bytes(text);
            }
            let (start, end) = self.pick(&values);
            let (other, until) = self.pick(&values);
            let value = text[start..end].to_vec();
            let new = match self.below(9) {
                0 => self.pick(&NUMBERS).as_bytes().to_vec(),
                1 => self.pick(&TEXTS).as_bytes().to_vec(),
                2 => text[other..until].to_vec(),
                3 => Vec::new(),
                4 => [&value[..], b",", &value].concat(),
                5 => [&value[..], b","].concat().repeat(2 + self.below(200)),
                6 => [&b"["[..], &value, b"]"].concat(),
                7 => format!("\"{}\"", "x".repeat(self.below(5000))).into_bytes(),
                _ => {
                    self.bytes(text);
                    continue;
                }
            };
            // Values that repeat what repeats grow without end.
            if text.len() + new.len() < 1 << 20 {
                text.splice(start..end, new);
            }
        }
    }

    /// Lines moved, doubled, indented or taken out, words exchanged for those of `words`; sometimes bytes.
    pub fn lines(&mut self, text: &str, words: &[&str]) -> Vec<u8> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for _ in 0..1 + self.below(4) {
            if lines.is_empty() {
                break;
            }
            let (at, other) = (self.below(lines.len()), self.below(lines.len()));
            match self.below(7) {
                0 => lines.swap(at, other),
                1 => lines.insert(at, lines[other].clone()),
                2 => drop(lines.remove(at)),
                3 => lines[at] = format!("{}{}", " ".repeat(self.below(5)), lines[at].trim_start()),
                4 => lines[at] = format!("{} {}", lines[at], self.pick(words)),
                5 => {
                    let line = lines[at].clone();
                    let parts: Vec<&str> = line.split(' ').collect();
                    let place = self.below(parts.len());
                    let word = if self.one_in(3) { self.pick(&NUMBERS) } else { self.pick(words) };
                    let parts = parts.iter().enumerate().map(|(at, part)| if at == place { word } else { part });
                    lines[at] = parts.collect::<Vec<_>>().join(" ");
                }
                _ => lines[at] = lines[at].repeat(2),
            }
        }
        let mut bytes = lines.join("\n").into_bytes();
        if self.one_in(4) {
            self.bytes(&mut bytes);
        }
        bytes
    }
}

/// Where values are in something like JSON: strings, numbers and words, lists and objects.
fn values(text: &[u8]) -> Vec<(usize, usize)> {
    let (mut found, mut open, mut at) = (Vec::new(), Vec::new(), 0);
    while at < text.len() {
        let start = at;
        match text[at] {
            b'"' => {
                at += 1;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(text.len());
                found.push((start, at));
            }
            b'{' | b'[' => {
                open.push(at);
                at += 1;
            }
            b'}' | b']' => {
                at += 1;
                found.extend(open.pop().map(|start| (start, at)));
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                while at < text.len() && (text[at].is_ascii_alphanumeric() || b"+-.".contains(&text[at])) {
                    at += 1;
                }
                found.push((start, at));
            }
            _ => at += 1,
        }
    }
    found
}
