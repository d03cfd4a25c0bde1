//! Codes: what the recorder says about a trace, as closed lists instead of sentences. Collectors and recorder write them, readers act
//! on them; [`crate::wording`] makes sentences of them. A program that happens to use our words in a name of its own says nothing by it.

mod collector;
mod engine;
mod fix;
mod gpu_windows;
mod loss;
mod memory;
mod note;
mod overhead;
mod reason;
mod spelled;
mod window;

pub use collector::{CollectorCode, Condition};
pub use engine::EnginePhase;
pub use fix::FixMoment;
pub use gpu_windows::GpuWindows;
pub use loss::LossReason;
pub use memory::{BlockOperation, MemoryOperation, StackMissing, StackReason};
pub use note::{Note, NoteCode};
pub use overhead::OverheadKind;
pub use reason::{Reason, ReasonCode};
pub use spelled::{Code, Spelled};
pub use window::RecordingWindow;

/// A list of codes, each with its number and its name. Both are on disk: never changed, never reused.
macro_rules! codes {
    ($(#[$about:meta])* pub enum $list:ident { $($(#[$each:meta])* $code:ident = $number:literal, $name:literal;)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(i32)]
        pub enum $list {
            $($(#[$each])* $code = $number,)+
        }

        impl $list {
            pub const ALL: &'static [$list] = &[$($list::$code,)+];

            pub fn name(self) -> &'static str {
                match self {
                    $($list::$code => $name,)+
                }
            }

            pub fn from_name(name: &str) -> Option<$list> {
                match name {
                    $($name => Some($list::$code),)+
                    _ => None,
                }
            }

            pub fn from_i32(number: i32) -> Option<$list> {
                match number {
                    $($number => Some($list::$code),)+
                    _ => None,
                }
            }
        }

        impl $crate::codes::Code for $list {
            fn name(self) -> &'static str {
                $list::name(self)
            }

            fn from_name(name: &str) -> Option<$list> {
                $list::from_name(name)
            }
        }
    };
}
use codes;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    macro_rules! comes_back {
        ($list:ident) => {
            let mut numbers = HashSet::new();
            for code in $list::ALL {
                assert_eq!(($list::from_name(code.name()), $list::from_i32(*code as i32)), (Some(*code), Some(*code)));
                assert!(numbers.insert(*code as i32), "{} has the number of another", code.name());
                let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                assert!(code.name().chars().all(kebab), "{}", code.name());
            }
            assert_eq!(($list::from_name("no such code"), $list::from_i32(-1)), (None, None));
        };
    }

    #[test]
    fn the_page_of_the_format_has_every_code() {
        let page = include_str!("../../../../docs/trace-format.md");
        let names = LossReason::ALL.iter().map(|code| code.name()).chain(NoteCode::ALL.iter().map(|code| code.name()));
        let names = names.chain(ReasonCode::ALL.iter().map(|code| code.name()));
        for name in names {
            assert!(page.contains(&format!("| `{name}` |")), "{name} is not on the page");
        }
    }

    #[test]
    fn every_code_comes_back_from_its_number_and_its_name() {
        comes_back!(CollectorCode);
        comes_back!(Condition);
        comes_back!(LossReason);
        comes_back!(MemoryOperation);
        comes_back!(BlockOperation);
        comes_back!(StackReason);
        comes_back!(StackMissing);
        comes_back!(NoteCode);
        comes_back!(EnginePhase);
        comes_back!(FixMoment);
        comes_back!(OverheadKind);
        comes_back!(ReasonCode);
        comes_back!(RecordingWindow);
    }
}
