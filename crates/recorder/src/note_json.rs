//! Notes as the manifest and the journal have them: `{"code":"no-stacks","process":12,"processes":3,"args":["..."],
//! "text":"..."}`. A plain text is what versions before there were codes wrote, whose unfinished traces are still completed.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use trace::codes::{Note, NoteCode};

#[derive(Serialize, Deserialize)]
struct Written {
    code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    process: Option<u32>,
    #[serde(default, skip_serializing_if = "is_zero")]
    processes: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    /// For people who look into the file; no reader of ours takes it.
    #[serde(default, skip_deserializing)]
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Either {
    Coded(Written),
    Sentence(String),
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub(crate) fn serialize<S: Serializer>(notes: &[Note], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(notes.iter().map(|note| Written {
        code: note.code.name().into(),
        process: note.process,
        processes: note.processes,
        args: note.args.clone(),
        text: note.said(),
    }))
}

pub(crate) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Vec<Note>, D::Error> {
    let all = Vec::<Either>::deserialize(deserializer)?;
    Ok(all.into_iter().map(read).collect())
}

fn read(one: Either) -> Note {
    match one {
        Either::Sentence(text) => Note::sentence(text),
        Either::Coded(Written { code, process, processes, args, .. }) => match NoteCode::from_name(&code) {
            Some(code) => Note { code, process, processes, args },
            None => Note::sentence(format!("{code}: {}", args.join(", "))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(PartialEq, Debug, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        notes: Vec<Note>,
    }

    #[test]
    fn notes_come_back_and_sentences_of_before_stay_what_they_are() {
        let notes = vec![Note::new(NoteCode::NoPython), Note::new(NoteCode::NoStacks).with("denied").of(12)];
        let text = serde_json::to_string(&Holder { notes: notes.clone() }).unwrap();
        assert_eq!(
            text,
            r#"{"notes":[{"code":"no-python","text":"no stacks: no Python process was seen"},{"code":"no-stacks","process":12,"processes":1,"args":["denied"],"text":"no stacks of process 12: denied"}]}"#
        );
        assert_eq!(serde_json::from_str::<Holder>(&text).unwrap(), Holder { notes });
        let older = serde_json::from_str::<Holder>(r#"{"notes":["the disk was full"]}"#).unwrap();
        assert_eq!(older.notes, [Note::sentence("the disk was full")]);
    }
}
