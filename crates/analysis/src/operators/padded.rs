//! What the recorder counted of ids in the host's memory: how many of them are padding.

/// Ids as the recorder counted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Padded {
    pub tokens: u64,
    pub padding: u64,
    /// Of the padding, what all rows have: gone if rows are padded to the longest of the batch.
    pub common: u64,
    /// The id that it is made of.
    pub id: u64,
}

impl Padded {
    /// From the list of an operator's arguments. None: nothing was counted, or what cannot be.
    pub fn read(numbers: &[u64]) -> Option<Padded> {
        let [tokens, padding, common, id] = *numbers else { return None };
        (common <= padding && padding < tokens).then_some(Padded { tokens, padding, common, id })
    }
}
