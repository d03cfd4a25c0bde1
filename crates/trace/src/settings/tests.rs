//! The rows: each accepts its own default, and no two are called the same.

use super::*;
use std::collections::BTreeSet;

fn reads_back<G: Group + PartialEq + std::fmt::Debug>() {
    for row in G::ROWS {
        let text = G::default().text(row);
        // What has no value by default has nothing to write.
        if text.is_empty() {
            continue;
        }
        let mut group = G::default();
        assert!(group.set(row, &[text]), "{}", row.key);
        assert_eq!(group, G::default(), "{}", row.key);
    }
}

#[test]
fn every_default_is_a_value_that_the_row_accepts() {
    reads_back::<Recording>();
    reads_back::<Reading>();
}

#[test]
fn no_two_settings_have_a_name_in_common() {
    for name in [|row: &Setting| row.field, |row: &Setting| row.key] {
        assert_eq!(all().map(name).collect::<BTreeSet<_>>().len(), all().count());
    }
    let flags = |row: &'static Setting| match row.flags {
        Flags::None => Vec::new(),
        Flags::Value { long, .. } => vec![long],
        Flags::Words(words) => words.iter().map(|word| word.long).collect(),
    };
    let flags: Vec<&str> = all().flat_map(flags).collect();
    assert_eq!(flags.iter().collect::<BTreeSet<_>>().len(), flags.len());
    assert!(flags.iter().all(|flag| flag.starts_with("--")), "{flags:?}");
}

/// The Python package makes the flag from the option's name; it has one exception written down, the rate.
#[test]
fn an_option_of_the_package_is_the_flag_with_other_dashes() {
    for row in Recording::ROWS {
        if let Flags::Value { long, .. } = row.flags
            && row.field != "rate_hz"
        {
            assert_eq!(long, format!("--{}", row.field.replace('_', "-")));
        }
    }
}

#[test]
fn a_flag_that_stands_for_a_value_stands_for_one_that_is_accepted() {
    for row in all() {
        if let Flags::Words(words) = row.flags {
            for word in words {
                let words = [word.stands_for.to_owned()];
                assert!(Recording::default().set(row, &words) || Reading::default().set(row, &words), "{}", word.long);
            }
        }
    }
}

#[test]
fn what_is_wrong_changes_nothing_and_says_what_would_be_right() {
    let row = all().find(|row| row.key == "rate_hz").unwrap();
    let mut recording = Recording::default();
    for text in ["0", "1001", "-1", "fast", ""] {
        assert!(!recording.set(row, &[text.to_owned()]), "{text}");
    }
    assert!(!recording.set(row, &["1".into(), "2".into()]));
    assert_eq!(recording, Recording::default());
    assert_eq!(row.accepts.must_be("0"), "must be a whole number from 1 to 1000 (--no-stacks for none)");
    assert_eq!(
        (row.help().as_str(), row.variable().as_str()),
        ("Stack samples per second, 1 to 1000", "INFERSCOPE_RATE_HZ")
    );
}
