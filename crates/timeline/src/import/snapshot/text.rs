//! Texts of protocol 0: Python's quoted strings, and `raw-unicode-escape`.

/// `'it\'s'` as it stands in a line, without the quotes. Escapes other than of quotes and backslashes stay as they are.
pub fn quoted(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let inner = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote)).unwrap_or(text);
    if !inner.contains('\\') {
        return inner.to_owned();
    }
    let (mut out, mut letters) = (String::with_capacity(inner.len()), inner.chars().peekable());
    while let Some(letter) = letters.next() {
        let escapes = letter == '\\' && matches!(letters.peek(), Some('\\' | '\'' | '"'));
        out.extend(if escapes { letters.next() } else { Some(letter) });
    }
    out
}

/// Bytes are letters of Latin-1, and `\u20ac` and `\U0001f600` are others.
pub fn escaped(line: &[u8]) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some((first, after)) = rest.split_first() {
        let digits = match rest {
            [b'\\', b'u', ..] => 4,
            [b'\\', b'U', ..] => 8,
            _ => 0,
        };
        let code = rest.get(2..2 + digits).filter(|_| digits > 0).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()) {
            Some(code) => {
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                rest = &rest[2 + digits..];
            }
            None => {
                out.push(char::from(*first));
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_text_are_read() {
        assert_eq!(quoted(br"'it\'s C:\\temp'"), r"it's C:\temp");
        assert_eq!((quoted(b"\"a\""), quoted(b"'"), quoted(b"")), ("a".into(), "'".into(), String::new()));
        assert_eq!(escaped(b"a\\u20acb\\U0001f600\xe4"), "a\u{20ac}b\u{1f600}\u{e4}");
        assert_eq!(escaped(b"\\u12"), "\\u12");
        assert_eq!(escaped(b"\\ud800"), "\u{fffd}");
    }
}
