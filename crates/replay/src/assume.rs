//! How much a replay takes for granted about what was not recorded: a gain is asked for at its best, as usual and at its worst.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assume {
    Best = 0,
    Usual = 1,
    Worst = 2,
}
