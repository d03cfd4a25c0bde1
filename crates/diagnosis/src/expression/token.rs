//! Letters to words: names, numbers (with `%` for hundredths) and operators, each with where it begins.

use super::{ExpressionFault, MOST_LETTERS};

#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    Name(String),
    Number(f64),
    Sign(&'static str),
    End,
}

/// Two letters before one: `<=` is not `<`.
const SIGNS: [&str; 16] = ["<=", ">=", "==", "!=", "&&", "||", "<", ">", "+", "-", "*", "/", "(", ")", "!", "%"];

pub fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExpressionFault> {
    if text.chars().count() > MOST_LETTERS {
        return Err(ExpressionFault { at: 1, why: format!("longer than {MOST_LETTERS} characters") });
    }
    let (mut found, mut rest) = (Vec::new(), text);
    loop {
        rest = rest.trim_start();
        let at = text[..text.len() - rest.len()].chars().count() + 1;
        let Some(first) = rest.chars().next() else {
            found.push((at, Token::End));
            return Ok(found);
        };
        let (length, token) = if first.is_ascii_digit() || first == '.' {
            number(rest).ok_or_else(|| ExpressionFault { at, why: format!("{} is no number", word(rest)) })?
        } else if first.is_alphabetic() || first == '_' {
            let name = word(rest);
            (name.len(), Token::Name(name.to_owned()))
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (sign.len(), Token::Sign(sign))
        } else {
            return Err(ExpressionFault { at, why: format!("{first:?} has no meaning here") });
        };
        found.push((at, token));
        rest = &rest[length..];
    }
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'));
    &text[..end.unwrap_or(text.len())]
}

/// `5`, `0.3`, `1e-3`, `30%`.
fn number(text: &str) -> Option<(usize, Token)> {
    let bytes = text.as_bytes();
    let mut end = bytes.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    if bytes.get(end).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'e')) {
        let sign = usize::from(bytes.get(end + 1).is_some_and(|byte| b"+-".contains(byte)));
        let digits = bytes[end + 1 + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        end += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    let glued = text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let value: f64 = text[..end].parse().ok().filter(|value: &f64| value.is_finite() && !glued)?;
    let percent = bytes.get(end) == Some(&b'%');
    Some((end + usize::from(percent), Token::Number(if percent { value / 100.0 } else { value })))
}
