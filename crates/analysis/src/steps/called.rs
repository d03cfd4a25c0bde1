//! What slices are called as steps: markers of engines by what they mark, names that differ in a number by what they share
//! ("iteration 7", "iteration 8"), all others by themselves. NVTX ranges of two domains are two things, whatever their names.

use super::library;
use std::collections::HashMap;
use timeline::{SliceKind, Timeline, step_marker};

/// Numbered parts of one step, not steps: a model has layers.
const PARTS: [&str; 8] = ["layer", "block", "head", "expert", "stage", "op_id", "rank", "worker"];
/// The number of every library's domain.
const LIBRARY: u32 = 1;

#[derive(Default)]
pub struct Called {
    /// By name: its place among the labels, one higher. 0: not asked for yet.
    known: Vec<u32>,
    /// The same for ranges of a domain, by name and domain.
    known_in: HashMap<(u32, u32), u32>,
    /// Domains, numbered from 1, and the number of each text of arguments by where it is: each is there once.
    domains: HashMap<String, u32>,
    by_args: HashMap<usize, u32>,
    by_key: HashMap<(u32, String), u32>,
    pub labels: Vec<Label>,
    /// Whether names that differ in a number are one.
    numbered: bool,
}

pub struct Label {
    pub text: String,
    /// An engine marks steps with it, whatever kind of slice it is.
    pub is_step: bool,
    /// A library's own, or an operator of a framework: never a step.
    pub is_library: bool,
}

impl Called {
    pub fn new(timeline: &Timeline, numbered: bool) -> Called {
        Called { known: vec![0; timeline.names.len()], numbered, ..Called::default() }
    }

    /// The place of a slice's label.
    pub fn of(&mut self, timeline: &Timeline, index: usize) -> u32 {
        let name = timeline.slices.name[index];
        let domain = match timeline.slices.kind(index) {
            SliceKind::Nvtx => timeline.slices.args(index).map_or(0, |args| self.domain(args)),
            _ => 0,
        };
        let known = match domain {
            0 => self.known.get(name as usize).copied().unwrap_or(0),
            _ => self.known_in.get(&(name, domain)).copied().unwrap_or(0),
        };
        if known > 0 {
            return known - 1;
        }
        let place = self.add(timeline.names.text(timeline::NameIndex(name)), domain);
        match (domain, self.known.get_mut(name as usize)) {
            (0, Some(known)) => *known = place + 1,
            _ => drop(self.known_in.insert((name, domain), place + 1)),
        }
        place
    }

    /// The number of the domain in the arguments; 0: none.
    fn domain(&mut self, args: &str) -> u32 {
        let domains = &mut self.domains;
        let mut number = |args: &str| {
            let Some(domain) = library::domain(args) else { return 0 };
            if let Some(known) = domains.get(domain) {
                return *known;
            }
            // All of the libraries' are one.
            let number = if library::is_domain(domain) { LIBRARY } else { domains.len() as u32 + LIBRARY + 1 };
            domains.insert(domain.to_owned(), number);
            number
        };
        *self.by_args.entry(args.as_ptr() as usize).or_insert_with(|| number(args))
    }

    fn add(&mut self, text: &str, domain: u32) -> u32 {
        let marker = step_marker(text).filter(|_| domain != LIBRARY);
        let key = match marker {
            Some(marker) => (0, marker.name.to_owned()),
            None if self.numbered => (domain, shared(text)),
            None => (domain, text.to_owned()),
        };
        let next = self.labels.len() as u32;
        let place = *self.by_key.entry(key).or_insert_with_key(|(_, key)| {
            let is_library = domain == LIBRARY || library::is_range(text);
            let text = if marker.is_some() { key.clone() } else { text.to_owned() };
            self.labels.push(Label { text, is_step: marker.is_some(), is_library });
            next
        });
        let label = &mut self.labels[place as usize];
        if marker.is_none() && label.text != text {
            label.text = shared(text);
        }
        place
    }
}

/// A name with `#` for each number. Numbered parts of a step keep theirs.
fn shared(text: &str) -> String {
    let small = text.to_ascii_lowercase();
    if !text.bytes().any(|byte| byte.is_ascii_digit()) || PARTS.iter().any(|part| small.contains(part)) {
        return text.to_owned();
    }
    let mut key = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_digit() {
            true if key.ends_with('#') => {}
            true => key.push('#'),
            false => key.push(letter),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_make_names_but_layers_keep_theirs() {
        for (text, key) in [
            ("iteration 12", "iteration #"),
            ("step[3/100]", "step[#/#]"),
            ("decode", "decode"),
            ("layer_3", "layer_3"),
            ("Stage 2", "Stage 2"),
        ] {
            assert_eq!(shared(text), key);
        }
    }
}
