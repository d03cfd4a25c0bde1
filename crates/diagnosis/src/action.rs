//! One thing to do, and what must hold for it. A condition that fails in the recording takes the action away; one that the recording does not tell is
//! said with it, and makes the finding less sure.

use std::fmt;
use std::ops::Deref;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Precondition {
    /// The recording shows it.
    Holds,
    /// The recording shows the opposite: what, as the end of a sentence.
    Fails(String),
    /// The recording does not tell: what to check, as a clause ("the rounds do not depend on each other").
    Unknown(String),
}

/// The chance of what the recording does not tell: nothing speaks for either side.
const CHANCE_IF_UNKNOWN: f64 = 0.5;

/// What has to be there for an action: whether a program without PyTorch can do it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Basis {
    Anything,
    Torch,
    /// One of its ways is of PyTorch: what it says without that one.
    TorchToo(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Action {
    text: String,
    /// What it is, without how.
    brief: String,
    basis: Basis,
    needs: Vec<Precondition>,
    by_hand: bool,
}

impl Action {
    pub fn new(text: impl Into<String>) -> Action {
        let text = text.into();
        Action {
            brief: text.trim_end_matches('.').to_owned(),
            text,
            basis: Basis::Anything,
            needs: Vec::new(),
            by_hand: false,
        }
    }

    /// One that only a program with PyTorch can do.
    pub fn torch(text: impl Into<String>) -> Action {
        Action { basis: Basis::Torch, ..Action::new(text) }
    }

    /// How it is done, after what it is: "Fuse small kernels", "torch.compile(model)." What cannot be done here is named without it.
    pub fn by(self, how: &str) -> Action {
        let brief = self.text;
        Action { text: format!("{brief}: {how}"), brief, ..self }
    }

    /// One more way to do it, for programs with PyTorch.
    pub fn or_torch(self, way: &str) -> Action {
        let without = self.text.trim_end_matches('.');
        Action { text: format!("{without}, {way}."), basis: Basis::TorchToo(format!("{without}.")), ..self }
    }

    /// Several that need nothing.
    pub fn all<Text: Into<Action>>(texts: impl IntoIterator<Item = Text>) -> Vec<Action> {
        texts.into_iter().map(Into::into).collect()
    }

    pub fn needs(mut self, all: impl IntoIterator<Item = Precondition>) -> Action {
        self.needs.extend(all.into_iter().filter(|one| *one != Precondition::Holds));
        self
    }

    /// One that `verify` cannot switch: what its rule's fix does is another.
    pub fn by_hand(self) -> Action {
        Action { by_hand: true, ..self }
    }

    pub fn is_by_hand(&self) -> bool {
        self.by_hand
    }

    /// The same conditions for another way to do it.
    pub fn instead(&self, text: impl Into<String>) -> Action {
        Action { needs: self.needs.clone(), ..Action::new(text) }
    }

    /// As a program without PyTorch can do it, where it can.
    pub fn without_torch(&self) -> Option<Action> {
        match &self.basis {
            Basis::Anything => Some(self.clone()),
            Basis::Torch => None,
            Basis::TorchToo(text) => Some(self.instead(text)),
        }
    }

    /// What it is, without how.
    pub fn brief(&self) -> &str {
        &self.brief
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why it cannot be done here.
    pub fn fails(&self) -> Option<&str> {
        self.needs.iter().find_map(|one| match one {
            Precondition::Fails(why) => Some(why.as_str()),
            Precondition::Holds | Precondition::Unknown(_) => None,
        })
    }

    /// What to check before it is done.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.needs.iter().filter_map(|one| match one {
            Precondition::Unknown(what) => Some(what.as_str()),
            Precondition::Holds | Precondition::Fails(_) => None,
        })
    }

    /// How likely all that it needs holds.
    pub fn applies(&self) -> f64 {
        match self.fails() {
            Some(_) => 0.0,
            None => self.unknown().map(|_| CHANCE_IF_UNKNOWN).product(),
        }
    }

    /// With what to check in front of it: somebody who reads no further must not do it blindly.
    pub fn with_conditions(self) -> Action {
        let conditions: Vec<&str> = self.unknown().collect();
        if conditions.is_empty() {
            return self;
        }
        let mut letters = self.text.chars();
        let acronym = self.text.chars().nth(1).is_some_and(char::is_uppercase);
        let first = letters.next().map(|first| if acronym { first.into() } else { first.to_lowercase().to_string() });
        let text = format!(
            "If {} (not recorded): {}{}",
            conditions.join(" and "),
            first.unwrap_or_default(),
            letters.as_str()
        );
        Action { text, ..self }
    }
}

impl From<&str> for Action {
    fn from(text: &str) -> Action {
        Action::new(text)
    }
}

impl From<String> for Action {
    fn from(text: String) -> Action {
        Action::new(text)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl PartialEq<&str> for Action {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

/// It reads like its text.
impl Deref for Action {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said_and_halves_the_chance() {
        let both = ["the rounds are independent", "they have one shape"].map(|what| Precondition::Unknown(what.into()));
        let action = Action::new("Batch them.").needs(both).needs([Precondition::Holds]);
        assert_eq!((action.applies(), action.fails()), (0.25, None));
        let said = "If the rounds are independent and they have one shape (not recorded): batch them.";
        assert_eq!(action.clone().with_conditions().text(), said);
        assert_eq!(action.instead("GPU batches.").with_conditions().text(), said.replace("batch them", "GPU batches"));
        assert_eq!(Action::new("Batch them.").needs([Precondition::Holds]).with_conditions(), "Batch them.");
    }

    #[test]
    fn one_condition_that_fails_takes_it_away() {
        let fails = [Precondition::Unknown("it fits".into()), Precondition::Fails("the step synchronises".into())];
        let action = Action::from("Capture it.".to_owned()).needs(fails);
        assert_eq!((action.applies(), action.fails()), (0.0, Some("the step synchronises")));
        assert_eq!(Action::new("Do it.").applies(), 1.0);
    }

    #[test]
    fn what_it_is_stands_before_how_it_is_done() {
        let fuse = Action::torch("Fuse small kernels").by("torch.compile(model).");
        assert_eq!((fuse.text(), fuse.brief()), ("Fuse small kernels: torch.compile(model).", "Fuse small kernels"));
        assert_eq!(Action::new("Batch: more.").brief(), "Batch: more");
    }
}
