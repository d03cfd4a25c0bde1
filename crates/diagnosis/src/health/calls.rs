//! What recording every call costs: it runs inside the program, and nobody measures it there.

use crate::rule::Case;

/// None: calls were not recorded.
pub fn overhead(case: &Case) -> Option<&'static str> {
    (case.timeline.info.settings.calls == Some(true))
        .then_some("not measured for --calls, which runs inside the program: time the program with and without it")
}

#[cfg(test)]
mod tests {
    use crate::health::lines;
    use crate::health_topic::HealthTopic;
    use crate::rule::Case;
    use timeline::Timeline;

    #[test]
    fn calls_are_not_taken_from_outside() {
        let said = |settings: &str| {
            let text = format!("{settings}\n track main\n samples 0..500ms every 10ms active gil f:1");
            let timeline = Timeline::from_text(&text).unwrap();
            let lines = lines(&Case::new(&timeline, None), &[], &[]);
            lines.into_iter().find(|line| line.topic == HealthTopic::Overhead).unwrap().text
        };
        assert!(said("calls on").starts_with("not measured for --calls"), "{}", said("calls on"));
        assert!(said("calls off").contains("from outside the program"), "{}", said("calls off"));
    }
}
