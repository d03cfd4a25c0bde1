//! The arguments of a command as a number that tells whether those of two recordings differ, and nothing else: they may hold
//! secrets, so they are never recorded themselves. The key is the machine's own id, which is in no trace: without it nobody can
//! try which arguments have this number.

use std::ffi::OsString;
use std::fs;
use std::hash::Hasher;
use std::os::unix::ffi::OsStrExt;

/// Where the machine's id is; the second on systems without systemd.
const MACHINE_ID: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// `1f3a-5c60b2d1`: which key, and the number. None: this machine has no id, and a number without a key would tell too much.
pub(crate) fn digest(arguments: &[OsString]) -> Option<String> {
    let id = MACHINE_ID.iter().find_map(|path| fs::read_to_string(path).ok())?;
    let key = u128::from_str_radix(id.trim(), 16).ok().filter(|key| *key != 0)?;
    Some(with_key(key, arguments))
}

fn with_key(key: u128, arguments: &[OsString]) -> String {
    let which = keyed(key, [&b"inferscope: which key"[..]].into_iter());
    let number = keyed(key, arguments.iter().map(|argument| argument.as_bytes()));
    // Few digits: enough to see a difference, too few to tell one of many secrets from another.
    format!("{:04x}-{:08x}", which as u16, number as u32)
}

fn keyed<'a>(key: u128, words: impl Iterator<Item = &'a [u8]>) -> u64 {
    #[expect(
        deprecated,
        reason = "the successor may change with the compiler, and numbers of two versions are compared"
    )]
    let mut hasher = std::hash::SipHasher::new_with_keys((key >> 64) as u64, key as u64);
    for word in words {
        hasher.write_u64(word.len() as u64);
        hasher.write(word);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(key: u128, words: &[&str]) -> String {
        with_key(key, &words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn other_arguments_have_another_number_under_the_same_key() {
        let one = of(7, &["serve.py", "--batch", "8"]);
        assert_eq!(one, of(7, &["serve.py", "--batch", "8"]));
        for other in [&["serve.py", "--batch", "16"][..], &["serve.py", "--batch8"], &["serve.py", "--batch", "8", ""]]
        {
            let other = of(7, other);
            assert!(other[..5] == one[..5] && other != one, "{other} {one}");
        }
        assert_ne!(of(8, &["serve.py", "--batch", "8"])[..4], one[..4]);
        assert_eq!(one.len(), 13, "{one}");
    }
}
