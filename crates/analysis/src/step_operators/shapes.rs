//! The shapes and types of an operator's arguments: as they tell calls apart, and as people say them.

use crate::operators;

/// More tensors than this are not said.
const MOST: usize = 4;

/// The text of its sizes, of its types: two calls with the same are one row.
pub fn dims(text: &str) -> &str {
    between(text, "\"Input Dims\":", "\"Input type\":")
}

pub fn types(text: &str) -> &str {
    between(text, "\"Input type\":", "\"Concrete Inputs\":")
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let Some((_, rest)) = text.split_once(from) else { return "" };
    rest.split_once(to).map_or("", |(inside, _)| inside)
}

/// "[768, 256] [256, 1024]"; a scalar has no sizes.
pub fn said(text: &str) -> String {
    let sizes: Vec<Vec<u64>> =
        operators::sizes(text, "Input Dims").into_iter().filter(|sizes| !sizes.is_empty()).collect();
    let mut shown: Vec<String> = sizes.iter().take(MOST).map(|sizes| format!("{sizes:?}")).collect();
    if sizes.len() > MOST {
        shown.push("…".into());
    }
    shown.join(" ")
}

/// The type of its result as PyTorch's users write it; empty where it is none of these.
pub fn dtype(text: &str) -> &'static str {
    match operators::types(text, "Output type").first().copied().unwrap_or("") {
        "float" => "float32",
        "double" => "float64",
        "c10::Half" => "float16",
        "c10::BFloat16" => "bfloat16",
        "long int" => "int64",
        "int" => "int32",
        "short int" => "int16",
        "signed char" => "int8",
        "unsigned char" => "uint8",
        "bool" => "bool",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types_as_people_say_them() {
        let text = r#"{"Input Dims":[[8,96],[96,10],[]],"Input type":["float","float",""],"Concrete Inputs":["","","1"],"Output Dims":[[8,10]],"Output type":["c10::BFloat16"],"device":"cpu"}"#;
        assert_eq!((said(text).as_str(), dtype(text)), ("[8, 96] [96, 10]", "bfloat16"));
        assert_eq!((dims(text), types(text)), ("[[8,96],[96,10],[]],", r#"["float","float",""],"#));
        let many = r#"{"Input Dims":[[[1],[2],[3],[4],[5]]],"Input type":["TensorList"]}"#;
        assert_eq!(said(many), "[1] [2] [3] [4] …");
        for text in ["", "{", r#"{"Input Dims":[["#, r#"{"Output type":["#] {
            assert_eq!((said(text).as_str(), dtype(text), dims(text)), ("", "", ""), "{text}");
        }
    }
}
