//! Words to an expression by binding power (Pratt), with names and types checked on the way.

use super::token::{Token, tokens};
use super::{ExpressionFault, MOST_DEPTH, Node, Operator};
use crate::named;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Number,
    Truth,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Number => "a number",
            Type::Truth => "a condition",
        }
    }
}

pub fn condition(text: &str) -> Result<Node, ExpressionFault> {
    let mut parser = Parser { tokens: tokens(text)?, place: 0 };
    let (node, kind) = parser.expression(0, 0)?;
    match parser.peek() {
        (_, Token::End) if kind == Type::Truth => Ok(node),
        (_, Token::End) => {
            Err(ExpressionFault { at: 1, why: "it is a number, not a condition: compare it, as in `… > 0.3`".into() })
        }
        (at, token) => Err(ExpressionFault { at: *at, why: format!("{} is not expected here", token_text(token)) }),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    place: usize,
}

impl Parser {
    fn peek(&self) -> &(usize, Token) {
        // The last token is the end, which is never passed.
        &self.tokens[self.place.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> (usize, Token) {
        let token = self.peek().clone();
        self.place += 1;
        token
    }

    fn expression(&mut self, least: u8, depth: usize) -> Result<(Node, Type), ExpressionFault> {
        if depth > MOST_DEPTH {
            return Err(ExpressionFault { at: self.peek().0, why: format!("nested deeper than {MOST_DEPTH}") });
        }
        let (mut left, mut kind) = self.operand(depth)?;
        while let Some((operator, power)) = infix(&self.peek().1) {
            if power < least {
                break;
            }
            let at = self.next().0;
            let (right, other) = self.expression(power + 1, depth + 1)?;
            let wanted = if matches!(operator, Operator::And | Operator::Or) { Type::Truth } else { Type::Number };
            if let Some(wrong) = [kind, other].into_iter().find(|side| *side != wanted) {
                let why = format!("{} takes {} on both sides, not {}", sign(operator), wanted.name(), wrong.name());
                return Err(ExpressionFault { at, why });
            }
            kind = if power >= ADDS { Type::Number } else { Type::Truth };
            left = Node::Both(operator, Box::new(left), Box::new(right));
        }
        Ok((left, kind))
    }

    fn operand(&mut self, depth: usize) -> Result<(Node, Type), ExpressionFault> {
        let (at, token) = self.next();
        match token {
            Token::Number(value) => Ok((Node::Number(value), Type::Number)),
            Token::Name(name) => match name.as_str() {
                "not" => self.prefix(at, Type::Truth, COMPARES, depth),
                "true" | "false" => Ok((Node::Truth(name == "true"), Type::Truth)),
                name => metric(at, name).map(|place| (Node::Metric(place), Type::Number)),
            },
            Token::Sign("-") => self.prefix(at, Type::Number, NEGATES, depth),
            Token::Sign("!") => self.prefix(at, Type::Truth, NEGATES, depth),
            Token::Sign("(") => {
                let inner = self.expression(0, depth + 1)?;
                match self.next() {
                    (_, Token::Sign(")")) => Ok(inner),
                    (at, _) => Err(ExpressionFault { at, why: "missing closing parenthesis".into() }),
                }
            }
            other => {
                Err(ExpressionFault { at, why: format!("expected a metric or a number, got {}", token_text(&other)) })
            }
        }
    }

    fn prefix(&mut self, at: usize, wanted: Type, power: u8, depth: usize) -> Result<(Node, Type), ExpressionFault> {
        let (inner, kind) = self.expression(power, depth + 1)?;
        if kind != wanted {
            return Err(ExpressionFault { at, why: format!("this takes {}, not {}", wanted.name(), kind.name()) });
        }
        let inner = Box::new(inner);
        Ok((if wanted == Type::Truth { Node::Not(inner) } else { Node::Negative(inner) }, wanted))
    }
}

/// How strongly operators bind; `not` binds less than a comparison.
const COMPARES: u8 = 3;
const ADDS: u8 = 4;
const NEGATES: u8 = 6;

fn infix(token: &Token) -> Option<(Operator, u8)> {
    let word = match token {
        Token::Sign(sign) => *sign,
        Token::Name(name) => name.as_str(),
        _ => return None,
    };
    Some(match word {
        "or" | "||" => (Operator::Or, 1),
        "and" | "&&" => (Operator::And, 2),
        "<" => (Operator::Less, COMPARES),
        "<=" => (Operator::LessEqual, COMPARES),
        ">" => (Operator::Greater, COMPARES),
        ">=" => (Operator::GreaterEqual, COMPARES),
        "==" => (Operator::Equal, COMPARES),
        "!=" => (Operator::Unequal, COMPARES),
        "+" => (Operator::Add, ADDS),
        "-" => (Operator::Subtract, ADDS),
        "*" => (Operator::Multiply, 5),
        "/" => (Operator::Divide, 5),
        _ => return None,
    })
}

fn sign(operator: Operator) -> &'static str {
    match operator {
        Operator::Or => "or",
        Operator::And => "and",
        Operator::Less => "<",
        Operator::LessEqual => "<=",
        Operator::Greater => ">",
        Operator::GreaterEqual => ">=",
        Operator::Equal => "==",
        Operator::Unequal => "!=",
        Operator::Add => "+",
        Operator::Subtract => "-",
        Operator::Multiply => "*",
        Operator::Divide => "/",
    }
}

fn token_text(token: &Token) -> String {
    match token {
        Token::Name(name) => name.chars().take(60).collect(),
        Token::Number(number) => number.to_string(),
        Token::Sign(sign) => (*sign).to_owned(),
        Token::End => "the end".into(),
    }
}

fn metric(at: usize, name: &str) -> Result<usize, ExpressionFault> {
    named::find(name).ok_or_else(|| {
        let shown: String = name.chars().take(60).collect();
        let hint = named::nearest(name)
            .map_or("`inferscope rules list` shows all".into(), |near| format!("did you mean {near}?"));
        ExpressionFault { at, why: format!("there is no metric {shown}: {hint}") }
    })
}
