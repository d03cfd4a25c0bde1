//! Variables of the environment that look like settings and are none: a slip there would change nothing, without a word. They
//! may be meant for another version, so they are told and no error.

use analysis::spelling::nearest_of;
use trace::settings::{PREFIX, all, internal};

/// One sentence for each of these names that means nothing.
pub fn warnings(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut unknown: Vec<String> = names.filter(|name| is_unknown(name)).collect();
    unknown.sort_unstable();
    let warning = |name: &String| {
        let near = nearest_of(&name[PREFIX.len()..], all().map(|setting| setting.key));
        let hint = near.map_or("`inferscope config show` lists the keys".into(), |near| {
            format!("did you mean {PREFIX}{}?", near.to_uppercase())
        });
        // A name comes from anywhere: nothing in it may reach the terminal as more than text.
        format!("there is no setting {}, so it is ignored: {hint}", name.escape_debug())
    };
    unknown.iter().map(warning).collect()
}

fn is_unknown(name: &str) -> bool {
    name.starts_with(PREFIX) && !internal::ALL.contains(&name) && !all().any(|setting| setting.variable() == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn a_slip_is_told_with_what_was_meant() {
        let names = ["HOME", "INFERSCOPE_RATE_HZ", "INFERSCOPE_SEGMENTS"].map(str::to_owned).into_iter();
        let slips = ["RATE", "XYLOPHONE_QUARTET"].map(|word| format!("{PREFIX}{word}"));
        let told = warnings(names.chain(slips));
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].ends_with("did you mean INFERSCOPE_RATE_HZ?"), "{told:?}");
        assert!(told[1].ends_with("lists the keys"), "{told:?}");
    }

    /// What the sources mention is a setting or stands in the list of internal ones.
    #[test]
    fn our_own_variables_are_known() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = BTreeSet::new();
        let mut folders = vec![root.join("crates"), root.join("python")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "py") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.extend(text.split(PREFIX).skip(1).map(|rest| {
                        rest.chars()
                            .take_while(|letter| letter.is_ascii_uppercase() || *letter == '_')
                            .collect::<String>()
                    }));
                }
            }
        }
        assert!(found.contains("SEGMENTS") && found.contains("RATE_HZ"));
        let unknown: Vec<&String> =
            found.iter().filter(|word| !word.is_empty() && is_unknown(&format!("{PREFIX}{word}"))).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
