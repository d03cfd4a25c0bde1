//! The allocator's settings, as text by name: nested ones as `key:value,key:value`, as `PYTORCH_CUDA_ALLOC_CONF` has them.

use super::heap::Heap;
use super::value::{Kind, Value};
use std::collections::BTreeMap;

/// There are about ten; a file may invent more.
const MOST: usize = 64;

pub fn read(heap: &Heap, settings: Value) -> BTreeMap<String, String> {
    let pairs = heap.items(settings).chunks_exact(2).take(MOST);
    pairs.filter_map(|pair| Some((heap.said(pair[0])?.to_string(), said(heap, pair[1])?))).collect()
}

fn said(heap: &Heap, value: Value) -> Option<String> {
    if heap.settled(value).is(Kind::Dict) {
        let pairs = heap.items(value).chunks_exact(2).take(MOST);
        // A division of 0 or 1 rounds nothing up.
        let pairs = pairs.filter_map(|pair| Some((plain(heap, pair[0])?, plain(heap, pair[1])?)));
        let pairs = pairs.filter(|(_, value)| value != "0").map(|(key, value)| format!("{key}:{value}"));
        return Some(pairs.collect::<Vec<_>>().join(","));
    }
    plain(heap, value)
}

fn plain(heap: &Heap, value: Value) -> Option<String> {
    match value.kind() {
        Kind::Bool => Some(if value == Value::bool(true) { "True".into() } else { "False".into() }),
        Kind::Text => heap.said(value).map(|text| trace::event::cut(text, 1000).to_owned()),
        _ => heap.float(value).map(|number| number.to_string()),
    }
}
