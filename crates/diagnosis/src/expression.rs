//! Small expressions over metrics, as user rules have them: arithmetic, comparison and `and`, `or`, `not`. Types and names
//! are checked when an expression is read; reading is bounded in length and depth.

mod eval;
mod parse;
mod token;

pub use eval::Undecided;

use crate::named::Named;

/// Longer or deeper is no condition that anybody reads.
pub const MOST_LETTERS: usize = 1000;
pub const MOST_DEPTH: usize = 64;

/// A condition: true, false, or undecided where a metric is missing.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition(Node);

/// What is wrong, and at which letter (from 1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionFault {
    pub at: usize,
    pub why: String,
}

#[derive(Clone, PartialEq, Debug)]
enum Node {
    Number(f64),
    Truth(bool),
    /// Place in the table of metrics.
    Metric(usize),
    Negative(Box<Node>),
    Not(Box<Node>),
    Both(Operator, Box<Node>, Box<Node>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operator {
    Or,
    And,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    Unequal,
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Condition {
    pub fn parse(text: &str) -> Result<Condition, ExpressionFault> {
        parse::condition(text).map(Condition)
    }

    pub fn holds(&self, named: &Named) -> Result<bool, Undecided> {
        eval::truth(&self.0, named)
    }

    /// The metrics that it asks for, each once, by their place in the table.
    pub fn metrics(&self) -> Vec<usize> {
        let mut found = Vec::new();
        collect(&self.0, &mut found);
        found
    }
}

fn collect(node: &Node, found: &mut Vec<usize>) {
    match node {
        Node::Metric(place) if !found.contains(place) => found.push(*place),
        Node::Number(_) | Node::Truth(_) | Node::Metric(_) => {}
        Node::Negative(inner) | Node::Not(inner) => collect(inner, found),
        Node::Both(_, left, right) => {
            collect(left, found);
            collect(right, found);
        }
    }
}
