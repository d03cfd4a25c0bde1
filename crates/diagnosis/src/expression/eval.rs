//! The value of an expression. What a missing metric decides is left open, unless the other side decides alone.

use super::{Node, Operator};
use crate::named::{METRICS, Named};

/// Why it cannot be said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undecided(pub String);

pub fn truth(node: &Node, named: &Named) -> Result<bool, Undecided> {
    match node {
        Node::Truth(value) => Ok(*value),
        Node::Not(inner) => truth(inner, named).map(|value| !value),
        Node::Both(operator @ (Operator::And | Operator::Or), left, right) => {
            // One side is enough where it says false to `and`, or true to `or`.
            let decides = *operator == Operator::Or;
            let (left, right) = (truth(left, named), truth(right, named));
            match (&left, &right) {
                (Ok(value), _) | (_, Ok(value)) if *value == decides => Ok(decides),
                (Ok(_), Ok(_)) => Ok(!decides),
                _ => left.and(right),
            }
        }
        Node::Both(operator, left, right) => {
            let (a, b) = (number(left, named)?, number(right, named)?);
            Ok(match operator {
                Operator::Less => a < b,
                Operator::LessEqual => a <= b,
                Operator::Greater => a > b,
                Operator::GreaterEqual => a >= b,
                Operator::Equal => a == b,
                _ => a != b,
            })
        }
        // Types are checked when it is read.
        Node::Number(_) | Node::Metric(_) | Node::Negative(_) => Err(Undecided("it is a number".into())),
    }
}

fn number(node: &Node, named: &Named) -> Result<f64, Undecided> {
    let value = match node {
        Node::Number(value) => *value,
        Node::Negative(inner) => -number(inner, named)?,
        Node::Metric(place) => match named.get(*place) {
            Ok(measured) => measured.value,
            Err(why) => return Err(Undecided(format!("{}: {why}", METRICS[*place].name))),
        },
        Node::Both(operator, left, right) => {
            let (a, b) = (number(left, named)?, number(right, named)?);
            match operator {
                Operator::Add => a + b,
                Operator::Subtract => a - b,
                Operator::Multiply => a * b,
                Operator::Divide if b == 0.0 => return Err(Undecided("it divides by zero".into())),
                Operator::Divide => a / b,
                _ => return Err(Undecided("it is a condition".into())),
            }
        }
        Node::Truth(_) | Node::Not(_) => return Err(Undecided("it is a condition".into())),
    };
    if value.is_finite() { Ok(value) } else { Err(Undecided("a value overflows".into())) }
}
