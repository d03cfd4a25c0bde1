//! What a serving engine does in one of its steps, by the marker that it sets itself.

super::codes! {
    pub enum EnginePhase {
        Prefill = 1, "prefill";
        Decode = 2, "decode";
        /// Prefill of some requests and decoding of others in one batch.
        Mixed = 3, "mixed";
    }
}
